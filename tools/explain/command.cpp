// kintsugi explain: shows the errors of each scheme on a problem, the candidate that a call would run, and
// why.
#include <algorithm>
#include <memory>

#include "command_line.hpp"
#include "commands.hpp"
#include "explain/output.hpp"
#include "tools/measure/nearest_name.hpp"

namespace kintsugi::tools {

namespace {

std::vector<std::string> schemes_to_explain(const ExplainRequest& request, Type type) {
  const std::vector<std::string> known = schemes_and_native({Type::float32, Type::float64});
  for (const auto& name : request.schemes) {
    if (std::find(known.begin(), known.end(), without_parameters(name)) == known.end())
      fail("--schemes", "\"{}\" is not known{}", name,
           measure::accepted_names(without_parameters(name), "accepted:", known));
  }
  if (!request.schemes.empty()) return request.schemes;
  std::vector<std::string> all = schemes_for(type);
  all.emplace_back("native");
  return all;
}

template <class T>
Explanation explain(const ExplainedProblem& problem, const ExplainRequest& request) {
  const measure::Product<T> product = problem.operands.product<T>();
  const core::MatrixView<const T> a = product.a;
  const core::MatrixView<const T> b = product.b.transposed();
  Explanation result;
  result.type = type_text(type_of<T>);
  result.a = operand_facts(a);
  result.b = operand_facts(b);
  const auto schemes = schemes_to_explain(request, type_of<T>);
  result.contract = contract_of(request.accuracy, type_of<T>, problem.k);
  const int dynamic_range = std::max(result.a.widest_dynamic_range, result.b.widest_dynamic_range);
  kintsugi_problem described = row_major_problem({problem.m, problem.n, problem.k}, type_of<T>);
  described.prepared_a = problem.prepared == "a" ? 1 : 0;
  described.prepared_b = problem.prepared == "b" ? 1 : 0;
  const auto choice_under = [&](const char* policy) {
    return choose(described, policy, request.accuracy, request.engine, dynamic_range);
  };
  result.choices = {
      .by_default = choice_under("auto"),
      .emulating = choice_under("emulate"),
      .dynamic_range = dynamic_range,
      .special_values = result.a.nans + result.a.infinities + result.b.nans + result.b.infinities};
  result.sampled_rows = sampled_vectors(result.a);
  result.sampled_columns = sampled_vectors(result.b);
  const Sample<T> sample(a, b, result.sampled_rows, result.sampled_columns);
  SchemeRows<T> rows(a, b, result.a, result.b, sample, result.contract, request.engine);
  Progress progress("explaining");
  for (const auto& scheme : schemes) {
    progress.show(std::ssize(result.rows), std::ssize(schemes));
    result.rows.push_back(rows.row(scheme));
  }
  return result;
}

// True if the scheme is a candidate of the fallback chain that accepts the operands, all of whose elements
// are finite.
bool accepted_by_chain(const Choices& choices, const std::string& scheme) {
  const std::vector<ChainCandidate>& candidates = choices.emulating.candidates;
  return choices.special_values == 0 &&
         std::any_of(candidates.begin(), candidates.end(), [&](const ChainCandidate& candidate) {
           return candidate.scheme == scheme && candidate.accepts(choices.dynamic_range);
         });
}

// Sets `proved` of rows that no bound of |A||B| can prove: of the native product, and of all schemes if the
// accuracy is exact. The acceptance test of the fallback chain proves these rows.
void set_proved_by_chain(Explanation& explanation) {
  const bool is_exact = explanation.contract.accuracy == "exact";
  for (SchemeRow& row : explanation.rows) {
    if (row.scheme == "native" || is_exact) row.proved = accepted_by_chain(explanation.choices, row.scheme);
  }
}

void run_explain(const ExplainRequest& request) {
  require_settings();
  const ExplainedProblem problem = read_problem(request);
  Explanation explanation = problem.operands.type() == Type::float32 ? explain<float>(problem, request)
                                                                     : explain<double>(problem, request);
  set_proved_by_chain(explanation);
  if (request.json) {
    print_json(problem, explanation);
  } else {
    print_text(problem, explanation);
  }
}

void add_problem_options(CLI::App& command, ExplainRequest& request) {
  const auto trans = one_of_any_case({"N", "T", "C"});
  ProblemRequest& files = request.files;
  auto* a = command.add_option("A", files.a_file, "Left operand, .npy or .mtx");
  command.add_option("B", files.b_file, "Right operand, .npy or .mtx");
  command.add_option("--transa", files.transa, "op(A): N, T (transpose) or C (conjugate transpose)")
      ->transform(trans)
      ->capture_default_str()
      ->needs(a);
  command.add_option("--transb", files.transb, "op(B), likewise")
      ->transform(trans)
      ->capture_default_str()
      ->needs(a);
  command.add_option("--m", request.m, "Instead of files: rows of C")->check(whole_number(1));
  command.add_option("--n", request.n, "Columns of C")->check(whole_number(1));
  command.add_option("--k", request.k, "Inner length")->check(whole_number(1));
  command.add_option("--distribution", request.distribution, "One of `kintsugi generate --help`");
  command.add_option("--seed", request.seed, "Seed of both operands")->capture_default_str();
  command.add_option("--type", request.type, "Type of the operands [the files', fp32]")
      ->check(one_of({"fp32", "fp64"}));
}

std::string explain_footer() {
  return "Example:\n"
         "  kintsugi explain --m 1024 --n 1024 --k 4096 --distribution phi:2\n"
         "  kintsugi explain A.npy B.npy --transb T --engine reference --schemes fp16x3,h2sgemm:sb=6,native\n"
         "\n"
         "Errors are measured on up to 16 rows and 16 columns of the problem, with all of k; bits and\n"
         "dynamic ranges are those of all rows and columns.";
}

}  // namespace

void add_explain(CLI::App& program, Action& action) {
  auto request = std::make_shared<ExplainRequest>();
  CLI::App* command = program.add_subcommand(
      "explain", "Say how exact each scheme is on a problem, which one a call would run, and why");
  command->footer(explain_footer());
  add_problem_options(*command, *request);
  command->add_option(
      "--accuracy", request->accuracy,
      "fp32, fp64, exact, reproducible or a tolerance [the settings', else the operands' type]");
  command->add_option("--engine", request->engine, "A name of `kintsugi engines` [the settings']");
  command
      ->add_option(
          "--prepare", request->prepare,
          "Operand that is split before the call, so that policy auto does not count its split: a, b or none")
      ->check(one_of({"none", "a", "b"}))
      ->capture_default_str();
  command
      ->add_option("--schemes", request->schemes,
                   "Names, comma-separated; native too [all that take the type]")
      ->delimiter(',');
  command->add_flag("--json", request->json, "Print one JSON document instead of text");
  command->callback([request, &action] { action = [request] { run_explain(*request); }; });
}

}  // namespace kintsugi::tools

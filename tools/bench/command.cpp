// kintsugi bench: checks candidates and baselines, then times them in one run.
#include <algorithm>
#include <memory>

#include "bench/run.hpp"
#include "io/atomic_file.hpp"
#include "program.hpp"
#include "report/page.hpp"

namespace kintsugi::tools {

namespace {

std::string workspace_text(const Json& bytes) {
  return bytes.is_null() ? "-" : bytes_text(bytes.get<double>());
}

// Returns the candidate's name. If the scheme that ran has another name, it follows: "fp64 (ozaki2)".
std::string name_text(const Json& row) {
  const std::string name = cell(row, "name");
  return name == cell(row, "scheme") ? name : name + " (" + cell(row, "scheme") + ")";
}

std::string sizes_text(const Json& row) {
  const Json& problem = row.at("problem");
  return cell(problem, "m") + " x " + cell(problem, "n") + " x " + cell(problem, "k");
}

// Returns the ratio to the baseline; "-" if there is no ratio because the clock was too coarse.
std::string ratio_text(const Json& ratios, const std::string& baseline) {
  const auto found = ratios.find(baseline);
  return found == ratios.end() ? "-" : fmt::format("{:.3g}", found->get<double>());
}

std::string number_text(const Json& number, double unit) {
  return number.is_null() ? "-" : fmt::format("{:.4g}", unit * number.get<double>());
}

// Returns half the difference between the slowest and the fastest round, relative to the median.
std::string spread_text(const Json& time) {
  const double width = time.at("maximum").get<double>() - time.at("minimum").get<double>();
  return fmt::format("{:.1f} %", 50 * width / time.at("median").get<double>());
}

void add_host_cells(const Bench& bench, const Json& row, HeadedCells& cells) {
  const Json& time = row.at("time");
  cells.emplace_back("quickest", seconds_text(time.at("minimum")));
  cells.emplace_back("median", seconds_text(time.at("median")));
  cells.emplace_back("CPU time", seconds_text(time.at("processor")));
  cells.emplace_back("GFLOP/s", number_text(row.at("rate"), 1e-9));
  for (const auto& baseline : bench.baselines)
    cells.emplace_back("x " + baseline + " (CPU time)", ratio_text(row.at("ratios"), baseline) + " (" +
                                                            ratio_text(row.at("processor_ratios"), baseline) +
                                                            ")");
}

void add_device_cells(const Bench& bench, const Json& row, HeadedCells& cells) {
  cells.emplace_back("median", seconds_text(row.at("time").at("median")));
  cells.emplace_back("+-", spread_text(row.at("time")));
  cells.emplace_back("TFLOP/s", number_text(row.at("rate"), 1e-12));
  for (const auto& baseline : bench.baselines)
    cells.emplace_back("x " + baseline, ratio_text(row.at("ratios"), baseline));
  cells.emplace_back("of its units", percent_text(row.at("of_ceiling")));
  cells.emplace_back("GB/s", number_text(row.at("bandwidth"), 1e-9));
  cells.emplace_back("W", number_text(row.at("power_watts"), 1));
  cells.emplace_back("MHz", number_text(row.at("clock_mhz"), 1));
}

void add_call_cells(const Bench& bench, const Json& row, HeadedCells& cells) {
  const double median = row.at("time").at("median");
  cells.emplace_back("call", seconds_text(median));
  cells.emplace_back("+-", spread_text(row.at("time")));
  for (const auto& baseline : bench.baselines) {
    const double baseline_median = median * row.at("ratios").at(baseline).get<double>();
    cells.emplace_back("beyond " + baseline, fmt::format("{:+.2f} us", 1e6 * (median - baseline_median)));
  }
}

// Prints the table of all rows, with the cells that `add_cells` adds between those that all tables have.
void print_table(const Bench& bench, const Json& rows,
                 void (*add_cells)(const Bench&, const Json&, HeadedCells&)) {
  std::vector<HeadedCells> table;
  for (const Json& row : rows) {
    HeadedCells& cells = table.emplace_back();
    cells.emplace_back("m x n x k", sizes_text(row));
    cells.emplace_back("candidate", name_text(row));
    add_cells(bench, row, cells);
    cells.emplace_back("workspace", workspace_text(row.at("workspace_bytes")));
    cells.emplace_back("largest error", check_text(row.at("check")));
  }
  fmt::print("{}", make_table(table, 2).text());
}

void print_ceilings(const Json& ceilings) {
  Table table({"at most", "T/s", "from", "to", "W", "MHz", "by"});
  for (std::size_t column = 1; column < 6; ++column) table.align_right(column);
  for (const auto& [name, ceiling] : ceilings.items()) {
    table.add({name, number_text(ceiling.at("rate"), 1e-12), number_text(ceiling.at("lowest"), 1e-12),
               number_text(ceiling.at("highest"), 1e-12), number_text(ceiling.at("power_watts"), 1),
               number_text(ceiling.at("clock_mhz"), 1), cell(ceiling, "way")});
  }
  fmt::print("{}\n", table.text());
}

// Prints the engine, which all rows except those of reference loops have in common.
void print_engine(const Json& rows) {
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [](const Json& candidate) { return !candidate.at("engine").is_null(); });
  if (row == rows.end()) return;
  fmt::print("{}\n", wrapped_for_output(cell(*row, "engine") + ": " + cell(*row, "engine_details"), 100, 2));
}

void print_text(const Bench& bench, const Json& result) {
  const Json& rows = result.at("rows");
  fmt::print("{}, {}, seed {}; threads: {}, rounds: {}\n", type_text(bench.type, bench.complex),
             bench.distribution, bench.seed, bench.threads, bench.repeat);
  if (bench.batch > 1) fmt::print("batch: {} products in one call, with contiguous operands\n", bench.batch);
  if (bench.prepare != "none")
    fmt::print("prepared: {}, split before the timed calls; native and reference loops split nothing\n",
               bench.prepare);
  print_engine(rows);
  fmt::print("\n");
  if (bench.times_calls()) {
    fmt::print("host time of a call, from call to return, on an idle device; different problems: {}\n\n",
               bench.problems);
    print_table(bench, rows, add_call_cells);
  } else if (bench.on_device) {
    if (bench.measures_ceilings()) print_ceilings(result.at("ceilings"));
    print_table(bench, rows, add_device_cells);
  } else {
    print_table(bench, rows, add_host_cells);
  }
  const bool has_partial_c = std::any_of(rows.begin(), rows.end(), [](const Json& row) {
    return row.at("computed").at("m") != row.at("problem").at("m") ||
           row.at("computed").at("n") != row.at("problem").at("n");
  });
  if (has_partial_c)
    fmt::print(
        "\nReference loops computed only the first {0} rows and {0} columns of C, which their rates count.\n",
        bench.baseline_size);
}

void run(const BenchRequest& request) {
  require_settings();
  refuse_settings({"scheme", "policy", "accuracy", "engine"},
                  "candidates, baselines and --engine name what runs");
  const Bench bench = make_bench(request);
  const bool to_standard_output = is_standard_output(request.output);
  const Json result = run_bench(bench, to_standard_output ? "" : request.output);
  if (request.json || to_standard_output) return print(result);
  print_text(bench, result);
}

constexpr const char* bench_footer =
    "Example:\n"
    "  kintsugi bench exact fp64 ozaki2 --type fp64 --distribution phi:0.5 --shapes 256,512 \\\n"
    "    --baselines native,float128,mpfr:113 -o bench.json\n"
    "\n"
    "A sample of the elements of every result is compared with the exact product before anything is "
    "timed:\n"
    "contracts by their coefficient, exact bit for bit, schemes by their a-priori bound. A result that\n"
    "exceeds its bound ends the program with status 1. Then all candidates and baselines are timed in\n"
    "turns, every other round in reverse order. Rates are 2 m n k operations a product (8 m n k for\n"
    "complex elements) divided by the fastest time, in workspace that was allocated before.\n"
    "kintsugi-lab report draws the results.\n"
    "\n"
    "  kintsugi bench fp16x3 fp16x3-wide --memory device --shapes 1024,4096,8192 --baselines "
    "native,tf32,fp16\n"
    "\n"
    "With --memory device the operands are on a GPU. The largest rates of its matrix units and its\n"
    "memory are measured first, by kernels that do nothing else. Times are the device's, of batches of\n"
    "some 50 ms; where the cache would hold the operands, several sets of them take turns. Rates are\n"
    "divided by the median time.\n"
    "\n"
    "  kintsugi bench fp16x3 bf16x6 --memory device --shapes 512 --batch 64 --prepare b\n"
    "\n"
    "  kintsugi bench auto fp32 --call gemm --shapes 8,32,128 --threads 1\n"
    "\n"
    "--call gemm times whole calls of kintsugi_gemm, as a program makes them that keeps no plan: each\n"
    "call checks its arguments, looks up the plan of an earlier call and allocates its workspace.\n"
    "\n"
    "  kintsugi bench auto fp32 --call gemm --memory device --shapes 1024 --problems 500 \\\n"
    "    --baselines policy:native,cublas\n"
    "\n"
    "On a GPU such times are the host's, from call to return, of 100 calls on an idle device. The\n"
    "baseline cublas is a call of cuBLAS itself; policy:native is a native product under the contract\n"
    "of its type.\n"
    "\n"
    "The baseline mkl is a call of MKL itself, on the host, where its libmkl_rt can be opened.\n"
    "The candidate auto is a call without options: the contract of its type under the policy auto.\n"
    "\n"
    "A batch is one call for all its products (for native on a GPU, cuBLAS's strided batch);\n"
    "elements of several of them are checked. The operand that --prepare names is split once before\n"
    "all calls, as weights are.";

// Adds options for candidates, baselines and the shapes that they multiply.
void add_products(CLI::App& command, BenchRequest& request) {
  command
      .add_option("CANDIDATE", request.candidates,
                  "Contracts (fp32, fp64, exact, a tolerance such as 1e-10; policy emulate), schemes, auto")
      ->required()
      ->delimiter(',');
  command
      .add_option(
          "--baselines", request.baselines,
          "[policy:]native, schemes, mkl, cublas, long-double, double-double, float128, mpfr:BITS [native]")
      ->delimiter(',');
  command.add_option("--shapes", request.shapes, "Sizes MxNxK, or N for NxNxN [512]")->delimiter(',');
  command
      .add_option("--batch", request.batch,
                  "Products of a shape in one call, whose operands are stored contiguously")
      ->check(whole_number(1, std::int64_t{1} << 20))
      ->capture_default_str();
  command
      .add_option(
          "--prepare", request.prepare,
          "Operand that is split before the timed calls (except native and reference loops): a, b or none")
      ->check(one_of({"none", "a", "b"}))
      ->capture_default_str();
}

// Adds options for the calls that are timed.
void add_calls(CLI::App& command, BenchRequest& request) {
  command
      .add_option(
          "--call", request.call,
          "What is timed: plan, the execution of a plan that exists already; gemm, all of kintsugi_gemm")
      ->check(one_of({"plan", "gemm"}))
      ->capture_default_str();
  command
      .add_option("--problems", request.problems,
                  "Different problems (k, k - 1, ...) whose calls take turns, with --call gemm on a device")
      ->check(whole_number(1, 100000))
      ->capture_default_str();
}

// Adds options for the operands' elements.
void add_operands(CLI::App& command, BenchRequest& request) {
  command
      .add_option("--type", request.type,
                  "Type of the operands: fp32, fp64, c32 or c64, complex with parts of these")
      ->check(one_of({"fp32", "fp64", "c32", "c64"}))
      ->capture_default_str();
  command.add_option("--distribution", request.distribution, "Of `kintsugi generate --help`")
      ->capture_default_str();
  command.add_option("--seed", request.seed, "Seed of the matrices")->capture_default_str();
}

// Adds options for rounds, threads, memory and engines.
void add_conditions(CLI::App& command, BenchRequest& request) {
  command.add_option("--repeat", request.repeat, "Rounds, in each of which all are timed")
      ->check(whole_number(1, 1000000))
      ->capture_default_str();
  command
      .add_option("--threads", request.threads,
                  "Threads of all that is timed [KINTSUGI_THREADS, else OMP_NUM_THREADS, else all]")
      ->check(whole_number(1, 4096));
  command.add_option("--memory", request.memory, "Where the operands lie, host or device (a GPU's)")
      ->check(one_of({"host", "device"}))
      ->capture_default_str();
  command.add_flag("--no-ceilings", request.no_ceilings,
                   "Do not measure the largest rates of the device, which takes some seconds");
  command.add_option("--engine", request.engine, "A name of `kintsugi engines` [cpu; on a device cuda]");
  command.add_option("--workspace-limit", request.workspace_limit, "Bytes, with K, M or G; 0: no limit")
      ->capture_default_str();
  command
      .add_option("--baseline-size", request.baseline_size,
                  "Most rows and columns of C that reference loops compute; their rate counts only these")
      ->check(whole_number(1, std::int64_t{1} << 40))
      ->capture_default_str();
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  auto request = std::make_shared<BenchRequest>();
  CLI::App* command =
      program.add_subcommand("bench", "Check candidates, then time them against baselines in one run");
  command->footer(bench_footer);
  add_products(*command, *request);
  add_calls(*command, *request);
  add_operands(*command, *request);
  add_conditions(*command, *request);
  command->add_option("-o,--output", request->output,
                      "File for the results, written after every shape; - for standard output");
  command->add_flag("--json", request->json, "Print one JSON document instead of text");
  command->callback([request, &action] { action = [request] { run(*request); }; });
}

}  // namespace kintsugi::tools

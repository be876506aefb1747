// kintsugi generate: writes a random matrix of a named distribution to a file.
#include <charconv>
#include <memory>

#include "io/atomic_file.hpp"
#include "io/matrix_file.hpp"
#include "program.hpp"
#include "tools/measure/generators/generators.hpp"

namespace kintsugi::tools {

namespace {

struct GenerateRequest {
  std::string distribution;
  std::string shape;
  std::string output;
  std::string seed = "1";
  std::string type = "fp32";
  std::string side = "a";
  std::string order = "c";
  bool json = false;
};

struct MatrixShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

MatrixShape parse_matrix_shape(const std::string& text) {
  MatrixShape shape;
  const char* last = text.data() + text.size();
  const auto rows = std::from_chars(text.data(), last, shape.rows);
  const bool has_x = rows.ec == std::errc() && rows.ptr != last && *rows.ptr == 'x';
  const auto columns = has_x ? std::from_chars(rows.ptr + 1, last, shape.columns) : rows;
  if (!has_x || columns.ec != std::errc() || columns.ptr != last || shape.rows < 0 || shape.columns < 0) {
    fail("SHAPE", "\"{}\" is not of the form ROWSxCOLUMNS, such as 512x256", text);
  }
  return shape;
}

void run_generate(const GenerateRequest& request) {
  check_output(request.output);
  if (is_standard_output(request.output) && request.json)
    fail("-o", "- is standard output, where --json writes too; give a file");
  const measure::Distribution distribution = parse_distribution("DISTRIBUTION", request.distribution);
  const MatrixShape shape = parse_matrix_shape(request.shape);
  const bool complex = request.type.starts_with("c");
  const Type type = request.type == "dd"           ? Type::double_double
                    : request.type.ends_with("32") ? Type::float32
                                                   : Type::float64;
  check_holds(request.output, type, complex);
  if (request.order != "c" && request.output.ends_with(".mtx"))
    fail("--order", "{} has no effect on a .mtx file, which has one order", request.order);
  Matrix matrix = make_matrix("SHAPE", shape.rows, shape.columns, type,
                              request.order == "c" ? Order::row_major : Order::column_major, complex);
  fill(matrix, "DISTRIBUTION", distribution, request.side == "a" ? measure::Side::a : measure::Side::b,
       parse_seed("--seed", request.seed));
  write_matrix(request.output, matrix);
  if (is_standard_output(request.output)) return;
  if (!request.json) {
    fmt::print("{}: {} x {} {}, {}, side {}, seed {}\n", request.output, matrix.rows, matrix.columns,
               matrix.element_type_name(), request.distribution, request.side, request.seed);
    return;
  }
  Json result = document("generate");
  result["seed"] = parse_seed("--seed", request.seed);
  result["distribution"] = request.distribution;
  result["side"] = request.side;
  result["matrix"] = {{"file", request.output},
                      {"rows", matrix.rows},
                      {"columns", matrix.columns},
                      {"type", matrix.element_type_name()},
                      {"order", request.order}};
  print(result);
}

std::string generate_footer() {
  std::string text =
      "Example:\n"
      "  kintsugi generate phi:2 512x256 -o A.npy --seed 1 --side a\n"
      "\n"
      "Distributions:\n";
  for (const auto& form : measure::distribution_forms()) text += "  " + form + "\n";
  return text;
}

}  // namespace

void add_generate(CLI::App& program, Action& action) {
  auto request = std::make_shared<GenerateRequest>();
  CLI::App* command = program.add_subcommand("generate", "Write a matrix of a named distribution to a file");
  command->footer(generate_footer());
  command->add_option("DISTRIBUTION", request->distribution, "How elements are drawn; listed below")
      ->required();
  command->add_option("SHAPE", request->shape, "ROWSxCOLUMNS of op(A) or op(B)")->required();
  command
      ->add_option("-o,--output", request->output,
                   "File to write, .npy or .mtx; - for standard output (.npy)")
      ->required();
  command->add_option("--seed", request->seed, "The same seed gives the same matrix")->capture_default_str();
  command
      ->add_option("--type", request->type, "Type of the elements; c32 and c64: complex, dd: double-double")
      ->check(one_of({"fp32", "fp64", "c32", "c64", "dd"}))
      ->capture_default_str();
  command
      ->add_option("--side", request->side,
                   "Operand for which it is made: rows of a and columns of b run along k")
      ->check(one_of({"a", "b"}))
      ->capture_default_str();
  command->add_option("--order", request->order, "Order of a .npy file: c or fortran")
      ->check(one_of({"c", "fortran"}))
      ->capture_default_str();
  command->add_flag("--json", request->json, "Say what was written as JSON");
  command->callback([request, &action] { action = [request] { run_generate(*request); }; });
}

}  // namespace kintsugi::tools

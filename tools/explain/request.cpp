#include "explain/request.hpp"

#include "tools/measure/generators/generators.hpp"

namespace kintsugi::tools {

namespace {

void check_request(const ExplainRequest& request) {
  const bool has_sizes = request.m > 0 || request.n > 0 || request.k > 0;
  if (!request.files.a_file.empty()) {
    if (has_sizes || request.is_generated())
      fail("--distribution", "{} is given: the problem is either two files, or sizes and a distribution",
           request.files.a_file);
    if (request.files.b_file.empty()) fail("B", "is missing");
    return;
  }
  if (!has_sizes && !request.is_generated())
    fail("A", "is missing: give two files, or --m, --n, --k and --distribution");
  if (request.m == 0) fail("--m", "is missing");
  if (request.n == 0) fail("--n", "is missing");
  if (request.k == 0) fail("--k", "is missing");
  if (!request.is_generated()) fail("--distribution", "is missing");
}

template <class T>
void fill_operand(const measure::Distribution& distribution, measure::Side side, std::uint64_t seed,
                  Matrix& matrix) {
  measure::fill(distribution, side, seed,
                core::MatrixView<T>{matrix.data<T>(), matrix.rows, matrix.columns, matrix.row_stride(),
                                    matrix.column_stride()});
}

// Returns a generated operand with contiguous vectors: rows of A, columns of B.
Matrix generated(const ExplainRequest& request, measure::Side side) {
  const bool is_a = side == measure::Side::a;
  const Type type = request.type == "fp64" ? Type::float64 : Type::float32;
  Matrix matrix = is_a ? make_matrix("--m", request.m, request.k, type, Order::row_major)
                       : make_matrix("--n", request.k, request.n, type, Order::column_major);
  const std::uint64_t seed = parse_seed("--seed", request.seed);
  try {
    const measure::Distribution distribution = measure::parse_distribution(request.distribution);
    if (type == Type::float32) {
      fill_operand<float>(distribution, side, seed, matrix);
    } else {
      fill_operand<double>(distribution, side, seed, matrix);
    }
  } catch (const InputError&) {
    throw;
  } catch (const std::runtime_error& error) {  // no such distribution, or the type cannot hold its values
    fail("--distribution", "{}", error.what());
  }
  return matrix;
}

ExplainedProblem generated_problem(const ExplainRequest& request) {
  ExplainedProblem problem;
  problem.operands.a = generated(request, measure::Side::a);
  problem.operands.b = generated(request, measure::Side::b);
  problem.operands.transa = problem.operands.transb = std::string(1, 'N');
  problem.source = {{"distribution", request.distribution}, {"seed", parse_seed("--seed", request.seed)}};
  return problem;
}

ExplainedProblem problem_of_files(const ExplainRequest& request) {
  ExplainedProblem problem;
  ProblemRequest files = request.files;
  files.type = request.type;
  problem.operands = read_operands(files);
  if (problem.operands.complex()) {
    fail(files.a_file, "holds {}; explain takes real matrices, gemm --explain complex ones too",
         problem.operands.a.element_type_name());
  }
  problem.source = {
      {"a", files.a_file}, {"b", files.b_file}, {"transa", files.transa}, {"transb", files.transb}};
  return problem;
}

}  // namespace

ExplainedProblem read_problem(const ExplainRequest& request) {
  check_request(request);
  ExplainedProblem problem = request.is_generated() ? generated_problem(request) : problem_of_files(request);
  problem.prepared = request.prepare;
  const Operands& operands = problem.operands;
  const bool is_plain_a = operands.transa == "N";
  const bool is_plain_b = operands.transb == "N";
  problem.m = is_plain_a ? operands.a.rows : operands.a.columns;
  problem.k = is_plain_a ? operands.a.columns : operands.a.rows;
  problem.n = is_plain_b ? operands.b.columns : operands.b.rows;
  if (problem.m == 0 || problem.n == 0 || problem.k == 0)
    fail(request.files.a_file, "the product is {} x {} with inner length {}: there is nothing to explain",
         problem.m, problem.n, problem.k);
  return problem;
}

}  // namespace kintsugi::tools

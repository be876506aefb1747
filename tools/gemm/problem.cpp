#include "gemm/problem.hpp"

#include <algorithm>
#include <cmath>

#include "support.hpp"

namespace kintsugi::tools {

namespace {

std::optional<Type> requested_type(const std::string& dtype) {
  if (dtype.empty()) return std::nullopt;
  return dtype == "fp32" ? Type::float32 : Type::float64;
}

void note_conversion(Operands& operands, const std::string& file, const MatrixFile& read) {
  const Type type = read.matrix.type();
  if (read.stored == type) return;
  if (type == Type::float64) {
    operands.notes.push_back(file + ": float32 read as float64, nothing is lost");
    return;
  }
  std::string note = fmt::format("{}: float64 rounded once to float32 (nearest)", file);
  if (file.ends_with(".npy")) {
    note += fmt::format(", {} of {} entries changed", read.rounded.changed,
                        read.matrix.rows * read.matrix.columns);
  }
  if (read.rounded.overflowed > 0) note += fmt::format(", {} of them to infinity", read.rounded.overflowed);
  operands.notes.push_back(note);
}

Matrix read_operand(Operands& operands, const std::string& file, std::optional<Type> type) {
  MatrixFile read = read_matrix(file, type);
  note_conversion(operands, file, read);
  return std::move(read.matrix);
}

void check_same_type(const std::string& file, const Matrix& matrix, const std::string& first_file,
                     Type type) {
  if (matrix.type() == type) return;
  fail(file, "holds {}, {} holds {}: give --dtype fp32 or --dtype fp64 for all", type_name(matrix.type()),
       first_file, type_name(type));
}

double round_scalar(const std::string& flag, const std::string& text, Type type) {
  const double value = parse_number(flag, text);
  if (type == Type::float64) return value;
  const auto rounded = static_cast<float>(value);
  if (std::isinf(rounded) && !std::isinf(value))
    fail(flag, "{} is beyond float32, the type of the operands", text);
  return static_cast<double>(rounded);
}

// A name of an operand in a message: A, or op(A) where its shape is that of a transpose.
std::string operand_name(char name, const std::string& trans) {
  return trans == "N" ? std::string(1, name) : fmt::format("op({})", name);
}

struct Shape {
  std::int64_t rows;
  std::int64_t columns;
};

Shape shape_of(const Matrix& matrix, const std::string& trans) {
  return trans == "N" ? Shape{matrix.rows, matrix.columns} : Shape{matrix.columns, matrix.rows};
}

// How an operand that lies in `matrix.order` is named to the library when all lie in `order`.
kintsugi_op stored_op(const Matrix& matrix, const std::string& trans, Order order) {
  if (matrix.order == order)
    return trans == "N" ? KINTSUGI_OP_N : trans == "T" ? KINTSUGI_OP_T : KINTSUGI_OP_C;
  return trans == "N" ? KINTSUGI_OP_T : KINTSUGI_OP_N;
}

std::int64_t leading_dimension(const Matrix& matrix) {
  return std::max<std::int64_t>(1, matrix.order == Order::row_major ? matrix.columns : matrix.rows);
}

void check_inner(const ProblemRequest& request, const Shape& a, const Shape& b) {
  if (a.columns == b.rows) return;
  fail(request.b_file, "{} is {} x {} and {} is {} x {}: the inner dimensions {} and {} differ",
       operand_name('A', request.transa), a.rows, a.columns, operand_name('B', request.transb), b.rows,
       b.columns, a.columns, b.rows);
}

void read_c(Operands& operands, const ProblemRequest& request, std::optional<Type> type, const Shape& c) {
  if (request.c_file.empty()) {
    if (operands.beta != 0) fail("--beta", "{} needs a matrix C: give --c FILE", request.beta);
    return;
  }
  if (request.beta.empty()) fail("--c", "{} is read only with a --beta, which is missing", request.c_file);
  Matrix matrix = read_operand(operands, request.c_file, type);
  check_same_type(request.c_file, matrix, request.a_file, operands.type());
  if (matrix.rows != c.rows || matrix.columns != c.columns) {
    fail(request.c_file, "is {} x {}; {} {} is {} x {}", matrix.rows, matrix.columns,
         operand_name('A', request.transa), operand_name('B', request.transb), c.rows, c.columns);
  }
  operands.c0 = reordered(matrix, operands.order);
}

kintsugi_problem make_problem(const Operands& operands, const Shape& c, std::int64_t k) {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  const std::int32_t type = operands.type() == Type::float32 ? KINTSUGI_F32 : KINTSUGI_F64;
  problem.m = c.rows;
  problem.n = c.columns;
  problem.k = k;
  problem.lda = leading_dimension(operands.a);
  problem.ldb = leading_dimension(operands.b);
  problem.ldc = std::max<std::int64_t>(1, operands.order == Order::row_major ? c.columns : c.rows);
  problem.op_a = stored_op(operands.a, operands.transa, operands.order);
  problem.op_b = stored_op(operands.b, operands.transb, operands.order);
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = type;
  problem.layout = operands.order == Order::row_major ? KINTSUGI_ROW_MAJOR : KINTSUGI_COLUMN_MAJOR;
  return problem;
}

template <class T>
core::MatrixView<const T> view(const Matrix& matrix) {
  return {matrix.data<T>(), matrix.rows, matrix.columns, matrix.row_stride(), matrix.column_stride()};
}

}  // namespace

template <class T>
lab::Product<T> Operands::product() const {
  lab::Product<T> result;
  result.a = transa == "N" ? view<T>(a) : view<T>(a).transposed();
  result.b = transb == "N" ? view<T>(b) : view<T>(b).transposed();
  result.alpha = alpha;
  result.beta = beta;
  if (c0) result.c0 = view<T>(*c0);
  return result;
}

template lab::Product<float> Operands::product() const;
template lab::Product<double> Operands::product() const;

Operands read_operands(const ProblemRequest& request) {
  Operands operands;
  const auto type = requested_type(request.dtype);
  operands.transa = request.transa;
  operands.transb = request.transb;
  operands.order = request.order == "c" ? Order::row_major : Order::column_major;
  operands.a = read_operand(operands, request.a_file, type);
  operands.b = read_operand(operands, request.b_file, type);
  check_same_type(request.b_file, operands.b, request.a_file, operands.type());
  const Shape a = shape_of(operands.a, request.transa);
  const Shape b = shape_of(operands.b, request.transb);
  check_inner(request, a, b);
  operands.alpha = round_scalar("--alpha", request.alpha, operands.type());
  operands.beta = request.beta.empty() ? 0 : round_scalar("--beta", request.beta, operands.type());
  const Shape c{a.rows, b.columns};
  read_c(operands, request, type, c);
  operands.problem = make_problem(operands, c, a.columns);
  return operands;
}

}  // namespace kintsugi::tools

#include "gemm/problem.hpp"

#include <algorithm>
#include <cmath>

#include "support.hpp"

namespace kintsugi::tools {

namespace {

// Parses "fp32", "fp64", "c32", "c64" or "dd". Returns nothing for "", which means the type of the files.
std::optional<Type> requested_type(const std::string& type) {
  if (type.empty()) return std::nullopt;
  if (type == "dd") return Type::double_double;
  return type == "fp32" || type == "c32" ? Type::float32 : Type::float64;
}

void note_conversion(Operands& operands, const std::string& file, const MatrixFile& read) {
  const Type type = read.matrix.type();
  if (read.stored == type) return;
  const bool complex = read.matrix.complex;
  if (type > read.stored) {
    operands.notes.push_back(fmt::format("{}: {} read as {}, nothing is lost", file,
                                         type_name(read.stored, complex), type_name(type, complex)));
    return;
  }
  std::string note = fmt::format("{}: {} rounded once to {} (nearest)", file, type_name(read.stored, complex),
                                 type_name(type, complex));
  if (file.ends_with(".npy")) {
    note += fmt::format(", {} of {} {} changed", read.rounded.changed,
                        read.matrix.rows * read.matrix.columns * (complex ? 2 : 1),
                        complex ? "parts" : "elements");
  }
  if (read.rounded.overflowed > 0) note += fmt::format(", {} of them to infinity", read.rounded.overflowed);
  operands.notes.push_back(note);
}

Matrix read_operand(Operands& operands, const std::string& file, const std::string& type) {
  MatrixFile read = read_matrix(file, requested_type(type));
  note_conversion(operands, file, read);
  if (read.matrix.complex && type.starts_with("fp"))
    fail(file, "holds {}, which --type {} would cut to its real parts", read.matrix.element_type_name(),
         type);
  if (read.matrix.complex && type == "dd")
    fail(file, "holds complex elements; --type dd computes with real ones");
  if (type.starts_with("c")) make_complex(read.matrix);
  return std::move(read.matrix);
}

void check_same_type(const std::string& file, const Matrix& matrix, const std::string& first_file,
                     const Matrix& first) {
  if (matrix.type() == first.type() && matrix.complex == first.complex) return;
  const bool complex = matrix.complex || first.complex;
  const bool is_double_double = std::max(matrix.type(), first.type()) == Type::double_double && !complex;
  fail(file, "holds {}, {} holds {}: give --type {} or --type {} for all", matrix.element_type_name(),
       first_file, first.element_type_name(),
       complex            ? "c32"
       : is_double_double ? "fp64"
                          : "fp32",
       complex            ? "c64"
       : is_double_double ? "dd"
                          : "fp64");
}

double round_scalar(const std::string& flag, const std::string& text, Type type) {
  const double value = parse_number(flag, text);
  if (type != Type::float32) return value;
  const auto rounded = static_cast<float>(value);
  if (std::isinf(rounded) && !std::isinf(value))
    fail(flag, "{} is beyond float32, the type of the operands", text);
  return static_cast<double>(rounded);
}

// Parses and rounds "RE", "RE,IM" or "HI,LO".
std::complex<double> round_scalar(const std::string& flag, const std::string& text,
                                  const Operands& operands) {
  const auto comma = text.find(',');
  if (comma == std::string::npos) return round_scalar(flag, text, operands.type());
  if (!operands.complex() && operands.type() != Type::double_double)
    fail(flag, "{} has an imaginary part and the operands have none", text);
  return {round_scalar(flag, text.substr(0, comma), operands.type()),
          round_scalar(flag, text.substr(comma + 1), operands.type())};
}

// Returns the name of an operand in a message: A, or op(A) if its shape is that of a transpose.
std::string operand_name(char name, const std::string& trans) {
  return trans == "N" ? std::string(1, name) : fmt::format("op({})", name);
}

struct OperandShape {
  std::int64_t rows;
  std::int64_t columns;
};

// Returns the shape of op(matrix).
OperandShape shape_of(const Matrix& matrix, const std::string& trans) {
  return trans == "N" ? OperandShape{matrix.rows, matrix.columns} : OperandShape{matrix.columns, matrix.rows};
}

// Returns the op of a matrix in a call whose layout is `order`. If the matrix is stored in the other order,
// it counts as transposed. Precondition: a complex matrix with trans = C is stored in `order`. Otherwise it
// would have to be conjugated without transposition, and there is no such op.
kintsugi_op stored_op(const Matrix& matrix, const std::string& trans, Order order) {
  if (matrix.order == order)
    return trans == "N" ? KINTSUGI_OP_N : trans == "T" ? KINTSUGI_OP_T : KINTSUGI_OP_C;
  return trans == "N" ? KINTSUGI_OP_T : KINTSUGI_OP_N;
}

std::int64_t leading_dimension(const Matrix& matrix) {
  return std::max<std::int64_t>(1, matrix.order == Order::row_major ? matrix.columns : matrix.rows);
}

void check_inner_dimensions(const ProblemRequest& request, const OperandShape& a, const OperandShape& b) {
  if (a.columns == b.rows) return;
  fail(request.b_file, "{} is {} x {} and {} is {} x {}: the inner dimensions {} and {} differ",
       operand_name('A', request.transa), a.rows, a.columns, operand_name('B', request.transb), b.rows,
       b.columns, a.columns, b.rows);
}

void read_c(Operands& operands, const ProblemRequest& request, const OperandShape& c) {
  if (request.c_file.empty()) {
    if (operands.beta != 0.0) fail("--beta", "{} needs a matrix C: give --c FILE", request.beta);
    return;
  }
  if (request.beta.empty()) fail("--c", "{} needs --beta", request.c_file);
  Matrix matrix = read_operand(operands, request.c_file, request.type);
  check_same_type(request.c_file, matrix, request.a_file, operands.a);
  if (matrix.rows != c.rows || matrix.columns != c.columns) {
    fail(request.c_file, "is {} x {}; {} {} is {} x {}", matrix.rows, matrix.columns,
         operand_name('A', request.transa), operand_name('B', request.transb), c.rows, c.columns);
  }
  operands.c0 = reordered(matrix, operands.order);
}

kintsugi_problem make_problem(const Operands& operands, const OperandShape& c, std::int64_t k) {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  const bool is_single = operands.type() == Type::float32;
  const std::int32_t real = operands.type() == Type::double_double ? KINTSUGI_DD
                            : is_single                            ? KINTSUGI_F32
                                                                   : KINTSUGI_F64;
  const std::int32_t type = !operands.complex() ? real : is_single ? KINTSUGI_C32 : KINTSUGI_C64;
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

}  // namespace

template <class T>
measure::Product<T> Operands::product() const {
  measure::Product<T> result;
  result.a = transa == "N" ? a.view<T>() : a.view<T>().transposed();
  result.b = transb == "N" ? b.view<T>() : b.view<T>().transposed();
  if constexpr (std::is_same_v<T, DoubleDouble>) {
    // A double-double scalar is parsed as HI,LO into the two parts of a complex number.
    result.alpha = core::normalized({alpha.real(), alpha.imag()});
    result.beta = core::normalized({beta.real(), beta.imag()});
  } else {
    result.alpha = alpha.real();
    result.beta = beta.real();
  }
  if (c0) result.c0 = c0->view<T>();
  return result;
}

template measure::Product<float> Operands::product() const;
template measure::Product<double> Operands::product() const;
template measure::Product<DoubleDouble> Operands::product() const;

Operands read_operands(const ProblemRequest& request) {
  Operands operands;
  operands.transa = request.transa;
  operands.transb = request.transb;
  operands.order = request.order == "c" ? Order::row_major : Order::column_major;
  operands.a = read_operand(operands, request.a_file, request.type);
  operands.b = read_operand(operands, request.b_file, request.type);
  check_same_type(request.b_file, operands.b, request.a_file, operands.a);
  const OperandShape a = shape_of(operands.a, request.transa);
  const OperandShape b = shape_of(operands.b, request.transb);
  check_inner_dimensions(request, a, b);
  operands.alpha = round_scalar("--alpha", request.alpha, operands);
  operands.beta = request.beta.empty() ? 0 : round_scalar("--beta", request.beta, operands);
  const OperandShape c{a.rows, b.columns};
  // stored_op() needs conjugated operands in C's order.
  if (operands.complex() && request.transa == "C") operands.a = reordered(operands.a, operands.order);
  if (operands.complex() && request.transb == "C") operands.b = reordered(operands.b, operands.order);
  read_c(operands, request, c);
  operands.problem = make_problem(operands, c, a.columns);
  return operands;
}

}  // namespace kintsugi::tools

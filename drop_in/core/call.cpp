#include "call.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace kintsugi::drop_in {

namespace {

Uplo other(Uplo uplo) {
  if (uplo == Uplo::invalid) return uplo;
  return uplo == Uplo::upper ? Uplo::lower : Uplo::upper;
}

Side other(Side side) {
  if (side == Side::invalid) return side;
  return side == Side::left ? Side::right : Side::left;
}

// Returns the op with which a rank-k update of A^T gives the result of the update of A with `op`.
// `transposition`: Op::t for syrk and syr2k, Op::c for herk and her2k.
Op other(Op op, Op transposition) {
  if (op == Op::n) return transposition;
  return op == Op::t || op == Op::c ? Op::n : op;
}

}  // namespace

Call product(kintsugi_type type, Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k,
             const void* alpha, const void* a, std::int64_t lda, const void* b, std::int64_t ldb,
             const void* beta, void* c, std::int64_t ldc) {
  return {.op_a = op_a,
          .op_b = op_b,
          .type = type,
          .m = m,
          .n = n,
          .k = k,
          .alpha = alpha,
          .a = a,
          .lda = lda,
          .b = b,
          .ldb = ldb,
          .beta = beta,
          .c = c,
          .ldc = ldc};
}

bool is_zero(const void* scalar, kintsugi_type type) {
  const auto all_zero = [&](const auto* parts) {
    return parts[0] == 0 && (!is_complex(type) || parts[1] == 0);
  };
  return is_single(type) ? all_zero(static_cast<const float*>(scalar))
                         : all_zero(static_cast<const double*>(scalar));
}

Call as_column_major(Call call) {
  if (call.layout != Layout::row_major) return call;
  call.layout = Layout::column_major;
  call.uplo = other(call.uplo);
  if (call.routine == Routine::gemv) {
    call.op_a = other(call.op_a, Op::t);
    std::swap(call.m, call.n);
  } else if (has_op_b(call.routine) || call.routine == Routine::ger) {
    std::swap(call.op_a, call.op_b);
    std::swap(call.a, call.b);
    std::swap(call.lda, call.ldb);
    std::swap(call.stride_a, call.stride_b);
    std::swap(call.m, call.n);
  } else if (has_side(call.routine)) {
    call.side = other(call.side);
    std::swap(call.m, call.n);
  } else if (!has_vectors(call.routine)) {
    call.op_a = other(call.op_a, is_hermitian(call.routine) ? Op::c : Op::t);
  }
  return call;
}

const void* one(kintsugi_type type) {
  static constexpr float single_one[] = {1, 0};
  static constexpr double double_one[] = {1, 0};
  return is_single(type) ? static_cast<const void*>(single_one) : double_one;
}
const void* zero() {
  static constexpr double zeros[] = {0, 0};  // its bits are those of zeros of every type
  return zeros;
}

// ------------------------------------------------------------------ routines with vectors

namespace {

bool is_one(const void* scalar, kintsugi_type type) {
  const auto is = [&](const auto* parts) { return parts[0] == 1 && (!is_complex(type) || parts[1] == 0); };
  return is_single(type) ? is(static_cast<const float*>(scalar)) : is(static_cast<const double*>(scalar));
}

std::int64_t at_least_one(std::int64_t length) { return std::max<std::int64_t>(length, 1); }

Call product_of_gemv(const Call& call) {
  Call product = call;
  product.routine = Routine::gemm;
  product.op_b = Op::n;
  product.m = call.op_a == Op::n ? call.m : call.n;
  product.k = call.op_a == Op::n ? call.n : call.m;
  product.n = 1;
  if (call.layout == Layout::row_major) return product;  // columns, with their increments
  if (call.ldc == 1) {                                   // y is a column, x a column or a row
    product.op_b = call.ldb == 1 ? Op::n : Op::t;
    product.ldb = call.ldb == 1 ? at_least_one(product.k) : call.ldb;
    product.ldc = at_least_one(product.m);
    return product;
  }
  product.layout = Layout::row_major;
  product.op_a = other(call.op_a, Op::t);
  product.is_supported = call.op_a != Op::c || !is_complex(call.type);
  return product;
}

Call product_of_symv(const Call& call) {
  Call product = call;
  product.routine = call.routine == Routine::symv ? Routine::symm : Routine::hemm;
  product.side = Side::left;
  product.n = 1;
  product.k = call.m;
  if (call.layout == Layout::row_major) return product;
  product.is_supported = call.ldb == 1 && call.ldc == 1;
  product.ldb = product.ldc = at_least_one(call.m);
  return product;
}

Call product_of_ger(const Call& call) {
  Call product = call;
  product.routine = Routine::gemm;
  product.k = 1;
  product.beta = one(call.type);
  if (call.layout == Layout::row_major) {  // x and y are columns
    product.op_a = Op::n;
    product.op_b = call.op_b == Op::c ? Op::c : Op::t;
    return product;
  }
  product.op_a = Op::t;  // x and y are rows
  product.op_b = Op::n;
  if (call.op_b != Op::c || !is_complex(call.type)) return product;
  product.is_supported = call.ldb == 1;
  product.op_b = Op::c;  // y is a column
  product.ldb = at_least_one(call.n);
  return product;
}

// x y^T, of which the conjugation of dotc takes the second factor: y is the row, x the column.
Call product_of_dot(const Call& call) {
  Call product = call;
  product.routine = Routine::gemm;
  product.layout = Layout::column_major;
  product.op_a = Op::n;
  product.op_b = call.op_a == Op::c ? Op::c : Op::t;
  product.m = product.n = 1;
  product.k = call.n;
  std::swap(product.a, product.b);
  std::swap(product.lda, product.ldb);
  product.alpha = one(call.type);
  if (product.beta == nullptr) product.beta = zero();
  product.ldc = 1;
  return product;
}

}  // namespace

Call product_of_vectors(const Call& call) {
  switch (call.routine) {
    case Routine::gemv: return product_of_gemv(call);
    case Routine::ger: return product_of_ger(call);
    case Routine::dot: return product_of_dot(call);
    default: return product_of_symv(call);
  }
}

bool leaves_result(const Call& call) {
  if (call.routine >= Routine::dot) return false;
  if (call.m == 0 || call.n == 0) return true;
  return is_zero(call.alpha, call.type) && (call.routine == Routine::ger || is_one(call.beta, call.type));
}

kintsugi_problem problem_of(const Call& call) {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  problem.m = call.m;
  problem.n = call.n;
  problem.k = call.k;
  problem.lda = call.lda;
  problem.ldb = call.ldb;
  problem.ldc = call.ldc;
  problem.batch_count = call.count;
  problem.stride_a = call.stride_a;
  problem.stride_b = call.stride_b;
  problem.stride_c = call.stride_c;
  problem.batch_kind = call.batch == BatchKind::pointers ? KINTSUGI_BATCH_POINTERS : KINTSUGI_BATCH_STRIDED;
  problem.op_a = static_cast<int>(call.op_a);
  problem.op_b = static_cast<int>(call.op_b);
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = call.type;
  problem.layout = call.layout == Layout::row_major ? KINTSUGI_ROW_MAJOR : KINTSUGI_COLUMN_MAJOR;
  return problem;
}

kintsugi_operands operands_of(const Call& call) {
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  operands.alpha = call.alpha;
  operands.a = call.a;
  operands.b = call.b;
  operands.beta = call.beta;
  operands.c = call.c;
  return operands;
}

// ------------------------------------------------------------------ memory of the matrices

namespace {

// True if `one` has a line j + shift for a line j of `other`.
bool lines_meet(const Region& one, const Region& other, std::int64_t shift) {
  return std::max<std::int64_t>(0, -shift) < std::min(other.lines, one.lines - shift);
}

// A position relative to a region: byte `byte` behind the beginning of line `line`, with 0 <= byte < stride.
struct Position {
  std::int64_t line, byte;
};
// Returns the position, relative to `one`, at which `other` begins. The line may be negative.
Position position_in(const Region& one, const Region& other) {
  const std::int64_t distance = other.first - one.first;
  std::int64_t line = distance / one.stride;
  if (line * one.stride > distance) --line;
  return {line, distance - line * one.stride};
}

const char* end_of(const Region& region) {
  return region.first + (region.lines - 1) * region.stride + region.line_bytes;
}

struct Matrix {
  const void* data;
  std::int64_t rows, columns, ld, stride;  // stride: distance of two matrices of a batch, in elements
};

Region region_of(const Call& call, const Matrix& matrix) {
  if (!call.is_supported || call.batch == BatchKind::pointers || matrix.data == nullptr) return {};
  const std::int64_t bytes = element_bytes(call.type);
  const auto columns = [&](std::int64_t count) -> Region {
    return {static_cast<const char*>(matrix.data), count, matrix.rows * bytes,
            std::max<std::int64_t>(matrix.ld, 1) * bytes};
  };
  if (call.batch == BatchKind::single || call.count == 1 || matrix.stride == 0)
    return columns(matrix.columns);
  if (matrix.stride == matrix.ld * matrix.columns) return columns(matrix.columns * call.count);
  if (matrix.rows <= 0 || matrix.columns <= 0 || call.count <= 0) return {};
  const std::int64_t distance = matrix.stride * (call.count - 1);
  const std::int64_t length = matrix.ld * (matrix.columns - 1) + matrix.rows;
  const char* const first =
      static_cast<const char*>(matrix.data) + std::min<std::int64_t>(distance, 0) * bytes;
  const std::int64_t whole = (std::abs(distance) + length) * bytes;
  return {.first = first, .lines = 1, .line_bytes = whole, .stride = whole};
}

Region region_of_a(const Call& call) {
  Matrix a{call.a, call.m, call.k, call.lda, call.stride_a};
  if (has_side(call.routine))
    a.rows = a.columns = order_of_a(call);
  else if (call.op_a != Op::n)
    std::swap(a.rows, a.columns);
  return region_of(call, a);
}

Region region_of_b(const Call& call) {
  Matrix b{call.b, call.k, call.n, call.ldb, call.stride_b};
  const bool is_like_a = !has_side(call.routine) && !has_op_b(call.routine);  // syr2k and her2k
  if (has_side(call.routine))
    b.rows = call.m;
  else if ((is_like_a ? call.op_a == Op::n : call.op_b != Op::n))
    std::swap(b.rows, b.columns);
  return region_of(call, b);
}

}  // namespace

bool overlap(const Region& one, const Region& other) {
  if (one.is_empty() || other.is_empty()) return false;
  if (one.first >= end_of(other) || other.first >= end_of(one)) return false;
  if (one.stride != other.stride) return true;
  // Line j of `other` begins in line j + begin.line of `one`, and may reach into the line after it.
  const Position begin = position_in(one, other);
  if (begin.byte < one.line_bytes && lines_meet(one, other, begin.line)) return true;
  return begin.byte + other.line_bytes > one.stride && lines_meet(one, other, begin.line + 1);
}

bool covers(const Region& outer, const Region& inner) {
  if (inner.is_empty()) return true;
  if (outer.is_empty()) return false;
  const bool is_contiguous = outer.lines == 1 || outer.stride == outer.line_bytes;
  if (is_contiguous) return inner.first >= outer.first && end_of(inner) <= end_of(outer);
  if (outer.stride != inner.stride) return false;
  const Position begin = position_in(outer, inner);
  return begin.byte + inner.line_bytes <= outer.line_bytes && begin.line >= 0 &&
         begin.line + inner.lines <= outer.lines;
}

std::vector<Region> inputs_of(const Call& written, bool reads_c) {
  const Call call = as_column_major(written);
  std::vector<Region> inputs;
  if (call.k > 0 || has_side(call.routine)) inputs = {region_of_a(call), region_of_b(call)};
  if (reads_c) inputs.push_back(output_of(written));
  return inputs;
}

Region output_of(const Call& written) {
  const Call call = as_column_major(written);
  return region_of(call, {call.c, call.m, call.n, call.ldc, call.stride_c});
}

bool reads_c(const Call& call) {
  if (has_diag(call.routine)) return true;
  const bool has_real_beta = writes_triangle(call.routine) && is_hermitian(call.routine);
  return call.beta != nullptr && !is_zero(call.beta, has_real_beta ? real_type(call.type) : call.type);
}

std::vector<char> packed(const Region& region) {
  if (region.is_empty()) return {};
  std::vector<char> lines(static_cast<std::size_t>(region.lines * region.line_bytes));
  for (std::int64_t line = 0; line < region.lines; ++line)
    std::memcpy(lines.data() + line * region.line_bytes, region.first + line * region.stride,
                static_cast<std::size_t>(region.line_bytes));
  return lines;
}

void unpack(const std::vector<char>& lines, const Region& region) {
  if (region.is_empty()) return;
  for (std::int64_t line = 0; line < region.lines; ++line)
    std::memcpy(const_cast<char*>(region.first) + line * region.stride,
                lines.data() + line * region.line_bytes, static_cast<std::size_t>(region.line_bytes));
}

}  // namespace kintsugi::drop_in

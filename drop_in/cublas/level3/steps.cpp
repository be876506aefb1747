#include "steps.hpp"

#include <cstring>
#include <utility>

#include "common/accuracy.hpp"

namespace kintsugi::cublas {

namespace {

// Returns half of an order. A half above 128 is rounded down to a multiple of 128, so that the second block
// is aligned like the matrix.
std::int64_t half_of(std::int64_t order) {
  constexpr std::int64_t multiple = 128;
  const std::int64_t half = order / 2;
  return half <= multiple ? half : half / multiple * multiple;
}

// Returns the call for the diagonal block of indices first ... end - 1, with the rows or columns of the other
// matrices that belong to these indices.
RoutineCall block_of(const RoutineCall& call, std::int64_t first, std::int64_t end) {
  RoutineCall block = call;
  const kintsugi_type type = call.type;
  if (call.is_update()) {
    block.m = end - first;
    block.n = end - first;
    const bool has_rows = call.op == KINTSUGI_OP_N;
    block.a = element_of(call.a, type, call.lda, has_rows ? first : 0, has_rows ? 0 : first);
    block.c = element_of(call.c, type, call.ldc, first, first);
    return block;
  }
  const bool is_left = call.is_on_left();
  std::int64_t& order_of_block = is_left ? block.m : block.n;
  order_of_block = end - first;
  block.a = element_of(call.a, type, call.lda, first, first);
  block.c = element_of(call.c, type, call.ldc, is_left ? first : 0, is_left ? 0 : first);
  if (call.b != nullptr)
    block.b = element_of(call.b, type, call.ldb, is_left ? first : 0, is_left ? 0 : first);
  return block;
}

// Names of the two off-diagonal blocks of A.
enum class OffDiagonal : std::uint8_t { lower_left, upper_right };

OffDiagonal stored_off_diagonal(const RoutineCall& call) {
  return call.uplo == fill_lower ? OffDiagonal::lower_left : OffDiagonal::upper_right;
}

// Returns the address of the off-diagonal block that is stored.
const void* stored_block(const RoutineCall& call, std::int64_t half) {
  const bool is_lower = stored_off_diagonal(call) == OffDiagonal::lower_left;
  return element_of(call.a, call.type, call.lda, is_lower ? half : 0, is_lower ? 0 : half);
}

}  // namespace

// Sets only the real parts, since all these scalars are real. Imaginary parts stay 0.
StepScalars::StepScalars(const RoutineCall& call, int pointer_mode) : one{}, minus_one{}, alpha{}, beta{} {
  const bool is_single = drop_in::is_single(call.type);
  const auto set_real_part = [&](Scalar& target, double value) {
    const auto single = static_cast<float>(value);
    if (is_single) {
      std::memcpy(target.bytes.data(), &single, sizeof single);
    } else {
      std::memcpy(target.bytes.data(), &value, sizeof value);
    }
  };
  set_real_part(one, 1);
  set_real_part(minus_one, -1);
  // Scalars of herk in device memory cannot be read here. reason_in_scalars() has forwarded such calls.
  if (call.routine != Routine::herk || pointer_mode != KINTSUGI_SCALARS_ON_HOST) return;
  const auto value_of = [&](const void* scalar) {
    return is_single ? static_cast<double>(*static_cast<const float*>(scalar))
                     : *static_cast<const double*>(scalar);
  };
  set_real_part(alpha, value_of(call.alpha));
  set_real_part(beta, value_of(call.beta));
}

void Steps::add(const RoutineCall& call) {
  if (call.order() < 2 * min_order_) return add_native(call);
  if (call.is_update()) return add_update(call);
  return call.is_solve() ? add_solve(call) : add_symmetric(call);
}

// Adds three steps: the update of the first diagonal block, the product for the off-diagonal block, and the
// update of the second diagonal block. A1 and A2 are the halves of op(A), and ' is the transpose (syrk) or
// the conjugate transpose (herk). The product is C21 := alpha A2 A1' + beta C21 for a lower triangle, and C12
// := alpha A1 A2' + beta C12 for an upper triangle.
void Steps::add_update(const RoutineCall& call) {
  const std::int64_t half = half_of(call.n);
  const bool is_lower = call.uplo == fill_lower, is_hermitian = call.routine == Routine::herk;
  const RoutineCall first = block_of(call, 0, half), second = block_of(call, half, call.n);
  const RoutineCall& rows_of_c = is_lower ? second : first;
  const RoutineCall& columns_of_c = is_lower ? first : second;
  const int transpose = is_hermitian ? KINTSUGI_OP_C : KINTSUGI_OP_T;
  const bool is_plain_a = call.op == KINTSUGI_OP_N;
  const void* alpha = is_hermitian ? scalars_.alpha.bytes.data() : call.alpha;
  const void* beta = is_hermitian ? scalars_.beta.bytes.data() : call.beta;
  void* block_of_c = element_of(call.c, call.type, call.ldc, is_lower ? half : 0, is_lower ? 0 : half);
  const Call product =
      cublas::product(call.type, is_plain_a ? KINTSUGI_OP_N : transpose,
                      is_plain_a ? transpose : KINTSUGI_OP_N, rows_of_c.n, columns_of_c.n, call.k, alpha,
                      rows_of_c.a, call.lda, columns_of_c.a, call.lda, beta, block_of_c, call.ldc);
  if (!decide_emulation(product)) return add_native(call);
  add(first);
  add_product(product);
  add(second);
}

// Computes both halves of C. With A on the left, a smaller call sets C1 := alpha A11 B1 + beta C1, and a
// product adds alpha A12 B2 to C1; likewise for C2. With A on the right, the factors are exchanged.
void Steps::add_symmetric(const RoutineCall& call) {
  const std::int64_t half = half_of(call.order()), rest = call.order() - half;
  const int transpose = call.routine == Routine::hemm ? KINTSUGI_OP_C : KINTSUGI_OP_T;
  const RoutineCall first = block_of(call, 0, half), second = block_of(call, half, call.order());
  const void* a = stored_block(call, half);
  const auto product_with = [&](const RoutineCall& target, const RoutineCall& source, OffDiagonal block,
                                std::int64_t inner) {
    const int op_a = block == stored_off_diagonal(call) ? KINTSUGI_OP_N : transpose;
    if (call.is_on_left())
      return cublas::product(call.type, op_a, KINTSUGI_OP_N, target.m, call.n, inner, call.alpha, a, call.lda,
                             source.b, call.ldb, scalars_.one.bytes.data(), target.c, call.ldc);
    return cublas::product(call.type, KINTSUGI_OP_N, op_a, call.m, target.n, inner, call.alpha, source.b,
                           call.ldb, a, call.lda, scalars_.one.bytes.data(), target.c, call.ldc);
  };
  // The upper right block of A multiplies the second half of B from the left, the first half from the right.
  const OffDiagonal block_for_first = call.is_on_left() ? OffDiagonal::upper_right : OffDiagonal::lower_left;
  const OffDiagonal block_for_second = call.is_on_left() ? OffDiagonal::lower_left : OffDiagonal::upper_right;
  const Call to_first = product_with(first, second, block_for_first, rest);
  const Call to_second = product_with(second, first, block_for_second, half);
  if (!decide_emulation(to_first)) return add_native(call);
  add(first);
  add(second);
  add_product(to_first);
  add_product(to_second);
}

// Adds three steps. The first solves for the half of X that does not depend on the other half. The product
// updates the right sides of the other half: B2 := alpha B2 - A21 X1 for a lower op(A) on the left. The last
// step solves for the other half.
void Steps::add_solve(const RoutineCall& call) {
  const std::int64_t order = call.order(), half = half_of(order);
  const bool is_lower = (call.uplo == fill_lower) == (call.op == KINTSUGI_OP_N);  // op(A) is a lower triangle
  const bool starts_with_first = is_lower == call.is_on_left();
  const RoutineCall first = block_of(call, 0, half), second = block_of(call, half, order);
  const RoutineCall& solved = starts_with_first ? first : second;
  RoutineCall other = starts_with_first ? second : first;
  const void* a = stored_block(call, half);  // op(a) is the off-diagonal block of op(A)
  const Call product = call.is_on_left()
                           ? cublas::product(call.type, call.op, KINTSUGI_OP_N, other.m, call.n, solved.m,
                                             scalars_.minus_one.bytes.data(), a, call.lda, solved.c, call.ldc,
                                             call.alpha, other.c, call.ldc)
                           : cublas::product(call.type, KINTSUGI_OP_N, call.op, call.m, other.n, solved.n,
                                             scalars_.minus_one.bytes.data(), solved.c, call.ldc, a, call.lda,
                                             call.alpha, other.c, call.ldc);
  if (!decide_emulation(product)) return add_native(call);
  add(solved);
  add_product(product);
  other.alpha = scalars_.one.bytes.data();  // the product has multiplied the other right sides by alpha
  add(other);
}

void Steps::add_native(const RoutineCall& call) { steps_.push_back({.native = call}); }

void Steps::add_product(const Call& product) {
  DecisionPointer decision = decide(product, state_);
  const bool emulates = decision->emulates;
  steps_.push_back(
      {.native = std::nullopt, .product = product, .decision = std::move(decision), .emulates = emulates});
}

bool Steps::decide_emulation(const Call& product) {
  DecisionPointer decision = decide(product, state_);
  const bool emulates = decision->emulates;
  if (!first_decision_) first_decision_.emplace(std::move(decision));
  return emulates;
}

}  // namespace kintsugi::cublas

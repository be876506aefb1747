#include "steps.hpp"

#include <cstring>
#include <utility>

#include "common/accuracy.hpp"

namespace kintsugi::cublas {

namespace {

// Returns half of an order, rounded down to a multiple of 128 if it is larger, so that blocks are as aligned
// as A is.
std::int64_t half_of(std::int64_t order) {
  constexpr std::int64_t multiple = 128;
  const std::int64_t half = order / 2;
  return half <= multiple ? half : half / multiple * multiple;
}

// Returns the call for indices first ... end - 1 of the order: the block on the diagonal of the triangular or
// symmetric matrix, with the rows or columns of the other matrices that belong to it.
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
  (is_left ? block.m : block.n) = end - first;
  block.a = element_of(call.a, type, call.lda, first, first);
  block.c = element_of(call.c, type, call.ldc, is_left ? first : 0, is_left ? 0 : first);
  if (call.b != nullptr)
    block.b = element_of(call.b, type, call.ldb, is_left ? first : 0, is_left ? 0 : first);
  return block;
}

// A block of A beside its diagonal, as a product reads it.
struct OffDiagonalBlock {
  const void* data;  // the stored block
  int op;            // op that makes the requested block of it
};

// Returns the lower left or upper right block of A, of which one is stored and the other is its transpose by
// `transpose`. Row or column `half` is where the stored block begins.
OffDiagonalBlock off_diagonal_block(const RoutineCall& call, bool is_lower_block, std::int64_t half,
                                    int transpose) {
  const bool lower_is_stored = call.uplo == fill_lower;
  return {
      .data = element_of(call.a, call.type, call.lda, lower_is_stored ? half : 0, lower_is_stored ? 0 : half),
      .op = is_lower_block == lower_is_stored ? KINTSUGI_OP_N : transpose};
}

}  // namespace

StepScalars::StepScalars(const RoutineCall& call, int pointer_mode) : one{}, minus_one{}, alpha{}, beta{} {
  const bool is_single = drop_in::is_single(call.type);
  const auto put = [&](Scalar& target, double value) {
    const auto single = static_cast<float>(value);
    if (is_single) {
      std::memcpy(target.bytes.data(), &single, sizeof single);
    } else {
      std::memcpy(target.bytes.data(), &value, sizeof value);
    }
  };
  put(one, 1);
  put(minus_one, -1);
  if (call.routine != Routine::herk || pointer_mode != KINTSUGI_SCALARS_ON_HOST) return;
  const auto value_of = [&](const void* scalar) {
    return is_single ? static_cast<double>(*static_cast<const float*>(scalar))
                     : *static_cast<const double*>(scalar);
  };
  put(alpha, value_of(call.alpha));
  put(beta, value_of(call.beta));
}

void Steps::add(const RoutineCall& call) {
  if (call.order() < 2 * min_order_) return add_native(call);
  if (call.is_update()) return add_update(call);
  return call.is_solve() ? add_solve(call) : add_symmetric(call);
}

// C21 := alpha A2 op(A1) + beta C21, or C12 for an upper triangle.
void Steps::add_update(const RoutineCall& call) {
  const std::int64_t half = half_of(call.n);
  const bool is_lower = call.uplo == fill_lower, is_hermitian = call.routine == Routine::herk;
  const RoutineCall first = block_of(call, 0, half), second = block_of(call, half, call.n);
  const RoutineCall& rows = is_lower ? second : first;
  const RoutineCall& columns = is_lower ? first : second;
  const int other = is_hermitian ? KINTSUGI_OP_C : KINTSUGI_OP_T;
  const Call product = cublas::product(
      call.type, call.op == KINTSUGI_OP_N ? KINTSUGI_OP_N : other,
      call.op == KINTSUGI_OP_N ? other : KINTSUGI_OP_N, rows.n, columns.n, call.k,
      is_hermitian ? static_cast<const void*>(scalars_.alpha.bytes.data()) : call.alpha, rows.a, call.lda,
      columns.a, call.lda, is_hermitian ? static_cast<const void*>(scalars_.beta.bytes.data()) : call.beta,
      element_of(call.c, call.type, call.ldc, is_lower ? half : 0, is_lower ? 0 : half), call.ldc);
  if (!is_emulated(product)) return add_native(call);
  add(first);
  add_product(product);
  add(second);
}

// Computes both halves of C: first alpha times A's block on the diagonal times B plus beta C, then adds alpha
// times the block beside the diagonal times the other half of B.
void Steps::add_symmetric(const RoutineCall& call) {
  const std::int64_t half = half_of(call.order()), rest = call.order() - half;
  const int other = call.routine == Routine::hemm ? KINTSUGI_OP_C : KINTSUGI_OP_T;
  const RoutineCall first = block_of(call, 0, half), second = block_of(call, half, call.order());
  const auto product_with = [&](const RoutineCall& target, const RoutineCall& source, bool is_lower_block,
                                std::int64_t inner) {
    const OffDiagonalBlock a = off_diagonal_block(call, is_lower_block, half, other);
    if (call.is_on_left())
      return cublas::product(call.type, a.op, KINTSUGI_OP_N, target.m, call.n, inner, call.alpha, a.data,
                             call.lda, source.b, call.ldb, scalars_.one.bytes.data(), target.c, call.ldc);
    return cublas::product(call.type, KINTSUGI_OP_N, a.op, call.m, target.n, inner, call.alpha, source.b,
                           call.ldb, a.data, call.lda, scalars_.one.bytes.data(), target.c, call.ldc);
  };
  // The upper block of A multiplies the second part of B from the left, the first one from the right.
  const Call to_first = product_with(first, second, !call.is_on_left(), rest);
  const Call to_second = product_with(second, first, call.is_on_left(), half);
  if (!is_emulated(to_first)) return add_native(call);
  add(first);
  add(second);
  add_product(to_first);
  add_product(to_second);
}

// Solves for the half of X that does not depend on the other one, subtracts its product from the right sides
// of the other half, and solves for that.
void Steps::add_solve(const RoutineCall& call) {
  const std::int64_t order = call.order(), half = half_of(order);
  const bool is_lower = (call.uplo == fill_lower) == (call.op == KINTSUGI_OP_N);  // of op(A)
  const bool begins_first = is_lower == call.is_on_left();
  const RoutineCall first = block_of(call, 0, half), second = block_of(call, half, order);
  const RoutineCall& solved = begins_first ? first : second;
  RoutineCall other = begins_first ? second : first;
  // op of the stored block is the block of op(A) beside the diagonal.
  const void* a = off_diagonal_block(call, call.uplo == fill_lower, half, KINTSUGI_OP_N).data;
  const Call product = call.is_on_left()
                           ? cublas::product(call.type, call.op, KINTSUGI_OP_N, other.m, call.n, solved.m,
                                             scalars_.minus_one.bytes.data(), a, call.lda, solved.c, call.ldc,
                                             call.alpha, other.c, call.ldc)
                           : cublas::product(call.type, KINTSUGI_OP_N, call.op, call.m, other.n, solved.n,
                                             scalars_.minus_one.bytes.data(), solved.c, call.ldc, a, call.lda,
                                             call.alpha, other.c, call.ldc);
  if (!is_emulated(product)) return add_native(call);
  add(solved);
  add_product(product);
  other.alpha = scalars_.one.bytes.data();
  add(other);
}

void Steps::add_native(const RoutineCall& call) { steps_.push_back({.native = call}); }

void Steps::add_product(const Call& product) {
  Decided decision = decide(product, state_);
  const bool emulates = decision->emulates && reason_in_scalars(product, state_) == nullptr;
  steps_.push_back(
      {.native = std::nullopt, .product = product, .decision = std::move(decision), .emulates = emulates});
}

bool Steps::is_emulated(const Call& product) {
  Decided decision = decide(product, state_);
  const char* reason = decision->emulates ? reason_in_scalars(product, state_) : nullptr;
  const bool emulates = decision->emulates && reason == nullptr;
  if (!first_) {
    why_ = reason != nullptr ? reason : decision->why;
    first_.emplace(std::move(decision));
  }
  return emulates;
}

}  // namespace kintsugi::cublas

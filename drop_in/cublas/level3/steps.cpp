#include "steps.hpp"

#include <cstring>
#include <utility>

#include "common/accuracy.hpp"

namespace kintsugi::cublas {

namespace {

// Half of an order, as a multiple of 128 where it is larger, so that blocks stay aligned as A is.
std::int64_t half_of(std::int64_t order) {
  constexpr std::int64_t multiple = 128;
  const std::int64_t half = order / 2;
  return half <= multiple ? half : half / multiple * multiple;
}

// A block of C and of what multiplies it, `first` to `end` along the order.
RoutineCall block_of(const RoutineCall& call, std::int64_t first, std::int64_t end) {
  RoutineCall block = call;
  const kintsugi_type type = call.type;
  if (call.is_update()) {
    block.m = block.n = end - first;
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

// The block beside the diagonal of a matrix with one triangle that stands for its rows [row, ...) and columns
// [column, ...), and the op that makes it of the stored one.
struct Beside {
  const void* data;
  int op;
};
Beside beside(const RoutineCall& call, bool is_lower_block, std::int64_t half, int op_of_other) {
  const bool is_stored = is_lower_block == (call.uplo == fill_lower);
  const bool lies_below = call.uplo == fill_lower;
  return {element_of(call.a, call.type, call.lda, lies_below ? half : 0, lies_below ? 0 : half),
          is_stored ? KINTSUGI_OP_N : op_of_other};
}

}  // namespace

StepScalars::StepScalars(const RoutineCall& call, int pointer_mode) : one{}, minus_one{}, alpha{}, beta{} {
  const bool is_single = drop_in::is_single(call.type);
  const auto put = [&](Scalar& target, double value) {
    const auto narrow = static_cast<float>(value);
    std::memcpy(target.bytes.data(), is_single ? static_cast<const void*>(&narrow) : &value,
                is_single ? sizeof narrow : sizeof value);
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

// Both halves of C: alpha times the block on A's diagonal plus beta C, then the block beside it added.
void Steps::add_symmetric(const RoutineCall& call) {
  const std::int64_t half = half_of(call.order()), rest = call.order() - half;
  const int other = call.routine == Routine::hemm ? KINTSUGI_OP_C : KINTSUGI_OP_T;
  const RoutineCall first = block_of(call, 0, half), second = block_of(call, half, call.order());
  const auto product_with = [&](const RoutineCall& target, const RoutineCall& source, bool is_lower_block,
                                std::int64_t inner) {
    const Beside a = beside(call, is_lower_block, half, other);
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

// The half of X that depends on no other, the product that takes it from the other half's right sides, and
// that half.
void Steps::add_solve(const RoutineCall& call) {
  const std::int64_t order = call.order(), half = half_of(order);
  const bool is_lower = (call.uplo == fill_lower) == (call.op == KINTSUGI_OP_N);  // of op(A)
  const bool begins_first = is_lower == call.is_on_left();
  const RoutineCall first = block_of(call, 0, half), second = block_of(call, half, order);
  const RoutineCall& solved = begins_first ? first : second;
  RoutineCall other = begins_first ? second : first;
  // The stored block is the one that op(A) has beside its diagonal.
  const void* a = beside(call, call.uplo == fill_lower, half, KINTSUGI_OP_N).data;
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
  const bool emulates = decision->emulates;
  steps_.push_back(
      {.native = std::nullopt, .product = product, .decision = std::move(decision), .emulates = emulates});
}

bool Steps::is_emulated(const Call& product) {
  Decided decision = decide(product, state_);
  const bool emulates = decision->emulates;
  if (!first_) {
    why_ = decision->why;
    first_.emplace(std::move(decision));
  }
  return emulates;
}

}  // namespace kintsugi::cublas

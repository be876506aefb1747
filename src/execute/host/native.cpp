#include "execute/host/steps.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/floating_environment.hpp"
#include "execute/host/operand.hpp"

namespace kintsugi::core {

namespace {

// True if the library may multiply an operand by alpha instead of the sums, so that alpha a underflows or
// overflows where the scaled sum does not. OpenBLAS passes products with one row or column of C to GEMV on
// some machines, whose kernels do so (0.3.28 and newer; none of 0.3.21 and 0.3.34 did on x86-64 with AVX-512:
// lab/results/log/2026-11-29-native-products.md).
template <class T>
bool may_scale_operands(const NativeProduct<T>& product) {
  const bool is_sign = product.alpha == T(1) || product.alpha == T(-1) || product.alpha == T(0);
  return !product.fixed_order && !is_sign && std::min(product.c.rows, product.c.columns) == 1;
}

// Multiplies without alpha and beta into memory on the stack, one part of C after the other, and applies
// them. Precondition: C has one row or one column.
template <class T>
void multiply_in_parts(const HostProducts& engine, NativeProduct<T> product) {
  constexpr std::int64_t most_elements = 1024;
  std::array<T, most_elements> sums;
  const MatrixView<T> c = product.c;
  const MatrixView<const T> a = product.a;
  const MatrixView<const T> b = product.b;
  const T alpha = std::exchange(product.alpha, T(1));
  const T beta = std::exchange(product.beta, T(0));
  const bool is_row = c.rows == 1;
  const std::int64_t elements = is_row ? c.columns : c.rows;
  for (std::int64_t first = 0; first < elements; first += most_elements) {
    const std::int64_t count = std::min(most_elements, elements - first);
    product.a = is_row ? a : a.block(first, 0, count, a.columns);
    product.b = is_row ? b.block(0, first, b.rows, count) : b;
    product.c = {sums.data(), is_row ? 1 : count, is_row ? count : 1, 1, is_row ? 1 : count};
    engine.native(product);
    for (std::int64_t e = 0; e < count; ++e) {
      T& element = is_row ? c(0, first + e) : c(first + e, 0);
      element = beta == T(0) ? alpha * sums[e] : alpha * sums[e] + beta * element;
    }
  }
}

}  // namespace

template <class T>
void multiply_natively(const Plan& plan, const Candidate& candidate, const Blocking& blocking,
                       const Operands& operands, std::int64_t item, Workspace& workspace) {
  const RoundingScope rounding(plan.rounding);
  const Problem& problem = plan.problem;
  const OperandView<T> a = view_of_a<T>(problem, operands.a, operands.prepared_a, item);
  const OperandView<T> b = view_of_b<T>(problem, operands.b, operands.prepared_b, item);
  NativeProduct<T> product;
  product.c = view_of_c<T>(problem, operands.c, item);
  product.alpha = scalar<T>(operands.alpha);
  product.beta = scalar<T>(operands.beta);
  product.threads = plan.threads;
  if constexpr (is_double_double<T>) {
    product.a = a;
    product.b = b.transposed();
    plan.engine->host()->native(product);
  } else {
    const std::size_t scratch = native_scratch_bytes(plan, candidate, blocking);
    product.a = elements_of(a);
    product.b = elements_of(b).transposed();
    product.conjugate_a = is_conjugated(a);
    product.conjugate_b = is_conjugated(b);
    product.fixed_order = candidate.fixed_order;
    product.scratch = {workspace.take(scratch), scratch};
    const bool has_contract = plan.contract.coefficient != 0;
    if (has_contract && may_scale_operands(product)) return multiply_in_parts(*plan.engine->host(), product);
    plan.engine->host()->native(product);
  }
}

#define INSTANTIATE(T)                                                                                \
  template void multiply_natively<T>(const Plan&, const Candidate&, const Blocking&, const Operands&, \
                                     std::int64_t, Workspace&);
KINTSUGI_FOR_ALL_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace kintsugi::core

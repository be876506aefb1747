#include "compose.hpp"

#include <exception>
#include <utility>

#include "core/settings.hpp"
#include "core/sites/site.hpp"
#include "symmetric.hpp"
#include "triangular.hpp"

namespace kintsugi::blas {

void Products::run(const Call& product) noexcept {
  if (product.m == 0 || product.n == 0) return;
  const auto forward = [&product] { return call_next_gemm(product); };
  CallOutcome part;
  try {
    blas::multiply(symbol_, product, Forward(forward), part);
  } catch (const std::exception&) {  // No memory; C is not written yet.
    part = {};
    multiply_natively(symbol_, product, Forward(forward));
  }
  add(part, static_cast<double>(product.m) * static_cast<double>(product.n) * static_cast<double>(product.k));
}

bool Products::are_reproducible() const {
  const std::string& accuracy = site_ != nullptr ? site_->rule.accuracy : settings().accuracy;
  return accuracy == "reproducible";
}

void Products::note_substitution() {
  outcome_.only_scaled = false;
  outcome_.program = "substitution";  // does not throw, since the text fits std::string's inline buffer
}

void Products::add(const CallOutcome& part, double multiplications) {
  outcome_.recomputed_elements += part.recomputed_elements;
  outcome_.has_special_values |= part.has_special_values;
  outcome_.failed |= part.failed;
  if (part.only_scaled && !outcome_.only_scaled) return;
  const bool is_first = outcome_.only_scaled && !part.only_scaled;
  if (!is_first && multiplications <= largest_) return;
  largest_ = multiplications;
  outcome_.only_scaled = part.only_scaled;
  try {
    outcome_.program = part.program;
    outcome_.why = part.why;
  } catch (const std::exception&) {  // No memory: the record has no names for this call.
  }
}

namespace {

template <class T>
T scalar_of(const void* pointer, bool is_real) {
  if (pointer == nullptr) return T(0);
  return is_real ? T(*static_cast<const Real<T>*>(pointer)) : *static_cast<const T*>(pointer);
}

template <class T>
void compose_typed(const Call& written, Products& products) {
  const Call call = as_column_major(written);
  const Routine routine = call.routine;
  T alpha = scalar_of<T>(call.alpha, routine == Routine::herk);
  const T beta = scalar_of<T>(call.beta, routine == Routine::herk || routine == Routine::her2k);
  // as_column_major() has transposed the equation. The transpose of alpha A B^H + conj(alpha) B A^H has
  // conj(alpha) where the caller has alpha.
  if (routine == Routine::her2k && written.layout == Layout::row_major) alpha = conjugate(alpha);
  switch (routine) {
    case Routine::gemm: return products.run(call);
    case Routine::gemmt:
    case Routine::syrk:
    case Routine::herk: return update_triangle<T>(call, alpha, beta, products);
    case Routine::syr2k:
    case Routine::her2k: return update_triangle_twice<T>(call, alpha, beta, products);
    case Routine::symm:
    case Routine::hemm: return multiply_symmetric<T>(call, alpha, beta, products);
    case Routine::trmm: return multiply_triangular<T>(call, alpha, products);
    case Routine::trsm: return solve_triangular<T>(call, alpha, products);
    default: return;  // routines with vectors, which arrive as the products that they are
  }
}

Call product_of(const Call& call, std::int64_t m, std::int64_t n, std::int64_t k) {
  Call product = call;
  product.routine = Routine::gemm;
  product.m = m;
  product.n = n;
  product.k = k;
  return product;
}

// Returns the first product of a rank-k update: the part of the first block column outside the diagonal
// block. If C is a single block, the product is that block.
Call product_of_update(const Call& call) {
  const std::int64_t columns = std::min(block_size(call.n, blocks_of_update), call.n);
  Call product = product_of(call, call.n > columns ? call.n - columns : call.n, columns, call.k);
  if (call.routine == Routine::gemmt) return product;
  product.op_b = call.op_a == Op::n ? Op::t : Op::n;
  product.ldb = call.lda;
  return product;
}

Call product_of_symmetric(const Call& call) {
  Call product = product_of(call, call.m, call.n, order_of_a(call));
  product.lda = std::max<std::int64_t>(product.k, 1);
  if (call.side == Side::right) {
    std::swap(product.op_a, product.op_b);
    std::swap(product.lda, product.ldb);
  }
  return product;
}

// Returns a product of trmm or trsm, which updates `lines` lines of B by `k` other lines. A line is a row of
// B if A is on the left, else a column.
Call product_of_triangular(const Call& call, std::int64_t lines, std::int64_t k) {
  const bool is_left = call.side == Side::left;
  Call product = product_of(call, is_left ? lines : call.m, is_left ? call.n : lines, k);
  product.ldb = call.ldc;
  if (is_left) return product;
  std::swap(product.op_a, product.op_b);
  std::swap(product.lda, product.ldb);
  return product;
}

}  // namespace

Call largest_product(const Call& written) {
  const Call call = as_column_major(written);
  const std::int64_t order = order_of_a(call);
  switch (call.routine) {
    case Routine::gemm: return call;
    case Routine::symm:
    case Routine::hemm: return product_of_symmetric(call);
    case Routine::trmm:
      return product_of_triangular(call, std::min(block_size(order, blocks_of_triangular), order), order);
    case Routine::trsm: return product_of_triangular(call, order - order / 2, order / 2);
    default: return product_of_update(call);
  }
}

void compose(const Call& call, Products& products) {
  switch (call.type) {
    case KINTSUGI_F32: return compose_typed<float>(call, products);
    case KINTSUGI_F64: return compose_typed<double>(call, products);
    case KINTSUGI_C32: return compose_typed<std::complex<float>>(call, products);
    default: return compose_typed<std::complex<double>>(call, products);
  }
}

}  // namespace kintsugi::blas

// The products that compute one call. Each product is decided, and emulated or forwarded, like a gemm.
#pragma once

#include "blas/multiply.hpp"
#include "view.hpp"

namespace kintsugi::blas {

template <class T>
constexpr kintsugi_type type_of() {
  constexpr bool is_single = std::is_same_v<Real<T>, float>;
  if constexpr (is_complex_element<T>) return is_single ? KINTSUGI_C32 : KINTSUGI_C64;
  return is_single ? KINTSUGI_F32 : KINTSUGI_F64;
}

class Products {
 public:
  // `outcome`: receives the outcome of the whole call.
  Products(const Symbol& symbol, const Site* site, CallOutcome& outcome)
      : symbol_(symbol), site_(site), outcome_(outcome) {
    outcome_.only_scaled = true;
  }

  // C := alpha A B + beta C. C must not overlap A or B. If alpha = 0, A and B are not read and may be null:
  // the product is made with k = 0, since some BLAS libraries read A and B in spite of alpha = 0. A product
  // that cannot be emulated is multiplied natively.
  template <class T>
  void multiply(const T& alpha, const View<const T>& a, const View<const T>& b, const T& beta,
                const View<T>& c) {
    if (c.is_transposed) return multiply(alpha, b.transposed(), a.transposed(), beta, c.transposed());
    const auto op = [](const View<const T>& view) {
      return view.is_conjugated ? Op::c : view.is_transposed ? Op::t : Op::n;
    };
    run({.type = type_of<T>(),
         .op_a = op(a),
         .op_b = op(b),
         .m = c.rows,
         .n = c.columns,
         .k = alpha == T(0) ? 0 : a.columns,
         .alpha = &alpha,
         .a = a.data,
         .lda = a.ld,
         .b = b.data,
         .ldb = b.ld,
         .beta = &beta,
         .c = c.data,
         .ldc = c.ld,
         .site = site_});
  }

  // True if the call has the accuracy `reproducible`, by the settings or by its site's rule.
  bool are_reproducible() const;

  // Makes "substitution" the program of the outcome until a product replaces it.
  void note_substitution();

  // Computes a product that is given as a gemm call.
  void run(const Call& product) noexcept;

 private:
  // Adds the outcome of one product of `multiplications` multiplications to the outcome of the call.
  void add(const CallOutcome& part, double multiplications);

  const Symbol& symbol_;
  const Site* site_;
  CallOutcome& outcome_;
  double largest_ = -1;  // multiplications of the largest product so far; the outcome names its program
};

}  // namespace kintsugi::blas

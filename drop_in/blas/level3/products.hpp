// Products that a composed routine consists of: each is decided, emulated or forwarded as a gemm of its own.
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
  // `outcome` becomes that of the call of which the products are parts.
  Products(const Symbol& symbol, const Site* site, CallOutcome& outcome)
      : symbol_(symbol), site_(site), outcome_(outcome) {
    outcome_.only_scaled = true;
  }

  // C := alpha A B + beta C. C does not overlap A or B, which are not read, and may be null, where alpha = 0:
  // not all of BLAS keeps to that, but k = 0 is taken as such. Fails never: what cannot be emulated is
  // multiplied natively.
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

  // Says that equations are solved by substitution, which is what the outcome names where no product is
  // needed.
  void note_substitution();

  // A gemm as it stands.
  void run(const Call& product) noexcept;

 private:
  void add(const CallOutcome& part, double multiplications);

  const Symbol& symbol_;
  const Site* site_;
  CallOutcome& outcome_;
  double largest_ = -1;  // multiplications of the largest product so far, whose program the outcome names
};

}  // namespace kintsugi::blas

// Judges the result of a FuzzCase: finite elements by the distance from exact sums that the contract or
// scheme allows, bit for bit where the contract is `exact`; special values by the table in
// docs/ARCHITECTURE.md. Reads only C's image, whatever memory C was in.
#pragma once

#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/fuzz_data.hpp"
#include "tests/support/fuzz_embedded.hpp"
#include "tests/support/fuzz_promise.hpp"
#include "tests/support/fuzz_rows.hpp"
#include "tests/verification/special_oracle.hpp"
#include "tools/measure/bound_check.hpp"
#include "tools/measure/metrics.hpp"
#include "tools/measure/reference/exact.hpp"

namespace kintsugi::test {

namespace fuzz {

// Norms that a scheme's bound refers to. A vector with a special value counts as zeros, since its elements of
// C are judged by class; where vectors share tiles, and so a scale, only the special values count as zeros.
template <class Part>
measure::VectorNorms norms_of(const std::vector<Part>& vectors, std::int64_t count, std::int64_t length,
                              const nlohmann::json& split) {
  using Word = WordOf<Part>;
  const measure::SplitDescription description = split_of(split);
  std::vector<Word> words(vectors.size());
  for (std::int64_t v = 0; v < count; ++v) {
    bool finite = true;
    for (std::int64_t p = v * length; p < (v + 1) * length; ++p) {
      words[p] = static_cast<Word>(core::leading_part(vectors[p]));
      const bool is_finite = std::isfinite(words[p]);
      finite = finite && is_finite;
      if (!is_finite) words[p] = 0;
    }
    if (!finite && description.tile_vectors == 0)
      std::fill(words.begin() + v * length, words.begin() + (v + 1) * length, Word(0));
  }
  return measure::vector_norms(core::MatrixView<const Word>{words.data(), count, length, length, 1},
                               measure::split_window(description));
}

}  // namespace fuzz

template <class T>
class FuzzJudge {
 public:
  using Part = PartOf<T>;

  // `after` is C's image after a successful call. A batch item of more than `max_products` products is judged
  // by a sample of its elements, corners included.
  FuzzJudge(const FuzzData<T>& data, const Promise& promise, const std::byte* after,
            std::int64_t max_products = std::numeric_limits<std::int64_t>::max())
      : data_(data), promise_(promise), after_(after), max_products_(max_products) {}

  // Says what is wrong with the first wrong element; "" if none is.
  std::string verdict() {
    if (const std::int64_t byte = data_.damage(after_); byte >= 0)
      return "byte " + std::to_string(byte) + " outside C's elements was written";
    for (std::int64_t item = 0; item < data_.test().batch && failure_.empty(); ++item) judge_item(item);
    return failure_;
  }

  // Largest |error| / bound of the elements that were compared with a bound, and their number.
  double worst_ratio() const { return worst_; }
  std::int64_t bounded_elements() const { return bounded_; }

 private:
  static constexpr std::int64_t parts = fuzz::Embedded<T>::parts;
  static constexpr double largest = static_cast<double>(std::numeric_limits<fuzz::WordOf<Part>>::max());
  using Scalar = measure::ScalarOf<Part>;

  struct Scalars {
    Scalar re;
    double im = 0;
  };
  static Scalars scalars_of(const T& x) {
    if constexpr (parts == 2) {
      return {static_cast<double>(x.real()), static_cast<double>(x.imag())};
    } else {
      return {static_cast<Scalar>(x), 0};
    }
  }

  void judge_item(std::int64_t item) {
    const fuzz::Embedded<T> matrices(data_, item);
    matrices_ = &matrices;
    find_norms();
    for (std::int64_t i = 0; i < matrices.m; ++i) {
      for (std::int64_t j = 0; j < matrices.n && failure_.empty(); ++j) {
        if (!is_in_sample(i, j)) continue;
        const T computed = data_.c(after_, item, i, j / parts);
        judge_part(i, j, fuzz::Embedded<T>::part_of(computed, j % parts));
        if (!failure_.empty())
          failure_ = "item " + std::to_string(item) + " element (" + std::to_string(i) + ", " +
                     std::to_string(j / parts) + ")" + (parts == 2 ? (j % 2 == 0 ? " re" : " im") : "") +
                     ": " + failure_;
      }
    }
    if (failure_.empty()) judge_rows(item);
  }

  // One element in so many is judged.
  std::int64_t elements_per_sample() const {
    return 1 + std::max<std::int64_t>(matrices_->k, 1) * matrices_->m * matrices_->n / max_products_;
  }
  bool is_in_sample(std::int64_t i, std::int64_t j) const {
    const std::int64_t m = matrices_->m, n = matrices_->n;
    const bool is_corner = (i == 0 || i == m - 1) && (j / parts == 0 || j / parts == n / parts - 1);
    return is_corner ||
           measure::mix_bits(data_.test().seed ^ measure::mix_bits(static_cast<std::uint64_t>(i * n + j))) %
                   static_cast<std::uint64_t>(elements_per_sample()) ==
               0;
  }

  // Checks all elements, of which only a sample was judged, by sums of rows, which find larger errors only.
  void judge_rows(std::int64_t item) {
    if constexpr (!std::is_same_v<Part, core::DoubleDouble>) {
      const Scalars alpha = scalars_of(data_.alpha()), beta = scalars_of(data_.beta());
      const bool finite_scalars =
          is_finite(alpha.re) && is_finite(alpha.im) && is_finite(beta.re) && is_finite(beta.im);
      if (elements_per_sample() == 1 || !finite_scalars || !is_promised() ||
          (multiplies_by_zero() && any_may_overflow()))
        return;
      const fuzz::RowSums<Part> rows(
          {matrices_->m, matrices_->n, matrices_->k, matrices_->a.data(), matrices_->b.data(),
           matrices_->c.data(), alpha.re, alpha.im, beta.re, beta.im},
          data_.test().seed);
      for (std::int64_t i = 0; i < matrices_->m && failure_.empty(); ++i) {
        const auto ratio =
            rows.ratio(i, row_bound(i, std::fabs(alpha.re) + std::fabs(alpha.im)), [&](std::int64_t j) {
              return static_cast<double>(
                  fuzz::Embedded<T>::part_of(data_.c(after_, item, i, j / parts), j % parts));
            });
        if (ratio && !(*ratio <= 1))
          failure_ = "item " + std::to_string(item) + " row " + std::to_string(i) +
                     ": the error of its sum is " + text(*ratio) +
                     " times what the bounds of its elements allow";
      }
    }
  }

  // False where a scheme promises nothing for these operands.
  bool is_promised() const {
    return promise_.kind != Promise::Kind::scheme ||
           (norms_a_ && !norms_a_->overflows && !norms_b_->overflows);
  }

  // Mean of allowed() over the elements of a row, including alpha and beta.
  fuzz::ElementBound row_bound(std::int64_t i, double factor) const {
    constexpr double unit = fuzz::unit_of<Part>();
    constexpr double smallest = fuzz::smallest_of<Part>();
    const bool is_scheme = promise_.kind == Promise::Kind::scheme;
    const double coefficient = is_scheme                               ? coefficients_.relative
                               : promise_.kind == Promise::Kind::exact ? 0
                                                                       : promise_.coefficient;
    const double error = coefficient + 3 * unit * (1 + coefficient);
    fuzz::ElementBound bound{(error + unit * (1 + error)) * (1 + 0x1p-20), 3 * smallest};
    if (promise_.kind != Promise::Kind::exact)
      bound.absolute += is_scheme ? (1 + factor) * static_cast<double>(matrices_->k + 3) * smallest
                                  : measure::contract_underflow<Part>(factor, matrices_->k);
    const auto v = static_cast<std::size_t>(i);
    for (std::size_t w = 0; is_scheme && w < norms_b_->one_norms.size(); ++w) {
      const auto floors =
          static_cast<double>(coefficients_.floor_a * norms_a_->unscales[v] * norms_b_->one_norms[w] +
                              coefficients_.floor_b * norms_b_->unscales[w] * norms_a_->one_norms[v] +
                              coefficients_.floor_both * norms_a_->unscales[v] * norms_b_->unscales[w]);
      bound.absolute += factor * floors * (1 + 0x1p-18) / static_cast<double>(matrices_->n);
    }
    return bound;
  }

  void find_norms() {
    norms_a_.reset(), norms_b_.reset();
    if (promise_.kind != Promise::Kind::scheme || promise_.bound.is_null()) return;
    norms_a_ = fuzz::norms_of(matrices_->a, matrices_->m, matrices_->k, promise_.bound.at("split_a"));
    norms_b_ = fuzz::norms_of(matrices_->b, matrices_->n, matrices_->k, promise_.bound.at("split_b"));
    const bool in_window = norms_a_->in_window && norms_b_->in_window;
    coefficients_ =
        fuzz::coefficients_of(promise_.bound.at(in_window ? "bound_in_window" : "bound_outside_window"));
  }

  bool may_be_native() const {
    return promise_.kind == Promise::Kind::contract || promise_.kind == Promise::Kind::native;
  }
  // Under the policy emulate the last candidate is Kintsugi's own.
  bool may_be_cublas() const {
    const FuzzCase& test = data_.test();
    return may_be_native() && test.policy != "emulate" && (test.memory == "device" || test.engine == "cuda");
  }
  // True if 0 times the product, which is NaN if its sum overflows, may be added: cuBLAS multiplies by an
  // alpha that it reads on the device, whatever it is.
  bool multiplies_by_zero() const {
    return may_be_native() && data_.test().scalars == "device" && matrices_->k > 0 && data_.alpha() == T(0);
  }
  bool may_overflow(std::int64_t i, std::int64_t j) const {
    return !are_finite(matrices_->row(i), matrices_->k) || !are_finite(matrices_->column(j), matrices_->k) ||
           !(sum_without_scalars(i, j) <= largest / 4);
  }
  // True if the sum of any row and column may overflow.
  bool any_may_overflow() const {
    return !(largest_of(matrices_->a) * largest_of(matrices_->b) * static_cast<double>(matrices_->k) <=
             largest / 4);
  }
  static double largest_of(const std::vector<Part>& parts) {
    double most = 0;
    for (const Part& part : parts) {
      const double x = std::fabs(static_cast<double>(core::leading_part(part)));
      if (!(x <= most)) most = x;
      if (std::isnan(most)) return most;
    }
    return most;
  }

  // ------------------------------------------------------------------ one real part
  void judge_part(std::int64_t i, std::int64_t j, const Part& computed) {
    const bool multiplies = matrices_->k > 0 && data_.alpha() != T(0);
    const bool adds = data_.beta() != T(0);
    if (multiplies_by_zero() && may_overflow(i, j)) return;
    if (!multiplies && data_.beta() == T(1)) {
      if (std::memcmp(&computed, &matrices_->old(i, j), sizeof(Part)) != 0) fail(computed, "C unchanged");
    } else if (!multiplies && !adds) {
      if (!(computed == Part(0))) fail(computed, "0");
    } else if ((multiplies && !is_finite_product(i, j)) || (adds && !is_finite_old(i, j))) {
      judge_class(i, j, computed, multiplies, adds);
    } else {
      judge_finite(i, j, computed, multiplies ? scalars_of(data_.alpha()) : Scalars{Scalar(0), 0});
    }
  }

  static bool is_finite(double x) { return std::isfinite(x); }
  static bool are_finite(const Part* vector, std::int64_t count) {
    for (std::int64_t p = 0; p < count; ++p) {
      if (!is_finite(core::leading_part(vector[p]))) return false;
    }
    return true;
  }
  // The vectors of the other part have the same elements, so only these are read.
  bool is_finite_product(std::int64_t i, std::int64_t j) const {
    const Scalars alpha = scalars_of(data_.alpha());
    return is_finite(core::leading_part(alpha.re)) && is_finite(alpha.im) &&
           are_finite(matrices_->row(i), matrices_->k) && are_finite(matrices_->column(j), matrices_->k);
  }
  bool is_finite_old(std::int64_t i, std::int64_t j) const {
    const Scalars beta = scalars_of(data_.beta());
    return is_finite(core::leading_part(beta.re)) && is_finite(beta.im) &&
           is_finite(core::leading_part(matrices_->old(i, j))) &&
           (parts == 1 || is_finite(core::leading_part(matrices_->old(i, j ^ (parts - 1)))));
  }

  measure::ElementReference<Part> reference(std::int64_t i, std::int64_t j, const Scalars& alpha,
                                            const Scalars& beta) const {
    measure::Product<Part> product;
    product.a = {matrices_->a.data(), matrices_->m, matrices_->k, matrices_->k, 1};
    product.c0 = {matrices_->c.data(), matrices_->m, matrices_->n, matrices_->n, 1};
    product.alpha = alpha.re, product.alpha_im = alpha.im;
    product.beta = beta.re, product.beta_im = beta.im;
    return measure::element_reference(product, i, j, matrices_->row(i), matrices_->column(j),
                                      parts == 2 ? matrices_->column(j ^ 1) : nullptr);
  }

  // Largest |C - R| that the promise allows; nothing if a scheme promises nothing for these operands, or if a
  // sum may overflow on the way.
  std::optional<double> allowed(std::int64_t i, std::int64_t j, const measure::ExactElement& exact,
                                const Scalars& alpha, const Scalars& beta) const {
    constexpr double unit = fuzz::unit_of<Part>();
    constexpr double smallest = fuzz::smallest_of<Part>();
    const bool plain = alpha.re == Scalar(1) && alpha.im == 0 && beta.re == Scalar(0) && beta.im == 0;
    const double factor = std::fabs(core::leading_part(alpha.re)) + std::fabs(alpha.im);
    if (exact.absolute > largest / 4) return {};
    double before = promise_.coefficient * exact.absolute;
    double underflow = smallest;
    if (promise_.kind == Promise::Kind::scheme) {
      if (!norms_a_ || norms_a_->overflows || norms_b_->overflows) return {};
      const auto v = static_cast<std::size_t>(i), w = static_cast<std::size_t>(j);
      before = static_cast<double>(
          coefficients_.relative * exact.absolute +
          factor * (coefficients_.floor_a * norms_a_->unscales[v] * norms_b_->one_norms[w] +
                    coefficients_.floor_b * norms_b_->unscales[w] * norms_a_->one_norms[v] +
                    coefficients_.floor_both * norms_a_->unscales[v] * norms_b_->unscales[w]));
    }
    // Native arithmetic and named schemes round sums to the operands' type before alpha multiplies them.
    // Native arithmetic may be what keeps a contract.
    if (sum_without_scalars(i, j) > largest / 4) return {};
    underflow += (1 + factor) * smallest;
    if (promise_.kind != Promise::Kind::scheme)
      underflow += measure::contract_underflow<Part>(factor, matrices_->k);
    // alpha times the sum and beta times C are rounded (of complex elements two products and their sum each),
    // then the result. The bound is infinite if a norm overflowed.
    const double scalars = plain ? 0 : parts == 2 ? 3 * unit : unit;
    const double error = before + scalars * (exact.absolute + before);
    const double bound = (error + unit * (std::fabs(exact.value) + error)) * (1 + 0x1p-20) + underflow +
                         (plain ? 0 : 2 * smallest);
    return std::isfinite(bound) ? std::optional(bound) : std::nullopt;
  }

  double sum_without_scalars(std::int64_t i, std::int64_t j) const {
    double sum = reference(i, j, {Scalar(1), 0}, {Scalar(0), 0}).element().absolute;
    if (parts == 2) sum += reference(i, j ^ 1, {Scalar(1), 0}, {Scalar(0), 0}).element().absolute;
    return sum;
  }

  void judge_finite(std::int64_t i, std::int64_t j, const Part& computed, const Scalars& alpha) {
    const Scalars beta = scalars_of(data_.beta());
    const auto exact = reference(i, j, alpha, beta);
    if (promise_.kind == Promise::Kind::exact) {
      // A zero may have either sign if alpha is 0. If it is rounded down, the terms of its sum decide on its
      // sign (tests/front/rounding_test.cpp).
      const core::RoundingMode rounding = rounding_of(data_.test());
      const Part expected = exact.rounded(rounding);
      const bool any_zero = std::is_same_v<Part, core::DoubleDouble> || alpha.re == Scalar(0) ||
                            rounding == core::RoundingMode::down;
      const bool same =
          any_zero ? computed == expected : std::memcmp(&computed, &expected, sizeof(Part)) == 0;
      ++bounded_;
      if (!same) fail(computed, "exactly " + text(core::leading_part(expected)));
      return;
    }
    const std::optional<double> bound = allowed(i, j, exact.element(), alpha, beta);
    if (!bound) return;
    ++bounded_;
    const double error = std::fabs(exact.error_of(computed).to_double());
    if (!(error <= *bound))
      fail(computed, text(exact.element().value) + " within " + text(*bound) + ", is off by " + text(error));
    worst_ = std::max(worst_, *bound > 0 ? error / *bound : 0);
  }

  // ------------------------------------------------------------------ special values
  void judge_class(std::int64_t i, std::int64_t j, const Part& computed, bool multiplies, bool adds) {
    const double sign = j % 2 == 0 ? -1 : 1;  // of the product with the other part
    Classes accepted = finite;
    if (multiplies) {
      const Scalars alpha = scalars_of(data_.alpha());
      accepted = product_class(i, j, core::leading_part(alpha.re));
      if (alpha.im != 0) accepted = add(accepted, product_class(i, j ^ 1, sign * alpha.im));
    }
    if (adds) {
      const Scalars beta = scalars_of(data_.beta());
      accepted = add(accepted, old_classes(core::leading_part(beta.re), beta.im, matrices_->old(i, j)));
      if (beta.im != 0) accepted = add(accepted, old_classes(sign * beta.im, 1, matrices_->old(i, j ^ 1)));
    }
    // Native complex products have special values as the vendor library has them, and cuBLAS may multiply
    // parts of sums by an infinite alpha before it adds them.
    const bool has_finite_alpha = is_finite(core::leading_part(scalars_of(data_.alpha()).re));
    if ((parts == 2 && may_be_native()) || (!has_finite_alpha && may_be_cublas()))
      accepted |= a_nan | plus_infinity | minus_infinity;
    if ((class_of(core::leading_part(computed)) & accepted) == 0) fail(computed, "of " + names_of(accepted));
  }

  // Classes that factor times (A B)_ij may have. A zero part of a complex alpha may turn special values into
  // NaN or leave them out.
  Classes product_class(std::int64_t i, std::int64_t j, double factor) const {
    using Word = fuzz::WordOf<Part>;
    std::vector<Word> row, column;
    for (std::int64_t p = 0; p < matrices_->k; ++p) {
      row.push_back(static_cast<Word>(core::leading_part(matrices_->row(i)[p])));
      column.push_back(static_cast<Word>(core::leading_part(matrices_->column(j)[p])));
    }
    const auto count = matrices_->k;
    const Classes product =
        class_of_product<const Word>({row.data(), 1, count, count, 1}, {column.data(), count, 1, 1, count}, 0,
                                     0, promise_.kind != Promise::Kind::exact);
    if (factor == 0) return product == finite ? finite : finite | a_nan;
    if (product != finite) return scaled_class(product, {}, factor);
    return scaled_class(product, finite_sum(i, j, factor), factor);
  }

  FiniteSum finite_sum(std::int64_t i, std::int64_t j, double factor) const {
    const Scalars one{Scalar(1), 0}, none{Scalar(0), 0};
    const auto exact = reference(i, j, one, none);
    FiniteSum sum{.sign = exact.sum().sign()};
    if (promise_.kind == Promise::Kind::exact) {
      sum.overflows = std::fabs(factor) * exact.element().absolute > largest / 4;
      return sum;
    }
    const std::optional<double> bound = allowed(i, j, exact.element(), one, none);
    sum.overflows = !bound || exact.element().absolute > largest / 4 / std::max(1.0, std::fabs(factor));
    sum.decided = bound && (std::fabs(exact.element().value) > *bound || exact.element().absolute == 0);
    return sum;
  }

  // Classes that a part of beta times a part of C may have; `other` is beta's other part.
  static Classes old_classes(double factor, double other, const Part& old) {
    const double value = core::leading_part(old);
    if (factor == 0) return std::isfinite(value) || other == 0 ? finite : finite | a_nan;
    return old_class(factor, value, std::fabs(factor * value) > largest / 4);
  }

  // ------------------------------------------------------------------ words
  static std::string text(double x) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.17g (%a)", x, x);
    return buffer;
  }
  static std::string names_of(Classes classes) {
    std::string names;
    for (const auto& [single_class, name] :
         {std::pair(a_nan, "NaN"), {plus_infinity, "+Inf"}, {minus_infinity, "-Inf"}, {finite, "finite"}}) {
      if ((classes & single_class) != 0) names += (names.empty() ? "" : " or ") + std::string(name);
    }
    return names;
  }
  void fail(const Part& computed, const std::string& expected) {
    failure_ = text(core::leading_part(computed)) + ", expected " + expected;
  }

  const FuzzData<T>& data_;
  const Promise& promise_;
  const std::byte* after_;
  const std::int64_t max_products_;
  const fuzz::Embedded<T>* matrices_ = nullptr;
  std::optional<measure::VectorNorms> norms_a_, norms_b_;
  measure::BoundCoefficients coefficients_;
  std::string failure_;
  double worst_ = 0;
  std::int64_t bounded_ = 0;
};

}  // namespace kintsugi::test

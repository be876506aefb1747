// Whether a result of a FuzzCase is right: by the bound of its contract or scheme on exact sums, by FACTS section 8 where a
// special value has a part in it, and bit for bit where the contract is `exact`. Sees C's image alone, wherever it lay.
#pragma once

#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lab/bound_check.hpp"
#include "lab/exact.hpp"
#include "tests/support/fuzz_data.hpp"
#include "tests/verification/special_oracle.hpp"

namespace kintsugi::test {

// What was promised of a call.
struct Promise {
  enum class Kind { exact, contract, native, scheme };
  Kind kind = Kind::contract;
  double coefficient = 0;  // of |A||B|: contract, native
  // scheme: {split_a, split_b, bound_in_window, bound_outside_window} of the plan's description; null: nothing.
  nlohmann::json bound;
};

// "fp32" is (k + 8) 2^-24 and so on; a number is itself. Parts of complex elements are sums of 2k products.
inline double contract_coefficient(const FuzzCase& test) {
  const std::string name = !test.accuracy.empty()      ? test.accuracy
                           : test.type == "dd"         ? "dd"
                           : is_single_type(test.type) ? "fp32"
                                                       : "fp64";
  const double products = static_cast<double>(test.k) * (is_complex_type(test.type) ? 2 : 1);
  for (const auto& [contract, unit] : {std::pair("fp32", 0x1p-24), {"fp64", 0x1p-53}, {"dd", 0x1p-104}}) {
    if (name == contract) return (products + 8) * unit;
  }
  return std::strtod(name.c_str(), nullptr);
}

// Without a named scheme's bound, which the plan has.
inline Promise promise_of(const FuzzCase& test) {
  Promise promise;
  promise.coefficient = contract_coefficient(test);
  if (test.scheme.starts_with("superaccumulator") || test.accuracy == "exact") {
    promise.kind = Promise::Kind::exact;
  } else if (!test.scheme.empty()) {
    promise.kind = Promise::Kind::scheme;
  } else if (test.policy == "native") {
    promise.kind = Promise::Kind::native;
  }
  return promise;
}

// The bound of a named scheme, of the plan's description and the report of its execution.
// A program that was fitted to the data is reported of one batch item alone.
inline nlohmann::json bound_of(const nlohmann::json& plan, const nlohmann::json& report, std::int64_t batch) {
  nlohmann::json adapted = report.value("adapted", nlohmann::json());
  if (!adapted.is_null()) return batch == 1 ? adapted : nlohmann::json();
  const nlohmann::json& rung = plan.at("rungs").at(0);
  if (!rung.contains("bound_in_window")) return {};
  return {{"split_a", rung.at("program").at("split_a")},
          {"split_b", rung.at("program").at("split_b")},
          {"bound_in_window", rung.at("bound_in_window")},
          {"bound_outside_window", rung.at("bound_outside_window")}};
}

namespace fuzz {

inline lab::SplitDescription split_of(const nlohmann::json& split) {
  const auto word = [&](const char* name) -> std::string_view {
    return split.at(name).get_ref<const std::string&>();
  };
  lab::SplitDescription description{word("format"), split.at("slices").get<int>(), word("first_rounding"),
                                    word("residual_rounding"), split.at("residual_exponent").get<int>()};
  description.scale_vectors = split.at("scale_vectors").get<bool>();
  if (description.scale_vectors) description.top_exponent = split.at("top_exponent").get<int>();
  description.kind = word("kind");
  return description;
}

inline lab::BoundCoefficients coefficients_of(const nlohmann::json& bound) {
  return {bound.at("relative"), bound.at("floor_a"), bound.at("floor_b"), bound.at("floor_both")};
}

template <class Part>
using WordOf = std::conditional_t<std::is_same_v<Part, core::DoubleDouble>, double, Part>;

// Unit roundoff and smallest number of a part.
template <class Part>
constexpr double unit_of() {
  return std::is_same_v<Part, core::DoubleDouble> ? 0x1p-106
         : std::is_same_v<Part, float>            ? 0x1p-24
                                                  : 0x1p-53;
}
template <class Part>
constexpr double smallest_of() {
  return std::numeric_limits<WordOf<Part>>::denorm_min();
}

// What holds one batch item's operands as real matrices: a complex product is the real one of twice the inner length and
// twice the columns, re c_ij = sum (re a, im a) (re b, -im b), im c_ij = sum (re a, im a) (im b, re b).
template <class T>
struct Embedded {
  using Part = PartOf<T>;
  static constexpr std::int64_t parts = is_complex_element<T> ? 2 : 1;

  Embedded(const FuzzData<T>& data, std::int64_t item)
      : k(data.test().k * parts), m(data.test().m), n(data.test().n * parts), a(size(m, k)), b(size(n, k)),
        c(size(m, n)) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t p = 0; p < data.test().k; ++p) put_a(data.a(item, i, p), i, p);
    }
    for (std::int64_t j = 0; j < data.test().n; ++j) {
      for (std::int64_t p = 0; p < data.test().k; ++p) put_b(data.b(item, p, j), j, p);
    }
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < data.test().n; ++j) {
        const T old = data.c(data.c().bytes.data(), item, i, j);
        for (std::int64_t part = 0; part < parts; ++part)
          c[index(i, j * parts + part, n)] = part_of(old, part);
      }
    }
  }

  static Part part_of(const T& x, std::int64_t part) {
    if constexpr (parts == 2) {
      return part == 0 ? x.real() : x.imag();
    } else {
      return x;
    }
  }
  static std::size_t index(std::int64_t v, std::int64_t p, std::int64_t length) {
    return static_cast<std::size_t>(v * length + p);
  }
  const Part* row(std::int64_t i) const { return a.data() + i * k; }
  const Part* column(std::int64_t j) const { return b.data() + j * k; }
  const Part& old(std::int64_t i, std::int64_t j) const { return c[index(i, j, n)]; }

  std::int64_t k, m, n;       // of the real product
  std::vector<Part> a, b, c;  // rows of op(A), columns of op(B), rows of C before, each contiguous

 private:
  static std::size_t size(std::int64_t x, std::int64_t y) { return static_cast<std::size_t>(x * y); }
  void put_a(const T& x, std::int64_t i, std::int64_t p) {
    for (std::int64_t part = 0; part < parts; ++part) a[index(i, p * parts + part, k)] = part_of(x, part);
  }
  void put_b(const T& y, std::int64_t j, std::int64_t p) {
    if constexpr (parts == 2) {
      b[index(2 * j, 2 * p, k)] = y.real(), b[index(2 * j, 2 * p + 1, k)] = -y.imag();
      b[index(2 * j + 1, 2 * p, k)] = y.imag(), b[index(2 * j + 1, 2 * p + 1, k)] = y.real();
    } else {
      b[index(j, p, k)] = y;
    }
  }
};

// Norms that a scheme's bound speaks of; vectors with a special value count as zeros, since their elements of C are
// judged by class.
template <class Part>
lab::VectorNorms norms_of(const std::vector<Part>& vectors, std::int64_t count, std::int64_t length,
                          const nlohmann::json& split) {
  using Word = WordOf<Part>;
  std::vector<Word> words(vectors.size());
  for (std::int64_t v = 0; v < count; ++v) {
    bool finite = true;
    for (std::int64_t p = v * length; p < (v + 1) * length; ++p) {
      words[p] = static_cast<Word>(core::leading_part(vectors[p]));
      finite = finite && std::isfinite(words[p]);
    }
    if (!finite) std::fill(words.begin() + v * length, words.begin() + (v + 1) * length, Word(0));
  }
  return lab::vector_norms(core::MatrixView<const Word>{words.data(), count, length, length, 1},
                           lab::split_window(split_of(split)));
}

}  // namespace fuzz

template <class T>
class FuzzJudge {
 public:
  using Part = PartOf<T>;

  // `after`: C's image when the call has ended with success.
  FuzzJudge(const FuzzData<T>& data, const Promise& promise, const std::byte* after)
      : data_(data), promise_(promise), after_(after) {}

  // "" or what is wrong with the first wrong element.
  std::string verdict() {
    if (const std::int64_t at = data_.damage(after_); at >= 0)
      return "byte " + std::to_string(at) + " beside C's elements was written";
    for (std::int64_t item = 0; item < data_.test().batch && failure_.empty(); ++item) judge_item(item);
    return failure_;
  }

  // Largest |error| / bound of the elements that a bound was asked of.
  double worst_ratio() const { return worst_; }
  std::int64_t bounded_elements() const { return bounded_; }

 private:
  static constexpr std::int64_t parts = fuzz::Embedded<T>::parts;
  static constexpr double largest = static_cast<double>(std::numeric_limits<fuzz::WordOf<Part>>::max());
  using Scalar = lab::ScalarOf<Part>;

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
        const T computed = data_.c(after_, item, i, j / parts);
        judge_part(i, j, fuzz::Embedded<T>::part_of(computed, j % parts));
        if (!failure_.empty())
          failure_ = "item " + std::to_string(item) + " element (" + std::to_string(i) + ", " +
                     std::to_string(j / parts) + ")" + (parts == 2 ? (j % 2 == 0 ? " re" : " im") : "") +
                     ": " + failure_;
      }
    }
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

  // ------------------------------------------------------------------ one real part
  void judge_part(std::int64_t i, std::int64_t j, const Part& computed) {
    const bool multiplies = matrices_->k > 0 && data_.alpha() != T(0);
    const bool adds = data_.beta() != T(0);
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
  // The vector of the other part has the same elements.
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

  lab::EntryReference<Part> reference(std::int64_t i, std::int64_t j, const Scalars& alpha,
                                      const Scalars& beta) const {
    lab::Product<Part> product;
    product.a = {matrices_->a.data(), matrices_->m, matrices_->k, matrices_->k, 1};
    product.c0 = {matrices_->c.data(), matrices_->m, matrices_->n, matrices_->n, 1};
    product.alpha = alpha.re, product.alpha_im = alpha.im;
    product.beta = beta.re, product.beta_im = beta.im;
    return lab::entry_reference(product, i, j, matrices_->row(i), matrices_->column(j),
                                parts == 2 ? matrices_->column(j ^ 1) : nullptr);
  }

  // What |C - R| may be by the promise; nothing: the bound is of other operands, or a sum may overflow on its way.
  std::optional<double> allowed(std::int64_t i, std::int64_t j, const lab::ExactEntry& exact,
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
          factor * (coefficients_.floor_a * norms_a_->unscales[v] * norms_b_->ones[w] +
                    coefficients_.floor_b * norms_b_->unscales[w] * norms_a_->ones[v] +
                    coefficients_.floor_both * norms_a_->unscales[v] * norms_b_->unscales[w]));
    }
    // By name, native arithmetic and a scheme's sums are of the operands' type before alpha comes to them.
    if (promise_.kind == Promise::Kind::native || promise_.kind == Promise::Kind::scheme) {
      if (sum_without_scalars(i, j) > largest / 4) return {};
      underflow += (1 + factor) * smallest;
      if (promise_.kind == Promise::Kind::native)
        underflow += (1 + factor) * static_cast<double>(matrices_->k + 2) * smallest;
    }
    // alpha times the sum and beta times C are rounded, of complex ones two products and their sum each; then the
    // result. A norm may have overflowed.
    const double scalars = plain ? 0 : parts == 2 ? 3 * unit : unit;
    const double error = before + scalars * (exact.absolute + before);
    const double bound = (error + unit * (std::fabs(exact.value) + error)) * (1 + 0x1p-20) + underflow +
                         (plain ? 0 : 2 * smallest);
    return std::isfinite(bound) ? std::optional(bound) : std::nullopt;
  }

  double sum_without_scalars(std::int64_t i, std::int64_t j) const {
    double sum = reference(i, j, {Scalar(1), 0}, {Scalar(0), 0}).entry().absolute;
    if (parts == 2) sum += reference(i, j ^ 1, {Scalar(1), 0}, {Scalar(0), 0}).entry().absolute;
    return sum;
  }

  void judge_finite(std::int64_t i, std::int64_t j, const Part& computed, const Scalars& alpha) {
    const Scalars beta = scalars_of(data_.beta());
    const auto exact = reference(i, j, alpha, beta);
    if (promise_.kind == Promise::Kind::exact) {
      // alpha = 0: the sign of a zero is that of beta C.
      const Part expected = exact.rounded();
      const bool any_zero = std::is_same_v<Part, core::DoubleDouble> || alpha.re == Scalar(0);
      const bool same =
          any_zero ? computed == expected : std::memcmp(&computed, &expected, sizeof(Part)) == 0;
      ++bounded_;
      if (!same) fail(computed, "exactly " + text(core::leading_part(expected)));
      return;
    }
    const std::optional<double> bound = allowed(i, j, exact.entry(), alpha, beta);
    if (!bound) return;
    ++bounded_;
    const double error = std::fabs(exact.error_of(computed).to_double());
    if (!(error <= *bound))
      fail(computed, text(exact.entry().value) + " within " + text(*bound) + ", is off by " + text(error));
    worst_ = std::max(worst_, *bound > 0 ? error / *bound : 0);
  }

  // ------------------------------------------------------------------ special values
  void judge_class(std::int64_t i, std::int64_t j, const Part& computed, bool multiplies, bool adds) {
    const double sign = j % 2 == 0 ? -1 : 1;  // of the other part's share
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
    if ((class_of(core::leading_part(computed)) & accepted) == 0) fail(computed, "of " + names_of(accepted));
  }

  // Of factor times (A B)_ij. A complex alpha's zero part makes NaN of what is special, or has no part in it.
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
      sum.overflows = std::fabs(factor) * exact.entry().absolute > largest / 4;
      return sum;
    }
    const std::optional<double> bound = allowed(i, j, exact.entry(), one, none);
    sum.overflows = !bound || exact.entry().absolute > largest / 4 / std::max(1.0, std::fabs(factor));
    sum.decided = bound && (std::fabs(exact.entry().value) > *bound || exact.entry().absolute == 0);
    return sum;
  }

  // Of beta's part times C's; `other` is beta's other part.
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
    for (const auto& [one, name] :
         {std::pair(a_nan, "NaN"), {plus_infinity, "+Inf"}, {minus_infinity, "-Inf"}, {finite, "finite"}}) {
      if ((classes & one) != 0) names += (names.empty() ? "" : " or ") + std::string(name);
    }
    return names;
  }
  void fail(const Part& computed, const std::string& expected) {
    failure_ = text(core::leading_part(computed)) + ", expected " + expected;
  }

  const FuzzData<T>& data_;
  const Promise& promise_;
  const std::byte* after_;
  const fuzz::Embedded<T>* matrices_ = nullptr;
  std::optional<lab::VectorNorms> norms_a_, norms_b_;
  lab::BoundCoefficients coefficients_;
  std::string failure_;
  double worst_ = 0;
  std::int64_t bounded_ = 0;
};

}  // namespace kintsugi::test

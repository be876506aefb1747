#include "tools/measure/judged_element.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace kintsugi::measure {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class T>
struct TypeTraits {
  static constexpr int precision = std::numeric_limits<T>::digits;
  static constexpr int smallest_normal_exponent = std::numeric_limits<T>::min_exponent - 1;
};
// lo is at most half of hi's last place, and has 53 bits below that.
template <>
struct TypeTraits<core::DoubleDouble> : TypeTraits<double> {
  static constexpr int precision = 107;
};

template <class T>
using LastWord = std::conditional_t<core::is_double_double<T>, double, T>;

long double squared(const Scaled& x) {
  const long double value = std::ldexp(static_cast<long double>(x.fraction), static_cast<int>(x.exponent));
  return value * value;
}

bool same_special(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (std::isinf(a) && a == b);
}

template <class T>
bool is_same_number(const T& x, const T& y) {
  if constexpr (core::is_double_double<T>) {
    return core::normalized(x) == y;
  } else {
    return x == y;
  }
}

// Judges an element if R or C is NaN or infinite, or R overflows C's type.
template <class T>
void judge_special(const ElementReference<T>& reference, Judged& judged) {
  ElementError& element = judged.element;
  judged.special_reference = !reference.sum().is_finite();
  const double rounded = core::leading_part(reference.rounded());
  if (same_special(rounded, element.computed)) {
    judged.correctly_rounded = true;
    judged.overflowed = !judged.special_reference;
    return;
  }
  judged.special_mismatch = true;
  judged.zero_reference = reference.sum().is_zero();
  judged.within_bound = false;
  element.error = element.computed - element.exact;
  if (!std::isnan(element.error) && !std::isinf(element.error)) element.error = infinity;
  element.relative = infinity;
  element.ulp = infinity;
  judged.error_square = std::numeric_limits<long double>::infinity();
}

template <class T>
void judge_finite(const ElementReference<T>& reference, T computed, double bound, double underflow,
                  Judged& judged) {
  ElementError& element = judged.element;
  const ExactSum error_sum = reference.error_of(computed);
  const Scaled error = error_sum.to_scaled();
  const Scaled exact = reference.sum().to_scaled();
  element.error = error_sum.to_double();
  judged.correctly_rounded = is_same_number(computed, reference.rounded());
  judged.zero_reference = exact.fraction == 0;
  std::int64_t last_place = TypeTraits<T>::smallest_normal_exponent;
  constexpr std::int64_t min_place =
      TypeTraits<T>::smallest_normal_exponent - std::numeric_limits<LastWord<T>>::digits + 1;
  if (judged.zero_reference) {
    element.relative = error.fraction == 0 ? 0 : infinity;
  } else {
    element.relative = magnitude_ratio(error, exact);
    last_place = std::max(last_place, reference.sum().exponent());
  }
  last_place = std::max(last_place - (TypeTraits<T>::precision - 1), min_place);
  element.ulp = magnitude_ratio(error, {0.5, last_place + 1});
  judged.within_bound = std::fabs(element.error) <= bound * element.absolute + underflow;
  judged.error_square = squared(error);
  judged.exact_square = squared(exact);
}

}  // namespace

template <class T>
Judged judge(const ElementReference<T>& reference, T computed, double bound, double underflow) {
  Judged judged;
  const ExactElement exact = reference.element();
  judged.element.computed = core::leading_part(computed);
  judged.element.exact = exact.value;
  judged.element.absolute = exact.absolute;
  if (!core::is_finite(judged.element.computed) || !reference.sum().is_finite()) {
    judge_special(reference, judged);
  } else {
    judge_finite(reference, computed, bound, underflow, judged);
  }
  return judged;
}

double componentwise(const Judged& judged) {
  if (judged.special_mismatch) return infinity;
  const double error = std::fabs(judged.element.error);
  if (error == 0 || judged.special_reference) return 0;
  return error / judged.element.absolute;  // infinite if absolute is 0; 0 if it is infinite
}

template Judged judge(const ElementReference<float>&, float, double, double);
template Judged judge(const ElementReference<double>&, double, double, double);
template Judged judge(const ElementReference<core::DoubleDouble>&, core::DoubleDouble, double, double);

}  // namespace kintsugi::measure

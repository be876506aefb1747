// Native products that have no rounding error, or that are single products, rounded once.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/vectorised.hpp"
#include "execute/host/steps.hpp"

namespace kintsugi::core {

namespace {

// Elements are scaled to integers of at most so many bits.
constexpr int integer_bits = 51;
constexpr int too_many_bits = 1000;  // for any type
constexpr int most_exponent = 400;   // of an operand: no scaling overflows or underflows

// Bits of scaled elements: the bitwise or of the integers, and bits that are not 0 if an element is no
// integer.
struct IntegerBits {
  std::uint64_t set = 0;
  std::uint64_t fractions = 0;
};

template <class T>
[[gnu::always_inline]] inline void add_bits(const T* elements, std::int64_t count, double scale,
                                            IntegerBits& bits) {
  constexpr double shift = 0x1.8p52;  // of the sum, the last bit is worth 1
  std::uint64_t set = 0;
  std::uint64_t fractions = 0;
  for (std::int64_t e = 0; e < count; ++e) {
    const double scaled = static_cast<double>(elements[e]) * scale;
    const double shifted = scaled + shift;
    set |= std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(shift);
    fractions |= std::bit_cast<std::uint64_t>((shifted - shift) - scaled);
  }
  bits.set |= set;
  bits.fractions |= fractions;
}

KINTSUGI_VECTORIZED void add_line(const double* elements, std::int64_t count, double scale,
                                  IntegerBits& bits) {
  add_bits(elements, count, scale, bits);
}
KINTSUGI_VECTORIZED void add_line(const float* elements, std::int64_t count, double scale,
                                  IntegerBits& bits) {
  add_bits(elements, count, scale, bits);
}

// Returns the number of bits from 2^largest down to the last bit that any element has; too_many_bits if they
// are more than integer_bits. Nearly all operands are refused after one line.
template <class T>
int significant_bits(const MatrixView<const T>& operand, int largest) {
  const MatrixView<const T> lines = operand.column_stride == 1 ? operand : operand.transposed();
  const double scale = power_of_two(integer_bits - 1 - largest);
  IntegerBits bits;
  for (std::int64_t i = 0; i < lines.rows; ++i) {
    add_line(&lines(i, 0), lines.columns, scale, bits);
    if (bits.fractions != 0) return too_many_bits;
  }
  return integer_bits - std::min(std::countr_zero(bits.set), integer_bits);
}

}  // namespace

template <class T>
bool native_is_exact(const MatrixView<const T>& a, const RangeSummary& range_a, const MatrixView<const T>& b,
                     const RangeSummary& range_b) {
  using limits = std::numeric_limits<T>;
  // An element that is smaller than the largest by integer_bits is no integer after scaling, which may even
  // turn it into zero.
  const auto is_moderate = [](const RangeSummary& range) {
    return range.finite && range.largest <= most_exponent && range.largest >= -most_exponent &&
           range.largest - range.smallest < integer_bits;
  };
  const auto has_unit_stride = [](const MatrixView<const T>& operand) {
    return operand.row_stride == 1 || operand.column_stride == 1;
  };
  if (!has_unit_stride(a) || !has_unit_stride(b)) return false;
  // Elements with one product, which is rounded once to a normal number.
  if (a.columns == 1)
    return range_a.finite && range_b.finite && range_a.largest + range_b.largest + 2 < limits::max_exponent &&
           range_a.smallest + range_b.smallest >= limits::min_exponent - 1;
  if (!is_moderate(range_a) || !is_moderate(range_b)) return false;
  const auto length_bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(a.columns - 1)));
  const int bits_a = significant_bits(a, range_a.largest);
  if (bits_a + length_bits > limits::digits) return false;
  const int bits = bits_a + significant_bits(b, range_b.largest);
  // Sums are integers of fewer bits, in units of 2^last, and below 2^(top + 1).
  const int top = range_a.largest + range_b.largest + 1 + length_bits;
  const int last = range_a.largest + range_b.largest + 2 - bits;
  return bits + length_bits <= limits::digits && top < limits::max_exponent &&
         last >= limits::min_exponent - limits::digits;
}

template bool native_is_exact(const MatrixView<const float>&, const RangeSummary&,
                              const MatrixView<const float>&, const RangeSummary&);
template bool native_is_exact(const MatrixView<const double>&, const RangeSummary&,
                              const MatrixView<const double>&, const RangeSummary&);

}  // namespace kintsugi::core

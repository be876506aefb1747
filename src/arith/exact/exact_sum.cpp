#include "arith/exact/exact_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kintsugi::core {
namespace {

__extension__ typedef unsigned __int128 uint128;

constexpr std::uint64_t fraction_mask = (std::uint64_t{1} << 52) - 1;
constexpr unsigned special_field = 0x7ff;

// A finite double as an integer: |x| = significand * 2^exponent.
struct Integer {
  std::uint64_t significand;
  int exponent;
  bool negative;
};

Integer take_apart(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const int field = static_cast<int>(bits >> 52) & 0x7ff;
  const std::uint64_t implicit = field != 0 ? fraction_mask + 1 : 0;
  return {(bits & fraction_mask) | implicit, std::max(field, 1) - 1075, (bits >> 63) != 0};
}

}  // namespace

void ExactSum::add_at(std::uint64_t bits, int position, bool negative) {
  const int index = position / digit_bits;
  const int shift = position % digit_bits;
  const std::uint64_t low = bits << shift;
  const std::uint64_t high = (bits >> 1) >> (63 - shift);
  const auto with_sign = [negative](std::uint64_t digit) {
    return negative ? -static_cast<std::int64_t>(digit) : static_cast<std::int64_t>(digit);
  };
  digit_[index] += with_sign(low & 0xffffffffU);
  digit_[index + 1] += with_sign(low >> digit_bits);
  digit_[index + 2] += with_sign(high);
}

void ExactSum::include_digits(int first, int last) {
  if (first < first_) first_ = first;
  if (last > last_) last_ = last;
}

// Propagates carries if `count` more additions could overflow a digit.
void ExactSum::count_additions(std::int64_t count) {
  if (pending_ + count > max_pending) carry();
  pending_ += count;
}

void ExactSum::add(double x) {
  if (!std::isfinite(x)) {
    special_ += x;
    return;
  }
  const Integer integer = take_apart(x);
  if (integer.significand == 0) return;
  const int position = integer.exponent + one_position;
  count_additions(1);
  add_at(integer.significand, position, integer.negative);
  include_digits(position / digit_bits, position / digit_bits + 2);
}

void ExactSum::add(const ExactSum& other) {
  special_ += other.special_;
  const Magnitude sum = other.magnitude();
  if (sum.last < sum.first) return;
  count_additions(1);
  for (int i = sum.first; i <= sum.last; ++i) {
    const auto digit = static_cast<std::int64_t>(sum.digit[i]);
    digit_[i] += sum.negative ? -digit : digit;
  }
  include_digits(sum.first, sum.last);
}

void ExactSum::add_integer(std::uint64_t integer, int exponent, bool negative) {
  if (integer == 0) return;
  const int below = std::max(0, -(exponent + one_position));  // zero bits below the accumulator's last bit
  const int position = exponent + one_position + below;
  count_additions(1);
  add_at(integer >> below, position, negative);
  include_digits(position / digit_bits, position / digit_bits + 2);
}

void ExactSum::add_product(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) {
    special_ += a * b;
    return;
  }
  const Integer left = take_apart(a);
  const Integer right = take_apart(b);
  const uint128 product = static_cast<uint128>(left.significand) * right.significand;
  if (product == 0) return;
  const int position = left.exponent + right.exponent + one_position;
  const bool negative = left.negative != right.negative;
  count_additions(1);
  add_at(static_cast<std::uint64_t>(product), position, negative);
  add_at(static_cast<std::uint64_t>(product >> 64), position + 64, negative);
  include_digits(position / digit_bits, position / digit_bits + 4);
}

// A product of floats has 48 significant bits. Its lower bits are added to one digit, and its upper bits,
// with the sign, to the next digit. The upper bits are below 2^48 and count as 2^15 additions of less than
// 2^33, so carries are propagated after 2^14 products. The range of digits that these products reach is a
// constant; so the loop does not update first_ and last_.
void ExactSum::add_products(const float* a, const float* b, std::int64_t count) {
  constexpr int log2_additions = 15;  // additions that one product counts as
  constexpr std::int64_t products_per_carry = max_pending >> log2_additions;
  constexpr int zero_bits = 53 - 48;  // trailing zeros of a product's significand as a double
  // Position of the last bit that may be set in a product of exponent e: e - 52 + zero_bits.
  constexpr int lowest = one_position - 298 - 52 + zero_bits;   // FLT_TRUE_MIN^2 = 2^-298
  constexpr int highest = one_position + 256 - 52 + zero_bits;  // FLT_MAX^2 < 2^256
  for (std::int64_t start = 0; start < count; start += products_per_carry) {
    const std::int64_t end = std::min(count, start + products_per_carry);
    count_additions((end - start) << log2_additions);
    include_digits(lowest / digit_bits, highest / digit_bits + 1);
    for (std::int64_t l = start; l < end; ++l) {
      const double product = static_cast<double>(a[l]) * static_cast<double>(b[l]);
      const auto bits = std::bit_cast<std::uint64_t>(product);
      const unsigned field = static_cast<unsigned>(bits >> 52) & special_field;
      if (field == 0) continue;  // a product is zero or a normal double
      if (field == special_field) {
        special_ += product;
        continue;
      }
      const auto magnitude =
          static_cast<std::int64_t>(((bits & fraction_mask) | (fraction_mask + 1)) >> zero_bits);
      const std::int64_t flip = static_cast<std::int64_t>(bits) >> 63;  // -1 for a negative product, else 0
      const std::int64_t value = (magnitude ^ flip) - flip;
      const unsigned position = field - 1075 + one_position + zero_bits;
      const unsigned shift = position % digit_bits;
      std::int64_t* digit = digit_.data() + position / digit_bits;
      digit[0] += static_cast<std::int64_t>((static_cast<std::uint64_t>(value) << shift) & 0xffffffffU);
      digit[1] += value >> (digit_bits - shift);
    }
  }
}

void ExactSum::add_products(const double* a, const double* b, std::int64_t count) {
  for (std::int64_t l = 0; l < count; ++l) add_product(a[l], b[l]);
}

// Brings every digit except the last one into [0, 2^32), which makes room for 2^29 more additions.
void ExactSum::carry() {
  constexpr std::int64_t base = std::int64_t{1} << digit_bits;
  for (int i = first_; i < last_ || (i == last_ && (digit_[i] >= base || digit_[i] < -base)); ++i) {
    const std::int64_t over = digit_[i] >> digit_bits;
    digit_[i] -= over * base;
    digit_[i + 1] += over;
    if (i == last_) last_ = i + 1;
  }
  pending_ = 0;
}

ExactSum::Magnitude ExactSum::magnitude() const {
  Magnitude result;
  result.first = first_;
  result.last = last_;
  std::int64_t over = 0;
  for (int i = first_; i <= last_; ++i) {
    const std::int64_t digit = digit_[i] + over;
    result.digit[i] = static_cast<std::uint32_t>(digit);
    over = digit >> digit_bits;
  }
  for (; over != 0 && over != -1; over >>= digit_bits) {
    result.digit[++result.last] = static_cast<std::uint32_t>(over);
  }
  result.negative = over == -1;
  if (result.negative) {  // two's complement: all bits above the last digit are ones
    std::uint64_t add = 1;
    for (int i = result.first; i <= result.last; ++i) {
      add += static_cast<std::uint32_t>(~result.digit[i]);
      result.digit[i] = static_cast<std::uint32_t>(add);
      add >>= digit_bits;
    }
    if (add != 0) result.digit[++result.last] = 1;
  }
  while (result.last >= result.first && result.digit[result.last] == 0) --result.last;
  while (result.first <= result.last && result.digit[result.first] == 0) ++result.first;
  return result;
}

void ExactSum::multiply(double x) {
  if (!std::isfinite(x) || !is_finite()) {
    special_ = (is_finite() ? sign() : special_) * x;
    return;
  }
  const Magnitude old = magnitude();
  const Integer factor = take_apart(x);
  clear();
  if (factor.significand == 0) return;
  for (int i = old.first; i <= old.last; ++i) {
    const uint128 product = static_cast<uint128>(factor.significand) * old.digit[i];
    const int position = i * digit_bits + factor.exponent;
    const bool negative = old.negative != factor.negative;
    count_additions(1);
    add_at(static_cast<std::uint64_t>(product), position, negative);
    add_at(static_cast<std::uint64_t>(product >> 64), position + 64, negative);
    include_digits(position / digit_bits, position / digit_bits + 4);
  }
}

void ExactSum::negate() {
  for (int i = first_; i <= last_; ++i) digit_[i] = -digit_[i];
  special_ = -special_;
}

void ExactSum::clear() {
  if (first_ <= last_) std::fill(digit_.begin() + first_, digit_.begin() + last_ + 1, 0);
  first_ = digit_count;
  last_ = -1;
  pending_ = 0;
  special_ = 0;
}

bool ExactSum::is_zero() const {
  if (!is_finite()) return false;
  const Magnitude sum = magnitude();
  return sum.last < sum.first;
}

int ExactSum::sign() const {
  if (!is_finite()) return special_ > 0 ? 1 : special_ < 0 ? -1 : 0;
  const Magnitude sum = magnitude();
  if (sum.last < sum.first) return 0;
  return sum.negative ? -1 : 1;
}

int ExactSum::leading_position(const Magnitude& magnitude) {
  return magnitude.last * digit_bits + std::bit_width(magnitude.digit[magnitude.last]) - 1;
}

std::int64_t ExactSum::exponent() const { return leading_position(magnitude()) - one_position; }

// Returns the bits from `position` up to the leading one. There must be fewer than 64.
std::uint64_t ExactSum::bits_above(const Magnitude& magnitude, int position) {
  std::uint64_t bits = 0;
  for (int i = magnitude.last; i >= magnitude.first && (i + 1) * digit_bits > position; --i) {
    const int offset = i * digit_bits - position;
    const auto digit = static_cast<std::uint64_t>(magnitude.digit[i]);
    bits |= offset >= 0 ? digit << offset : digit >> -offset;
  }
  return bits;
}

bool ExactSum::any_below(const Magnitude& magnitude, int position) {
  for (int i = magnitude.first; i <= magnitude.last && i * digit_bits < position; ++i) {
    const int bits = std::min(position - i * digit_bits, digit_bits);
    if ((magnitude.digit[i] & ((std::uint64_t{1} << bits) - 1)) != 0) return true;
  }
  return false;
}

// Returns the magnitude rounded to `significand_bits` bits. Bits below 2^smallest_exponent are rounded away
// as well.
ExactSum::Rounded ExactSum::round(const Magnitude& magnitude, int significand_bits, int smallest_exponent,
                                  RoundingMode rounding) {
  if (magnitude.last < magnitude.first) return {0, 0};
  const int leading = leading_position(magnitude) - one_position;
  const int exponent = std::max(leading - significand_bits + 1, smallest_exponent);
  const int position = exponent + one_position;
  const bool is_directed = rounding != RoundingMode::nearest;
  const bool enlarges = is_directed && enlarges_magnitude(rounding, magnitude.negative);
  if (leading < exponent - 1) return {enlarges ? 1U : 0U, exponent};  // less than half of the last place
  const std::uint64_t with_half =
      position == 0 ? bits_above(magnitude, 0) << 1 : bits_above(magnitude, position - 1);
  std::uint64_t significand = with_half >> 1;
  const bool half = (with_half & 1) != 0;
  if (is_directed) {
    if (enlarges && (half || any_below(magnitude, position - 1))) ++significand;
  } else if (half && ((significand & 1) != 0 || any_below(magnitude, position - 1))) {
    ++significand;
  }
  return {significand, exponent};
}

template <class T>
T ExactSum::rounded_to(RoundingMode rounding) const {
  using limits = std::numeric_limits<T>;
  if (!is_finite()) return static_cast<T>(special_);
  const Magnitude sum = magnitude();
  if (sum.last < sum.first) return zero_sum<T>(rounding);
  const Rounded result = round(sum, limits::digits, limits::min_exponent - limits::digits, rounding);
  T value = std::ldexp(static_cast<T>(result.significand), result.exponent);
  if (rounding != RoundingMode::nearest && value > limits::max() &&
      !enlarges_magnitude(rounding, sum.negative))
    value = limits::max();
  return sum.negative ? -value : value;
}

double ExactSum::to_double(RoundingMode rounding) const { return rounded_to<double>(rounding); }
float ExactSum::to_float(RoundingMode rounding) const { return rounded_to<float>(rounding); }

Scaled ExactSum::to_scaled() const {
  if (!is_finite()) return {};
  const Magnitude sum = magnitude();
  const Rounded rounded = round(sum, 53, -one_position, RoundingMode::nearest);
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(rounded.significand), &exponent);
  if (fraction == 0) return {};
  return {sum.negative ? -fraction : fraction, std::int64_t{rounded.exponent} + exponent};
}

}  // namespace kintsugi::core

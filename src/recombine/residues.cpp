#include "recombine/residues.hpp"

#include <atomic>
#include <bit>
#include <cmath>
#include <type_traits>

#include "recombine/chinese_remainder.hpp"

namespace kintsugi::core {

namespace {

using Number = ExactNumber<residue_limbs>;

// x + offset or x - offset, the offset a non-negative integer in units of x's last place. Deviations are far below 2^64
// times what a limb holds, so that the sum fits.
Number moved(const Number& x, const WideInteger<residue_limbs>& offset, bool down) {
  Number result = x;
  if (x.negative == down) {
    result.magnitude.add_multiple(offset, 1);
  } else if (x.magnitude.less_than(offset)) {
    result.magnitude = offset;
    result.magnitude.subtract(x.magnitude);
    result.negative = !x.negative;
  } else {
    result.magnitude.subtract(offset);
  }
  return result;
}

// The least integer that is no less than x, for x below 2^300.
WideInteger<residue_limbs> integer_above(double x) {
  const double above = std::ceil(x);
  if (above < 0x1p53) return {{static_cast<std::uint64_t>(above)}};
  const format_detail::Parts parts = format_detail::take_apart(above);
  return WideInteger<residue_limbs>::shifted(WideInteger<1>{{parts.significand}}, parts.exponent - 52);
}

// No more than the magnitude.
double magnitude_below(const WideInteger<residue_limbs>& x) {
  const int drop = std::max(x.length() - 53, 0);
  return std::ldexp(static_cast<double>(x.bits_from(drop)), drop);
}

template <class T>
bool same_bits(T x, T y) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<Bits>(x) == std::bit_cast<Bits>(y);
}

template <class T>
bool shows(const EntryCheck& check, const Number& exact, double deviation, T alpha, T beta, const T* c,
           T& result) {
  if (deviation == 0) {
    result = exact_epilogue(exact, alpha, beta, c);
    return true;
  }
  if (check.coefficient > 0) {
    const double least = magnitude_below(exact.magnitude) - deviation;
    result = exact_epilogue(exact, alpha, beta, c);
    return deviation * (1 + 2 * check.unit_roundoff) <= (check.coefficient - check.unit_roundoff) * least;
  }
  const auto offset = integer_above(deviation);
  result = exact_epilogue(moved(exact, offset, true), alpha, beta, c);
  return same_bits(result, exact_epilogue(moved(exact, offset, false), alpha, beta, c));
}

}  // namespace

template <class T>
void recombine_residues(const Accumulators& sums, std::span<const VectorRange> rows,
                        std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                        int threads) {
  for_each_integer(sums, rows, columns, threads, [&](std::int64_t i, std::int64_t j, const Number& exact) {
    T& entry = c(i, j);
    entry = exact_epilogue(exact, alpha, beta, beta == 0 ? nullptr : &entry);
  });
}

template <class T>
std::int64_t recombine_checked_residues(const Accumulators& sums, std::span<const VectorRange> rows,
                                        std::span<const VectorRange> columns, const EntryCheck& check,
                                        T alpha, T beta, const MatrixView<T>& c, std::uint8_t* open,
                                        bool write, int threads) {
  std::atomic<std::int64_t> left = 0;
  for_each_integer(sums, rows, columns, threads, [&](std::int64_t i, std::int64_t j, const Number& exact) {
    std::uint8_t& is_open = open[i + j * sums.rows];
    if (is_open == 0) return;
    const double deviation =
        largest_deviation(check.rows[i], check.columns[j], check.largest_a, check.largest_b);
    T& entry = c(i, j);
    T result;
    if (!shows(check, exact, deviation, alpha, beta, beta == 0 ? nullptr : &entry, result)) {
      left.fetch_add(1, std::memory_order_relaxed);
    } else if (write) {
      entry = result;
      is_open = 0;
    }
  });
  return left;
}

template void recombine_residues(const Accumulators&, std::span<const VectorRange>,
                                 std::span<const VectorRange>, float, float, const MatrixView<float>&, int);
template void recombine_residues(const Accumulators&, std::span<const VectorRange>,
                                 std::span<const VectorRange>, double, double, const MatrixView<double>&,
                                 int);
template std::int64_t recombine_checked_residues(const Accumulators&, std::span<const VectorRange>,
                                                 std::span<const VectorRange>, const EntryCheck&, float,
                                                 float, const MatrixView<float>&, std::uint8_t*, bool, int);
template std::int64_t recombine_checked_residues(const Accumulators&, std::span<const VectorRange>,
                                                 std::span<const VectorRange>, const EntryCheck&, double,
                                                 double, const MatrixView<double>&, std::uint8_t*, bool, int);

}  // namespace kintsugi::core

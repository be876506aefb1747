#include "recombine/residues.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <type_traits>

#include "arith/complex.hpp"
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
using Integers = EntryIntegers<parts_of<T>>;

template <class T>
T rounded_entry(const Integers<T>& exact, T alpha, T beta, const T* c) {
  if constexpr (is_complex<T>) {
    return exact_epilogue(exact[0], exact[1], alpha, beta, c);
  } else {
    return exact_epilogue(exact[0], alpha, beta, c);
  }
}

template <class T>
bool same_bits(const T& x, const T& y) {
  using Bits = std::conditional_t<sizeof(RealOf<T>) == 4, std::uint32_t, std::uint64_t>;
  using Patterns = std::array<Bits, static_cast<std::size_t>(parts_of<T>)>;
  return std::bit_cast<Patterns>(x) == std::bit_cast<Patterns>(y);
}

// How far AB's parts may be from the integers.
template <class T>
using Deviations = std::array<double, static_cast<std::size_t>(parts_of<T>)>;

// |x - AB| and a rounding are at most coefficient |AB|.
bool keeps(const EntryCheck& check, const Number& exact, double deviation) {
  const double least = magnitude_below(exact.magnitude) - deviation;
  return deviation * (1 + 2 * check.unit_roundoff) <= (check.coefficient - check.unit_roundoff) * least;
}

// Whether all that AB may be gives one result. It is linear in AB's parts and rounding is monotone, so the corners of
// their ranges decide.
template <class T>
bool rounds_alike(const Integers<T>& exact, const Deviations<T>& deviations, T alpha, T beta, const T* c,
                  T& result) {
  constexpr unsigned corners = 1U << parts_of<T>;
  std::array<WideInteger<residue_limbs>, static_cast<std::size_t>(parts_of<T>)> offsets;
  std::transform(deviations.begin(), deviations.end(), offsets.begin(), integer_above);
  for (unsigned corner = 0; corner < corners; ++corner) {
    Integers<T> at = exact;
    for (std::size_t part = 0; part < at.size(); ++part)
      at[part] = moved(exact[part], offsets[part], (corner >> part & 1U) == 0);
    const T other = rounded_entry(at, alpha, beta, c);
    if (corner == 0) result = other;
    if (!same_bits(result, other)) return false;
  }
  return true;
}

template <class T>
bool shows(const EntryCheck& check, const Integers<T>& exact, const Deviations<T>& deviations, T alpha,
           T beta, const T* c, T& result) {
  const bool exactly = std::all_of(deviations.begin(), deviations.end(), [](double d) { return d == 0; });
  if (!exactly && check.coefficient == 0) return rounds_alike(exact, deviations, alpha, beta, c, result);
  result = rounded_entry(exact, alpha, beta, c);
  for (std::size_t part = 0; part < exact.size(); ++part) {
    if (deviations[part] != 0 && !keeps(check, exact[part], deviations[part]))
      return rounds_alike(exact, deviations, alpha, beta, c, result);
  }
  return true;
}

}  // namespace

template <class T>
void recombine_residues(const Accumulators& sums, const ResidueSystem& system,
                        std::span<const VectorRange> rows, std::span<const VectorRange> columns, T alpha,
                        T beta, const MatrixView<T>& c, int threads) {
  for_each_integer<parts_of<T>>(sums, system, rows, columns, threads,
                                [&](std::int64_t i, std::int64_t j, const Integers<T>& exact) {
                                  T& entry = c(i, j);
                                  const T* old = beta == T(0) ? nullptr : &entry;
                                  entry = rounded_entry(exact, alpha, beta, old);
                                });
}

template <class T>
std::int64_t recombine_checked_residues(const Accumulators& sums, const ResidueSystem& system,
                                        std::span<const VectorRange> rows,
                                        std::span<const VectorRange> columns, const EntryCheck& check,
                                        T alpha, T beta, const MatrixView<T>& c, std::uint8_t* open,
                                        bool write, int threads) {
  std::atomic<std::int64_t> left = 0;
  const auto visit = [&](std::int64_t i, std::int64_t j, const Integers<T>& exact) {
    std::uint8_t& state = open[i + j * sums.rows];
    if (state == EntryCheck::closed) return;
    Deviations<T> deviations{};
    for (std::int64_t part = 0; state == EntryCheck::open && part < parts_of<T>; ++part) {
      deviations[part] = largest_deviation(check.rows[i], check.columns[parts_of<T> * j + part],
                                           check.largest_a, check.largest_b);
    }
    T& entry = c(i, j);
    const T* old = beta == T(0) ? nullptr : &entry;
    T result;
    if (!shows(check, exact, deviations, alpha, beta, old, result)) {
      left.fetch_add(1, std::memory_order_relaxed);
    } else if (write) {
      entry = result;
      state = EntryCheck::closed;
    }
  };
  for_each_integer<parts_of<T>>(sums, system, rows, columns, threads, visit);
  return left;
}

template void recombine_residues(const Accumulators&, const ResidueSystem&, std::span<const VectorRange>,
                                 std::span<const VectorRange>, float, float, const MatrixView<float>&, int);
template void recombine_residues(const Accumulators&, const ResidueSystem&, std::span<const VectorRange>,
                                 std::span<const VectorRange>, double, double, const MatrixView<double>&,
                                 int);
template std::int64_t recombine_checked_residues(const Accumulators&, const ResidueSystem&,
                                                 std::span<const VectorRange>, std::span<const VectorRange>,
                                                 const EntryCheck&, float, float, const MatrixView<float>&,
                                                 std::uint8_t*, bool, int);
template std::int64_t recombine_checked_residues(const Accumulators&, const ResidueSystem&,
                                                 std::span<const VectorRange>, std::span<const VectorRange>,
                                                 const EntryCheck&, double, double, const MatrixView<double>&,
                                                 std::uint8_t*, bool, int);
template void recombine_residues(const Accumulators&, const ResidueSystem&, std::span<const VectorRange>,
                                 std::span<const VectorRange>, std::complex<float>, std::complex<float>,
                                 const MatrixView<std::complex<float>>&, int);
template void recombine_residues(const Accumulators&, const ResidueSystem&, std::span<const VectorRange>,
                                 std::span<const VectorRange>, std::complex<double>, std::complex<double>,
                                 const MatrixView<std::complex<double>>&, int);
template std::int64_t recombine_checked_residues(const Accumulators&, const ResidueSystem&,
                                                 std::span<const VectorRange>, std::span<const VectorRange>,
                                                 const EntryCheck&, std::complex<float>, std::complex<float>,
                                                 const MatrixView<std::complex<float>>&, std::uint8_t*, bool,
                                                 int);
template std::int64_t recombine_checked_residues(const Accumulators&, const ResidueSystem&,
                                                 std::span<const VectorRange>, std::span<const VectorRange>,
                                                 const EntryCheck&, std::complex<double>,
                                                 std::complex<double>,
                                                 const MatrixView<std::complex<double>>&, std::uint8_t*, bool,
                                                 int);

}  // namespace kintsugi::core

// Recombination of the residues of one tile in integers of several limbs, special values included. The host's
// counterpart is src/recombine/residues.cpp.
#pragma once

#include "arith/exact/double_sum.hpp"
#include "arith/residue/remainder.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/elements.cuh"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// alpha X + beta C, rounded once in double arithmetic for nearly any alpha and beta
// (arith/exact/double_sum.hpp).

// Magnitudes within which all products of a sum are exact: scalars are 0 or between 2^-scalar_limit and
// 2^scalar_limit, elements of C are in units of X's last bit 0 or between 2^-element_limit and
// 2^element_limit.
inline constexpr int scalar_limit = 100;
inline constexpr int element_limit = 700;

// Exponent of x, for normal numbers.
__device__ inline int exponent_of(double x) {
  return static_cast<int>(high_word(std::bit_cast<std::uint64_t>(x)) >> 20 & 0x7ffU) - 1023;
}
__device__ inline bool is_moderate(double x) {
  const int exponent = exponent_of(x);
  return x == 0 || (-scalar_limit <= exponent && exponent < scalar_limit);
}
template <class T>
__device__ bool is_moderate_scalar(const T& x) {
  if constexpr (is_complex<T>) {
    return is_moderate(x.real()) && is_moderate(x.imag());
  } else {
    return is_moderate(x);
  }
}
template <class T>
__device__ bool are_moderate(const Scalars<T>& scalars) {
  return is_moderate_scalar(scalars.alpha) && is_moderate_scalar(scalars.beta) && scalars.alpha != T(0);
}

// Adds factor * c / 2^exponent to the sum. Returns false if it cannot be added exactly.
__device__ inline bool add_old(DoubleSum& sum, double c, double factor, int exponent) {
  if (c == 0) return true;
  constexpr int not_finite = 1024;
  constexpr int subnormal = -1023;
  const int exponent_of_c = exponent_of(c);
  if (exponent_of_c == not_finite || exponent_of_c == subnormal ||
      std::abs(exponent_of_c - exponent) >= element_limit)
    return false;
  sum.add_product(factor, c * core::power_of_two(-exponent));
  return true;
}

// Replaces a real element by alpha X 2^exponent + beta C, rounded once. Returns false if doubles cannot tell
// how it is rounded; then the element is as it was. The scalars must be moderate.
template <class T, class Integer>
__device__ bool update_element(const Integer (&x)[1], const int (&exponent)[1], const Scalars<T>& scalars,
                               T& element) {
  DoubleSum sum;
  add_multiple(sum, x[0], scalars.alpha);
  if (scalars.beta != T(0) && !add_old(sum, element, scalars.beta, exponent[0])) return false;
  const auto result = sum.rounded<T>(exponent[0]);
  if (result.is_certain) element = result.value;
  return result.is_certain;
}

// One part of an element of a complex matrix: 0 is the real part, 1 the imaginary part.
template <class Z, class Integer>
__device__ CertainlyRounded<RealOf<Z>> updated_part(int part, const Integer (&x)[2], const int (&exponent)[2],
                                                    const Scalars<Z>& scalars, const Z& element) {
  const int other = 1 - part;
  const double sign = part == 0 ? -1 : 1;  // i * i = -1
  const double old[2]{element.real(), element.imag()};
  const int unit = exponent[part];
  bool is_exact = true;
  DoubleSum sum;
  if (scalars.alpha.real() != 0) add_multiple(sum, x[part], scalars.alpha.real());
  if (scalars.alpha.imag() != 0) {
    const int difference = exponent[other] - unit;
    is_exact = std::abs(difference) <= scalar_limit;
    if (is_exact) add_multiple(sum, x[other], sign * scalars.alpha.imag() * core::power_of_two(difference));
  }
  if (scalars.beta.real() != 0) is_exact &= add_old(sum, old[part], scalars.beta.real(), unit);
  if (scalars.beta.imag() != 0) is_exact &= add_old(sum, old[other], sign * scalars.beta.imag(), unit);
  auto result = sum.rounded<RealOf<Z>>(unit);
  result.is_certain &= is_exact;
  return result;
}

// The same for a complex element.
template <class Z, class Integer>
__device__ bool update_element(const Integer (&x)[2], const int (&exponent)[2], const Scalars<Z>& scalars,
                               Z& element) {
  const auto real = updated_part(0, x, exponent, scalars, element);
  const auto imaginary = updated_part(1, x, exponent, scalars, element);
  const bool is_certain = real.is_certain && imaginary.is_certain;
  if (is_certain) element = {real.value, imaginary.value};
  return is_certain;
}

// Interleaves residue bytes of `count` rows modulo two moduli. Each 16-bit half of a word of `rows` then has
// both residues of a row.
template <int count, class Word>
__device__ void interleave(Word first, Word second, std::uint32_t (&rows)[divide_up(count, 2)]) {
  if constexpr (count == 4) {
    rows[0] = __byte_perm(first, second, 0x5140);
    rows[1] = __byte_perm(first, second, 0x7362);
  } else {
    static_assert(count == 1);
    rows[0] = first | std::uint32_t{second} << 8;
  }
}

// Adds the residues of `count` rows to the rows' sums, with the weights of the remainder theorem. A word has
// the residues of all rows modulo one modulus.
template <class Word, int Limbs, int MaxResidues, int count>
__device__ void add_up(const std::uint8_t* residues, std::int64_t group_stride,
                       const RemainderTable<Limbs, MaxResidues>& table, RemainderSum<Limbs> (&sums)[count]) {
  static_assert(sizeof(Word) == count);
  constexpr int step = RemainderTable<Limbs, MaxResidues>::step;
  // Number of words that are loaded before the first residue is used. Single rows are rare; for them the
  // words of one step are enough.
  constexpr int loads_in_flight = count == 1 ? step : 16;
  static_assert(loads_in_flight % step == 0);
  int first = 0;
#pragma unroll 1
  do {
    const int residues_left = table.count - first;
    Word words[loads_in_flight]{};
#pragma unroll
    for (int t = 0; t < loads_in_flight; ++t) {
      if (t < residues_left) words[t] = *reinterpret_cast<const Word*>(residues);
      residues += group_stride;
    }
#pragma unroll
    for (int t = 0; t < loads_in_flight; t += 2) {
      // Tables are padded with zeros to a multiple of `step`. So the number of residues is compared once per
      // step.
      if (t > 0 && t % step == 0 && t >= residues_left) break;
      const RemainderPair<Limbs>& pair = table.pairs[(first + t) / 2];
      std::uint32_t rows[divide_up(count, 2)];
      interleave<count>(words[t], words[t + 1], rows);
#pragma unroll
      for (int r = 0; r < count; ++r) sums[r].add(pair, pair.multiple(rows[r / 2], r % 2));
    }
    first += loads_in_flight;
    // The first comparison is a constant; it removes the loop if all residues are loaded at once.
  } while (MaxResidues > loads_in_flight && first < table.count);
}

// Number of columns of residues per column of C.
template <class Source>
__device__ std::int64_t residue_columns(const Source&) {
  return 1;
}
__device__ inline std::int64_t residue_columns(const ResiduesOfAnyElements& source) { return source.columns; }

// Table of the remainder theorem for a part.
template <class Source>
__device__ const auto& table_of(const Source& source, int part) {
  return source.table[part];
}
template <int Limbs>
__device__ const RemainderTable<Limbs>& table_of(const ResiduesOfReals<Limbs>& source, int) {
  return source.table;
}

// Address of the residue of element (i, j) of the tile modulo the first modulus.
template <class Source>
__device__ const std::uint8_t* residues_at(const Source& source, std::int64_t i, std::int64_t j) {
  return source.sums.data + i + residue_columns(source) * j * source.sums.rows;
}

// Adds the weighted residues of one part of `count` adjacent elements of a column to `sums`. `residues` is
// the address of the first residue of the first element.
template <class Word, class Source, int Limbs, int count>
__device__ void add_up_part(const Source& source, const std::uint8_t* residues, int part,
                            RemainderSum<Limbs> (&sums)[count]) {
  if (residue_columns(source) > 1) residues += part * source.sums.rows;
  add_up<Word>(residues, source.sums.group_stride, table_of(source, part), sums);
}

// Calls visit(e, residues) for the thread's columns. `residues` is the address of the first residue of the
// thread's first row in its e-th column.
template <class T, class Source, class Visit>
__device__ void for_each_column(const TileBlock<T>& block, const Source& source, const Visit& visit) {
  const std::uint8_t* residues = residues_at(source, block.row_in_tile(), block.column_in_tile(0));
#pragma unroll 1
  for (int e = 0; e < TileBlock<T>::columns_each; ++e) {
    if (block.has_element(e)) visit(e, residues);
    residues += block_warps * residue_columns(source) * source.sums.rows;
  }
}

template <class T, class Source>
class Residues {
 public:
  static constexpr int parts = static_cast<int>(parts_of<T>);
  static constexpr int limbs = Source::limbs;
  using Elements = typename TileBlock<T>::Elements;

  __device__ explicit Residues(const Source& source) : source_(source) {}

  __device__ static bool takes(const Scalars<T>& scalars) {
    return updates_blocks ? are_moderate(scalars) : scalars.alpha == T(1) && scalars.beta == T(0);
  }

  __device__ Elements write_block(const TileBlock<T>& block, const Scalars<T>& scalars) const {
    if constexpr (updates_blocks) {
      const bool adds = scalars.beta != T(0);
      if (scalars.alpha != T(1) || adds) return write_updates(block, scalars, adds);
    }
    block.begin(false);
    for_each_column(block, source_, [&](int e, const std::uint8_t* residues) {
      write_rounded(block, e, residues, [](const ExactNumber<limbs>& number, int, int, RealOf<T>& result) {
        result = rounded_ordinary<RealOf<T>>(number);
      });
    });
    block.end();
    return 0;
  }

  __device__ void write_finite(std::int64_t i, std::int64_t j, int row_scale, const VectorRange* column,
                               const Scalars<T>& scalars, T* element) const {
    const auto part = [&](int p) { return number(i, j, p, row_scale, column); };
    if constexpr (is_complex<T>) {
      write_general_element(part(0), part(1), scalars.alpha, scalars.beta, element);
    } else {
      write_general_element(part(0), scalars.alpha, scalars.beta, element);
    }
  }

 protected:
  // Exact number of part p of element (i, j) of the tile.
  __device__ ExactNumber<limbs> number(std::int64_t i, std::int64_t j, int p, int row_scale,
                                       const VectorRange* column) const {
    RemainderSum<limbs> sum[1];
    add_up_part<std::uint8_t>(source_, residues_at(source_, i, j), p, sum);
    return sum[0].number(table_of(source_, p), -(row_scale + column[p].scale));
  }

  // Writes the thread's rows of its e-th column. `residues` is the address of their first residue. For each
  // row r and part p, round(number, r, p, result) sets the result.
  template <class Round>
  __device__ void write_rounded(const TileBlock<T>& block, int e, const std::uint8_t* residues,
                                const Round& round) const {
    RealOf<T> results[parts][rows_each];
#pragma unroll
    for (int p = 0; p < parts; ++p) {
      RemainderSum<limbs> sums[rows_each];
      add_up_part<std::uint32_t>(source_, residues, p, sums);
#pragma unroll
      for (int r = 0; r < rows_each; ++r)
        round(sums[r].number(table_of(source_, p), block.exponent(r, e, p)), r, p, results[p][r]);
    }
    RowsOfThread<T> elements;
#pragma unroll
    for (int r = 0; r < rows_each; ++r) {
      if constexpr (is_complex<T>) {
        elements.rows[r] = {results[0][r], results[1][r]};
      } else {
        elements.rows[r] = results[0][r];
      }
    }
    block.write(e, elements);
  }

  const Source& source_;

 private:
  // Integers of more limbs would need too many registers for other scalars; their elements are written one by
  // one.
  static constexpr bool updates_blocks = limbs <= 3;

  // Writes the block for other scalars. Returns the elements that are not written.
  __device__ Elements write_updates(const TileBlock<T>& block, const Scalars<T>& scalars, bool adds) const {
    // The sums of both parts of complex elements leave no registers for C, which is read after them.
    constexpr bool reads_late = is_complex<T>;
    Elements left = 0;
    block.begin(adds);
    for_each_column(block, source_, [&](int e, const std::uint8_t* residues) {
      RowsOfThread<T> elements{};
      if (adds && !reads_late) elements = block.read(e);
      ExactNumber<limbs> exact[rows_each][parts];
#pragma unroll
      for (int p = 0; p < parts; ++p) {
        RemainderSum<limbs> sums[rows_each];
        add_up_part<std::uint32_t>(source_, residues, p, sums);
#pragma unroll
        for (int r = 0; r < rows_each; ++r) exact[r][p] = sums[r].number(table_of(source_, p), 0);
      }
      if (adds && reads_late) elements = block.read(e);
      unsigned rows_left = 0;
#pragma unroll
      for (int r = 0; r < rows_each; ++r) {
        int exponent[parts];
#pragma unroll
        for (int p = 0; p < parts; ++p) exponent[p] = block.exponent(r, e, p);
        if (!update_element(exact[r], exponent, scalars, elements.rows[r])) rows_left |= 1U << r;
      }
      block.write(e, elements);
      left |= block.elements_of_column(rows_left, e);
    });
    block.end();
    return left;
  }
};

}  // namespace kintsugi::core::cuda

// Recombination of residues in FP64 by the matrix unit: sums of digits of the residues' weights
// (arith/residue/digit_sums.hpp).
//
// A lane has four rows of a column, and all residues of their elements. An instruction of the matrix unit
// (PTX ISA, mma.m16n8k32) multiplies 16 rows and 8 columns over 32 inner indices. Lane l holds 8 inner
// indices of rows l / 4 and l / 4 + 8 of its left operand, and gets columns 2 (l % 4) and 2 (l % 4) + 1 of
// these rows of the product. Here the four lanes of a row hold residues of different elements. The right
// operand has zeros where the inner indices of one lane meet the columns of another. So each lane gets two
// sums of digits of its own two elements from 8 residues, and no data is exchanged. Three quarters of the
// products are by zero, but the matrix unit is idle otherwise.
#pragma once

#include <algorithm>
#include <utility>

#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/ptx/mma.cuh"
#include "engines/cuda/ptx/shared_memory.cuh"
#include "engines/cuda/recombine/limbs.cuh"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// Residues of a warp's columns on their way through shared memory to the operands of the matrix unit.

inline constexpr int residues_of_word = 4;
inline constexpr int residues_of_step = 8;  // residues that an instruction multiplies

// The residues of a thread's four rows. Each word has residues of one row.
template <int steps>
struct RowResidues {
  static constexpr int words = steps * residues_of_step / residues_of_word;

  std::uint32_t word[words][rows_each];

  // `rows` are the thread's residues modulo the first of `moduli` moduli, of a column that has block_rows
  // residues modulo each. Beyond the last modulus, the residues of the last stand for residues of weight 0.
  template <int moduli>
  __device__ static RowResidues of_column(const unsigned char* rows) {
    RowResidues result;
    static_assert(rows_each == 4);
#pragma unroll
    for (int w = 0; w < words; ++w) {
      std::uint32_t four[residues_of_word];
#pragma unroll
      for (int t = 0; t < residues_of_word; ++t)
        four[t] = *reinterpret_cast<const std::uint32_t*>(
            rows + std::min(w * residues_of_word + t, moduli - 1) * block_rows);
      const std::uint32_t first_01 = __byte_perm(four[0], four[1], 0x5140);  // of rows 0 and 1
      const std::uint32_t first_23 = __byte_perm(four[0], four[1], 0x7362);
      const std::uint32_t last_01 = __byte_perm(four[2], four[3], 0x5140);
      const std::uint32_t last_23 = __byte_perm(four[2], four[3], 0x7362);
      result.word[w][0] = __byte_perm(first_01, last_01, 0x5410);
      result.word[w][1] = __byte_perm(first_01, last_01, 0x7632);
      result.word[w][2] = __byte_perm(first_23, last_23, 0x5410);
      result.word[w][3] = __byte_perm(first_23, last_23, 0x7632);
    }
    return result;
  }
};

// Columns of residues of a warp on their way through shared memory. A column has block_rows residues for each
// modulus.
template <class T, int stored_residues>
class ResidueColumns {
 public:
  static constexpr int stages = digit_stages(element_type<T>());
  static constexpr int stage_bytes = stored_residues * block_rows;
  static constexpr int residues = stored_residues;

  // `source`: residues of the block's first row and the warp's first column modulo the first modulus.
  // `stride` is the distance from one modulus to the next, `column_stride` from one of the warp's columns to
  // the next.
  __device__ ResidueColumns(const std::uint8_t* source, std::int64_t stride, std::int64_t column_stride,
                            int moduli, int rows)
      : stride_(stride), column_stride_(column_stride) {
    extern __shared__ __align__(16) unsigned char shared[];
    const auto lane = static_cast<int>(threadIdx.x % warp_size);
    const int row = lane % copies_of_modulus * copy_bytes;
    const int modulus = lane / copies_of_modulus;
    unsigned char* stages_of_warp = shared + threadIdx.x / warp_size * (stages * stage_bytes);
    rows_ = stages_of_warp + lane * rows_each;
    target_ = shared_address(stages_of_warp) + lane * copy_bytes;
    source_ = source + modulus * stride + row;
    copies_ = row < rows ? divide_up(moduli - modulus, moduli_at_once) : 0;
  }

  // Starts the copies of the next column.
  template <int moduli>
  __device__ void start(bool exists) {
    const std::uint8_t* source = source_;
#pragma unroll
    for (int i = 0; i < moduli / moduli_at_once; ++i) {
      if (exists && i < copies_)
        copy_16_bytes(target_ + started_ * stage_bytes + i * warp_size * copy_bytes, source, true);
      source += moduli_at_once * stride_;
    }
    commit_copies();
    source_ += column_stride_;
    started_ = started_ + 1 == stages ? 0 : started_ + 1;
  }

  // Waits for the next column and returns the thread's rows of it. Their memory is used again after
  // stages - 1 more calls of start().
  __device__ const unsigned char* next() {
    await_copies_but<stages - 2>();
    __syncwarp();
    const unsigned char* rows = rows_ + taken_ * stage_bytes;
    taken_ = taken_ + 1 == stages ? 0 : taken_ + 1;
    return rows;
  }

 private:
  static constexpr int copy_bytes = 16;
  static constexpr int copies_of_modulus = block_rows / copy_bytes;
  static constexpr int moduli_at_once = warp_size / copies_of_modulus;

  const unsigned char* rows_;  // the thread's rows of the first stage
  std::uint32_t target_;
  const std::uint8_t* source_;
  std::int64_t stride_;
  std::int64_t column_stride_;
  int copies_;  // of a column, by this lane
  int started_ = 0;
  int taken_ = 0;
};

// Digits of weights in shared memory, followed by as many zeros.
template <int parts, int MaxResidues, int Pieces = weight_pieces>
struct SharedDigits {
  static constexpr int digits_of_weight = digits_of_piece * Pieces;
  static constexpr int words_of_digit = MaxResidues / residues_of_word;
  static constexpr int words_of_part = digits_of_weight * words_of_digit;
  static constexpr int words = parts * words_of_part;

  // Fills the memory, with one word a thread from thread `first_thread` on. All threads must call it
  // together, and synchronize before they read.
  template <class Tables>
  __device__ static void fill(const Tables& tables, int first_thread = 0) {
    const int first = (static_cast<int>(threadIdx.x) - first_thread + block_threads) % block_threads;
    for (int i = first; i < words; i += block_threads) {
      memory()[i] =
          tables[i / words_of_part].digits[i / words_of_digit % digits_of_weight][i % words_of_digit];
      memory()[words + i] = 0;
    }
  }

  // The lane's words of digit 0 or 1 of a part, for its column of the right operand: zeros if the lane holds
  // the inner indices of other lanes than get this column. Words of later digits of the same column follow
  // after two digits each.
  __device__ static const std::uint32_t* of_lane(int part) {
    const auto lane = static_cast<int>(threadIdx.x % warp_size);
    const int column = lane / 4;
    const bool is_own = column / 2 == lane % 4;
    return memory() + (is_own ? 0 : words) + part * words_of_part + column % 2 * words_of_digit;
  }

  // Loads the two words of a step, each time anew: all digits are too many for registers.
  __device__ static void load(const std::uint32_t* words, std::uint32_t (&two)[2]) {
    const std::uint64_t both = *reinterpret_cast<const volatile std::uint64_t*>(words);
    two[0] = low_word(both);
    two[1] = high_word(both);
  }

 private:
  __device__ static std::uint32_t* memory() {
    alignas(16) __shared__ std::uint32_t digits[2 * words];
    return digits;
  }
};

template <class Z>
__device__ double real_of(const Z& z) {
  if constexpr (is_complex<Z>) {
    return z.real();
  } else {
    return z;
  }
}
template <class Z>
__device__ double imaginary_of(const Z& z) {
  if constexpr (is_complex<Z>) {
    return z.imag();
  } else {
    return 0;
  }
}

// Sign bit of a scalar, in its place in a double's upper word.
__device__ inline std::uint32_t sign_of(double x) {
  return high_word(std::bit_cast<std::uint64_t>(x)) & 1U << 31;
}
// x with its sign changed if `sign` is set: x times a scalar of magnitude 1.
__device__ inline double with_sign(double x, std::uint32_t sign) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) ^ both_words(sign, 0));
}

// The term that is added to AB. Fewer operations suffice for alpha = ±1 and beta = ±1.
enum class Update { none, of_units, of_any_scalars };

// Check of results that need not be more than right. CheckedBounds (checks.cuh) is for results that must be
// proved.
struct Unchecked {
  // More than this number of elements of a column that fractions leave open leave the whole column open.
  static constexpr int most_elements_left = 0;
  static constexpr bool counts_deviations = false;

  // Begins a block: loads what the check needs. All threads must call it together, and synchronize after it.
  template <class Block>
  __device__ void begin(const Block&, const DeviceTile&) const {}
  // The factor whose deviation is that of row r of the e-th column, whose unit is `unit`.
  __device__ FractionFactor factor(const FractionFactor& of_column, double, int, int) const {
    return of_column;
  }
  // True if residues of 0 prove that the element is 0.
  __device__ bool is_exact(int, int) const { return true; }
  // Writes element (i, j) of the tile by `exact` (DigitResidues). Returns false if it is left open.
  template <class Exact, class T>
  __device__ bool write_element(const DeviceTile& tile, const Exact& exact, const Scalars<T>& scalars,
                                std::int64_t i, std::int64_t j, T* element) const {
    write_any_element(tile, exact, scalars, i, j, element);
    return true;
  }
};

// Recombination (tile.cuh) by sums of digits. It rounds the sum of alpha AB and beta C once
// (arith/residue/integer_update.hpp, limbs.cuh). Single elements are recombined in limbs (Residues).
// `stored_residues`: residues of a row for which a column in shared memory has space.
template <class T, class Source_, class Tables_, int stored_residues, int staged_columns,
          class Check_ = Unchecked>
class DigitResidues : public Residues<T, Source_> {
 public:
  using Source = Source_;
  using Tables = Tables_;
  using Check = Check_;
  static constexpr int parts = Tables::parts;
  static constexpr int pieces = Tables::pieces;
  static constexpr int max_steps = Tables::max_residues / residues_of_step;
  // Rows whose digits are summed together. Digits of weights of complex elements are loaded for all rows at
  // once; those of real elements stay in registers.
  static constexpr int rows_together = is_complex<T> ? 4 : 2;
  using Block = TileBlock<T, most_digit_columns(element_type<T>()), staged_columns>;
  using Elements = typename Block::Elements;
  using Columns = ResidueColumns<T, stored_residues>;
  using Digits = SharedDigits<parts, Tables::max_residues, pieces>;

  __device__ DigitResidues(const Source& source, const Tables& tables, const Check& check = Check())
      : Residues<T, Source>(source), tables_(tables), check_(check) {}

  __device__ const Source& source() const { return source_; }
  __device__ const ResidueSums& sums() const { return source_.sums; }
  __device__ const Tables& tables() const { return tables_; }
  __device__ const Check& check() const { return check_; }

  // Integers of more pieces are only multiplied by 1 or -1; the host selects another kernel for most other
  // scalars.
  static constexpr bool takes_any_scalars = pieces == weight_pieces;
  __device__ static bool takes(const Scalars<T>& scalars) {
    return takes_any_scalars ? are_moderate(scalars) : are_units(scalars);
  }
  // True if alpha is 1 or -1, and beta is 0, 1 or -1.
  __device__ static bool are_units(const Scalars<T>& scalars) {
    return is_unit(scalars.alpha) && (scalars.beta == T(0) || is_unit(scalars.beta));
  }

  __device__ Elements write_block(const Block& block, const Scalars<T>& scalars) const {
    Digits::fill(tables_.table);
    __syncthreads();
    return write_selected(block, scalars, ~0U, /*reads=*/false);
  }

  // Writes those of a warp's columns whose bits are set in `selected`; each warp has its own. `reads`: blocks
  // that pass through shared memory have elements of other columns, which must be kept. Returns the elements
  // that are not written, or not proved.
  __device__ Elements write_selected(const Block& block, const Scalars<T>& scalars, std::uint32_t selected,
                                     bool reads) const {
    const auto write = [&]<int steps>() {
      if constexpr (takes_any_scalars) {
        if (!are_units(scalars))
          return write_columns<steps, Update::of_any_scalars>(block, scalars, selected, reads);
      }
      if constexpr (!Check::counts_deviations) {
        if (scalars.beta != T(0))
          return write_columns<steps, Update::of_units>(block, scalars, selected, reads);
      }
      return write_columns<steps, Update::none>(block, scalars, selected, reads);
    };
    if constexpr (is_complex<T>) {
      if (tables_.table[0].count <= (max_steps - 1) * residues_of_step)
        return write.template operator()<max_steps - 1>();
    }
    return write.template operator()<max_steps>();
  }

 private:
  using Residues<T, Source>::source_;

  __device__ static bool is_unit(const T& x) {
    return (real_of(x) == 1 || real_of(x) == -1) && imaginary_of(x) == 0;
  }

  // Writes the thread's columns from `steps` times 8 residues. Returns the elements that are not written.
  template <int steps, Update update>
  __device__ Elements write_columns(const Block& block, const Scalars<T>& scalars, std::uint32_t selected,
                                    bool reads) const {
    constexpr int moduli = steps * residues_of_step;
    const auto has_column = [&](int e) { return block.has_column(e) && (selected >> e & 1U) != 0; };
    Columns columns(residues_at(source_, block.first_row_in_tile(), block.column_in_tile(0)),
                    source_.sums.group_stride, block_warps * source_.sums.rows, tables_.table[0].count,
                    block.rows());
#pragma unroll
    for (int e = 0; e < Columns::stages - 1; ++e) columns.template start<moduli>(has_column(e));
    const bool adds = update != Update::none && scalars.beta != T(0);
    Elements left = 0;
#pragma unroll 1
    for (int first = 0; block.has_any_column(first); first += Block::columns_staged) {
      block.begin(adds || reads, block_warps * first);
#pragma unroll 1
      for (int e = first; e < first + Block::columns_staged && block.has_column(e); ++e) {
        RowsOfThread<T> elements{};
        const bool has_element = has_column(e) && block.has_element(e);
        if (adds && has_element) elements = block.read(e);
        const unsigned char* column = columns.next();
        columns.template start<moduli>(has_column(e + Columns::stages - 1));
        if (!has_column(e)) continue;
        const auto residues = RowResidues<steps>::template of_column<Columns::residues>(column);
        const unsigned rows_left = recombine_column<update>(block, residues, e, scalars, elements.rows);
        if (has_element) {
          left |= Block::elements_of_column(rows_left, e);
          block.write(e, elements);
        }
      }
      block.end(block_warps * first);
    }
    return left;
  }

  // Recombines the thread's rows of its e-th column. Returns a bit for each row that is not changed, or not
  // proved.
  template <Update update, int steps>
  __device__ unsigned recombine_column(const Block& block, const RowResidues<steps>& residues, int e,
                                       const Scalars<T>& scalars, T (&elements)[rows_each]) const {
    if constexpr (update == Update::of_any_scalars) {
      return recombine_rows(block, residues, e, scalars, elements);
    } else {
      unsigned left = 0;
#pragma unroll
      for (int p = 0; p < parts; ++p)
        left |= recombine_part<update>(block, residues, e, p, scalars, elements);
      return left;
    }
  }

  // Recombines the thread's rows of its e-th column for any scalars. Returns a bit for each row that is not
  // changed.
  template <int steps>
  __device__ unsigned recombine_rows(const Block& block, const RowResidues<steps>& residues, int e,
                                     const Scalars<T>& scalars, T (&elements)[rows_each]) const {
    constexpr int together = 2;  // more would need too many registers
    unsigned left = 0;
#pragma unroll
    for (int first = 0; first < rows_each; first += together) {
      IntegerParts integers[together][parts];
#pragma unroll
      for (int p = 0; p < parts; ++p) {
        double of_rows[together][pieces];
        sum_up(residues, first, p, of_rows);
#pragma unroll
        for (int i = 0; i < together; ++i) integers[i][p] = parts_of_pieces(of_rows[i], tables_.table[p]);
      }
#pragma unroll
      for (int i = 0; i < together; ++i) {
        const int r = first + i;
        int exponent[parts];
#pragma unroll
        for (int p = 0; p < parts; ++p) exponent[p] = block.exponent(r, e, p) - tables_.table[p].shift;
        if (!update_element(integers[i], exponent, scalars, elements[r])) left |= 1U << r;
      }
    }
    return left;
  }

  // Recombines part p of the thread's rows of its e-th column for scalars that are 1, -1 or 0.
  template <Update update, int steps>
  __device__ unsigned recombine_part(const Block& block, const RowResidues<steps>& residues, int e, int p,
                                     const Scalars<T>& scalars, T (&elements)[rows_each]) const {
    const auto& table = tables_.table[p];
    const std::uint32_t alpha_sign = sign_of(real_of(scalars.alpha));
    const std::uint32_t beta_sign = sign_of(real_of(scalars.beta));
    unsigned left = 0;
#pragma unroll
    for (int first = 0; first < rows_each; first += rows_together) {
      double of_rows[rows_together][pieces];
      sum_up(residues, first, p, of_rows);
#pragma unroll
      for (int i = 0; i < rows_together; ++i) {
        const int r = first + i;
        const auto integer = parts_of_pieces(of_rows[i], table);
        const int exponent = block.exponent(r, e, p) - table.shift;
        double& element = reinterpret_cast<double*>(elements + r)[p];
        if constexpr (Check::counts_deviations) {
          if (!round_if_certain(integer, check_.deviation(table, r, e), element)) left |= 1U << r;
          element *= core::power_of_two(exponent);
        } else {
          const double unit = with_sign(core::power_of_two(exponent), alpha_sign);
          if constexpr (update == Update::of_units) {
            // The third argument of rounded_update() is 1 / unit, since alpha is 1 or -1.
            const auto sum =
                rounded_update(integer, unit, with_sign(core::power_of_two(-exponent), alpha_sign),
                               with_sign(element, beta_sign));
            if (sum.is_certain) element = sum.value;
            left |= (sum.is_certain ? 0U : 1U) << r;
          } else {
            element = rounded_product(integer, unit);
          }
        }
      }
    }
    return left;
  }

  // Computes the pieces of part p of `together` rows, beginning with row `first`.
  template <int steps, int together>
  __device__ void sum_up(const RowResidues<steps>& residues, int first, int p,
                         double (&of_rows)[together][pieces]) const {
    const std::uint32_t* const digits = Digits::of_lane(p);
    const auto sum_piece = [&]<int j>() {
      std::uint32_t sums[2][together / 2][4]{};  // of digits 4 j and 4 j + 1, and of 4 j + 2 and 4 j + 3
#pragma unroll
      for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
          std::uint32_t right[2];
          Digits::load(digits + (digits_of_piece * j + 2 * pair) * Digits::words_of_digit + 2 * step, right);
#pragma unroll
          for (int i = 0; i < together; i += 2) {
            const auto& low = residues.word[2 * step];
            const auto& high = residues.word[2 * step + 1];
            const std::uint32_t left[4]{low[first + i], low[first + i + 1], high[first + i],
                                        high[first + i + 1]};
            mma_bytes(sums[pair][i / 2], left, right);
          }
        }
      }
#pragma unroll
      for (int i = 0; i < together; ++i) {
        const auto& low = sums[0][i / 2];
        const auto& high = sums[1][i / 2];
        const int own = i % 2 * 2;
        of_rows[i][j] = shifted_piece(j, low[own], low[own + 1], high[own], high[own + 1]);
      }
    };
    [&]<int... j>(std::integer_sequence<int, j...>) { (sum_piece.template operator()<j>(), ...); }
    (std::make_integer_sequence<int, pieces>());
  }

  const Tables& tables_;
  Check check_;
};

// Recombinations of real elements of up to 16 and up to 24 moduli, and of complex elements.
using RealDigitResidues =
    DigitResidues<double, ResiduesOfReals<digit_limbs>, RealDigitTables, max_real_digit_residues, 32>;
template <class Check>
using WideDigitResidues = DigitResidues<double, ResiduesOfReals<wide_digit_limbs>, WideDigitTables,
                                        WideDigitTables::max_residues, wide_staged_columns, Check>;
using ComplexDigitResidues = DigitResidues<Complex<double>, ResiduesOfElements<digit_limbs>,
                                           ComplexDigitTables, max_complex_digit_residues, 8>;

}  // namespace kintsugi::core::cuda

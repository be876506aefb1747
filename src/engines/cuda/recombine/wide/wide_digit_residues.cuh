// Recombination of real FP64 residues of 17 to 20 moduli by sums of digits on the matrix unit
// (arith/residue/wide_digit_sums.hpp). Lanes and the matrix unit's operands are those of digit_residues.cuh. A
// product over 20 residues is two instructions of 8 residues a lane and one of 4.
#pragma once

#include "engines/cuda/recombine/digit_residues.cuh"

namespace kintsugi::core::cuda {

class WideDigitResidues : public Residues<double, wide_digit_limbs, ResiduesOfParts<wide_digit_limbs>> {
 public:
  using Source = ResiduesOfParts<wide_digit_limbs>;
  using Block = TileBlock<double, most_digit_columns(ElementType::f64), wide_staged_columns>;
  using Elements = typename Block::Elements;
  using Tables = WideDigitTables;
  using Columns = ResidueColumns<double, max_wide_digit_residues>;
  using Digits = SharedDigits<1, padded_digit_residues(max_wide_digit_residues), wide_pieces>;
  static_assert(Columns::stages == wide_digit_stages);

  __device__ WideDigitResidues(const Source& source, const Tables& tables)
      : Residues<double, wide_digit_limbs, Source>(source), source_(source), tables_(tables) {}

  __device__ Elements write_block(const Block& block, const Scalars<double>& scalars) const {
    Digits::fill(tables_);
    __syncthreads();
    const bool adds = scalars.beta != 0;
    if (std::fabs(scalars.alpha) != 1 || (adds && std::fabs(scalars.beta) != 1))
      return write_columns<Update::of_any_scalars>(block, scalars);
    if (adds) return write_columns<Update::of_units>(block, scalars);
    return write_columns<Update::none>(block, scalars);
  }

 private:
  static constexpr int words = max_wide_digit_residues / residues_of_word;
  static constexpr int rows_together = 2;

  // Words of residues of the thread's four rows.
  struct Rows {
    std::uint32_t word[words][rows_each];
  };

  // Writes the thread's columns. Returns the elements that are not written.
  template <Update update>
  __device__ Elements write_columns(const Block& block, const Scalars<double>& scalars) const {
    Columns columns(residues_at<double>(source_, block.first_row_in_tile(), block.column_in_tile(0)),
                    source_.sums.group_stride, block_warps * source_.sums.rows, tables_.table[0].count,
                    block.rows());
#pragma unroll
    for (int e = 0; e < Columns::stages - 1; ++e)
      columns.template start<max_wide_digit_residues>(block.has_column(e));
    constexpr bool loads_ahead = update == Update::of_units;  // elements of C of the next column
    const bool adds = update == Update::of_units || (update == Update::of_any_scalars && scalars.beta != 0);
    Elements left = 0;
    RowsOfThread<double> next{};
    if (loads_ahead && !block.is_staged() && block.has_element(0)) next = block.read(0);
#pragma unroll 1
    for (int first = 0; block.has_any_column(first); first += Block::columns_staged) {
      block.begin(adds, block_warps * first);
#pragma unroll 1
      for (int e = first; e < first + Block::columns_staged && block.has_column(e); ++e) {
        RowsOfThread<double> elements = next;
        const bool has_element = block.has_element(e);
        if (adds && has_element && (!loads_ahead || block.is_staged())) elements = block.read(e);
        if (loads_ahead && !block.is_staged() && block.has_element(e + 1)) next = block.read(e + 1);
        const Rows residues = residues_of(columns.next());
        columns.template start<max_wide_digit_residues>(block.has_column(e + Columns::stages - 1));
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

  // Residues of the thread's rows of a column. Beyond the last, those of the last stand for residues of weight
  // 0, as in RowResidues.
  __device__ static Rows residues_of(const unsigned char* column) {
    const auto both = RowResidues<divide_up(words, 2)>::template of_column<max_wide_digit_residues>(column);
    Rows result;
#pragma unroll
    for (int w = 0; w < words; ++w) {
#pragma unroll
      for (int r = 0; r < rows_each; ++r) result.word[w][r] = both.word[w][r];
    }
    return result;
  }

  // Recombines the thread's rows of its e-th column. Returns a bit for each row that is not changed.
  template <Update update>
  __device__ unsigned recombine_column(const Block& block, const Rows& residues, int e,
                                       const Scalars<double>& scalars, double (&elements)[rows_each]) const {
    const auto& table = tables_.table[0];
    const std::uint32_t alpha_sign = sign_of(scalars.alpha);
    unsigned left = 0;
#pragma unroll
    for (int first = 0; first < rows_each; first += rows_together) {
      double pieces[rows_together][wide_pieces];
      sum_up(residues, first, pieces);
#pragma unroll
      for (int i = 0; i < rows_together; ++i) {
        const int r = first + i;
        const WideIntegerParts integer = parts_of_pieces(pieces[i], table);
        const int exponent = block.exponent(r, e, 0) - table.shift;
        if constexpr (update == Update::of_any_scalars) {
          if (!update_in_doubles(integer, exponent, scalars, elements[r])) left |= 1U << r;
        } else {
          const double unit = with_sign(core::power_of_two(exponent), alpha_sign);
          if constexpr (update == Update::none) {
            elements[r] = rounded_product(integer, unit);
          } else {
            // 1 / unit times beta C: alpha and beta are 1 or -1.
            const double inverse = with_sign(core::power_of_two(-exponent), alpha_sign);
            const double old = with_sign(elements[r], sign_of(scalars.beta)) * inverse;
            if (is_like_wide_integer(elements[r], old)) {
              elements[r] = rounded_update(integer, unit, old);
            } else if (!update_in_doubles_apart(integer, exponent, scalars, elements[r])) {
              left |= 1U << r;
            }
          }
        }
      }
    }
    return left;
  }

  // Replaces an element by alpha X 2^exponent + beta C. Returns false if doubles cannot tell how it is rounded.
  __device__ static bool update_in_doubles(const WideIntegerParts& x, int exponent,
                                           const Scalars<double>& scalars, double& element) {
    const WideIntegerParts integer[1]{x};
    const int exponents[1]{exponent};
    return update_element(integer, exponents, scalars, element);
  }
  // The same, not inlined, for elements of C far larger or smaller than AB.
  __device__ __noinline__ static bool update_in_doubles_apart(const WideIntegerParts& x, int exponent,
                                                              const Scalars<double>& scalars,
                                                              double& element) {
    return update_in_doubles(x, exponent, scalars, element);
  }

  // Computes the pieces of rows_together rows, beginning with row `first`.
  __device__ static void sum_up(const Rows& residues, int first,
                                double (&pieces)[rows_together][wide_pieces]) {
    const std::uint32_t* const digits = Digits::of_lane(0);
#pragma unroll
    for (int j = 0; j < wide_pieces; ++j) {
      std::uint32_t sums[2][rows_together / 2][4]{};  // of digits 4 j and 4 j + 1, and of 4 j + 2 and 4 j + 3
#pragma unroll
      for (int pair = 0; pair < 2; ++pair)
        add_digits(digits + (digits_of_piece * j + 2 * pair) * Digits::words_of_digit, residues, first,
                   sums[pair]);
#pragma unroll
      for (int i = 0; i < rows_together; ++i) {
        const auto& low = sums[0][i / 2];
        const auto& high = sums[1][i / 2];
        const int own = i % 2 * 2;
        pieces[i][j] = shifted_piece(j, low[own], low[own + 1], high[own], high[own + 1]);
      }
    }
  }

  // Adds the products of two digits of all weights and the residues of rows_together rows.
  __device__ static void add_digits(const std::uint32_t* digits, const Rows& residues, int first,
                                    std::uint32_t (&sums)[rows_together / 2][4]) {
#pragma unroll
    for (int w = 0; w < words; w += 2) {
      if (w + 1 == words) {
#pragma unroll
        for (int i = 0; i < rows_together; i += 2) {
          const std::uint32_t left[2]{residues.word[w][first + i], residues.word[w][first + i + 1]};
          mma_bytes(sums[i / 2], left, digits[w]);
        }
      } else {
        std::uint32_t right[2];
        Digits::load(digits + w, right);
#pragma unroll
        for (int i = 0; i < rows_together; i += 2) {
          const auto& low = residues.word[w];
          const auto& high = residues.word[w + 1];
          const std::uint32_t left[4]{low[first + i], low[first + i + 1], high[first + i],
                                      high[first + i + 1]};
          mma_bytes(sums[i / 2], left, right);
        }
      }
    }
  }

  const Source& source_;
  const Tables& tables_;
};

}  // namespace kintsugi::core::cuda

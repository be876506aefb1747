// Recombination of real FP64 residues of 17 to 20 moduli into AB or -AB, or AB or -AB plus C or -C, by sums
// of digits on the matrix unit (arith/residue/digit_sums.hpp). Lanes and the matrix unit's operands are
// those of digit_residues.cuh. A product over 20 residues is two instructions of 8 residues a lane and one of
// 4; over 24 it is three.
#pragma once

#include "engines/cuda/recombine/digit_residues.cuh"

namespace kintsugi::core::cuda {

// Up to `max_residues` residues, a multiple of 4, and staged columns of C (TileBlock). `stored_residues`:
// residues of a row for which a column in shared memory has space.
template <int max_residues, int staged_columns, int stored_residues = max_residues>
class WideDigitResidues : public Residues<double, wide_digit_limbs, ResiduesOfParts<wide_digit_limbs>> {
 public:
  using Source = ResiduesOfParts<wide_digit_limbs>;
  using Block = TileBlock<double, most_digit_columns(ElementType::f64), staged_columns>;
  using Elements = typename Block::Elements;
  using Tables = WideDigitTables;
  using Columns = ResidueColumns<double, stored_residues>;
  using Digits = SharedDigits<1, padded_digit_residues(max_residues), wide_pieces>;
  static_assert(Columns::stages == wide_digit_stages);

  __device__ WideDigitResidues(const Source& source, const Tables& tables)
      : Residues<double, wide_digit_limbs, Source>(source), source_(source), tables_(tables) {}

  // True if alpha is 1 or -1, and beta is 0, 1 or -1. Other elements are written one by one; the host selects
  // another kernel for them.
  __device__ static bool are_units(const Scalars<double>& scalars) {
    return std::fabs(scalars.alpha) == 1 && (scalars.beta == 0 || std::fabs(scalars.beta) == 1);
  }
  __device__ static bool takes(const Scalars<double>& scalars) { return are_units(scalars); }

  // Writes those of a warp's columns whose bits are set in `selected`; each warp has its own. `reads`: blocks
  // that pass through shared memory have elements of other columns, which must be kept. Returns the elements
  // that are not written.
  __device__ Elements write_selected(const Block& block, const Scalars<double>& scalars,
                                     std::uint32_t selected, bool reads) const {
    const std::uint32_t alpha_sign = sign_of(scalars.alpha);
    const auto unit_of = [&](int e, int r, int sign) {
      const int exponent = block.exponent(r, e, 0) - tables_.table[0].shift;
      return with_sign(core::power_of_two(sign * exponent), alpha_sign);
    };
    if (scalars.beta == 0) {
      write_columns(block, {selected, reads}, [&](int e, const Rows& residues, double(&elements)[rows_each]) {
        for_each_integer(residues, [&](int r, const WideIntegerParts& integer) {
          elements[r] = rounded_product(integer, unit_of(e, r, 1));
        });
      });
      return 0;
    }
    const std::uint32_t beta_sign = sign_of(scalars.beta);
    Elements left = 0;
    write_columns<true>(block, {selected, reads},
                        [&](int e, const Rows& residues, double(&elements)[rows_each]) {
                          unsigned rows_left = 0;
                          for_each_integer(residues, [&](int r, const WideIntegerParts& integer) {
                            const auto sum = rounded_update(integer, unit_of(e, r, 1), unit_of(e, r, -1),
                                                            with_sign(elements[r], beta_sign));
                            if (sum.is_certain) elements[r] = sum.value;
                            rows_left |= (sum.is_certain ? 0U : 1U) << r;
                          });
                          left |= Block::elements_of_column(rows_left, e);
                        });
    return left;
  }

 protected:
  static constexpr int words = max_residues / residues_of_word;
  static constexpr int rows_together = 2;

  // Words of residues of the thread's four rows.
  struct Rows {
    std::uint32_t word[words][rows_each];
  };

  // Columns of a warp that are written, and whether those that pass through shared memory are read, too.
  struct Selected {
    std::uint32_t columns = ~0U;
    bool are_read = false;
  };

  // Calls compute(e, residues, elements) for the thread's selected columns, and writes the elements that it
  // sets. `residues` are those of the thread's rows of its e-th column; `elements` are the old ones if
  // `reads` is true.
  template <bool reads = false, class Compute>
  __device__ void write_columns(const Block& block, const Selected& selected, const Compute& compute) const {
    const auto has_column = [&](int e) { return block.has_column(e) && (selected.columns >> e & 1U) != 0; };
    const auto has_element = [&](int e) { return has_column(e) && block.has_element(e); };
    Columns columns(residues_at<double>(source_, block.first_row_in_tile(), block.column_in_tile(0)),
                    source_.sums.group_stride, block_warps * source_.sums.rows, tables_.table[0].count,
                    block.rows());
#pragma unroll
    for (int e = 0; e < Columns::stages - 1; ++e) columns.template start<max_residues>(has_column(e));
    RowsOfThread<double> next{};  // elements of C of the next column
    if (reads && !block.is_staged() && has_element(0)) next = block.read(0);
#pragma unroll 1
    for (int first = 0; block.has_any_column(first); first += Block::columns_staged) {
      block.begin(reads || selected.are_read, block_warps * first);
#pragma unroll 1
      for (int e = first; e < first + Block::columns_staged && block.has_column(e); ++e) {
        RowsOfThread<double> elements = next;
        if (reads && block.is_staged() && has_element(e)) elements = block.read(e);
        if (reads && !block.is_staged() && has_element(e + 1)) next = block.read(e + 1);
        const unsigned char* column = columns.next();
        columns.template start<max_residues>(has_column(e + Columns::stages - 1));
        if (!has_column(e)) continue;
        compute(e, residues_of(column), elements.rows);
        if (has_element(e)) block.write(e, elements);
      }
      block.end(block_warps * first);
    }
  }

  // Residues of the thread's rows of a column. Beyond the last, those of the last stand for residues of
  // weight 0, as in RowResidues.
  __device__ static Rows residues_of(const unsigned char* column) {
    const auto both = RowResidues<divide_up(words, 2)>::template of_column<max_residues>(column);
    Rows result;
#pragma unroll
    for (int w = 0; w < words; ++w) {
#pragma unroll
      for (int r = 0; r < rows_each; ++r) result.word[w][r] = both.word[w][r];
    }
    return result;
  }

  // Calls visit(r, integer) for the thread's rows of a column. `integer` is 2^s times the integer of row r.
  template <class Visit>
  __device__ void for_each_integer(const Rows& residues, const Visit& visit) const {
#pragma unroll
    for (int first = 0; first < rows_each; first += rows_together) {
      double pieces[rows_together][wide_pieces];
      sum_up(residues, first, pieces);
#pragma unroll
      for (int i = 0; i < rows_together; ++i) visit(first + i, parts_of_pieces(pieces[i], tables_.table[0]));
    }
  }

 private:
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

 protected:
  const Source& source_;
  const Tables& tables_;
};

}  // namespace kintsugi::core::cuda

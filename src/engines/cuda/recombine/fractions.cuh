// Recombination of real FP64 residues into AB or -AB, or that plus C or -C, by fractions
// (arith/residue/fraction_sums.hpp). Columns with an element whose rounding is not certain are left to a
// second pass by exact integers. The warps of a thread block that does not pass C through shared memory wait
// for each other once, for scales and digits: columns of residues are copied meanwhile.
#pragma once

#include <span>

#include "arith/residue/fraction_sums.hpp"
#include "engines/cuda/ptx/mma.cuh"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/digits.cuh"

namespace kintsugi::core::cuda {

// Fractions of a lane's own elements by the matrix unit (arith/residue/fraction_sums.hpp). Lanes and the
// matrix unit's operands are those of digits.cuh: the four lanes of a row of the left operand hold
// residues of different elements, and the right operand has zeros where the inner indices of one lane meet
// the columns of another. All lanes of a warp must call these functions together.

// Adds to `sums` two digits' sums of rows `first` and `first` + 1. words[w][r] has residues 4 w ... 4 w + 3
// of row r; `digits` are the lane's words of its digit, of the same residues.
template <int words, int rows>
__device__ void add_digit_pair(const std::uint32_t (&residues)[words][rows], int first,
                               const std::uint32_t* digits, std::uint32_t (&sums)[4]) {
#pragma unroll
  for (int w = 0; w < words; w += 2) {
    const std::uint32_t left[4]{residues[w][first], residues[w][first + 1], residues[w + 1][first],
                                residues[w + 1][first + 1]};
    const std::uint64_t both = *reinterpret_cast<const std::uint64_t*>(digits + w);
    const std::uint32_t right[2]{low_word(both), high_word(both)};
    mma_bytes(sums, left, right);
  }
}

// Fractions of a lane's rows. words[w][r] has residues 4 w ... 4 w + 3 of row r. `digits` is the lane's
// address of digit 0 or 1 (SharedDigits::of_lane()), where a digit has `stride` words.
template <int stride, int words, int rows>
__device__ void find_fractions(const std::uint32_t (&residues)[words][rows], const std::uint32_t* digits,
                               const FractionRow (&scales)[rows], Fraction (&fractions)[rows]) {
  static_assert(rows % 2 == 0 && words % 2 == 0 && words <= stride);
  std::uint32_t sums[rows / 2][fraction_digits / 2][4];
#pragma unroll
  for (int pair = 0; pair < fraction_digits / 2; ++pair) {
#pragma unroll
    for (int i = 0; i < rows / 2; ++i) {
#pragma unroll
      for (int s = 0; s < 4; ++s) sums[i][pair][s] = first_digit_sum(2 * pair + s % 2);
      add_digit_pair(residues, 2 * i, digits + 2 * pair * stride, sums[i][pair]);
    }
  }
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    std::uint32_t of_row[fraction_digits];
#pragma unroll
    for (int d = 0; d < fraction_digits; ++d) of_row[d] = sums[r / 2][d / 2][r % 2 * 2 + d % 2];
    fractions[r] = fraction_of_digits(of_row, scales[r]);
  }
}

// Results of a thread's rows of a column.
struct RowResults {
  double value[rows_each];
  bool is_certain[rows_each];

  __device__ bool are_certain() const {
    bool all = true;
#pragma unroll
    for (int r = 0; r < rows_each; ++r) all &= is_certain[r];
    return all;
  }
};

// The first pass. `Block` is the TileBlock. `Check` may add deviations (Unchecked, digits.cuh).
template <int max_residues, class Block, class Check>
class FractionColumns {
 public:
  using Table = FractionTable<max_residues>;
  using Columns = ResidueColumns<double, max_residues>;
  using Digits = SharedDigits<1, max_residues, fraction_digits / digits_of_piece>;
  // A set of a warp's columns: bit e stands for the e-th one.
  using ColumnSet = std::uint32_t;
  static_assert(Block::columns_each < 32);
  using Elements = typename Block::Elements;

  // Begins to copy the first columns of residues.
  __device__ FractionColumns(const Block& block, const ResidueSums& sums, const Table& table,
                             const Check& check)
      : block_(block), table_(table), check_(check),
        columns_(sums.data + block.first_row_in_tile() + block.column_in_tile(0) * sums.rows,
                 sums.group_stride, block_warps * sums.rows, table.count, block.rows()) {
#pragma unroll
    for (int e = 0; e < Columns::stages - 1; ++e) columns_.template start<max_residues>(block.has_column(e));
  }

  // Writes the warp's columns and returns those that are left. All threads must call it together, after
  // Digits::fill() and TileBlock::load_scales().
  __device__ ColumnSet write(const Scalars<double>& scalars) {
    beta_ = scalars.beta;
    unit_exponent_ = block_.column_exponent(0);
    alpha_ = scalars.alpha;
#pragma unroll
    for (int r = 0; r < rows_each; ++r)
      rows_[r] = FractionRow::of_unit(core::power_of_two(block_.exponent(r, 0, 0)));
    const bool adds = !Check::counts_deviations && beta_ != 0;
    if (block_.is_staged()) return adds ? write_columns<true, true>() : write_columns<false, true>();
    return adds ? write_columns<true, false>() : write_columns<false, false>();
  }

  // The thread's elements of other columns that are left.
  __device__ Elements elements_left() const { return elements_left_; }

 private:
  template <bool adds, bool is_staged>
  __device__ ColumnSet write_columns() {
    int end = 0;  // of the warp's columns
    while (end < Block::columns_each && block_.has_column(end)) ++end;
    double* c = block_.element(Block::row_in_block(), 0);
    const std::int64_t to_next = block_.element(0, 1) - block_.element(0, 0);
    ColumnSet left = 0;
    int e = 0;
    for (int first = 0; block_.has_any_column(first); first += Block::columns_staged) {
      if (is_staged) block_.begin(adds, block_warps * first);
#pragma unroll 1
      for (; e < (is_staged ? std::min(end, first + Block::columns_staged) : end); ++e) {
        if (!write_column<adds, is_staged>(e, end, c, to_next)) {
          left |= ColumnSet{1} << e;
          // If a third of the columns is left, the rest will probably be, too.
          if (3 * __popc(left) > e + 1) {
            left |= (ColumnSet{1} << end) - (ColumnSet{1} << e);
            end = e;
          }
        }
        c += to_next;
      }
      if (!is_staged) break;
      block_.end(block_warps * first);
    }
    return left;
  }

  // Writes the thread's rows of its e-th column, which are at `c`. Returns true if no rows of the warp are
  // left; else none is written. Single elements that are left (Check::most_elements_left) are overwritten:
  // only for beta = 0.
  template <bool adds, bool is_staged>
  __device__ bool write_column(int e, int end, double* c, std::int64_t to_next) {
    const bool has_rows = Block::row_in_block() < block_.rows();
    RowsOfThread<double> old{};
    if (adds && has_rows) {
      old = is_staged ? block_.read(e) : *reinterpret_cast<const RowsOfThread<double>*>(c);
      if (!is_staged && e + 2 < end) prefetch_to_l2(c + 2 * to_next);
    }
    const unsigned char* column = columns_.next();
    const auto residues = RowResidues<max_residues / 8>::template of_column<max_residues>(column);
    columns_.template start<max_residues>(e + Columns::stages - 1 < end);
    RowResults results = recombine<adds>(residues, e, old);
    if (__any_sync(~0U, has_rows && !results.are_certain()) != 0 &&
        !settle_rows<adds>(column, e, old, results))
      return false;
    if (!has_rows) return true;
    RowsOfThread<double> elements;
#pragma unroll
    for (int r = 0; r < rows_each; ++r) elements.rows[r] = results.value[r];
    if (is_staged) {
      block_.write(e, elements);
    } else {
      *reinterpret_cast<RowsOfThread<double>*>(c) = elements;
    }
    return true;
  }

  __device__ static void prefetch_to_l2(const double* address) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
  }

  // Recombines the thread's rows of its e-th column.
  template <bool adds, class Words>
  __device__ RowResults recombine(const Words& residues, int e, const RowsOfThread<double>& old) const {
    const double unit = core::power_of_two(block_.column_exponent(e) - unit_exponent_);
    const FractionFactor factor = table_.factor.times(unit, unit * alpha_);
    Fraction fractions[rows_each];
    find_fractions<Digits::words_of_digit>(residues.word, Digits::of_lane(0), rows_, fractions);
    RowResults results;
#pragma unroll
    for (int r = 0; r < rows_each; ++r) {
      const FractionFactor own = check_.factor(factor, unit, r, e);
      const auto result = adds ? rounded_update(fractions[r], rows_[r], own, beta_, old.rows[r])
                               : rounded_product(fractions[r], rows_[r], own);
      results.value[r] = result.value;
      results.is_certain[r] = result.is_certain;
    }
    return results;
  }

  // Sets those uncertain rows whose residues are all 0. Returns true if no other uncertain row of the warp is
  // in C, or so few that they are left as single elements.
  template <bool adds>
  __device__ bool settle_rows(const unsigned char* column, int e, const RowsOfThread<double>& old,
                              RowResults& results) {
    std::uint32_t any = 0;
#pragma unroll 1
    for (int t = 0; t < table_.count; ++t)
      any |= *reinterpret_cast<const std::uint32_t*>(column + t * block_rows);
    unsigned rows_left = 0;
#pragma unroll
    for (int r = 0; r < rows_each; ++r) {
      const double sum = adds ? beta_ * old.rows[r] + 0.0 : 0.0;  // + 0.0 turns -0 into 0
      const bool is_zero = (any >> 8 * r & 0xffU) == 0 && sum - sum == 0 && check_.is_exact(r, e);
      if (!results.is_certain[r] && is_zero) results.value[r] = sum;
      if (!results.is_certain[r] && !is_zero && Block::row_in_block() + r < block_.rows())
        rows_left |= 1U << r;
    }
    if constexpr (Check::most_elements_left == 0) {
      return __all_sync(~0U, rows_left == 0) != 0;
    } else {
      if (__reduce_add_sync(~0U, __popc(rows_left)) > Check::most_elements_left) return false;
      elements_left_ |= Block::elements_of_column(rows_left, e);
      return true;
    }
  }

  const Block& block_;
  const Table& table_;
  Check check_;
  Columns columns_;
  double alpha_;
  double beta_;
  int unit_exponent_;  // column_exponent() of the first column
  FractionRow rows_[rows_each];
  Elements elements_left_ = 0;
};

// Recombines a block of a tile by fractions. `exact` is the recombination by exact integers (DigitResidues)
// of columns that are not certain, of other scalars, and of all columns if there is no table of fractions.
// Returns the number of elements that the thread leaves open.
template <int max_residues, class Exact>
__device__ unsigned recombine_by_fractions(const DeviceTile& tile, const Exact& exact,
                                           const FractionTable<max_residues>& fractions) {
  using Block = typename Exact::Block;
  using Check = typename Exact::Check;
  using Columns = FractionColumns<max_residues, Block, Check>;
  static_assert(std::is_same_v<typename Columns::Columns, typename Exact::Columns>);  // warps share no memory
  const Scalars<double> scalars(tile.scalars);
  if (!holds(tile.condition) || (scalars.alpha == 0 && scalars.beta == 1)) return 0;
  const Block block(tile, exact.tables().block_columns);
  Columns columns(block, exact.sums(), fractions, exact.check());
  Columns::Digits::fill(std::span<const FractionTable<max_residues>, 1>(&fractions, 1));
  Exact::Digits::fill(exact.tables().table, block_threads / 2);
  exact.check().begin(block, tile);
  const bool is_ordinary = block.load_scales(tile);
  const bool is_taken = is_ordinary && Exact::takes(scalars);
  // Exact integers are as fast where C passes through shared memory and is not read.
  const bool by_fractions = is_taken && fractions.count > 0 && Exact::are_units(scalars) &&
                            (Check::counts_deviations || !block.is_staged() || scalars.beta != 0);
  auto selected = is_taken ? ~typename Columns::ColumnSet{} : 0;
  if (by_fractions) selected = columns.write(scalars);
  await_copies();
  auto left = is_taken ? columns.elements_left() : Block::all_elements;
  // Any scalars are loaded again, so that they take no registers of fractions; others are signs.
  const Scalars<double> any_scalars = Exact::takes_any_scalars ? Scalars<double>(tile.scalars) : scalars;
  if (block.is_staged() ? __syncthreads_or(selected != 0 ? 1 : 0) != 0 : selected != 0) {
    left |= exact.write_selected(block, any_scalars, selected, by_fractions);
    if (block.is_staged()) __syncthreads();  // other threads have copied elements to C
    await_copies();
  }
  unsigned open = 0;
  block.for_each_element(left, [&](std::int64_t i, std::int64_t j, double* element) {
    if (!exact.check().write_element(tile, exact, any_scalars, i, j, element)) ++open;
  });
  return open;
}

}  // namespace kintsugi::core::cuda

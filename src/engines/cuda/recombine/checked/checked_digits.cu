// Checked recombination of real FP64 residues of up to 24 moduli into AB by sums of digits on the matrix
// unit. Nearly all elements are proved by fractions whose deviation counts (fraction_residues.cuh). Where
// more of a column are left, they are proved by integers in double arithmetic (wide_digit_residues.cuh,
// arith/residue/integer_update.hpp). The others are checked one by one in wide integers, as by
// CheckedResidues. So the weights of more than 20 moduli need not be exact (leading_digit_table()).
#include "arith/residue/digit_sums.hpp"
#include "arith/residue/integer_update.hpp"
#include "engines/cuda/recombine/checked/checked.hpp"
#include "engines/cuda/recombine/checked/checked_residues.cuh"
#include "engines/cuda/recombine/fraction_residues.cuh"
#include "engines/cuda/recombine/wide_digit_residues.cuh"

namespace kintsugi::core::cuda {

// Bounds of a block's rows and columns, in units of 2^(unit_exponent()) of the integers.
template <class Block>
class CheckedBounds {
 public:
  // More uncertain elements of a column than this leave the whole column to exact integers.
  static constexpr int most_elements_left = 8;

  __device__ explicit CheckedBounds(int moduli)
      : unit_exponent_(moduli > max_wide_digit_residues ? -32 : 0) {}

  // Loads the bounds of all vectors. Beyond the edge of C a vector has the bounds of the last one. All
  // threads must call it together, and synchronize before they read.
  __device__ void load(const Block& block, const DeviceTile& tile, const DeviceCheck& check) const {
    static_assert(block_rows + Block::columns <= block_threads);
    const auto thread = static_cast<int>(threadIdx.x);
    if (thread >= block_rows + Block::columns) return;
    const bool is_row = thread < block_rows;
    const std::int64_t in_tile =
        is_row ? std::min(block.first_row_in_tile() + thread, tile.rows - 1)
               : std::min(block.first_column_in_tile() + thread - block_rows, tile.columns - 1);
    const std::int64_t vector = (is_row ? tile.first_row : tile.first_column) + in_tile;
    const FloatBound own =
        FloatBound::of((is_row ? check.rows : check.columns)[vector], core::power_of_two(unit_exponent_));
    bounds()[thread] = {own.errors, own.magnitudes, own.largest, 0};
  }

  __device__ int unit_exponent() const { return unit_exponent_; }
  // Upper bound of the deviation of the thread's row r of its e-th column.
  __device__ float deviation(int r, int e) const {
    return deviation_above(bound(Block::row_in_block() + r), bound(block_rows + Block::column_in_block(e)));
  }

  // See Unchecked. The deviation is increased by more than 2^-25 of itself (double_above()). An infinite one
  // is 2^128 units or more: no rounding is certain, since half of the last place of any integer is below
  // 2^124.
  __device__ FractionFactor factor(const FractionFactor& of_column, double unit, int r, int e) const {
    const double deviation_unit = unit * (unit_exponent_ == 0 ? 0x1p-116 : 0x1p-84);
    return {of_column.high, of_column.low,
            __fma_ru(certain_detail::double_above(deviation(r, e)), deviation_unit, of_column.deviation)};
  }
  __device__ bool is_exact(int r, int e) const { return deviation(r, e) == 0; }

 private:
  __device__ static float4* bounds() {
    __shared__ float4 all[block_rows + Block::columns];
    return all;
  }
  __device__ static FloatBound bound(int index) {
    const float4 four = bounds()[index];
    return {four.x, four.y, four.z};
  }

  int unit_exponent_;
};

template <int max_residues, int staged_columns>
class CheckedDigits : public WideDigitResidues<max_residues, staged_columns, padded_wide_residues> {
 public:
  using Base = WideDigitResidues<max_residues, staged_columns, padded_wide_residues>;
  using typename Base::Block;
  using typename Base::Elements;
  using typename Base::Source;
  using typename Base::Tables;
  using Bounds = CheckedBounds<Block>;

  __device__ CheckedDigits(const DeviceTile& tile, const Source& source, const Tables& tables,
                           const WideFractions& fractions, const DeviceCheck& check,
                           const DeviceOpenElements& open)
      : Base(source, tables), tile_(tile), fractions_(fractions), check_(check), open_(open),
        elements_(tile, source, check, open) {}

  // Writes the block and sets its masks. Returns the number of open elements that the thread counts.
  __device__ unsigned write(const Block& block) const {
    using Columns = FractionColumns<padded_wide_residues, Block, Bounds>;
    const Bounds bounds(this->tables_.table[0].count);
    Columns columns(block, this->source_.sums, fractions_, bounds);
    Columns::Digits::fill(std::span<const WideFractions, 1>(&fractions_, 1));
    Base::Digits::fill(this->tables_.table, block_threads / 2);
    bounds.load(block, tile_, check_);
    clear_masks(block);
    const bool is_ordinary = block.load_scales(tile_);
    const Scalars<double> scalars(tile_.scalars);
    Elements left = Block::all_elements;
    if (is_ordinary) {
      auto selected = ~typename Columns::ColumnSet{};
      const bool by_fractions = fractions_.count > 0;
      if (by_fractions) selected = columns.write(scalars);
      await_copies();
      left = columns.elements_left();
      if (block.is_staged() ? __syncthreads_or(selected != 0 ? 1 : 0) != 0 : selected != 0)
        left |= write_certain_elements(block, bounds, {selected, by_fractions});
    }
    await_copies();
    if (block.is_staged()) __syncthreads();  // other threads have copied elements to C
    __syncwarp();                            // masks are 0
    unsigned open_elements = 0;
    block.for_each_element(left, [&](std::int64_t i, std::int64_t j, double* element) {
      if (elements_.write_element(i, j, scalars, element)) return;
      atomicOr(mask(i, j), 1U << i % warp_size);
      ++open_elements;
    });
    return open_elements;
  }

 private:
  using typename Base::Rows;
  using typename Base::Selected;

  // Mask of element (i, j) of the tile.
  __device__ std::uint32_t* mask(std::int64_t i, std::int64_t j) const {
    return open_.masks + i / warp_size + j * open_.masks_per_column;
  }

  // Sets the masks of the warp's columns to 0. Each lane has a column.
  __device__ void clear_masks(const Block& block) const {
    static_assert(Block::columns_each <= warp_size && block_rows / warp_size == 4);
    const auto lane = static_cast<int>(threadIdx.x % warp_size);
    if (lane < Block::columns_each && block.has_column(lane))
      *reinterpret_cast<uint4*>(mask(block.first_row_in_tile(), block.column_in_tile(lane))) = {0, 0, 0, 0};
  }

  // Writes elements of the selected columns of an ordinary block by integers. Returns those that are not
  // certain.
  __device__ Elements write_certain_elements(const Block& block, const Bounds& bounds,
                                             const Selected& selected) const {
    const auto& table = this->tables_.table[0];
    const float dropped = table.count > max_wide_digit_residues ? dropped_units : 0;
    const auto to_table = static_cast<float>(core::power_of_two(table.shift - bounds.unit_exponent()));
    Elements left = 0;
    this->write_columns(block, selected, [&](int e, const Rows& residues, double(&elements)[rows_each]) {
      unsigned uncertain_rows = 0;
      this->for_each_integer(residues, [&](int r, const WideIntegerParts& integer) {
        float deviation = __fmul_ru(bounds.deviation(r, e), to_table);
        if constexpr (max_residues > max_wide_digit_residues) deviation = __fadd_ru(deviation, dropped);
        if (!round_if_certain(integer, deviation, elements[r])) uncertain_rows |= 1U << r;
        elements[r] *= core::power_of_two(block.exponent(r, e, 0) - table.shift);
      });
      left |= Block::elements_of_column(uncertain_rows, e);
    });
    return left;
  }

  const DeviceTile& tile_;
  const WideFractions& fractions_;
  const DeviceCheck& check_;
  const DeviceOpenElements& open_;
  CheckedResidues<double, wide_digit_limbs, Source> elements_;
};

#define KINTSUGI_CHECKED_DIGITS(name, residues, staged_columns)                                             \
  extern "C" __global__ void __launch_bounds__(block_threads, 2)                                            \
      name(const __grid_constant__ DeviceTile tile,                                                         \
           const __grid_constant__ ResiduesOfParts<wide_digit_limbs> source,                                \
           const __grid_constant__ WideDigitTables tables, const __grid_constant__ WideFractions fractions, \
           const __grid_constant__ DeviceCheck check, const __grid_constant__ DeviceOpenElements open) {    \
    if (!holds(tile.condition)) return;                                                                     \
    using Recombination = CheckedDigits<residues, staged_columns>;                                          \
    const Recombination::Block block(tile, tables.block_columns);                                           \
    add_open_elements(Recombination(tile, source, tables, fractions, check, open).write(block), open);      \
  }
KINTSUGI_CHECKED_DIGITS(checked_digits_f64, max_wide_digit_residues, wide_staged_columns)
KINTSUGI_CHECKED_DIGITS(checked_leading_digits_f64, max_leading_digit_residues, leading_staged_columns)
#undef KINTSUGI_CHECKED_DIGITS

}  // namespace kintsugi::core::cuda

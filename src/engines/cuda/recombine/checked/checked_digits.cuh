// Checked recombination of real FP64 residues of up to 24 moduli into AB by sums of digits on the matrix unit
// (wide/wide_digit_residues.cuh). Nearly all elements are proved in double arithmetic
// (arith/residue/certain_rounding.hpp). The others are checked one by one in wide integers, as by
// CheckedResidues. So the weights of more than 20 moduli need not be exact (leading_digit_table()).
#pragma once

#include "arith/residue/certain_rounding.hpp"
#include "arith/residue/leading_digit_sums.hpp"
#include "engines/cuda/recombine/checked/checked_digits.hpp"
#include "engines/cuda/recombine/checked/checked_residues.cuh"
#include "engines/cuda/recombine/wide/wide_digit_residues.cuh"

namespace kintsugi::core::cuda {

template <int max_residues, int staged_columns>
class CheckedDigits : public WideDigitResidues<max_residues, staged_columns> {
 public:
  using Base = WideDigitResidues<max_residues, staged_columns>;
  using typename Base::Block;
  using typename Base::Elements;
  using typename Base::Source;
  using typename Base::Tables;

  __device__ CheckedDigits(const DeviceTile& tile, const Source& source, const Tables& tables,
                           const DeviceCheck& check, const DeviceOpenElements& open)
      : Base(source, tables), tile_(tile), check_(check), open_(open), elements_(tile, source, check, open) {}

  // Writes the block and sets its masks. Returns the number of open elements that the thread counts.
  __device__ unsigned write(const Block& block) const {
    const bool is_ordinary = block.load_scales(tile_);
    clear_masks(block);
    Elements left = Block::all_elements;
    if (is_ordinary) left = write_certain_elements(block);
    if (block.is_staged()) __syncthreads();  // other threads have copied elements to C
    __syncwarp();                            // masks are 0
    const Scalars<double> scalars(tile_.scalars);
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
  static_assert(block_rows + Block::columns <= block_threads);

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

  // Writes the elements of an ordinary block. Returns those that are not certain.
  __device__ Elements write_certain_elements(const Block& block) const {
    load_bounds(block);
    Base::Digits::fill(this->tables_);
    __syncthreads();
    const auto& table = this->tables_.table[0];
    const float dropped = table.count > max_wide_digit_residues ? dropped_units : 0;
    Elements left = 0;
    this->write_columns(block, [&](int e, const Rows& residues, double(&elements)[rows_each]) {
      const FloatBound column = bound(block_rows + Block::column_in_block(e));
      unsigned uncertain_rows = 0;
      this->for_each_integer(residues, [&](int r, const WideIntegerParts& integer) {
        float deviation = deviation_above(bound(Block::row_in_block() + r), column);
        if constexpr (max_residues > max_wide_digit_residues) deviation = __fadd_ru(deviation, dropped);
        if (!round_if_certain(integer, deviation, elements[r])) uncertain_rows |= 1U << r;
        elements[r] *= core::power_of_two(block.exponent(r, e, 0) - table.shift);
      });
      left |= Block::elements_of_column(uncertain_rows, e);
    });
    return left;
  }

  // Bounds of the block's rows and columns, in units of the integers that for_each_integer() finds.
  __device__ static float4* bounds() {
    __shared__ float4 all[block_rows + Block::columns];
    return all;
  }
  __device__ static FloatBound bound(int index) {
    const float4 four = bounds()[index];
    return {four.x, four.y, four.z};
  }
  // Beyond the edge of C a vector has the bounds of the last one.
  __device__ void load_bounds(const Block& block) const {
    const auto thread = static_cast<int>(threadIdx.x);
    if (thread >= block_rows + Block::columns) return;
    const bool is_row = thread < block_rows;
    const std::int64_t in_tile =
        is_row ? std::min(block.first_row_in_tile() + thread, tile_.rows - 1)
               : std::min(block.first_column_in_tile() + thread - block_rows, tile_.columns - 1);
    const std::int64_t vector = (is_row ? tile_.first_row : tile_.first_column) + in_tile;
    const FloatBound own = FloatBound::of((is_row ? check_.rows : check_.columns)[vector],
                                          core::power_of_two(this->tables_.table[0].shift));
    bounds()[thread] = {own.errors, own.magnitudes, own.largest, 0};
  }

  const DeviceTile& tile_;
  const DeviceCheck& check_;
  const DeviceOpenElements& open_;
  CheckedResidues<double, wide_digit_limbs, Source> elements_;
};

}  // namespace kintsugi::core::cuda

// Recombination of the residues of one tile, special values included, for elements that the check proves; the
// others are marked as open. The device's version of recombine_checked_residues() in
// src/recombine/residues.cpp.
#pragma once

#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/residues.cuh"
#include "engines/cuda/recombine/tile.cuh"
#include "engines/device_checks.hpp"

namespace kintsugi::core::cuda {

// Writes an element for general alpha and beta if the check proves it, and returns whether it does. A
// separate function, with its numbers on the stack, as write_general_element().
template <class T, int Limbs>
__device__ __noinline__ bool write_checked_element(const ElementDemand& demand,
                                                   const ExactNumber<Limbs>* exact, const double* deviations,
                                                   T alpha, T beta, T* element) {
  ElementNumbers<T, Limbs> numbers;
  ElementDeviations<T> allowed;
  for (int p = 0; p < static_cast<int>(parts_of<T>); ++p) {
    numbers[p] = exact[p];
    allowed[p] = deviations[p];
  }
  T result;
  const T* old = beta == T(0) ? nullptr : element;
  if (!round_if_proved<T, Limbs>(demand, numbers, allowed, alpha, beta, old, result)) return false;
  *element = result;
  return true;
}

template <class T, int Limbs, class Source>
class CheckedResidues {
 public:
  static constexpr int parts = static_cast<int>(parts_of<T>);
  using Real = RealOf<T>;
  using Number = ExactNumber<Limbs>;

  __device__ CheckedResidues(const DeviceTile& tile, const Source& source, const DeviceCheck& check,
                             const DeviceOpenElements& open)
      : tile_(tile), source_(source), check_(check), open_(open) {}

  // Writes the elements of a block whose vectors are ordinary, proved or not, with alpha = 1 and beta = 0;
  // returns the thread's share of the number of open ones. Each part is rounded and checked by itself.
  __device__ unsigned write_block(const TileBlock<T>& block) const {
    unsigned open = 0;
#pragma unroll 1
    for (int e = 0; e < TileBlock<T>::columns_each; ++e) {
      const unsigned rows = block.has(e) ? write_column(block, e) : 0U;
      if (block.has_column(e)) open += store_open_rows(block, e, rows);
    }
    return open;
  }

  // Writes the other elements that are proved. If another candidate computed the block before, elements that
  // it proved may have been added to C and are left alone.
  __device__ unsigned write_elements(const TileBlock<T>& block, const Scalars<T>& scalars) const {
    const bool rewritten = open_.state->is_rewritten != 0;
    const int lane = static_cast<int>(threadIdx.x % warp_size);
    unsigned open = 0;
#pragma unroll 1
    for (int e = 0; e < TileBlock<T>::columns_each; ++e) {
      if (!block.has_column(e)) continue;
      std::uint32_t* masks = masks_of_column(block, e);
#pragma unroll 1
      for (int w = 0; w < masks_per_column; ++w) {
        const int i = warp_size * w + lane;
        const bool needs_check = i < block.rows() && (!rewritten || (masks[w] >> lane & 1U) != 0);
        const std::int64_t row = block.first_row() + i;
        const bool proved =
            !needs_check || write_element(row, block.tile_column(e), scalars, block.element(i, e));
        const unsigned mask = __ballot_sync(~0U, !proved);
        if (lane == 0) masks[w] = mask;
        open += lane == 0 ? __popc(mask) : 0;
      }
    }
    return open;
  }

 private:
  static constexpr int masks_per_column = block_rows / warp_size;  // of the thread block

  __device__ std::uint32_t* masks_of_column(const TileBlock<T>& block, int e) const {
    return open_.masks + block.first_row() / warp_size + block.tile_column(e) * open_.masks_per_column;
  }

  // Writes the thread's rows of column e; returns a bit for each row that the check leaves open.
  __device__ unsigned write_column(const TileBlock<T>& block, int e) const {
    const std::uint8_t* residues = residues_at<T>(source_, block.tile_row(), block.tile_column(e));
    RowsOfThread<T> elements;
    unsigned open_rows = 0;
    if constexpr (is_complex<T>) {
      Real part[parts][rows_each];
#pragma unroll
      for (int p = 0; p < parts; ++p) open_rows |= round_parts(block, residues, e, p, part[p]);
#pragma unroll
      for (int r = 0; r < rows_each; ++r) elements.rows[r] = {part[0][r], part[1][r]};
    } else {
      open_rows = round_parts(block, residues, e, 0, elements.rows);
    }
    block.write(e, elements);
    const int rows_left = block.rows() - TileBlock<T>::row();
    return rows_left < rows_each ? open_rows & ((1U << rows_left) - 1) : open_rows;
  }

  // Stores the bits of a column's open rows, of which each thread of a warp has rows_each; returns the
  // thread's share of their number.
  __device__ unsigned store_open_rows(const TileBlock<T>& block, int e, unsigned rows) const {
    constexpr unsigned threads = warp_size / rows_each;  // threads that share a mask
    const unsigned lane = threadIdx.x % warp_size;
    unsigned mask = rows << lane % threads * rows_each;
#pragma unroll
    for (unsigned bit = 1; bit < threads; bit *= 2) mask |= __shfl_xor_sync(~0U, mask, bit);
    if (lane % threads != 0) return 0;
    masks_of_column(block, e)[lane / threads] = mask;
    return __popc(mask);
  }

  // Writes any element; returns false if the check leaves it open. alpha is not 0, since no candidate runs if
  // it is.
  __device__ bool write_element(std::int64_t i, std::int64_t j, const Scalars<T>& scalars, T* element) const {
    const VectorRange& row = tile_.a.ranges[tile_.first_row + i];
    const VectorRange* column = tile_.b.ranges + parts * (tile_.first_column + j);
    if (row.finite() && column->finite()) return write_finite(i, j, row.scale, column, scalars, element);
    write_special_element(tile_, tile_.first_row + i, tile_.first_column + j, scalars.alpha, scalars.beta,
                          element);
    return true;
  }

  __device__ bool write_finite(std::int64_t i, std::int64_t j, int row_scale, const VectorRange* column,
                               const Scalars<T>& scalars, T* element) const {
    Number exact[parts];
    double deviations[parts];
    bool proved = check_.magnitudes != nullptr;
#pragma unroll 1
    for (int p = 0; p < parts; ++p) {
      RemainderSum<Limbs> sum[1];
      add_up_part<T, std::uint8_t>(source_, residues_at<T>(source_, i, j), p, sum);
      exact[p] = sum[0].number(table_of(source_, p), -(row_scale + column[p].scale));
      deviations[p] = deviation(i, j, p);
      proved = proved && is_proved(i, j, p, deviations[p]);
    }
    for (int p = 0; p < parts; ++p) deviations[p] = proved ? 0 : deviations[p];
    return write_checked_element(check_.demand, exact, deviations, scalars.alpha, scalars.beta, element);
  }

  __device__ double deviation(std::int64_t i, std::int64_t j, int part) const {
    return largest_deviation(check_.rows[tile_.first_row + i],
                             check_.columns[parts * (tile_.first_column + j) + part], check_.largest_a,
                             check_.largest_b);
  }
  __device__ bool is_proved(std::int64_t i, std::int64_t j, int part, double deviation) const {
    const std::int64_t index = i + (parts * j + part) * source_.sums.rows;
    const double magnitudes = static_cast<double>(check_.magnitudes[index]);
    return keeps(check_.demand, magnitudes * check_.magnitude_unit, deviation);
  }

  // Rounds part p of the thread's rows of column e; returns a bit for each row that the check leaves open.
  __device__ unsigned round_parts(const TileBlock<T>& block, const std::uint8_t* residues, int e, int p,
                                  Real (&result)[rows_each]) const {
    const std::int64_t j = block.tile_column(e);
    RemainderSum<Limbs> sums[rows_each];
    add_up_part<T, std::uint32_t>(source_, residues, p, sums);
    unsigned open_rows = 0;
#pragma unroll
    for (int r = 0; r < rows_each; ++r) {
      const Number exact = sums[r].number(table_of(source_, p), block.exponent(r, e, p));
      const std::int64_t i = std::min(block.tile_row() + r, tile_.rows - 1);
      if (!round_and_check(exact, i, j, p, result[r])) open_rows |= 1U << r;
    }
    return open_rows;
  }

  // Rounds the computed integer and returns true if the check proves the result. If both ends of the interval
  // in which AB lies round alike, so does the computed integer between them.
  __device__ bool round_and_check(const Number& exact, std::int64_t i, std::int64_t j, int p,
                                  Real& result) const {
    result = rounded_ordinary<Real>(exact);
    const double deviation = this->deviation(i, j, p);
    if (deviation == 0) return true;
    if (check_.magnitudes != nullptr && is_proved(i, j, p, deviation)) return true;
    if (check_.demand.coefficient > 0 && keeps(check_.demand, exact, deviation)) return true;
    const auto offset = check_detail::integer_above<Limbs>(deviation);
    const Real below = rounded_ordinary<Real>(check_detail::moved(exact, offset, true));
    const Real above = rounded_ordinary<Real>(check_detail::moved(exact, offset, false));
    return check_detail::same_bits(below, above);
  }

  const DeviceTile& tile_;
  const Source& source_;
  const DeviceCheck& check_;
  const DeviceOpenElements& open_;
};

// Recombines a tile and adds the number of its open elements to the block's.
template <class T, int Limbs, class Source>
__device__ void recombine_checked_tile(const DeviceTile& tile, const Source& source, const DeviceCheck& check,
                                       const DeviceOpenElements& open) {
  if (!holds(tile.condition)) return;
  __shared__ unsigned open_of_block;
  if (threadIdx.x == 0) open_of_block = 0;
  const Scalars<T> scalars(tile.scalars);
  const TileBlock<T> block(tile);
  const CheckedResidues<T, Limbs, Source> recombination(tile, source, check, open);
  unsigned open_of_thread = 0;
  if (block.is_ordinary(tile) && scalars.alpha == T(1) && scalars.beta == T(0)) {
    open_of_thread = recombination.write_block(block);
    block.end();
  } else {
    open_of_thread = recombination.write_elements(block, scalars);
  }
  const unsigned open_of_warp = __reduce_add_sync(~0U, open_of_thread);
  if (threadIdx.x % warp_size == 0 && open_of_warp != 0) atomicAdd(&open_of_block, open_of_warp);
  __syncthreads();
  if (threadIdx.x == 0 && open_of_block != 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(&open.state->open),
              static_cast<unsigned long long>(open_of_block));
}

// `blocks`: thread blocks per SM at least, as many as registers allow.
#define KINTSUGI_CHECKED_RESIDUES(name, T, limbs, blocks, Source)                                        \
  extern "C" __global__ void __launch_bounds__(block_threads, blocks)                                    \
      name(const __grid_constant__ DeviceTile tile, const __grid_constant__ Source<limbs> source,        \
           const __grid_constant__ DeviceCheck check, const __grid_constant__ DeviceOpenElements open) { \
    recombine_checked_tile<T, limbs>(tile, source, check, open);                                         \
  }

}  // namespace kintsugi::core::cuda

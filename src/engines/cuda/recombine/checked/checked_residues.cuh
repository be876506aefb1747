// Recombination of the residues of one tile, special values included, with a check of every element. Elements
// that the check does not prove are marked as open. The host's counterpart is recombine_checked_residues() in
// src/recombine/residues.cpp.
#pragma once

#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/checked/checks.hpp"
#include "engines/cuda/recombine/residues.cuh"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// Returns true if the check proves the element, and then writes it, for any alpha and beta. It is not inlined
// for the same reason as write_general_element(): its wide numbers are on the stack and cost other elements
// no registers.
template <class T, int Limbs>
__device__ __noinline__ bool write_checked_element(const ElementDemand& demand,
                                                   const ExactNumber<Limbs>* exact, const double* deviations,
                                                   T alpha, T beta, T* element) {
  ElementNumbers<T, Limbs> exact_parts;
  ElementDeviations<T> part_deviations;
  for (int p = 0; p < static_cast<int>(parts_of<T>); ++p) {
    exact_parts[p] = exact[p];
    part_deviations[p] = deviations[p];
  }
  T result;
  const T* old = beta == T(0) ? nullptr : element;
  if (!round_if_proved<T, Limbs>(demand, exact_parts, part_deviations, alpha, beta, old, result))
    return false;
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

  // Writes all elements of an ordinary block (TileBlock::load_scales), for alpha = 1 and beta = 0. Marks
  // those as open that the check does not prove, and returns how many of them the thread counts. Open
  // elements may be written, because C is not read if beta is 0. Each part is rounded and checked by itself.
  __device__ unsigned write_block(const TileBlock<T>& block) const {
    unsigned open_elements = 0;
#pragma unroll 1
    for (int e = 0; e < TileBlock<T>::columns_each; ++e) {
      const unsigned open_rows = block.has_element(e) ? write_column(block, e) : 0U;
      if (block.has_column(e)) open_elements += store_open_rows(block, e, open_rows);
    }
    return open_elements;
  }

  // write_block() for any block, alpha and beta. It only writes elements that the check proves, since open
  // elements still need the old C. If another candidate has computed the block before, only elements that its
  // masks mark as open are checked. All others were written then, and beta C must not be added twice.
  __device__ unsigned write_elements(const TileBlock<T>& block, const Scalars<T>& scalars) const {
    const bool was_computed_before = open_.state->is_rewritten != 0;
    const int lane = static_cast<int>(threadIdx.x % warp_size);
    unsigned open_elements = 0;
#pragma unroll 1
    for (int e = 0; e < TileBlock<T>::columns_each; ++e) {
      if (!block.has_column(e)) continue;
      std::uint32_t* masks = masks_of_column(block, e);
#pragma unroll 1
      for (int w = 0; w < block_masks_per_column; ++w) {
        const int i = warp_size * w + lane;
        const bool needs_check = i < block.rows() && (!was_computed_before || (masks[w] >> lane & 1U) != 0);
        const std::int64_t row = block.first_row_in_tile() + i;
        // An element is settled if it lies outside of C, was proved before, or is proved and written now.
        const bool is_settled =
            !needs_check || write_element(row, block.column_in_tile(e), scalars, block.element(i, e));
        const unsigned mask = __ballot_sync(~0U, !is_settled);
        if (lane == 0) masks[w] = mask;
        open_elements += lane == 0 ? __popc(mask) : 0;
      }
    }
    return open_elements;
  }

  // Returns true if the check proves element (i, j) of the tile, and then writes it. Elements with special
  // values in their vectors are written without a check. alpha is not 0 here, because no candidate runs for
  // alpha = 0.
  __device__ bool write_element(std::int64_t i, std::int64_t j, const Scalars<T>& scalars, T* element) const {
    const VectorRange& row = tile_.a.ranges[tile_.first_row + i];
    const VectorRange* column = tile_.b.ranges + parts * (tile_.first_column + j);
    if (row.finite() && column->finite()) return write_finite(i, j, row.scale, column, scalars, element);
    write_special_element(tile_, tile_.first_row + i, tile_.first_column + j, scalars.alpha, scalars.beta,
                          element);
    return true;
  }

 private:
  static constexpr int block_masks_per_column = block_rows / warp_size;  // masks of the thread block's rows

  __device__ std::uint32_t* masks_of_column(const TileBlock<T>& block, int e) const {
    return open_.masks + block.first_row_in_tile() / warp_size +
           block.column_in_tile(e) * open_.masks_per_column;
  }

  // Writes the thread's rows of its e-th column. Returns a bit for each row that the check leaves open.
  __device__ unsigned write_column(const TileBlock<T>& block, int e) const {
    const std::uint8_t* residues = residues_at<T>(source_, block.row_in_tile(), block.column_in_tile(e));
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
    const int rows_left = block.rows() - TileBlock<T>::row_in_block();
    return rows_left < rows_each ? open_rows & ((1U << rows_left) - 1) : open_rows;
  }

  // Stores the masks of a column's open rows. Each thread of a warp has the rows_each bits `open_rows` of
  // them. Returns how many open rows the thread counts.
  __device__ unsigned store_open_rows(const TileBlock<T>& block, int e, unsigned open_rows) const {
    constexpr unsigned threads = warp_size / rows_each;  // threads that share a mask
    const unsigned lane = threadIdx.x % warp_size;
    unsigned mask = open_rows << lane % threads * rows_each;
#pragma unroll
    for (unsigned bit = 1; bit < threads; bit *= 2) mask |= __shfl_xor_sync(~0U, mask, bit);
    if (lane % threads != 0) return 0;
    masks_of_column(block, e)[lane / threads] = mask;
    return __popc(mask);
  }

  // write_element() for vectors without special values.
  __device__ bool write_finite(std::int64_t i, std::int64_t j, int row_scale, const VectorRange* column,
                               const Scalars<T>& scalars, T* element) const {
    Number exact[parts];
    double deviations[parts];
    bool magnitudes_prove = check_.magnitudes != nullptr;
#pragma unroll 1
    for (int p = 0; p < parts; ++p) {
      RemainderSum<Limbs> sum[1];
      add_up_part<T, std::uint8_t>(source_, residues_at<T>(source_, i, j), p, sum);
      exact[p] = sum[0].number(table_of(source_, p), -(row_scale + column[p].scale));
      deviations[p] = deviation(i, j, p);
      magnitudes_prove = magnitudes_prove && magnitudes_prove_part(i, j, p, deviations[p]);
    }
    // With deviations of 0 the check accepts the computed integers.
    for (int p = 0; p < parts; ++p) deviations[p] = magnitudes_prove ? 0 : deviations[p];
    return write_checked_element(check_.demand, exact, deviations, scalars.alpha, scalars.beta, element);
  }

  // Largest deviation of part `part` of element (i, j) of AB from its computed integer.
  __device__ double deviation(std::int64_t i, std::int64_t j, int part) const {
    return largest_deviation(check_.rows[tile_.first_row + i],
                             check_.columns[parts * (tile_.first_column + j) + part]);
  }
  // True if the product of the operands' magnitudes is large enough for this deviation.
  __device__ bool magnitudes_prove_part(std::int64_t i, std::int64_t j, int part, double deviation) const {
    const std::int64_t index = i + (parts * j + part) * source_.sums.rows;
    const double magnitudes = static_cast<double>(check_.magnitudes[index]);
    return keeps(check_.demand, magnitudes * check_.magnitude_unit, deviation);
  }

  // Rounds part p of the thread's rows of its e-th column. Returns a bit for each row that the check leaves
  // open.
  __device__ unsigned round_parts(const TileBlock<T>& block, const std::uint8_t* residues, int e, int p,
                                  Real (&result)[rows_each]) const {
    const std::int64_t j = block.column_in_tile(e);
    RemainderSum<Limbs> sums[rows_each];
    add_up_part<T, std::uint32_t>(source_, residues, p, sums);
    unsigned open_rows = 0;
#pragma unroll
    for (int r = 0; r < rows_each; ++r) {
      const Number exact = sums[r].number(table_of(source_, p), block.exponent(r, e, p));
      const std::int64_t i = std::min(block.row_in_tile() + r, tile_.rows - 1);
      if (!round_and_check(exact, i, j, p, result[r])) open_rows |= 1U << r;
    }
    return open_rows;
  }

  // Rounds the computed integer and returns true if the check proves the result. Three things can prove it:
  // the magnitudes; the integer's own size; or that both ends of the interval in which AB lies round to the
  // same number, because then every number between them, AB and the computed integer included, rounds to it.
  __device__ bool round_and_check(const Number& exact, std::int64_t i, std::int64_t j, int p,
                                  Real& result) const {
    result = rounded_ordinary<Real>(exact);
    const double deviation = this->deviation(i, j, p);
    if (deviation == 0) return true;
    if (check_.magnitudes != nullptr && magnitudes_prove_part(i, j, p, deviation)) return true;
    if (check_.demand.coefficient > 0 && keeps(check_.demand, exact, deviation)) return true;
    const auto offset = check_detail::integer_above<Limbs>(deviation);
    const Real below = rounded_ordinary<Real>(check_detail::moved(exact, offset, /*down=*/true));
    const Real above = rounded_ordinary<Real>(check_detail::moved(exact, offset, /*down=*/false));
    return check_detail::same_bits(below, above);
  }

  const DeviceTile& tile_;
  const Source& source_;
  const DeviceCheck& check_;
  const DeviceOpenElements& open_;
};

// Adds the numbers of open elements that the thread block's threads count to DeviceCheckState::open. All
// threads must call it together.
__device__ inline void add_open_elements(unsigned open_of_thread, const DeviceOpenElements& open) {
  __shared__ unsigned open_of_block;
  if (threadIdx.x == 0) open_of_block = 0;
  __syncthreads();
  const unsigned open_of_warp = __reduce_add_sync(~0U, open_of_thread);
  if (threadIdx.x % warp_size == 0 && open_of_warp != 0) atomicAdd(&open_of_block, open_of_warp);
  __syncthreads();
  if (threadIdx.x == 0 && open_of_block != 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(&open.state->open),
              static_cast<unsigned long long>(open_of_block));
}

// Recombines a tile and adds the number of its open elements to DeviceCheckState::open.
template <class T, int Limbs, class Source>
__device__ void recombine_checked_tile(const DeviceTile& tile, const Source& source, const DeviceCheck& check,
                                       const DeviceOpenElements& open) {
  if (!holds(tile.condition)) return;
  const Scalars<T> scalars(tile.scalars);
  const TileBlock<T> block(tile);
  const CheckedResidues<T, Limbs, Source> recombination(tile, source, check, open);
  unsigned open_of_thread = 0;
  const bool is_ordinary = block.load_scales(tile);
  if (is_ordinary && scalars.alpha == T(1) && scalars.beta == T(0)) {
    open_of_thread = recombination.write_block(block);
    block.end();  // without begin(), because C is not read
  } else {
    open_of_thread = recombination.write_elements(block, scalars);
  }
  add_open_elements(open_of_thread, open);
}

// `blocks` is the least number of thread blocks per SM: as many as registers allow.
#define KINTSUGI_CHECKED_RESIDUES(name, T, limbs, blocks, Source)                                        \
  extern "C" __global__ void __launch_bounds__(block_threads, blocks)                                    \
      name(const __grid_constant__ DeviceTile tile, const __grid_constant__ Source<limbs> source,        \
           const __grid_constant__ DeviceCheck check, const __grid_constant__ DeviceOpenElements open) { \
    recombine_checked_tile<T, limbs>(tile, source, check, open);                                         \
  }

}  // namespace kintsugi::core::cuda

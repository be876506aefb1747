// Recombination of the residues of one tile, special values included, for elements that the check proves; the
// others are added to a list. The device's version of recombine_checked_residues() in
// src/recombine/residues.cpp.
#pragma once

#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/residues.cuh"
#include "engines/cuda/recombine/tile.cuh"
#include "recombine/check/element_check.hpp"

namespace kintsugi::core::cuda {

__device__ inline void append(const DeviceOpenElements& open, std::uint32_t place) {
  open.places[atomicAdd(open.count, 1U)] = place;
}

// Writes an element for general alpha and beta if the check proves it, and returns whether it does. A
// function of its own, with its numbers on the stack, as put_general_element().
template <class T>
__device__ __noinline__ bool put_checked_element(const ElementDemand& demand,
                                                 const ExactNumber<checked_limbs>* exact,
                                                 const double* deviations, T alpha, T beta, T* element) {
  ElementNumbers<T, checked_limbs> numbers;
  ElementDeviations<T> allowed;
  for (int p = 0; p < static_cast<int>(parts_of<T>); ++p) {
    numbers[p] = exact[p];
    allowed[p] = deviations[p];
  }
  T result;
  const T* old = beta == T(0) ? nullptr : element;
  if (!shows<T, checked_limbs>(demand, numbers, allowed, alpha, beta, old, result)) return false;
  *element = result;
  return true;
}

template <class T, class Source>
class CheckedResidues {
 public:
  static constexpr int parts = static_cast<int>(parts_of<T>);
  using Real = RealOf<T>;
  using Number = ExactNumber<checked_limbs>;

  __device__ CheckedResidues(const DeviceTile& tile, const Source& source, const DeviceCheck& check,
                             const DeviceOpenElements& open)
      : tile_(tile), source_(source), check_(check), open_(open) {}

  __device__ static bool takes(const Scalars<T>& scalars) {
    return scalars.alpha == T(1) && scalars.beta == T(0);
  }

  // Rounds and checks each part by itself. Since beta is 0, an element that is left open may be written to.
  __device__ void put_block(const TileBlock<T>& block, const Scalars<T>&) const {
    for_each_column(block, source_, [&](int e, const std::uint8_t* residues) {
      RowsOfThread<T> elements;
      unsigned open_rows = 0;
      if constexpr (is_complex<T>) {
        Real part[parts][rows_each];
#pragma unroll
        for (int p = 0; p < parts; ++p) open_rows |= round_parts(block, residues, e, p, part[p]);
#pragma unroll
        for (int r = 0; r < rows_each; ++r) elements.of[r] = {part[0][r], part[1][r]};
      } else {
        open_rows = round_parts(block, residues, e, 0, elements.of);
      }
      block.write(e, elements);
#pragma unroll 1
      for (int r = 0; open_rows >> r != 0; ++r) {
        const std::int64_t i = block.tile_row() + r;
        if ((open_rows >> r & 1U) != 0 && i < tile_.rows) list_open(i, block.tile_column(e));
      }
    });
  }

  __device__ void put(std::int64_t i, std::int64_t j, int row_scale, const VectorRange* column,
                      const Scalars<T>& scalars, T* element) const {
    Number exact[parts];
    double deviations[parts];
    bool proved = check_.magnitudes != nullptr;
#pragma unroll 1
    for (int p = 0; p < parts; ++p) {
      RemainderSum<checked_limbs> sum[1];
      add_up_part<T, std::uint8_t>(source_, residues_at<T>(source_, i, j), p, sum);
      exact[p] = sum[0].number(table_of(source_, p), -(row_scale + column[p].scale));
      deviations[p] = deviation(i, j, p);
      proved = proved && is_proved(i, j, p, deviations[p]);
    }
    for (int p = 0; p < parts; ++p) deviations[p] = proved ? 0 : deviations[p];
    if (!put_checked_element(check_.demand, exact, deviations, scalars.alpha, scalars.beta, element))
      list_open(i, j);
  }

 private:
  __device__ double deviation(std::int64_t i, std::int64_t j, int part) const {
    return largest_deviation(check_.rows[tile_.first_row + i],
                             check_.columns[parts * (tile_.first_column + j) + part], check_.largest_a,
                             check_.largest_b);
  }
  __device__ bool is_proved(std::int64_t i, std::int64_t j, int part, double deviation) const {
    const std::int64_t place = i + (parts * j + part) * source_.sums.rows;
    const double magnitudes = static_cast<double>(check_.magnitudes[place]);
    return keeps(check_.demand, magnitudes * check_.magnitude_unit, deviation);
  }

  // Rounds part p of the thread's rows of column e; returns a bit for each row that the check leaves open.
  __device__ unsigned round_parts(const TileBlock<T>& block, const std::uint8_t* residues, int e, int p,
                                  Real (&result)[rows_each]) const {
    const std::int64_t j = block.tile_column(e);
    RemainderSum<checked_limbs> sums[rows_each];
    add_up_part<T, std::uint32_t>(source_, residues, p, sums);
    unsigned open_rows = 0;
#pragma unroll
    for (int r = 0; r < rows_each; ++r) {
      const Number exact = sums[r].number(table_of(source_, p), block.exponent(r, e, p));
      const std::int64_t i = std::min(block.tile_row() + r, tile_.rows - 1);
      if (!shows_part(exact, i, j, p, result[r])) open_rows |= 1U << r;
    }
    return open_rows;
  }

  // Rounds the computed integer and returns true if the check proves the result. If both ends of the interval
  // in which AB lies round alike, so does the computed integer between them.
  __device__ bool shows_part(const Number& exact, std::int64_t i, std::int64_t j, int p, Real& result) const {
    result = rounded_ordinary<Real>(exact);
    const double deviation = this->deviation(i, j, p);
    if (deviation == 0) return true;
    if (check_.magnitudes != nullptr && is_proved(i, j, p, deviation)) return true;
    if (check_.demand.coefficient > 0 && keeps(check_.demand, exact, deviation)) return true;
    const auto offset = check_detail::integer_above<checked_limbs>(deviation);
    const Real below = rounded_ordinary<Real>(check_detail::moved(exact, offset, true));
    const Real above = rounded_ordinary<Real>(check_detail::moved(exact, offset, false));
    return check_detail::same_bits(below, above);
  }

  __device__ void list_open(std::int64_t i, std::int64_t j) const {
    append(open_, static_cast<std::uint32_t>(i + j * tile_.rows));
  }

  const DeviceTile& tile_;
  const Source& source_;
  const DeviceCheck& check_;
  const DeviceOpenElements& open_;
};

// `blocks`: thread blocks per SM at least, as many as registers allow.
#define KINTSUGI_CHECKED_RESIDUES(name, T, blocks, Source)                                                \
  extern "C" __global__ void __launch_bounds__(block_threads, blocks)                                     \
      name(const __grid_constant__ DeviceTile tile, const __grid_constant__ Source<checked_limbs> source, \
           const __grid_constant__ DeviceCheck check, const __grid_constant__ DeviceOpenElements open) {  \
    recombine_tile<T>(tile, CheckedResidues<T, Source<checked_limbs>>(tile, source, check, open));        \
  }

}  // namespace kintsugi::core::cuda

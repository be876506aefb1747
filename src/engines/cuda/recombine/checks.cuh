// Recombination of the residues of one tile, special values included, with a check of every element. Elements
// that the check does not prove are marked as open. The host's counterpart is recombine_checked_residues() in
// src/recombine/residues.cpp.
#pragma once

#include "arith/residue/digit_sums.hpp"
#include "arith/residue/integer_update.hpp"
#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/checked/checks.hpp"
#include "engines/cuda/recombine/fractions.cuh"
#include "engines/cuda/recombine/limbs.cuh"
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

template <class T, class Source>
class CheckedResidues : public Residues<T, Source> {
 public:
  using Residues<T, Source>::parts;
  using Residues<T, Source>::limbs;
  using Real = RealOf<T>;
  using Number = ExactNumber<limbs>;

  __device__ CheckedResidues(const DeviceTile& tile, const Source& source, const DeviceCheck& check,
                             const DeviceOpenElements& open)
      : Residues<T, Source>(source), tile_(tile), check_(check), open_(open) {}

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
    const std::int64_t j = block.column_in_tile(e);
    unsigned open_rows = 0;
    this->write_rounded(block, e, residues_at(this->source_, block.row_in_tile(), j),
                        [&](const Number& number, int r, int p, Real& result) {
                          const std::int64_t i = std::min(block.row_in_tile() + r, tile_.rows - 1);
                          if (!round_and_check(number, i, j, p, result)) open_rows |= 1U << r;
                        });
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
      exact[p] = this->number(i, j, p, row_scale, column);
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
    const std::int64_t index = i + (parts * j + part) * this->source_.sums.rows;
    const double magnitudes = static_cast<double>(check_.magnitudes[index]);
    return keeps(check_.demand, magnitudes * check_.magnitude_unit, deviation);
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
    const auto offset = check_detail::integer_above<limbs>(deviation);
    const Real below = rounded_ordinary<Real>(check_detail::moved(exact, offset, /*down=*/true));
    const Real above = rounded_ordinary<Real>(check_detail::moved(exact, offset, /*down=*/false));
    return check_detail::same_bits(below, above);
  }

  const DeviceTile& tile_;
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
template <class T, class Source>
__device__ void recombine_checked_tile(const DeviceTile& tile, const Source& source, const DeviceCheck& check,
                                       const DeviceOpenElements& open) {
  if (!holds(tile.condition)) return;
  const Scalars<T> scalars(tile.scalars);
  const TileBlock<T> block(tile);
  const CheckedResidues<T, Source> recombination(tile, source, check, open);
  unsigned open_of_thread = 0;
  const bool is_ordinary = block.load_scales(tile);
  const bool rounds_to_nearest = check.demand.rounding == RoundingMode::nearest;
  if (is_ordinary && scalars.alpha == T(1) && scalars.beta == T(0) && rounds_to_nearest) {
    open_of_thread = recombination.write_block(block);
    block.end();  // without begin(), because C is not read
  } else {
    open_of_thread = recombination.write_elements(block, scalars);
  }
  add_open_elements(open_of_thread, open);
}

// Checked recombination of real FP64 residues of up to 24 moduli into AB by sums of digits on the matrix
// unit. Nearly all elements are proved by fractions whose deviation counts (fractions.cuh). Where more of a
// column are left, they are proved by integers in double arithmetic (digits.cuh). The others are checked one
// by one in wide integers (CheckedResidues). So the weights of more than 20 moduli need not be exact
// (leading_digit_table()).

// Bounds of a block's rows and columns, in units of 2^(unit_exponent_) of the integers.
class CheckedBounds {
 public:
  // See Unchecked, digits.cuh.
  static constexpr int most_elements_left = 8;
  static constexpr bool counts_deviations = true;

  __device__ CheckedBounds(int moduli, const DeviceCheck& check, const DeviceOpenElements& open)
      : check_(check), open_(open), unit_exponent_(moduli > max_wide_digit_residues ? -32 : 0) {}

  // Loads the bounds of all vectors, and sets the masks of the warp's columns to 0. Beyond the edge of C a
  // vector has the bounds of the last one.
  template <class Block>
  __device__ void begin(const Block& block, const DeviceTile& tile) const {
    load_bounds(block, tile);
    static_assert(Block::columns_each <= warp_size && block_rows / warp_size == 4);
    const auto lane = static_cast<int>(threadIdx.x % warp_size);  // each lane has a column
    if (lane < Block::columns_each && block.has_column(lane))
      *reinterpret_cast<uint4*>(mask(block.first_row_in_tile(), block.column_in_tile(lane))) = {0, 0, 0, 0};
  }

  // The deviation is increased by more than 2^-25 of itself (double_above()). An infinite one is 2^128 units
  // or more: no rounding is certain, since half of the last place of any integer is below 2^124.
  __device__ FractionFactor factor(const FractionFactor& of_column, double unit, int r, int e) const {
    const double deviation_unit = unit * (unit_exponent_ == 0 ? 0x1p-116 : 0x1p-84);
    return {of_column.high, of_column.low,
            __fma_ru(certain_detail::double_above(deviation(r, e)), deviation_unit, of_column.deviation)};
  }
  __device__ bool is_exact(int r, int e) const { return deviation(r, e) == 0; }

  // Upper bound of the deviation of the thread's row r of its e-th column, in units of the integers that
  // parts_of_pieces() returns.
  template <class Table>
  __device__ float deviation(const Table& table, int r, int e) const {
    const auto to_table = static_cast<float>(core::power_of_two(table.shift - unit_exponent_));
    return __fadd_ru(__fmul_ru(deviation(r, e), to_table), unit_exponent_ == 0 ? 0 : dropped_units);
  }

  // Marks the element as open if it is not proved.
  template <class Exact>
  __device__ bool write_element(const DeviceTile& tile, const Exact& exact, const Scalars<double>& scalars,
                                std::int64_t i, std::int64_t j, double* element) const {
    const CheckedResidues<double, typename Exact::Source> recombination(tile, exact.source(), check_, open_);
    const bool is_proved = recombination.write_element(i, j, scalars, element);
    if (!is_proved) atomicOr(mask(i, j), 1U << i % warp_size);
    return is_proved;
  }

 private:
  template <class Block>
  __device__ void load_bounds(const Block& block, const DeviceTile& tile) const {
    static_assert(block_rows + Block::columns <= max_bounds && max_bounds <= block_threads);
    const auto thread = static_cast<int>(threadIdx.x);
    if (thread >= block_rows + Block::columns) return;
    const bool is_row = thread < block_rows;
    const std::int64_t in_tile =
        is_row ? std::min(block.first_row_in_tile() + thread, tile.rows - 1)
               : std::min(block.first_column_in_tile() + thread - block_rows, tile.columns - 1);
    const std::int64_t vector = (is_row ? tile.first_row : tile.first_column) + in_tile;
    const FloatBound own =
        FloatBound::of((is_row ? check_.rows : check_.columns)[vector], core::power_of_two(unit_exponent_));
    bounds()[thread] = {own.errors, own.magnitudes, own.largest, 0};
  }
  // The deviation in the bounds' unit.
  __device__ static float deviation(int r, int e) {
    const auto lane = static_cast<int>(threadIdx.x % warp_size);
    const auto warp = static_cast<int>(threadIdx.x / warp_size);
    return deviation_above(bound(rows_each * lane + r), bound(block_rows + warp + block_warps * e));
  }
  __device__ static FloatBound bound(int index) {
    const float4 four = bounds()[index];
    return {four.x, four.y, four.z};
  }
  static constexpr int max_bounds = block_rows + most_digit_columns(ElementType::f64);
  __device__ static float4* bounds() {
    __shared__ float4 all[max_bounds];
    return all;
  }
  // Mask of element (i, j) of the tile.
  __device__ std::uint32_t* mask(std::int64_t i, std::int64_t j) const {
    return open_.masks + i / warp_size + j * open_.masks_per_column;
  }

  const DeviceCheck& check_;
  const DeviceOpenElements& open_;
  int unit_exponent_;
};

}  // namespace kintsugi::core::cuda

#include "execute/device/steps.hpp"

#include <algorithm>

namespace kintsugi::core {

void Ozaki1Steps::split(const DeviceSide& side, const Interval& vectors, Slices& slices,
                        const DeviceSliceExponents& exponents, Complete complete) const {
  const bool is_exact = is_exact_ozaki1(plan_);
  slices.vectors = vectors.count;
  const DeviceSuccessiveSplit split{.side = side,
                                    .first = vectors.first,
                                    .slices = slices,
                                    .bits = program_.split_a.residual_exponent,
                                    .by_sigma = program_.split_a.sigma_grid,
                                    .exponents = exponents,
                                    .complete = is_exact ? Complete::all_vectors : complete,
                                    .max_depth = is_exact ? DeviceProductSums::max_depth : 0,
                                    .slice_counts = memory_.slice_counts,
                                    .unreachable = memory_.unreachable};
  cuda::split_successively(queue_, split, condition_);
}

void Ozaki1Steps::split_rows(const Interval& rows) {
  if (rows_.replace(rows.first)) split(a_, rows, memory_.a, memory_.exponents_a, Complete::unchecked);
}

void Ozaki1Steps::split(const ResultBlock& block) {
  const std::int64_t parts = plan_.problem.parts();
  if (columns_.replace(block.column)) {
    split(b_, {parts * block.column, parts * block.columns}, memory_.b, memory_.exponents_b,
          memory_.slice_counts.counts != nullptr ? Complete::where_used : Complete::unchecked);
  }
  split_rows({block.row, block.rows});
}

void Ozaki1Steps::count_slices() {
  const DeviceBlockSliceCounts& counts = memory_.slice_counts;
  cuda::clear(queue_, memory_.unreachable, sizeof(std::int32_t));
  if (counts.counts == nullptr) {
    return cuda::clear(queue_, counts.lengths,
                       static_cast<std::size_t>(counts.blocks_m + counts.blocks_n) * sizeof(std::int32_t));
  }
  cuda::clear(queue_, counts.counts,
              static_cast<std::size_t>(counts.blocks_m * counts.blocks_n) * sizeof(SliceCounts));
  cuda::weigh_inner_indices(queue_, b_, counts, memory_.weights, condition_);
  for_each_interval({0, operands_.c.rows}, blocking_.m, [&](const Interval& rows) {
    split_rows(rows);
    cuda::find_slice_counts(queue_,
                            {.a = a_,
                             .first = rows.first,
                             .slices = memory_.a,
                             .exponents = memory_.exponents_a,
                             .weights = memory_.weights,
                             .bits = program_.ozaki1.mode == Ozaki1Parameters::Mode::sp ? 24 : 53,
                             .slice_counts = counts,
                             .unreachable = memory_.unreachable},
                            condition_);
  });
}

// The outer loop is over slices q of B, the inner loop over slices p of A.
void Ozaki1Steps::multiply(const ResultBlock& block, const ResultBlock& tile) const {
  const std::int64_t row = tile.row - block.row;  // first vectors of the tile in the slices
  const std::int64_t vector = plan_.problem.parts() * (tile.column - block.column);
  Accumulators products = ozaki1_products(plan_, tile.rows, tile.columns);
  products.data = memory_.products;
  const DeviceProductSums sums{.tile = {.a = a_,
                                        .b = b_,
                                        .c = operands_.c,
                                        .item = a_.item,
                                        .first_row = tile.row,
                                        .first_column = tile.column,
                                        .rows = tile.rows,
                                        .columns = tile.columns,
                                        .scalars = operands_.scalars,
                                        .condition = condition_},
                               .row_exponents = memory_.exponents_a.from(row),
                               .vector_exponents = memory_.exponents_b.from(vector),
                               .slices = memory_.a.count,
                               .fast = is_fast(),
                               .bits = program_.split_a.residual_exponent,
                               .k_block = ozaki1_k_block(plan_),
                               .exact = is_exact_ozaki1(plan_),
                               .data = memory_.sums,
                               .stride = products.rows,
                               .columns = products.columns,
                               .slice_counts = memory_.slice_counts};
  const Slices a = memory_.a.block(row, tile.rows);
  const Slices b = memory_.b.block(vector, plan_.problem.parts() * tile.columns);
  if (adds_ozaki1_products(plan_)) {
    cuda::add_slice_products(queue_, sums, a, b);
  } else {
    for (int q = 0; q < b.count; ++q) multiply(sums, a, b, q, products);
  }
  cuda::finish_sums(queue_, sums);
}

// Adds the products with slice q of B. Products of cuBLAS always run; fast mode leaves out the smallest ones.
// The numbers of slices that the device found can require these: multiply_counted() exits early in thread
// blocks that need none.
void Ozaki1Steps::multiply(const DeviceProductSums& sums, const Slices& a, const Slices& b, int q,
                           Accumulators& products) const {
  const bool are_counted = memory_.slice_counts.counts != nullptr;
  const bool has_kernel = cuda::has_slice_products(a.format->id, sums.k_block);
  const int of_fast_mode = sums.fast ? a.count - q : a.count;
  const int of_cublas = has_kernel ? 0 : of_fast_mode;
  add_slices(sums, 0, of_cublas, q, products, [&](int p) { multiply(a, p, b, q, products); });
  if (!has_kernel && !are_counted) return;
  add_slices(sums, of_cublas, are_counted ? a.count : of_fast_mode, q, products,
             [&](int p) { cuda::multiply_counted(queue_, sums, a, b, products, p, q); });
}

// Adds the products of slices first ... end - 1 of A and slice q of B, ozaki1_products_at_once products at a
// time. multiply(p) must compute products.groups products, for slices p, p + 1, ... of A.
template <class Multiply>
void Ozaki1Steps::add_slices(const DeviceProductSums& sums, int first, int end, int q, Accumulators& products,
                             const Multiply& multiply) const {
  for (int p = first; p < end; p += ozaki1_products_at_once) {
    products.groups = std::min(ozaki1_products_at_once, end - p);
    multiply(p);
    cuda::add_products(queue_, sums, products, p, q);
  }
}

// Multiplies slices p, p + 1, ... of A by slice q of B, each into a group of its own.
void Ozaki1Steps::multiply(const Slices& a, int p, const Slices& b, int q,
                           const Accumulators& products) const {
  constexpr const DeviceFit* no_fit = nullptr;
  const auto slices_from = [](const Slices& slices, int first, int count) {
    Slices result = slices;
    result.data += static_cast<std::size_t>(first * slices.slice_stride()) * slices.element_bytes();
    result.count = count;
    return result;
  };
  Schedule schedule = program_.schedule;
  schedule.terms = schedule.terms.first(static_cast<std::size_t>(products.groups));
  schedule.slices_a = products.groups;
  schedule.groups = products.groups;
  cuda::multiply(queue_, schedule, plan_.candidates.front().accumulator, slices_from(a, p, products.groups),
                 slices_from(b, q, 1), products, memory_.scratch, no_fit, condition_);
}

void Ozaki1Steps::finish_item() const {
  cuda::finish_item(queue_, {.selection = selection_,
                             .unreachable = memory_.unreachable,
                             .report = operands_.report,
                             .slice_counts = memory_.slice_counts,
                             .slices = ozaki1_device_slices(plan_),
                             .fast = is_fast()});
}

}  // namespace kintsugi::core

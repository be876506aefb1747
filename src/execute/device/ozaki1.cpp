#include "execute/device/ozaki1.hpp"

#include <algorithm>

#include "engines/cuda/ozaki1/step_data.hpp"
#include "engines/cuda/steps.hpp"
#include "execute/blocks.hpp"
#include "planner/workspace/device.hpp"

namespace kintsugi::core {

namespace {

using Mode = Ozaki1Parameters::Mode;

class DeviceOzaki1Product {
 public:
  DeviceOzaki1Product(const DeviceOzaki1Task& task, Workspace& workspace)
      : task_(task), plan_(task.plan), program_(task.plan.candidates.front().program),
        memory_(lay_out_device_ozaki1(task.plan, task.blocking, workspace)),
        slice_counts_(ozaki1_slice_counts(task.plan)), condition_{task.selection, 0} {
    slice_counts_.counts = memory_.slice_counts;
  }

  void run() {
    cuda::clear(task_.queue, memory_.unreachable, sizeof(std::int32_t));
    if (slice_counts_.counts != nullptr) find_slice_counts();
    for_each_block(task_.blocking, task_.c.rows, task_.c.columns, [&](const ResultBlock& block) {
      if (needs_split_of_columns(block, task_.blocking, task_.c.rows)) split_b({block.column, block.columns});
      if (!a_is_split_) split_a({block.row, block.rows});
      multiply_block(block);
    });
    cuda::finish_item(task_.queue, {.selection = task_.selection,
                                    .unreachable = memory_.unreachable,
                                    .report = task_.report,
                                    .slice_counts = slice_counts_,
                                    .slices = ozaki1_device_slices(plan_),
                                    .fast = program_.ozaki1.fast && !is_exact_ozaki1(plan_)});
  }

 private:
  using Complete = DeviceSuccessiveSplit::Complete;

  void split(const DeviceSide& side, const Interval& vectors, Slices& slices,
             const DeviceSliceExponents& exponents, Complete complete) const {
    slices.vectors = vectors.count;
    const DeviceSuccessiveSplit split{.side = side,
                                      .first = vectors.first,
                                      .slices = slices,
                                      .bits = program_.split_a.residual_exponent,
                                      .exponents = exponents,
                                      .complete = is_exact_ozaki1(plan_) ? Complete::all_vectors : complete,
                                      .max_depth = is_exact_ozaki1(plan_) ? DeviceProductSums::max_depth : 0,
                                      .slice_counts = slice_counts_,
                                      .unreachable = memory_.unreachable};
    cuda::split_successively(task_.queue, split, condition_);
  }
  void split_a(const Interval& rows) {
    split(task_.a, rows, memory_.a, memory_.exponents_a, Complete::unchecked);
    a_is_split_ = rows.count == task_.c.rows;
  }
  void split_b(const Interval& columns) {
    const std::int64_t parts = plan_.problem.parts();
    split(task_.b, {parts * columns.first, parts * columns.count}, memory_.b, memory_.exponents_b,
          slice_counts_.counts != nullptr ? Complete::where_used : Complete::unchecked);
  }

  // Algorithm 3, for all blocks of C.
  void find_slice_counts() {
    cuda::clear(
        task_.queue, slice_counts_.counts,
        static_cast<std::size_t>(slice_counts_.blocks_m * slice_counts_.blocks_n) * sizeof(SliceCounts));
    cuda::weigh_inner_indices(task_.queue, task_.b, slice_counts_, memory_.weights, condition_);
    for_each_interval({0, task_.c.rows}, task_.blocking.m, [&](const Interval& rows) {
      split_a(rows);
      cuda::find_slice_counts(task_.queue,
                              {.a = task_.a,
                               .first = rows.first,
                               .slices = memory_.a,
                               .exponents = memory_.exponents_a,
                               .weights = memory_.weights,
                               .bits = program_.ozaki1.mode == Mode::sp ? 24 : 53,
                               .slice_counts = slice_counts_,
                               .unreachable = memory_.unreachable},
                              condition_);
    });
  }

  void multiply_block(const ResultBlock& block) const {
    const Blocking tiles{ozaki1_tile_edge, ozaki1_tile_edge};
    for_each_block(tiles, block.rows, block.columns, [&](const ResultBlock& inner) {
      const DeviceTile tile{.a = task_.a,
                            .b = task_.b,
                            .c = task_.c,
                            .item = task_.a.item,
                            .first_row = block.row + inner.row,
                            .first_column = block.column + inner.column,
                            .rows = inner.rows,
                            .columns = inner.columns,
                            .scalars = task_.scalars,
                            .condition = condition_};
      multiply_tile(tile, inner.row, plan_.problem.parts() * inner.column);
    });
  }

  // Algorithm 2 for a tile. `row`: the tile's first vector in A's slices. `vector`: its first vector in B's
  // slices. The outer loop is over slices q of B, the inner loop over slices p of A.
  void multiply_tile(const DeviceTile& tile, std::int64_t row, std::int64_t vector) const {
    const std::int64_t vectors = plan_.problem.parts() * tile.columns;
    Accumulators products = ozaki1_products(plan_, tile.rows, tile.columns);
    products.data = memory_.products;
    const DeviceProductSums sums{.tile = tile,
                                 .row_exponents = memory_.exponents_a.from(row),
                                 .vector_exponents = memory_.exponents_b.from(vector),
                                 .slices = memory_.a.count,
                                 .fast = program_.ozaki1.fast && !is_exact_ozaki1(plan_),
                                 .exact = is_exact_ozaki1(plan_),
                                 .data = memory_.sums,
                                 .stride = products.rows,
                                 .columns = products.columns,
                                 .slice_counts = slice_counts_};
    const Slices a = memory_.a.block(row, tile.rows);
    const Slices b = memory_.b.block(vector, vectors);
    for (int q = 0; q < b.count; ++q) {
      // Fast mode leaves out the smallest products. The numbers of slices that the device found can require
      // them: multiply_counted() exits early in thread blocks that need none.
      const int always_multiplied = sums.fast ? a.count - q : a.count;
      add_slices(sums, 0, always_multiplied, q, products, [&](int p) { multiply(a, p, b, q, products); });
      if (slice_counts_.counts == nullptr) continue;
      add_slices(sums, always_multiplied, a.count, q, products,
                 [&](int p) { cuda::multiply_counted(task_.queue, sums, a, b, products, p, q); });
    }
    cuda::finish_sums(task_.queue, sums);
  }

  // Adds the products of slices first ... end - 1 of A and slice q of B, ozaki1_products_at_once products at
  // a time. multiply(p) must compute products.groups products, for slices p, p + 1, ... of A.
  template <class Multiply>
  void add_slices(const DeviceProductSums& sums, int first, int end, int q, Accumulators& products,
                  const Multiply& multiply) const {
    for (int p = first; p < end; p += ozaki1_products_at_once) {
      products.groups = std::min(ozaki1_products_at_once, end - p);
      multiply(p);
      cuda::add_products(task_.queue, sums, products, p, q);
    }
  }

  static Slices slices_from(const Slices& slices, int first, int count) {
    Slices result = slices;
    result.data += static_cast<std::size_t>(first * slices.slice_stride()) * slices.element_bytes();
    result.count = count;
    return result;
  }

  // Multiplies slices p, p + 1, ... of A by slice q of B, each into a group of its own.
  void multiply(const Slices& a, int p, const Slices& b, int q, const Accumulators& products) const {
    constexpr const DeviceFit* no_fit = nullptr;
    Schedule schedule = program_.schedule;
    schedule.terms = schedule.terms.first(static_cast<std::size_t>(products.groups));
    schedule.slices_a = products.groups;
    schedule.groups = products.groups;
    cuda::multiply(task_.queue, schedule, slices_from(a, p, products.groups), slices_from(b, q, 1), products,
                   memory_.scratch, no_fit, condition_);
  }

  const DeviceOzaki1Task& task_;
  const Plan& plan_;
  const Program& program_;
  DeviceOzaki1Memory memory_;
  DeviceBlockSliceCounts slice_counts_;
  DeviceCondition condition_;
  bool a_is_split_ = false;  // true: the slices are slices of all rows of A
};

}  // namespace

void multiply_by_ozaki1(const DeviceOzaki1Task& task, Workspace workspace) {
  DeviceOzaki1Product(task, workspace).run();
}

}  // namespace kintsugi::core

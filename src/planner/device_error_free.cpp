#include "planner/device_error_free.hpp"

#include <algorithm>
#include <array>

#include "engines/device_engine.hpp"
#include "engines/device_ozaki1.hpp"
#include "planner/block_edge.hpp"
#include "planner/workspace/device.hpp"

namespace kintsugi::core {

namespace {

using Mode = ErrorFree::Mode;

// Rows and columns of C that are multiplied at once: twice as many blocks of 128 x 128 as an H200 has
// multiprocessors.
constexpr std::int64_t tile_edge = 2048;
// Products of slices that are added at once.
constexpr int products_at_once = 4;

// Binades that rows and columns may span for all of their elements to be held (mode=cr), or that may lie
// between the largest magnitude of a row and what all of it weighs (mode=dp, sp).
constexpr int span_of_exact_slices = 40;
constexpr int span_of_weights = 16;

const Program& program_of(const Plan& plan) { return plan.candidates.front().program; }
bool is_exact(const Plan& plan) { return program_of(plan).error_free.mode == Mode::cr; }
bool finds_slices(const Plan& plan) { return !is_exact(plan) && program_of(plan).error_free.slices == 0; }

// All memory of an entry.
struct Memory {
  Slices a;
  Slices b;
  DeviceSliceExponents exponents_a;
  DeviceSliceExponents exponents_b;
  double* weights = nullptr;
  SliceCounts* slice_counts = nullptr;
  std::int32_t* unreachable = nullptr;
  std::byte* products = nullptr;
  std::byte* sums = nullptr;
  std::byte* scratch = nullptr;
};

// Blocks of C that have a number of slices of their own.
DeviceBlockSliceCounts slice_counts_of(const Plan& plan) {
  const Problem& problem = plan.problem;
  const ErrorFree& rules = program_of(plan).error_free;
  const std::int64_t rows = block_edge(problem.m, rules.block);
  const std::int64_t columns = block_edge(problem.n, rules.block);
  return {nullptr, rows, problem.parts() * columns, divide_up(problem.m, rows),
          divide_up(problem.n, columns)};
}

Accumulators products_of(const Plan& plan, std::int64_t rows, std::int64_t columns) {
  return make_accumulators(SumType::i64, round_up(rows, sums_multiple),
                           round_up(plan.problem.parts() * columns, sums_multiple), products_at_once);
}

template <class Take>
DeviceSliceExponents take_exponents(const Slices& slices, const Take& take) {
  return {
      reinterpret_cast<std::int32_t*>(
          take(array_bytes(slices.count, slices.allocated_vectors, sizeof(std::int32_t)))),
      slices.allocated_vectors,
      reinterpret_cast<std::int32_t*>(take(array_bytes(slices.allocated_vectors, 1, sizeof(std::int32_t))))};
}

// The one list of what is needed: `take` counts bytes or hands them out.
template <class Take>
Memory lay_out(const Plan& plan, const Blocking& blocking, const Take& take) {
  const Problem& problem = plan.problem;
  const Program& program = program_of(plan);
  const DeviceBlockSliceCounts slice_counts = slice_counts_of(plan);
  const Accumulators products =
      products_of(plan, std::min(blocking.m, tile_edge), std::min(blocking.n, tile_edge));
  Memory memory;
  const auto slices_of = [&](std::int64_t vectors) {
    return make_slices(program.format(), SliceStorage::packed, device_slices(plan), vectors,
                       problem.products());
  };
  memory.a = slices_of(blocking.m);
  memory.a.data = take(memory.a.bytes());
  memory.b = slices_of(problem.parts() * blocking.n);
  memory.b.data = take(memory.b.bytes());
  memory.exponents_a = take_exponents(memory.a, take);
  memory.exponents_b = take_exponents(memory.b, take);
  memory.unreachable = reinterpret_cast<std::int32_t*>(take(sizeof(std::int32_t)));
  if (finds_slices(plan)) {
    memory.weights = reinterpret_cast<double*>(
        take(array_bytes(slice_counts.blocks_n, problem.products(), sizeof(double))));
    memory.slice_counts = reinterpret_cast<SliceCounts*>(
        take(array_bytes(slice_counts.blocks_m, slice_counts.blocks_n, sizeof(SliceCounts))));
  }
  memory.products = take(products.bytes());
  memory.sums =
      take(array_bytes(products.rows, products.columns, DeviceProductSums::bytes_of_sum(is_exact(plan))));
  memory.scratch = take(plan.engine->device()->scratch_bytes(program.schedule, program.format().id,
                                                             products.rows, products.columns));
  return memory;
}

class ErrorFreeProduct {
 public:
  ErrorFreeProduct(const DeviceErrorFreeTask& task, Workspace& workspace)
      : task_(task), plan_(task.plan), program_(program_of(task.plan)), engine_(*task.plan.engine->device()),
        kernels_(*engine_.ozaki1()),
        memory_(lay_out(task.plan, task.blocking, [&](std::size_t bytes) { return workspace.take(bytes); })),
        slice_counts_(slice_counts_of(task.plan)), condition_{task.choice, 0} {
    slice_counts_.slice_counts = memory_.slice_counts;
  }

  void run() {
    engine_.clear(task_.queue, memory_.unreachable, sizeof(std::int32_t));
    if (slice_counts_.slice_counts != nullptr) find_slice_counts();
    for_each_part(task_.c.columns, task_.blocking.n, [&](std::int64_t j, std::int64_t columns) {
      split_b(j, columns);
      for_each_part(task_.c.rows, task_.blocking.m, [&](std::int64_t i, std::int64_t rows) {
        if (!a_is_split_) split_a(i, rows);
        multiply_block(i, j, rows, columns);
      });
    });
    kernels_.finish_item(task_.queue, {task_.choice, memory_.unreachable, task_.report, slice_counts_,
                                       device_slices(plan_), program_.error_free.fast && !is_exact(plan_)});
  }

 private:
  using Complete = DeviceSuccessiveSplit::Complete;

  template <class Visit>
  static void for_each_part(std::int64_t length, std::int64_t edge, const Visit& visit) {
    for (std::int64_t done = 0; done < length; done += edge) visit(done, std::min(edge, length - done));
  }

  void split(const DeviceSide& side, std::int64_t first, std::int64_t vectors, Slices& slices,
             const DeviceSliceExponents& exponents, Complete complete) const {
    slices.vectors = vectors;
    const DeviceSuccessiveSplit split{.side = side,
                                      .first = first,
                                      .slices = slices,
                                      .bits = program_.split_a.residual_exponent,
                                      .exponents = exponents,
                                      .complete = is_exact(plan_) ? Complete::all : complete,
                                      .most_depth = is_exact(plan_) ? DeviceProductSums::most_depth : 0,
                                      .slice_counts = slice_counts_,
                                      .unreachable = memory_.unreachable};
    kernels_.split_successively(task_.queue, {&split, 1}, condition_);
  }
  void split_a(std::int64_t first, std::int64_t rows) {
    split(task_.a, first, rows, memory_.a, memory_.exponents_a, Complete::need_not_be);
    a_is_split_ = rows == task_.c.rows;
  }
  void split_b(std::int64_t first, std::int64_t columns) {
    const std::int64_t parts = plan_.problem.parts();
    split(task_.b, parts * first, parts * columns, memory_.b, memory_.exponents_b,
          slice_counts_.slice_counts != nullptr ? Complete::where_needed : Complete::need_not_be);
  }

  // Algorithm 3 for all blocks of C.
  void find_slice_counts() {
    engine_.clear(
        task_.queue, slice_counts_.slice_counts,
        static_cast<std::size_t>(slice_counts_.blocks_m * slice_counts_.blocks_n) * sizeof(SliceCounts));
    kernels_.weigh_inner_indices(task_.queue, task_.b, slice_counts_, memory_.weights, condition_);
    for_each_part(task_.c.rows, task_.blocking.m, [&](std::int64_t i, std::int64_t rows) {
      split_a(i, rows);
      kernels_.find_slice_counts(task_.queue,
                                 {.a = task_.a,
                                  .first = i,
                                  .slices = memory_.a,
                                  .exponents = memory_.exponents_a,
                                  .weights = memory_.weights,
                                  .bits = program_.error_free.mode == Mode::sp ? 24 : 53,
                                  .slice_counts = slice_counts_,
                                  .unreachable = memory_.unreachable},
                                 condition_);
    });
  }

  void multiply_block(std::int64_t first_row, std::int64_t first_column, std::int64_t rows,
                      std::int64_t columns) const {
    for_each_part(columns, tile_edge, [&](std::int64_t j, std::int64_t tile_columns) {
      for_each_part(rows, tile_edge, [&](std::int64_t i, std::int64_t tile_rows) {
        const DeviceTile tile{task_.a,          task_.b,   task_.c,      task_.a.entry, first_row + i,
                              first_column + j, tile_rows, tile_columns, task_.scalars, condition_};
        multiply_tile(tile, i, plan_.problem.parts() * j);
      });
    });
  }

  // Algorithm 2: q outside, p inside. The tile begins at that row and vector of the slices.
  void multiply_tile(const DeviceTile& tile, std::int64_t row, std::int64_t vector) const {
    const std::int64_t vectors = plan_.problem.parts() * tile.columns;
    Accumulators products = products_of(plan_, tile.rows, tile.columns);
    products.data = memory_.products;
    const DeviceProductSums sums{.tile = tile,
                                 .rows = memory_.exponents_a.from(row),
                                 .vectors = memory_.exponents_b.from(vector),
                                 .slices = memory_.a.count,
                                 .fast = program_.error_free.fast && !is_exact(plan_),
                                 .exact = is_exact(plan_),
                                 .sums = memory_.sums,
                                 .stride = products.rows,
                                 .columns = products.columns,
                                 .slice_counts = slice_counts_};
    const Slices a = memory_.a.block(row, tile.rows);
    const Slices b = memory_.b.block(vector, vectors);
    for (int q = 0; q < b.count; ++q) {
      const int multiplied = sums.fast ? a.count - q : a.count;
      add_slices(sums, 0, multiplied, q, products, [&](int p) { multiply(a, p, b, q, products); });
      if (slice_counts_.slice_counts == nullptr) continue;
      add_slices(sums, multiplied, a.count, q, products,
                 [&](int p) { kernels_.multiply_counted(task_.queue, sums, a, b, products, p, q); });
    }
    kernels_.finish_sums(task_.queue, sums);
  }

  // Slices first ... end - 1 of A by slice q of B, a few at once: multiply(p) those from p on.
  template <class Multiply>
  void add_slices(const DeviceProductSums& sums, int first, int end, int q, Accumulators& products,
                  const Multiply& multiply) const {
    for (int p = first; p < end; p += products_at_once) {
      products.groups = std::min(products_at_once, end - p);
      multiply(p);
      kernels_.add_products(task_.queue, sums, products, p, q);
    }
  }

  static Slices slices_from(const Slices& slices, int first, int count) {
    Slices part = slices;
    part.data += static_cast<std::size_t>(first * slices.slice_stride()) * slices.element_bytes();
    part.count = count;
    return part;
  }

  // Slices p ... of A by slice q of B, a group each.
  void multiply(const Slices& a, int p, const Slices& b, int q, const Accumulators& products) const {
    Schedule schedule = program_.schedule;
    schedule.terms = schedule.terms.first(static_cast<std::size_t>(products.groups));
    schedule.slices_a = schedule.groups = products.groups;
    engine_.multiply(task_.queue, schedule, slices_from(a, p, products.groups), slices_from(b, q, 1),
                     products, memory_.scratch, nullptr, condition_);
  }

  const DeviceErrorFreeTask& task_;
  const Plan& plan_;
  const Program& program_;
  const DeviceEngine& engine_;
  const DeviceOzaki1& kernels_;
  Memory memory_;
  DeviceBlockSliceCounts slice_counts_;
  DeviceCondition condition_;
  bool a_is_split_ = false;  // all of it
};

}  // namespace

int device_slices(const Plan& plan) {
  const Program& program = program_of(plan);
  const bool narrow = plan.problem.type == OperandType::f32;
  if (program.error_free.slices != 0) return program.error_free.slices;
  // After s slices of b bits the rest is below 2^(top - s (b + 1)).
  const int bits = program.split_a.residual_exponent + 1;
  const int digits = program.error_free.mode == Mode::sp ? 24 : 53;
  // From the top of the largest element down to the last bit of the smallest.
  const int slices = is_exact(plan)
                         ? static_cast<int>(divide_up(span_of_exact_slices + (narrow ? 26 : 55), bits))
                         : static_cast<int>(divide_up(span_of_weights + digits, bits)) + 1;
  return std::clamp(slices, 2, ErrorFree::most_slices);
}

std::size_t device_error_free_bytes(const Plan& plan, const Blocking& blocking) {
  std::size_t total = 0;
  lay_out(plan, blocking, [&](std::size_t bytes) {
    total += aligned_size(bytes);
    return static_cast<std::byte*>(nullptr);
  });
  return total;
}

void multiply_error_free(const DeviceErrorFreeTask& task, Workspace workspace) {
  ErrorFreeProduct(task, workspace).run();
}

}  // namespace kintsugi::core

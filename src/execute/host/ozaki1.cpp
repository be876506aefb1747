#include "execute/host/steps.hpp"

#include <algorithm>
#include <optional>

#include "base/stopwatch.hpp"
#include "execute/blocks.hpp"
#include "planner/memory.hpp"
#include "planner/plan.hpp"
#include "recombine/ozaki1.hpp"
#include "split/successive.hpp"

namespace kintsugi::core {

namespace {

using Mode = Ozaki1Parameters::Mode;

template <class T>
class Ozaki1Product {
  static constexpr std::int64_t parts = parts_of<T>;  // vectors of B in a column of C

 public:
  Ozaki1Product(const Ozaki1Task<T>& task, Workspace& workspace, Ozaki1Counts& counts)
      : task_(task), parameters_(task.program.ozaki1), threads_(task.plan.threads), counts_(counts),
        memory_(lay_out_ozaki1(task.plan, task.program, task.blocking, workspace)) {}

  void run() {
    for_each_block([&](const Interval& rows, const Interval& columns) { multiply_block(rows, columns); });
  }

  // Makes all splits of run() without the products. A split fails if it needs too many slices.
  void check() {
    for_each_block([&](const Interval& rows, const Interval& columns) {
      const SliceDepth depth = find_depth(rows, columns);
      for_each_interval(rows, task_.blocking.m,
                        [&](const Interval& rows_at_once) { split_a(rows_at_once, depth); });
      for_each_interval(columns, parts * task_.blocking.n,
                        [&](const Interval& columns_at_once) { split_b(columns_at_once, depth); });
    });
  }

 private:
  // Calls visit(rows, columns) for every block of C that has its own number of slices. `columns` are vectors
  // of B: two for a complex column of C.
  template <class Visit>
  void for_each_block(const Visit& visit) {
    const Interval all_rows{0, task_.c.rows};
    const Interval all_vectors{0, parts * task_.c.columns};
    const std::int64_t edge = parts * block_edge(task_.c.columns, parameters_.block);
    for_each_interval(all_vectors, edge, [&](const Interval& columns) {
      for_each_interval(all_rows, block_edge(all_rows.count, parameters_.block),
                        [&](const Interval& rows) { visit(rows, columns); });
    });
  }

  std::span<const VectorRange> ranges_of_rows(const Interval& rows) const {
    return task_.rows.subspan(rows.first, rows.count);
  }
  std::span<const VectorRange> ranges_of_columns(const Interval& columns) const {
    return task_.columns.subspan(columns.first, columns.count);
  }

  [[noreturn]] void fail_slices(char operand, const Interval& vectors) const {
    fail(Status::contract_unreachable,
         "vectors {} to {} of {} need more than {} slices of {} bits: their elements span too many binades",
         vectors.first, vectors.first + vectors.count - 1, operand, Ozaki1Parameters::max_slices,
         memory_.a.bits);
  }

  // Algorithm 1, with at most `max_count` slices.
  int split(SuccessiveSplit& side, const OperandView<T>& operand, std::span<const VectorRange> ranges,
            int max_count) const {
    side.slices.vectors = operand.rows;
    set_first_residuals(operand, ranges, side, threads_);
    int count = 0;
    while (count < max_count && any_residual(side)) {
      constexpr double* no_weights = nullptr;
      constexpr Scaled* no_row_sums = nullptr;
      take_slice(side, count, no_weights, no_row_sums, threads_);
      ++count;
    }
    return count;
  }

  void split_a(const Interval& rows, const SliceDepth& depth) {
    const Stopwatch watch(counts_.split_a_seconds);
    count_a_ = split(memory_.a, task_.a.vectors(rows.first, rows.count), ranges_of_rows(rows), depth.a);
    if (parameters_.mode == Mode::cr && any_residual(memory_.a)) fail_slices('A', rows);
  }

  void split_b(const Interval& columns, const SliceDepth& depth) {
    const Stopwatch watch(counts_.split_b_seconds);
    count_b_ =
        split(memory_.b, task_.b.vectors(columns.first, columns.count), ranges_of_columns(columns), depth.b);
    if (parameters_.mode == Mode::cr && any_residual(memory_.b)) fail_slices('B', columns);
  }

  // Algorithms 1 and 3 together. Makes slices of A's rows until each row has enough slices or a residual of
  // 0. If d slices are enough for row v, slice_counts[v] becomes d. If the residual of row v is 0 after d
  // slices, slice_counts[v] becomes -d.
  void measure_rows(const Interval& rows) {
    const Stopwatch watch(counts_.split_a_seconds);
    SuccessiveSplit& side = memory_.a;
    const OperandView<T> operand = task_.a.vectors(rows.first, rows.count);
    const int bits = parameters_.mode == Mode::sp ? 24 : 53;
    side.slices.vectors = rows.count;
    set_first_residuals(operand, ranges_of_rows(rows), side, threads_);
    multiply_magnitudes(operand, ranges_of_rows(rows), memory_.weights, memory_.row_sums, threads_);
    std::fill_n(memory_.slice_counts, rows.count, 0);
    count_a_ = 0;
    bool all_rows_done = !any_residual(side);
    while (!all_rows_done) {
      if (count_a_ == Ozaki1Parameters::max_slices) fail_slices('A', rows);
      take_slice(side, count_a_, memory_.weights, memory_.slice_row_sums, threads_);
      ++count_a_;
      all_rows_done = true;
      for (std::int64_t v = 0; v < rows.count; ++v) {
        std::int32_t& slices = memory_.slice_counts[v];
        if (slices != 0) continue;
        if (count_a_ >= 2 &&
            enough_slices(memory_.row_sums[v], memory_.slice_row_sums[v], count_a_, operand.columns, bits)) {
          slices = count_a_;
        } else if (side.tops[v] == no_residual) {
          slices = -count_a_;
        }
        all_rows_done = all_rows_done && slices != 0;
      }
    }
  }

  // Returns the numbers of slices of A and B that a block of C needs. If neither mode nor parameters give
  // them, this splits A by measure_rows(), as far as the workspace holds A's rows at once.
  SliceDepth find_depth(const Interval& rows, const Interval& columns) {
    if (parameters_.mode == Mode::cr)
      return {Ozaki1Parameters::max_slices, Ozaki1Parameters::max_slices, false};
    if (parameters_.slices != 0) return {parameters_.slices, parameters_.slices, parameters_.fast};
    {
      const Stopwatch watch(counts_.split_a_seconds);  // the sums decide how many slices A has
      sum_vectors(task_.b.vectors(columns.first, columns.count), ranges_of_columns(columns), memory_.weights,
                  threads_);
    }
    SliceCounts slice_counts;
    for_each_interval(rows, task_.blocking.m, [&](const Interval& rows_at_once) {
      measure_rows(rows_at_once);
      for (std::int64_t v = 0; v < rows_at_once.count; ++v) {
        slice_counts.enough = std::max(slice_counts.enough, memory_.slice_counts[v]);
        slice_counts.exhausted = std::max(slice_counts.exhausted, -memory_.slice_counts[v]);
      }
    });
    return depth_of(slice_counts, Ozaki1Parameters::max_slices, parameters_.fast);
  }

  void multiply_block(const Interval& rows, const Interval& columns) {
    const SliceDepth depth = find_depth(rows, columns);
    const bool holds_all_rows = rows.count <= task_.blocking.m;
    const bool rows_were_measured = parameters_.mode != Mode::cr && parameters_.slices == 0;
    bool split_already = holds_all_rows && rows_were_measured;
    int max_a = 0;
    int max_b = 0;
    for_each_interval(columns, parts * task_.blocking.n, [&](const Interval& columns_at_once) {
      split_b(columns_at_once, depth);
      max_b = std::max(max_b, count_b_);
      for_each_interval(rows, task_.blocking.m, [&](const Interval& rows_at_once) {
        if (!split_already) split_a(rows_at_once, depth);
        split_already = holds_all_rows;
        max_a = std::max(max_a, count_a_);
        multiply_split_vectors(rows_at_once, columns_at_once, depth);
      });
    });
    count_block(depth, max_a, max_b);
  }

  // Returns the number of A's slices that are multiplied by slice q of B. Fast mode leaves out the smallest
  // products.
  static int products_of(const SliceDepth& depth, int q, int count_a) {
    return depth.fast ? std::min(count_a, depth.a - q) : count_a;
  }

  void count_block(const SliceDepth& depth, int count_a, int count_b) {
    int products = 0;
    for (int q = 0; q < count_b; ++q) products += products_of(depth, q, count_a);
    ++counts_.blocks;
    counts_.slices_a += count_a;
    counts_.slices_b += count_b;
    counts_.products += products;
    counts_.fast_blocks += depth.fast ? 1 : 0;
    counts_.min_slices = std::min(counts_.min_slices, depth.least());
    counts_.max_products = std::max(counts_.max_products, products);
  }

  void multiply_split_vectors(const Interval& rows, const Interval& columns, const SliceDepth& depth) {
    for_each_interval({0, columns.count}, ozaki1_vectors_at_once, [&](const Interval& columns_at_once) {
      const Slices slices_b = memory_.b.slices.block(columns_at_once.first, columns_at_once.count);
      const SliceExponents exponents{
          constant(memory_.a.exponents),
          constant(memory_.b.exponents.block(0, columns_at_once.first, memory_.b.exponents.rows,
                                             columns_at_once.count))};
      const Interval columns_of_c{columns.first + columns_at_once.first, columns_at_once.count};
      if (parameters_.mode == Mode::cr) {
        const DigitSums sums(memory_.sums, rows.count, columns_at_once.count, exponents, count_a_, count_b_);
        sum_products(sums, rows, columns_of_c, slices_b, exponents, depth);
      } else {
        const RunningSums sums(memory_.sums, rows.count, columns_at_once.count);
        sum_products(sums, rows, columns_of_c, slices_b, exponents, depth);
      }
    });
  }

  static MatrixView<const std::int32_t> constant(const MatrixView<std::int32_t>& view) {
    return {view.data, view.rows, view.columns, view.row_stride, view.column_stride};
  }

  // Algorithm 2 for the columns of one step. The outer loop is over slices q of B. multiply_slice() does the
  // inner loop, over slices of A.
  template <class Sums>
  void sum_products(const Sums& sums, const Interval& rows, const Interval& columns, const Slices& slices_b,
                    const SliceExponents& exponents, const SliceDepth& depth) {
    for (int q = 0; q < count_b_; ++q) {
      const int count = products_of(depth, q, count_a_);
      if (count <= 0) break;
      const Accumulators products = multiply_slice(rows.count, columns.count, slices_b, q, count);
      const Stopwatch watch(counts_.summation_seconds);
      sums.add(products, exponents, q, threads_);
    }
    const Stopwatch watch(counts_.summation_seconds);
    sums.finish(exponents, ranges_of_rows(rows), ranges_of_columns(columns), task_.alpha, task_.beta,
                task_.c.block(rows.first, columns.first / parts, rows.count, columns.count / parts),
                threads_);
  }

  // Multiplies slices 0...count - 1 of A by slice q of B.
  Accumulators multiply_slice(std::int64_t rows, std::int64_t columns, const Slices& slices_b, int q,
                              int count) {
    const Stopwatch watch(counts_.product_seconds);
    Schedule schedule = task_.program.schedule;
    schedule.terms = schedule.terms.first(static_cast<std::size_t>(count));
    schedule.slices_a = count;
    schedule.groups = count;
    Accumulators products = make_accumulators(SumType::i64, rows, columns, count);
    products.data = memory_.products;
    Slices a = memory_.a.slices;
    a.count = count;
    Slices b = slices_b;
    b.count = 1;
    b.data += static_cast<std::size_t>(q * b.slice_stride()) * b.element_bytes();
    task_.plan.engine->host()->multiply({.schedule = &schedule,
                                         .a = a,
                                         .b = b,
                                         .sums = products,
                                         .accumulator = task_.candidate.accumulator,
                                         .scratch = memory_.scratch,
                                         .threads = threads_});
    return products;
  }

  const Ozaki1Task<T>& task_;
  const Ozaki1Parameters& parameters_;
  int threads_;
  Ozaki1Counts& counts_;
  Ozaki1Memory memory_;
  int count_a_ = 0;  // number of slices that the last split of A made
  int count_b_ = 0;  // number of slices that the last split of B made
};

// True if no vector can need more slices than allowed. The slices of a vector take bits from the highest bit
// of its largest element to the last bit of its smallest one, and every slice takes at least
// successive_gain() bits.
bool never_exceeds_slices(std::span<const VectorRange> ranges, const SplitRule& rule) {
  const int bits =
      summarize(ranges).dynamic_range + 55;  // 53 bits of the smallest element, and two spare bits
  return divide_up(bits, rule.successive_gain()) <= Ozaki1Parameters::max_slices;
}

}  // namespace

template <class T>
void check_ozaki1(const Ozaki1Task<T>& task, Workspace workspace) {
  const Ozaki1Parameters& rules = task.program.ozaki1;
  if (rules.slices != 0) return;
  const bool b_never_exceeds_slices =
      rules.mode != Mode::cr || never_exceeds_slices(task.columns, task.program.split_b);
  if (never_exceeds_slices(task.rows, task.program.split_a) && b_never_exceeds_slices) return;
  Ozaki1Counts counts;
  Ozaki1Product<T>(task, workspace, counts).check();
}

template <class T>
void multiply_by_ozaki1(const Ozaki1Task<T>& task, Workspace workspace, Ozaki1Counts& counts) {
  Ozaki1Product<T>(task, workspace, counts).run();
}

#define INSTANTIATE(T)                                         \
  template void check_ozaki1(const Ozaki1Task<T>&, Workspace); \
  template void multiply_by_ozaki1(const Ozaki1Task<T>&, Workspace, Ozaki1Counts&);
KINTSUGI_FOR_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace kintsugi::core

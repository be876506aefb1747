#include "planner/offload.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <utility>

#include "base/memory.hpp"
#include "base/status.hpp"
#include "base/view.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/steps.hpp"
#include "engines/cuda/transfers.hpp"
#include "engines/registry.hpp"
#include "planner/candidates.hpp"
#include "planner/expected_times.hpp"
#include "planner/memory.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

namespace {

// Steps begin at multiples of 128 rows and columns of C, as blocks do in the whole library.
constexpr std::int64_t edge_multiple = 128;

// Returns the indices of `range` from `first` on, at most `count` of them.
Interval part_of(const Interval& range, std::int64_t first, std::int64_t count) {
  return {first, std::min(count, range.end() - first)};
}

// Cuts a side into loads. The first and the last one are small.
std::vector<Interval> graded_parts(const Interval& side) {
  constexpr std::array sixteenths{1, 2, 4, 4, 3, 2};
  constexpr std::int64_t min_part = 512;  // products of fewer vectors use a small part of a device
  std::vector<Interval> parts;
  std::int64_t first = side.first;
  std::int64_t wanted = 0;  // end of the current load, in sixteenths of the side
  for (const int share : sixteenths) {
    wanted += share;
    const std::int64_t end =
        wanted == 16 ? side.end() : side.first + round_up(side.count * wanted / 16, edge_multiple);
    if (wanted < 16 && (end - first < min_part || side.end() - end < min_part)) continue;
    parts.push_back({first, end - first});
    first = end;
  }
  return parts;
}

// Contents of an operand's strips, as they change from step to step.
class StripContents {
 public:
  StripContents(Side side, int strips) : side_(side), contents_(static_cast<std::size_t>(strips)) {}

  // Returns the strip with these vectors; if there is none, adds a load to the step.
  int strip_with(const Interval& vectors, OffloadStep& step) {
    for (std::size_t strip = 0; strip < contents_.size(); ++strip) {
      const auto& held = contents_[strip];
      if (held && held->vectors == vectors && held->inner == step.inner && held->items == step.items)
        return current_ = static_cast<int>(strip);
    }
    current_ = (current_ + 1) % static_cast<int>(contents_.size());
    auto& content = contents_[static_cast<std::size_t>(current_)];
    const OffloadLoad load{side_, vectors, step.inner, step.items, current_, 0, content.has_value()};
    content = load;
    step.loads.push_back(load);
    return current_;
  }

 private:
  Side side_;
  std::vector<std::optional<OffloadLoad>> contents_;
  int current_ = -1;
};

// Cuts a side into four loads, or returns nothing if they would be too small.
std::vector<Interval> quarters(const Interval& side, std::size_t element_bytes) {
  // Lines of C, or of an operand whose vectors are not contiguous, become as short as a load. On the host
  // lines of 16 KiB and less are copied so much slower that n = 8192 took 35 to 41 ms in quarters and 33 with
  // a whole A; n = 16384 took 155 to 167 ms and 174 (FP64).
  constexpr std::int64_t parts = 4;
  constexpr std::size_t min_bytes = std::size_t{32} << 10;
  const std::int64_t count = round_up(divide_up(side.count, parts), edge_multiple);
  if (static_cast<std::size_t>(count) * element_bytes < min_bytes) return {};
  std::vector<Interval> loads;
  for (std::int64_t first = side.first; first < side.end(); first += count)
    loads.push_back(part_of(side, first, count));
  return loads;
}

// Makes the steps of a part that the device holds as a whole. Loads of A and B alternate, and each load is
// multiplied by all loads of the other operand that are on the device. Once the share x of each operand is
// loaded, x * x of C is complete. If all of A were loaded first, nothing would be complete until the share
// x = 0.5 of both together is loaded, and 2 x - 1 of C from then on, which is less.
class GrowingSteps {
 public:
  GrowingSteps(const OffloadPart& part, const Interval& inner, std::size_t element_bytes)
      : part_(part), inner_(inner) {
    rows_ = quarters(part.rows, element_bytes);
    columns_ = quarters(part.columns, element_bytes);
    if (!rows_.empty() && !columns_.empty()) return;
    // C is small: the shorter side is one load, and the other one has a small first and last load.
    const bool has_fewer_rows = part.rows.count <= part.columns.count;
    rows_ = has_fewer_rows ? std::vector{part.rows} : graded_parts(part.rows);
    columns_ = has_fewer_rows ? graded_parts(part.columns) : std::vector{part.columns};
  }

  std::vector<OffloadStep> make() {
    std::size_t a = 0;  // loads of A that the steps have so far
    std::size_t b = 0;
    while (a < rows_.size() || b < columns_.size()) {
      // The operand with the smaller loaded share is next.
      const bool is_a = b == columns_.size() || (a < rows_.size() && a * columns_.size() <= b * rows_.size());
      if (is_a) {
        load(Side::a, rows_[a], rows_[a].first - part_.rows.first);
        for (std::size_t j = 0; j < b; ++j) multiply(rows_[a], columns_[j]);
        ++a;
      } else {
        load(Side::b, columns_[b], columns_[b].first - part_.columns.first);
        for (std::size_t i = 0; i < a; ++i) multiply(rows_[i], columns_[b]);
        ++b;
      }
    }
    return std::move(steps_);
  }

 private:
  void load(Side side, const Interval& vectors, std::int64_t position) {
    loads_.push_back({side, vectors, inner_, part_.items, 0, position, false});
  }

  void multiply(const Interval& rows, const Interval& columns) {
    OffloadStep step{.rows = rows, .columns = columns, .inner = inner_, .items = part_.items};
    step.loads = std::exchange(loads_, {});
    step.row = rows.first - part_.rows.first;
    step.column = columns.first - part_.columns.first;
    steps_.push_back(std::move(step));
  }

  const OffloadPart& part_;
  const Interval inner_;
  std::vector<Interval> rows_, columns_;  // the loads of A and of B
  std::vector<OffloadLoad> loads_;        // loads that no step has yet
  std::vector<OffloadStep> steps_;
};

// Makes steps in strips, one batch item after the other. Columns run from left to right for one strip of
// rows, and from right to left for the next one, so that the last strip of B is used again.
class StripSteps {
 public:
  StripSteps(const Problem& problem, const OffloadPart& part, const OffloadLayout& layout)
      : problem_(problem), part_(part), layout_(layout), a_(Side::a, layout.strips_a),
        b_(Side::b, layout.strips_b) {}

  std::vector<OffloadStep> make() {
    for (std::int64_t item = part_.items.first; item < part_.items.end(); item += layout_.items)
      add_items(part_of(part_.items, item, layout_.items));
    return std::move(steps_);
  }

 private:
  void add_items(const Interval& items) {
    const std::int64_t strips = divide_up(part_.columns.count, layout_.columns);
    for (std::int64_t row = part_.rows.first; row < part_.rows.end(); row += layout_.rows) {
      for (std::int64_t number = 0; number < strips; ++number) {
        const std::int64_t strip = is_reversed_ ? strips - 1 - number : number;
        add_tile({.rows = part_of(part_.rows, row, layout_.rows),
                  .columns =
                      part_of(part_.columns, part_.columns.first + strip * layout_.columns, layout_.columns),
                  .items = items});
      }
      is_reversed_ = !is_reversed_;
    }
  }

  // Adds the steps over all inner indices of a tile of C.
  void add_tile(const OffloadStep& tile) {
    const Interval all_inner{0, problem_.k};
    for (std::int64_t inner = 0; inner < problem_.k; inner += layout_.inner) {
      OffloadStep step = tile;
      step.inner = part_of(all_inner, inner, layout_.inner);
      step.strip_a = a_.strip_with(step.rows, step);
      step.strip_b = b_.strip_with(step.columns, step);
      step.strip_c = tiles_ % layout_.strips_c;
      step.is_first = inner == 0;
      step.is_last = step.inner.end() == problem_.k;
      step.begins_strip = step.is_first;
      steps_.push_back(step);
    }
    ++tiles_;
  }

  const Problem& problem_;
  const OffloadPart& part_;
  const OffloadLayout& layout_;
  StripContents a_, b_;
  int tiles_ = 0;
  bool is_reversed_ = false;
  std::vector<OffloadStep> steps_;
};

// Returns the layout whose strips have at most `edge` rows or columns.
OffloadLayout layout_of(const Problem& problem, const OffloadPart& part, std::int64_t edge,
                        std::int64_t inner) {
  const bool refills = inner < problem.k || part.items.count > 1;
  const bool cuts_rows = part.rows.count > edge;
  const bool cuts_columns = part.columns.count > edge;
  return {.rows = std::min(edge, part.rows.count),
          .columns = std::min(edge, part.columns.count),
          .inner = inner,
          .strips_a = cuts_rows || refills ? 2 : 1,
          .strips_b = cuts_columns || refills ? 2 : 1,
          .strips_c = cuts_rows || cuts_columns || part.items.count > 1 ? 2 : 1};
}

// Returns the widest layout with `inner` inner indices that fits; a layout with rows = 0 if none fits.
OffloadLayout widest_layout(const Problem& problem, const OffloadPart& part, std::int64_t inner,
                            std::size_t bytes) {
  const std::int64_t longest = std::max(part.rows.count, part.columns.count);
  std::int64_t fitting = 0;  // like too_wide in multiples of edge_multiple
  std::int64_t too_wide = divide_up(longest, edge_multiple) + 1;
  while (too_wide - fitting > 1) {
    const std::int64_t middle = fitting + (too_wide - fitting) / 2;
    const OffloadLayout layout = layout_of(problem, part, middle * edge_multiple, inner);
    if (strip_bytes(problem, layout) <= bytes) {
      fitting = middle;
    } else {
      too_wide = middle;
    }
  }
  return fitting == 0 ? OffloadLayout{} : layout_of(problem, part, fitting * edge_multiple, inner);
}

// Returns the elements of A and B that are copied to the device for one item. Strips over all inner indices
// stay for the products of a strip of rows; parts of k are copied again for every tile of C.
double copied_elements(const Problem& problem, const OffloadPart& part, const OffloadLayout& layout) {
  const std::int64_t row_strips = divide_up(part.rows.count, layout.rows);
  const std::int64_t column_strips =
      layout.inner < problem.k ? divide_up(part.columns.count, layout.columns) : 1;
  return static_cast<double>(problem.k) *
         static_cast<double>(part.rows.count * column_strips + part.columns.count * row_strips);
}

std::vector<OffloadPart> parts_of_batch(const Problem& problem, int devices) {
  const Interval items{0, problem.batch_count};
  const std::int64_t count = divide_up(problem.batch_count, devices);
  std::vector<OffloadPart> parts;
  for (std::int64_t first = 0; first < items.count; first += count)
    parts.push_back({{0, problem.m}, {0, problem.n}, part_of(items, first, count)});
  return parts;
}

// Returns the number of batch items that one step copies and multiplies together. With enough items, copies
// are long enough for the bus, and products are large enough for the device.
std::int64_t items_of_strips(const Problem& problem, const OffloadPart& part, const OffloadLayout& layout,
                             std::size_t bytes) {
  constexpr std::size_t wanted_bytes = std::size_t{64} << 20;
  const bool holds_items =
      layout.rows == part.rows.count && layout.columns == part.columns.count && layout.inner == problem.k;
  if (!holds_items || part.items.count == 1) return 1;
  const std::size_t of_item = std::max<std::size_t>(strip_bytes(problem, layout), 1);
  const auto items = static_cast<std::int64_t>(std::min(wanted_bytes, bytes) / of_item);
  return std::clamp<std::int64_t>(items, 1, part.items.count);
}

}  // namespace

std::vector<OffloadPart> offload_parts(const Problem& problem, int devices) {
  if (problem.batch_count > 1) return parts_of_batch(problem, devices);
  const bool cuts_columns = problem.n >= problem.m;
  // A narrower part would not pay off: one device multiplies it sooner than another device receives A or B.
  constexpr std::int64_t min_width = 1024;
  const Interval side{0, cuts_columns ? problem.n : problem.m};
  const std::int64_t width = std::max(min_width, round_up(divide_up(side.count, devices), edge_multiple));
  std::vector<OffloadPart> parts;
  for (std::int64_t first = 0; first < side.count; first += width) {
    const Interval range = part_of(side, first, width);
    parts.push_back(cuts_columns ? OffloadPart{{0, problem.m}, range} : OffloadPart{range, {0, problem.n}});
  }
  return parts;
}

std::int64_t strip_stride(std::int64_t rows, std::int64_t columns) {
  return cuda::line_pitch(rows) *
         cuda::line_pitch(columns);  // either side may be contiguous: both are padded
}

std::size_t strip_bytes(const Problem& problem, const OffloadLayout& layout) {
  const std::size_t element = problem.element_bytes();
  const auto bytes = [&](int strips, std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>(strips) *
           array_bytes(layout.items, array_bytes(cuda::line_pitch(rows), cuda::line_pitch(columns), element),
                       1);
  };
  return bytes(layout.strips_a, layout.rows, layout.inner) +
         bytes(layout.strips_b, layout.columns, layout.inner) +
         bytes(layout.strips_c, layout.rows, layout.columns);
}

OffloadLayout fit_layout(const Problem& problem, const OffloadPart& part, std::size_t bytes, bool may_cut_k) {
  // Products of narrower strips wait for copies: FP64 strips of 5100 rows are multiplied in the time of
  // the next copy at 55 GB/s. k is cut for narrower ones where that saves a fifth of the copies at least, and
  // into parts of less than 2048 only if nothing else fits: each part reads and writes all of a tile of C.
  constexpr std::int64_t wide = 5120;
  constexpr double max_share = 0.8;
  constexpr std::int64_t min_useful_inner = 2048;
  constexpr std::int64_t min_inner = 128;
  const std::int64_t wide_enough = std::min(wide, std::max(part.rows.count, part.columns.count));
  OffloadLayout best;
  for (std::int64_t inner = problem.k;; inner = round_up(divide_up(inner, 2), min_inner)) {
    const OffloadLayout layout = widest_layout(problem, part, inner, bytes);
    if (best.rows == 0 || (layout.rows > 0 && copied_elements(problem, part, layout) <
                                                  max_share * copied_elements(problem, part, best)))
      best = layout;
    const bool is_wide = best.inner == problem.k && std::max(best.rows, best.columns) >= wide_enough;
    if (is_wide || !may_cut_k || inner <= (best.rows == 0 ? min_inner : min_useful_inner)) break;
  }
  best.items = best.rows == 0 ? 1 : items_of_strips(problem, part, best, bytes);
  return best;
}

std::vector<OffloadStep> offload_steps(const Problem& problem, const OffloadPart& part,
                                       const OffloadLayout& layout) {
  const bool fits = layout.strips_a == 1 && layout.strips_b == 1 && layout.strips_c == 1;
  return fits ? GrowingSteps(part, {0, problem.k}, problem.element_bytes()).make()
              : StripSteps(problem, part, layout).make();
}

namespace {

const Engine* find_offload_engine() {
  for (const Engine* engine : all_engines()) {
    if (engine->is_device()) return engine;
  }
  return nullptr;
}

// Returns the reason why no device can multiply the host plan's problem; empty if there is none.
std::string obstacle(const Plan& host, const Engine* engine) {
  const Problem& problem = host.problem;
  if (!host.request.engine.empty()) return fmt::format("engine {} was named", host.request.engine);
  if (problem.type == OperandType::dd) return "devices do not multiply double-double operands";
  if (problem.prepared_a || problem.prepared_b) return "an operand was prepared on the host";
  if (std::min({problem.m, problem.n, problem.k, problem.batch_count}) == 0)
    return "there is nothing to multiply";
  if (host.request.is_reproducible()) return "a reproducible product is the host's";
  if (engine == nullptr) return "this library has no engine for devices";
  if (const std::string reason = engine->unavailable_reason(); !reason.empty())
    return fmt::format("engine {} cannot run here: {}", engine->name(), reason);
  return {};
}

// Returns the reason why the device's plan cannot replace the host's; empty if there is none. The device's
// plan must accept all operands: the host's plan fails before it writes C, and a device could not. A scheme
// must not be adapted to the ranges of whole operands, since a device has only a part of the operands at a
// time.
std::string obstacle_of_plan(const Plan& device) {
  if (!device.candidates.back().acceptance.any_range())
    return "no candidate of a device accepts all operands";
  if (device.is_native() && device.rounding != RoundingMode::nearest)
    return fmt::format("native products on devices round to nearest, and the thread's rounding mode is {}",
                       rounding_name(device.rounding));
  for (const Candidate& candidate : device.candidates) {
    if (candidate.scheme != nullptr && candidate.scheme->adapt != nullptr)
      return fmt::format("scheme {} is adapted to whole operands on the host", candidate.scheme_name());
  }
  return {};
}

// Expected seconds of the call: of the host's native product, which the host's emulations are to beat, and of
// the first program of the device's plan.
struct OffloadTimes {
  double host = 0;
  double device = 0;  // 0: the device was never measured
};

// Expected microseconds of the device's product.
std::optional<double> expected_product_time(const Plan& device) {
  const Problem& problem = device.problem;
  if (!device.is_native()) {
    if (const auto times = expected_device_times(device, device.candidates.front())) return times->emulated;
  }
  return cuda::expected_vendor_time(
      {element_type(problem), problem.m, problem.n, problem.k, problem.batch_count});
}

OffloadTimes expected_offload_times(const Plan& host, const Plan& device) {
  // These constants are assumed, not measured, so that equal calls are always computed by the same engine:
  // the rate of a PCIe 4 slot in one direction, and the time of a call without copies and products.
  constexpr double copied_bytes_per_second = 20e9;
  constexpr double seconds_of_call = 500e-6;
  const Problem& problem = host.problem;
  const auto m = static_cast<double>(problem.m);
  const auto n = static_cast<double>(problem.n);
  const auto k = static_cast<double>(problem.k);
  const double parts = problem.complex ? 2 : 1;
  const double width = problem.type == OperandType::f64 ? host.engine->native_costs(host.threads).fp64 : 1;
  const double threads = host.threads;
  OffloadTimes times;
  const auto items = static_cast<double>(problem.batch_count);
  times.host =
      host.engine->product_seconds(host.threads) * width * parts * parts * items * m * n * k / threads;
  const auto product = expected_product_time(device);
  if (!product) return times;
  const double bytes = static_cast<double>(problem.element_bytes()) * items * (m * k + k * n + m * n);
  times.device = seconds_of_call + std::max(1e-6 * *product, bytes / copied_bytes_per_second);
  return times;
}

// Returns the reason why the policy auto leaves the call on the host; empty if there is none.
std::string obstacle_of_time(const Plan& host, const Plan& device) {
  constexpr double max_time_ratio = 0.8;
  const OffloadTimes times = expected_offload_times(host, device);
  if (times.device == 0) return "the device was never measured: `kintsugi calibrate` makes its profile";
  if (times.device < max_time_ratio * times.host) return {};
  return fmt::format("the host is expected to take {:.3g} ms and the device {:.3g} ms", 1e3 * times.host,
                     1e3 * times.device);
}

// Makes the device's plan, or returns the reason why there is none.
std::string make_offloaded_plan(const Plan& host, const Engine& engine, Plan& device) {
  const cuda::ContextScope scope(cuda::primary_context(0));
  if (!scope.entered()) return "the context of device 0 is gone";
  Problem problem = host.problem;
  problem.memory = MemorySpace::device;
  problem.batch_kind = BatchKind::strided;  // as strips have the items
  device = make_plan_on(problem, host.settings, engine);
  if (std::string reason = obstacle_of_plan(device); !reason.empty()) return reason;
  return host.request.offload == Offload::automatic ? obstacle_of_time(host, device) : "";
}

}  // namespace

Plan offloaded_if_chosen(Plan plan) {
  if (plan.request.offload == Offload::off || plan.problem.memory != MemorySpace::host) return plan;
  const Engine* engine = find_offload_engine();
  Plan device;
  std::string reason = obstacle(plan, engine);
  if (reason.empty()) {
    try {
      reason = make_offloaded_plan(plan, *engine, device);
    } catch (const Error& error) {  // the host computes what a device cannot
      reason = error.what();
    }
  }
  const std::string setting = plan.settings[SettingId::offload].value;
  if (!reason.empty()) {
    plan.offload_words = fmt::format("Offload {}, but the host multiplies: {}.", setting, reason);
    return plan;
  }
  device.problem = plan.problem;
  device.allocator = plan.allocator;
  device.workspace_bytes = 0;  // an offloaded call needs no host workspace
  device.offload_words =
      fmt::format("Offload {}: {} multiplies, and the host what it cannot.", setting, engine->name());
  device.host_plan = std::make_shared<const Plan>(std::move(plan));
  return device;
}

Plan plan_of_inner_indices(const Plan& plan, std::int64_t inner) {
  Problem problem = plan.problem;
  problem.memory = MemorySpace::device;
  problem.batch_kind = BatchKind::strided;
  problem.k = inner;
  return make_plan_on(problem, plan.settings, *plan.engine);
}

Plan plan_of_step(const Plan& plan, const Problem& problem, std::size_t workspace_limit) {
  Plan step = plan;
  step.problem = problem;
  step.allocator = {};  // the caller's allocator cannot be used: it returns host memory
  step.queue = {};
  step.host_plan = nullptr;
  step.blocking = fit_blocking(step, workspace_limit);
  set_steps(step);
  return step;
}

bool may_cut_k(const Plan& plan) {
  // (k + 8) u |A||B| also bounds p sums of k / p products each and p roundings if k / p + p <= k.
  return !plan.request.accuracy || plan.request.accuracy->is_of_type();
}

}  // namespace kintsugi::core

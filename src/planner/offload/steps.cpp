#include "planner/offload/steps.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/memory.hpp"
#include "base/view.hpp"

namespace kintsugi::core {

namespace {

// Steps begin at multiples of 128 rows and columns of C, as blocks do in the whole library.
constexpr std::int64_t edge_multiple = 128;

// Returns the indices of `range` from `first` on, at most `count` of them.
IndexRange part_of(const IndexRange& range, std::int64_t first, std::int64_t count) {
  return {first, std::min(count, range.end() - first)};
}

// Cuts the vectors of an operand into loads. The first and the last loads are small.
std::vector<IndexRange> graded_parts(const IndexRange& side) {
  constexpr std::array sixteenths{1, 1, 2, 4, 4, 2, 1, 1};
  constexpr std::int64_t min_part = 512;  // products of fewer vectors use a small part of a device
  std::vector<IndexRange> parts;
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

  // Returns the strip with these vectors. If no strip has them, adds a load to the step.
  int strip_with(const IndexRange& vectors, const IndexRange& inner, OffloadStep& step) {
    for (std::size_t strip = 0; strip < contents_.size(); ++strip) {
      if (contents_[strip] && contents_[strip]->vectors == vectors && contents_[strip]->inner == inner)
        return current_ = static_cast<int>(strip);
    }
    current_ = (current_ + 1) % static_cast<int>(contents_.size());
    auto& content = contents_[static_cast<std::size_t>(current_)];
    const OffloadLoad load{side_, vectors, inner, current_, 0, content.has_value()};
    content = load;
    step.loads.push_back(load);
    return current_;
  }

 private:
  Side side_;
  std::vector<std::optional<OffloadLoad>> contents_;
  int current_ = -1;
};

// Returns the steps of a part that fits the device. After each load, the new vectors are multiplied by all
// loaded vectors of the other operand.
std::vector<OffloadStep> growing_steps(const OffloadPart& part, const IndexRange& inner) {
  const std::vector<IndexRange> rows = graded_parts(part.rows);
  const std::vector<IndexRange> columns = graded_parts(part.columns);
  std::vector<OffloadStep> steps;
  std::size_t loaded_rows = 0;
  std::size_t loaded_columns = 0;
  while (loaded_rows < rows.size() || loaded_columns < columns.size()) {
    const bool is_row = loaded_rows * columns.size() <= loaded_columns * rows.size();
    OffloadStep step{.inner = inner};
    if (is_row) {
      step.rows = rows[loaded_rows++];
      step.columns = {part.columns.first,
                      loaded_columns == 0 ? 0 : columns[loaded_columns - 1].end() - part.columns.first};
    } else {
      step.columns = columns[loaded_columns++];
      step.rows = {part.rows.first, rows[loaded_rows - 1].end() - part.rows.first};
    }
    step.row = step.rows.first - part.rows.first;
    step.column = step.columns.first - part.columns.first;
    step.loads = {is_row ? OffloadLoad{Side::a, step.rows, inner, 0, step.row, false}
                         : OffloadLoad{Side::b, step.columns, inner, 0, step.column, false}};
    steps.push_back(step);
  }
  return steps;
}

// Returns the steps of a part in strips. Columns run from left to right for one strip of rows, and from right
// to left for the next one, so that the last strip of B is used again.
std::vector<OffloadStep> strip_steps(const Problem& problem, const OffloadPart& part,
                                     const OffloadLayout& layout) {
  std::vector<OffloadStep> steps;
  StripContents a(Side::a, layout.strips_a);
  StripContents b(Side::b, layout.strips_b);
  const IndexRange all_inner{0, problem.k};
  const std::int64_t strips = divide_up(part.columns.count, layout.columns);
  int tiles = 0;
  bool is_reversed = false;
  for (std::int64_t row = part.rows.first; row < part.rows.end(); row += layout.rows) {
    for (std::int64_t number = 0; number < strips; ++number, ++tiles) {
      const std::int64_t strip = is_reversed ? strips - 1 - number : number;
      for (std::int64_t inner = 0; inner < problem.k; inner += layout.inner) {
        OffloadStep step{
            .rows = part_of(part.rows, row, layout.rows),
            .columns = part_of(part.columns, part.columns.first + strip * layout.columns, layout.columns),
            .inner = part_of(all_inner, inner, layout.inner)};
        step.strip_a = a.strip_with(step.rows, step.inner, step);
        step.strip_b = b.strip_with(step.columns, step.inner, step);
        step.strip_c = tiles % layout.strips_c;
        step.is_first = inner == 0;
        step.is_last = step.inner.end() == problem.k;
        step.begins_strip = step.is_first;
        steps.push_back(step);
      }
    }
    is_reversed = !is_reversed;
  }
  return steps;
}

// Returns the layout whose strips have at most `edge` rows or columns.
OffloadLayout layout_of(const Problem& problem, const OffloadPart& part, std::int64_t edge,
                        std::int64_t inner) {
  const bool cuts_k = inner < problem.k;
  const bool cuts_rows = part.rows.count > edge;
  const bool cuts_columns = part.columns.count > edge;
  return {.rows = std::min(edge, part.rows.count),
          .columns = std::min(edge, part.columns.count),
          .inner = inner,
          .strips_a = cuts_rows || cuts_k ? 2 : 1,
          .strips_b = cuts_columns || cuts_k ? 2 : 1,
          .strips_c = cuts_rows || cuts_columns ? 2 : 1};
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
    (strip_bytes(problem, layout) <= bytes ? fitting : too_wide) = middle;
  }
  return fitting == 0 ? OffloadLayout{} : layout_of(problem, part, fitting * edge_multiple, inner);
}

}  // namespace

std::vector<OffloadPart> offload_parts(const Problem& problem, int devices) {
  const bool cuts_columns = problem.n >= problem.m;
  // A narrower part would not pay off: one device multiplies it sooner than another device receives A or B.
  constexpr std::int64_t min_width = 1024;
  const IndexRange side{0, cuts_columns ? problem.n : problem.m};
  const std::int64_t width = std::max(min_width, round_up(divide_up(side.count, devices), edge_multiple));
  std::vector<OffloadPart> parts;
  for (std::int64_t first = 0; first < side.count; first += width) {
    const IndexRange range = part_of(side, first, width);
    parts.push_back(cuts_columns ? OffloadPart{{0, problem.m}, range} : OffloadPart{range, {0, problem.n}});
  }
  return parts;
}

std::int64_t strip_pitch(std::int64_t length) {
  constexpr std::int64_t alignment = 16;
  return round_up(length, alignment);
}

std::size_t strip_bytes(const Problem& problem, const OffloadLayout& layout) {
  const std::size_t element = problem.element_bytes();
  // Rows or columns may be contiguous in a strip, so both are padded.
  const auto bytes = [&](std::int64_t rows, std::int64_t columns) {
    return array_bytes(strip_pitch(rows), strip_pitch(columns), element);
  };
  return static_cast<std::size_t>(layout.strips_a) * bytes(layout.rows, layout.inner) +
         static_cast<std::size_t>(layout.strips_b) * bytes(layout.columns, layout.inner) +
         static_cast<std::size_t>(layout.strips_c) * bytes(layout.rows, layout.columns);
}

OffloadLayout fit_layout(const Problem& problem, const OffloadPart& part, std::size_t bytes, bool may_cut_k) {
  // Products of narrower strips wait for copies: an H200 multiplies FP64 strips of 2500 rows in the time of
  // the next copy at 55 GB/s.
  constexpr std::int64_t wide = 2048;
  constexpr std::int64_t min_inner = 128;
  const std::int64_t wide_enough = std::min(wide, std::max(part.rows.count, part.columns.count));
  OffloadLayout best;
  for (std::int64_t inner = problem.k;; inner = round_up(divide_up(inner, 2), min_inner)) {
    const OffloadLayout layout = widest_layout(problem, part, inner, bytes);
    const auto edge = [](const OffloadLayout& of) { return std::max(of.rows, of.columns); };
    if (edge(layout) > edge(best)) best = layout;
    if (edge(best) >= wide_enough || !may_cut_k || inner <= min_inner) return best;
  }
}

std::vector<OffloadStep> offload_steps(const Problem& problem, const OffloadPart& part,
                                       const OffloadLayout& layout) {
  const bool fits = layout.strips_a == 1 && layout.strips_b == 1 && layout.strips_c == 1;
  return fits ? growing_steps(part, {0, problem.k}) : strip_steps(problem, part, layout);
}

}  // namespace kintsugi::core

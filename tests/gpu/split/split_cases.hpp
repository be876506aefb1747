// Operands, rules and comparisons for tests of splits on a device.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gpu/device_memory.hpp"
#include "planner/plan.hpp"
#include "schemes/program.hpp"
#include "split/split.hpp"
#include "tools/measure/generators/random.hpp"

// Included after the accumulators, since GCC warns that their enumerators shadow the names used here.
#include "formats/formats.hpp"

namespace kintsugi::test {

using namespace core;
using measure::Random;

inline std::uint64_t fresh_seed() { return std::random_device{}(); }

enum class Layout { along_k, across, free };

inline constexpr std::array layouts{Layout::along_k, Layout::across, Layout::free};

inline const char* name_of(Layout layout) {
  return layout == Layout::along_k  ? "element stride 1"
         : layout == Layout::across ? "vector stride 1"
                                    : "free";
}

template <class T>
constexpr ElementType element_type() {
  if constexpr (std::is_same_v<T, float>) return ElementType::f32;
  if constexpr (std::is_same_v<T, double>) return ElementType::f64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return ElementType::c32;
  return ElementType::c64;
}

template <class T>
constexpr const char* type_name() {
  constexpr std::array names{"f32", "f64", "c32", "c64"};
  return names[static_cast<std::size_t>(element_type<T>())];
}

// Real numbers of one vector: each kind stresses another step of a split.
enum class Values {
  uniform,
  narrow,
  every_exponent,
  ties,
  largest,
  subnormal,
  zeros,
  special,
  last = special
};

template <class T>
T draw(Values values, Random& random) {
  using Limits = std::numeric_limits<T>;
  const auto with_exponent = [&](std::int64_t exponent) {
    return static_cast<T>(
        std::ldexp(random.flip() ? 1 + random.unit() : -1 - random.unit(), static_cast<int>(exponent)));
  };
  switch (values) {
    case Values::uniform: return static_cast<T>(random.symmetric());
    case Values::narrow: return with_exponent(random.integer(-3, 10));
    case Values::every_exponent:
      return with_exponent(random.integer(Limits::min_exponent - Limits::digits, Limits::max_exponent - 2));
    // A few bits far apart, so that roundings meet ties and sums carry through all bits.
    case Values::ties:
      return static_cast<T>(std::ldexp(static_cast<double>(random.integer(-0xfff, 0xfff)), -11) +
                            std::ldexp(static_cast<double>(random.integer(-1, 1)), -23));
    case Values::largest:
      return random.integer(0, 3) == 0 ? (random.flip() ? Limits::max() : Limits::lowest())
                                       : with_exponent(Limits::max_exponent - 2);
    case Values::subnormal: return static_cast<T>(random.integer(-4096, 4096)) * Limits::denorm_min();
    case Values::zeros: return random.flip() ? T(0) : -T(0);
    case Values::special: break;
  }
  switch (random.integer(0, 9)) {
    case 0: return Limits::quiet_NaN();
    case 1: return Limits::infinity();
    case 2: return -Limits::infinity();
    case 3: return random.flip() ? T(0) : -T(0);
    default: return with_exponent(random.integer(-20, 20));
  }
}

template <class T>
struct Operand {
  using Real = RealOf<T>;

  Operand(std::int64_t rows, std::int64_t columns, Layout layout, std::size_t offset, std::uint64_t seed)
      : layout_(layout), offset_(offset) {
    Random random(seed);
    matrix.type = element_type<T>();
    matrix.rows = rows;
    matrix.columns = columns;
    const std::int64_t padding = random.integer(0, 5);
    matrix.row_stride = layout == Layout::along_k ? columns + padding : layout == Layout::across ? 1 : 3;
    matrix.column_stride = layout == Layout::along_k  ? 1
                           : layout == Layout::across ? rows + padding
                                                      : 3 * rows + padding;
    matrix.right = random.flip();
    matrix.conjugated = is_complex<T> && random.flip();
    const std::int64_t last = (rows - 1) * matrix.row_stride + (columns - 1) * matrix.column_stride;
    // Memory between the elements must not be read as an element.
    values.assign(rows * columns == 0 ? 0 : static_cast<std::size_t>(last + 1),
                  T(std::numeric_limits<Real>::quiet_NaN()));
    draw_values(random);
  }

  void draw_values(Random& random) {
    for (std::int64_t i = 0; i < matrix.rows; ++i) {
      const auto kind = static_cast<Values>(random.integer(0, static_cast<int>(Values::last)));
      for (std::int64_t j = 0; j < matrix.columns; ++j) {
        Real parts[2] = {draw<Real>(kind, random), draw<Real>(kind, random)};
        std::memcpy(&values[static_cast<std::size_t>(i * matrix.row_stride + j * matrix.column_stride)],
                    parts, sizeof(T));
      }
    }
  }

  OperandView<T> view() const {
    const MatrixView<const T> elements{values.data(), matrix.rows, matrix.columns, matrix.row_stride,
                                       matrix.column_stride};
    if constexpr (is_complex<T>) {
      return {elements, matrix.right, matrix.conjugated};
    } else {
      return elements;
    }
  }
  std::string text() const {
    return fmt::format("{} {} x {}, {}, strides {} and {}, offset {}{}{}", type_name<T>(), matrix.rows,
                       matrix.columns, name_of(layout_), matrix.row_stride, matrix.column_stride, offset_,
                       matrix.right ? ", right" : "", matrix.conjugated ? ", conjugated" : "");
  }

  DeviceMatrix matrix;
  std::vector<T> values;

 private:
  Layout layout_;
  std::size_t offset_;
};

// ---------------------------------------------------------- rules

struct NamedRule {
  std::string name;
  SplitRule rule;
};

inline std::string text_of(const SplitRule& rule) {
  return fmt::format("kind {}, {} slices of {}, roundings {} and {}, residuals times 2^{}, {} 2^{}",
                     static_cast<int>(rule.kind), rule.slices, rule.format->name,
                     static_cast<int>(rule.first_rounding), static_cast<int>(rule.residual_rounding),
                     rule.residual_exponent, rule.scale_vectors ? "scaled to" : "not scaled,",
                     rule.top_exponent);
}

inline void add_rule(std::vector<NamedRule>& rules, std::string name, const SplitRule& rule) {
  if (rule.kind == SplitKind::successive || rule.format->id == FormatId::int52) return;
  for (const NamedRule& known : rules) {
    if (known.rule == rule) return;
  }
  rules.push_back({std::move(name), rule});
}

// Split rules of every scheme, fitted to problems of several k. Schemes with exponents per tile have a packer
// of their own, which gpu/calls/tiles_test.cpp tests.
inline std::vector<NamedRule> scheme_rules(OperandType type) {
  std::vector<NamedRule> rules;
  for (const Scheme* scheme : all_schemes()) {
    if (!scheme->operands.contains(type) || scheme->program.schedule.tiles.depth > 0 ||
        scheme->program.schedule.is_direct)
      continue;
    for (const std::int64_t k : {1, 100, 4096, 1 << 20}) {
      Program program = scheme->program;
      if (scheme->fit != nullptr) scheme->fit(program, type, k);
      add_rule(rules, std::string(scheme->name), program.split_a);
      add_rule(rules, std::string(scheme->name), program.split_b);
    }
  }
  return rules;
}

// Rules that no scheme has: every pair of roundings, residuals scaled up by various powers of two, the
// formats of split-n, every number of digits, several numbers of moduli.
inline std::vector<NamedRule> made_rules() {
  std::vector<NamedRule> rules;
  constexpr std::array roundings{Rounding::nearest_even, Rounding::towards_zero, Rounding::bit_cut};
  for (const Format* format : {&fp16, &bf16, &tf32}) {
    for (const Rounding first : roundings) {
      for (const Rounding residual : roundings) {
        for (const bool scaled : {false, true}) {
          for (const int exponent : {0, 8, 12, 40}) {
            SplitRule rule = scaled_split(*format, {.slices = 3,
                                                    .residual_exponent = exponent,
                                                    .top_exponent = format->id == FormatId::fp16 ? 14 : 40});
            rule.scale_vectors = scaled;
            rule.first_rounding = first;
            rule.residual_rounding = residual;
            add_rule(rules, "made", rule);
          }
        }
      }
    }
  }
  for (const Format* format : {&fp8_e4m3, &fp8_e5m2, &fp32})
    add_rule(rules, "made", nearest_split(*format, 3, 4));
  for (int slices = 1; slices <= 8; ++slices) add_rule(rules, "digits", grid_split(int8, slices));
  for (int slices = 1; slices <= 3; ++slices) add_rule(rules, "quantised", quantised_split(slices, 7));
  for (const int count : {2, 3, 8, 15, 16, 20, 49}) {
    SplitRule rule = scaled_split(
        int8, {.slices = count, .top_exponent = std::min((residue_bits(count) - 10) / 2, 165) - 1});
    if (rule.top_exponent < 0) continue;
    rule.kind = SplitKind::residues;
    add_rule(rules, "residues", rule);
  }
  SplitRule magnitude = scaled_split(int8, {.slices = 1, .top_exponent = 6});
  magnitude.kind = SplitKind::magnitude;
  add_rule(rules, "magnitude", magnitude);
  return rules;
}

// ---------------------------------------------------------- comparison

struct HostSplit {
  std::vector<VectorRange> ranges;
  std::vector<std::byte> slices;
};

inline Slices slices_of(const SplitRule& rule, std::int64_t vectors, std::int64_t k) {
  return make_slices(*rule.format, SliceStorage::packed, rule.slices, vectors, k);
}

// Number of vectors of the slices: the operand's, or its rows where slices have complex elements.
template <class View>
std::int64_t slice_vectors(const View& view, const SplitRule& rule) {
  if constexpr (requires { view.right; }) {
    if (!rule.complex_basis.empty()) return view.matrix.rows;
  }
  return view.rows;
}

// Finds numbers of elements and depths, with subnormal elements by set_depth() (tests/arith/range_test.cpp).
template <class View>
void find_depths(const View& view, std::vector<VectorRange>& ranges) {
  using T = std::decay_t<decltype(view(0, 0))>;
  constexpr int lowest = std::numeric_limits<T>::min_exponent - 2;
  for (std::size_t v = 0; v < ranges.size(); ++v) {
    VectorRange& range = ranges[v];
    std::int64_t biased = 0;  // sum of biased exponents
    for (std::int64_t p = 0; p < view.columns; ++p) {
      const auto x = view(static_cast<std::int64_t>(v), p);
      if (x == 0 || !std::isfinite(x)) continue;
      ++range.elements;
      biased += std::max(std::ilogb(x) - lowest, 0);
    }
    range.depth = static_cast<std::int32_t>(std::int64_t{range.elements} * (range.largest - lowest) - biased);
    if (range.smallest <= lowest) set_depth<T>(range, static_cast<std::uint32_t>(range.elements), biased);
  }
}

template <class View>
HostSplit split_on_host(const View& view, const SplitRule& rule) {
  HostSplit result;
  result.ranges.resize(static_cast<std::size_t>(view.rows));
  find_ranges(view, rule, result.ranges, 4);
  find_depths(view, result.ranges);
  Slices slices = slices_of(rule, slice_vectors(view, rule), slice_length(view, rule));
  result.slices.assign(slices.bytes(), std::byte{DeviceArray<std::byte>::poison});
  slices.data = result.slices.data();
  split_operand(view, rule, result.ranges, slices, 4);
  return result;
}

// Compares depths only where the kernel found one, and scales only on request.
inline bool same_range(const VectorRange& device, const VectorRange& host, bool compare_scales) {
  return device.largest == host.largest && device.smallest == host.smallest && device.raised == host.raised &&
         device.flags == host.flags && (!compare_scales || device.scale == host.scale) &&
         (device.depth == VectorRange::unknown_depth ||
          (device.elements == host.elements && device.depth == host.depth));
}

inline void expect_same_ranges(const std::vector<VectorRange>& device, const std::vector<VectorRange>& host,
                               const std::string& text, bool compare_scales = true) {
  for (std::size_t v = 0; v < host.size(); ++v) {
    if (same_range(device[v], host[v], compare_scales)) continue;
    const auto show = [](const VectorRange& range) {
      return fmt::format("scale {}, exponents {} ... {} raised {}, flags {}, {} elements to depth {}",
                         range.scale, range.smallest, range.largest, range.raised, range.flags,
                         range.elements, range.depth);
    };
    ADD_FAILURE() << text << ": range of vector " << v << ": " << show(device[v])
                  << "; host: " << show(host[v]);
    return;
  }
}

template <class View>
void expect_same_slices(const std::vector<std::byte>& device, const HostSplit& host, const View& view,
                        const SplitRule& rule, const std::string& text) {
  const auto first = std::mismatch(device.begin(), device.end(), host.slices.begin()).first;
  if (first == device.end()) return;
  const Slices slices = slices_of(rule, slice_vectors(view, rule), slice_length(view, rule));
  const auto bytes = static_cast<std::int64_t>(slices.element_bytes());
  const std::int64_t index = (first - device.begin()) / bytes;
  const std::int64_t s = index / slices.slice_stride();
  const std::int64_t v = index % slices.slice_stride() / slices.vector_stride();
  const std::int64_t p = index % slices.vector_stride();
  const auto pattern = [&](const std::vector<std::byte>& slices_bytes) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, slices_bytes.data() + index * bytes, static_cast<std::size_t>(bytes));
    return bits;
  };
  const bool padding = v >= slices.vectors || p >= slices.k;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < device.size(); ++i) count += device[i] != host.slices[i] ? 1 : 0;
  ADD_FAILURE() << text << ": slice " << s << ", vector " << v << ", element " << p << " is "
                << fmt::format("{:#x}, host {:#x}, of {}, scale {}; {} bytes of {} differ", pattern(device),
                               pattern(host.slices),
                               padding ? "padding"
                               : !rule.complex_basis.empty()
                                   ? "an element"
                                   : fmt::format("{:a}", static_cast<double>(view(v, p))),
                               v < view.rows ? host.ranges[static_cast<std::size_t>(v)].scale : 0, count,
                               device.size());
}

// An operand on the device, and the memory that its split writes.
template <class T>
struct DeviceOperand {
  DeviceOperand(const Operand<T>& operand, const SplitRule& split_rule, std::size_t offset)
      : values(operand.values, offset),
        vectors(split_rule.complex_basis.empty() ? operand.matrix.vectors() : operand.matrix.rows),
        length(split_rule.complex_basis.empty() ? operand.matrix.length() : operand.matrix.columns),
        ranges(static_cast<std::size_t>(operand.matrix.vectors())),
        slices(slices_of(split_rule, vectors, length).bytes()), rule(split_rule), matrix(operand.matrix) {
    matrix.data = values.data();
  }

  DeviceSplit split() const {
    Slices target = slices_of(rule, vectors, length);
    target.data = slices.data();
    return {.side = {.matrix = matrix, .ranges = ranges.data()}, .rule = &rule, .slices = target};
  }

  DeviceArray<T> values;
  std::int64_t vectors;
  std::int64_t length;
  DeviceArray<VectorRange> ranges;
  DeviceArray<std::byte> slices;
  SplitRule rule;
  DeviceMatrix matrix;
};

template <class T>
void expect_host(const DeviceOperand<T>& device, const Operand<T>& operand, const std::string& text) {
  const HostSplit host = split_on_host(operand.view(), device.rule);
  expect_same_ranges(device.ranges.host(), host.ranges, text);
  expect_same_slices(device.slices.host(), host, operand.view(), device.rule, text);
}

template <class T>
void check_split(const NamedRule& rule, std::int64_t rows, std::int64_t columns, Layout layout,
                 std::size_t offset, std::uint64_t seed) {
  const Operand<T> operand(rows, columns, layout, offset, seed);
  const DeviceOperand<T> device(operand, rule.rule, offset);
  const DeviceSplit split = device.split();
  core::cuda::split({}, {&split, 1}, {});
  expect_host(device, operand,
              fmt::format("{} ({}), {}, seed {}", rule.name, text_of(rule.rule), operand.text(), seed));
}

using EveryType = testing::Types<float, double, std::complex<float>, std::complex<double>>;

template <class T>
std::vector<NamedRule> rules_of() {
  constexpr bool wide = std::is_same_v<RealOf<T>, double>;
  std::vector<NamedRule> rules = scheme_rules(wide ? OperandType::f64 : OperandType::f32);
  for (const int count : {2, 7, 13, 16, 20, 25}) {
    const Scheme& scheme = *find_scheme(fmt::format("ozaki2:moduli={}", count));
    Program program = fitted_program(scheme, wide ? OperandType::f64 : OperandType::f32, 200);
    if (!is_complex<T> || program.split_a.top_exponent + 1 > 93) continue;
    scheme.multiply_elements(program);
    add_rule(rules, "elements", program.split_a);
  }
  return rules;
}

}  // namespace kintsugi::test

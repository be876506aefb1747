// Makes a tile of C and all that its recombination reads, on the host and on the device.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <complex>
#include <memory>
#include <random>

#include "arith/complex.hpp"
#include "gpu/device_memory.hpp"
#include "recombine/recombine.hpp"
#include "recombine/special_values.hpp"

namespace kintsugi::test {

inline std::int64_t draw_size(std::mt19937_64& random, std::int64_t min, std::int64_t max) {
  return min + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(max - min + 1));
}

template <class R>
R draw_real(std::mt19937_64& random, int spread) {
  const double fraction = 1 + std::ldexp(static_cast<double>(random() >> 12), -52);
  const int exponent = static_cast<int>(draw_size(random, -spread, spread));
  return static_cast<R>(std::ldexp(random() % 2 == 0 ? fraction : -fraction, exponent));
}

template <class T>
T draw_element(std::mt19937_64& random, int spread) {
  if constexpr (core::is_complex<T>) {
    return {draw_real<core::RealOf<T>>(random, spread), draw_real<core::RealOf<T>>(random, spread)};
  } else {
    return draw_real<T>(random, spread);
  }
}

// Often 0 or 1; else -1, NaN, infinity or any number.
template <class T>
T draw_scalar(std::mt19937_64& random) {
  using R = core::RealOf<T>;
  const auto part = [&]() -> R {
    const R known[] = {0, 1, -1, std::numeric_limits<R>::quiet_NaN(), std::numeric_limits<R>::infinity()};
    const auto choice = random() % 16;
    return choice < 2 ? R(0) : choice < 5 ? R(1) : choice < 8 ? known[choice - 3] : draw_real<R>(random, 4);
  };
  if constexpr (core::is_complex<T>) {
    const R re = part();
    return {re, random() % 2 == 0 ? R(0) : part()};
  } else {
    return part();
  }
}

template <class T>
constexpr core::ElementType element_type() {
  if constexpr (std::is_same_v<T, float>) return core::ElementType::f32;
  if constexpr (std::is_same_v<T, double>) return core::ElementType::f64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return core::ElementType::c32;
  return core::ElementType::c64;
}

template <class T>
std::string text_of(const T& x) {
  if constexpr (core::is_complex<T>) {
    return fmt::format("({:a}, {:a})", x.real(), x.imag());
  } else {
    return fmt::format("{:a}", x);
  }
}

// True for equal bits, or if both are NaN: host and device make different NaNs.
template <class T>
bool same_element(const T& x, const T& y) {
  if constexpr (core::is_complex<T>) {
    return same_element(x.real(), y.real()) && same_element(x.imag(), y.imag());
  } else {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    return std::bit_cast<Bits>(x) == std::bit_cast<Bits>(y) || (x != x && y != y);
  }
}

// A matrix on host and device: one of two items of a batch that has a stride or pointers.
template <class T>
class TestMatrix {
 public:
  TestMatrix(std::mt19937_64& random, std::int64_t rows, std::int64_t columns, int spread)
      : rows_(rows), columns_(columns), by_rows_(random() % 2 == 0), aligned_(random() % 2 == 0),
        ld_(aligned_ ? core::round_up(by_rows_ ? columns : rows, 4)
                     : (by_rows_ ? columns : rows) + draw_size(random, 0, 3)),
        size_(ld_ * std::max<std::int64_t>(by_rows_ ? rows : columns, 1)), pointers_(random() % 3 == 0),
        item_(static_cast<std::int64_t>(random() % 2)), values_(static_cast<std::size_t>(2 * size_)) {
    for (T& value : values_) value = draw_element<T>(random, spread);
  }

  core::MatrixView<T> view(std::vector<T>& values) const {
    return {values.data() + item_ * size_, rows_, columns_, by_rows_ ? ld_ : 1, by_rows_ ? 1 : ld_};
  }
  core::MatrixView<T> view() { return view(values_); }
  std::vector<T>& values() { return values_; }
  std::int64_t item() const { return item_; }

  core::DeviceMatrix on_device() {
    array_ = std::make_unique<DeviceArray<T>>(values_, aligned_ ? 0 : 1);
    table_ = std::make_unique<DeviceArray<T*>>(std::vector<T*>{array_->data(), array_->data() + size_});
    return {.data = pointers_ ? static_cast<const void*>(table_->data()) : array_->data(),
            .pointers = pointers_,
            .type = element_type<T>(),
            .batch_stride = size_,
            .rows = rows_,
            .columns = columns_,
            .row_stride = by_rows_ ? ld_ : 1,
            .column_stride = by_rows_ ? 1 : ld_};
  }
  const DeviceArray<T>& array() const { return *array_; }

  // Compares all memory, padding and the batch's other item included. `tolerance` says for each element how
  // far from `expected` it may be; without it, or where it is not finite, the bits must be the same.
  void expect(const std::vector<T>& expected, const std::string& what,
              const std::vector<double>& tolerance = {}) const {
    const std::vector<T> result = array_->host();
    int shown = 0;
    for (std::size_t e = 0; e < result.size() && shown < 5; ++e) {
      if (same_element(result[e], expected[e])) continue;
      if (!tolerance.empty() && std::isfinite(tolerance[e]) &&
          std::abs(result[e] - expected[e]) <= tolerance[e])
        continue;
      ++shown;
      const std::int64_t element = static_cast<std::int64_t>(e) - item_ * size_;
      ADD_FAILURE() << what << ": element " << element << " of an item with ld " << ld_
                    << (by_rows_ ? " by rows" : " by columns") << " (line " << element / ld_ << ", position "
                    << element % ld_ << ") is " << text_of(result[e]) << " instead of "
                    << text_of(expected[e]) << ", before " << text_of(values_[e]);
    }
  }

 private:
  std::int64_t rows_, columns_;
  bool by_rows_;
  bool aligned_;  // lines begin where wide accesses are possible; false: one element further
  std::int64_t ld_, size_;
  bool pointers_;
  std::int64_t item_;
  std::vector<T> values_;
  std::unique_ptr<DeviceArray<T>> array_;
  std::unique_ptr<DeviceArray<T*>> table_;
};

template <class T>
class TestScalars {
 public:
  explicit TestScalars(std::mt19937_64& random)
      : alpha(draw_scalar<T>(random)), beta(draw_scalar<T>(random)), on_device_(random() % 2 == 0),
        array_(std::vector<T>{alpha, beta}) {}

  // Scalars in host memory.
  void set(T new_alpha, T new_beta) {
    alpha = new_alpha;
    beta = new_beta;
    on_device_ = false;
  }

  core::DeviceScalars scalars() const {
    if (on_device_)
      return {.alpha = 7, .beta = 7, .device_alpha = array_.data(), .device_beta = array_.data() + 1};
    return {std::complex<double>(alpha), std::complex<double>(beta)};
  }
  std::string text() const {
    return fmt::format("alpha {}, beta {} on the {}", text_of(alpha), text_of(beta),
                       on_device_ ? "device" : "host");
  }

  T alpha;
  T beta;

 private:
  bool on_device_;
  DeviceArray<T> array_;
};

// C becomes beta C, by the arithmetic of the host's plan.
template <class T>
void scale_on_host(const core::MatrixView<T>& c, T beta) {
  if (beta == T(1)) return;
  for (std::int64_t j = 0; j < c.columns; ++j) {
    for (std::int64_t i = 0; i < c.rows; ++i)
      c(i, j) = beta == T(0) ? T(0) : core::scaled_element(beta, c(i, j), core::RoundingMode::nearest);
  }
}

inline DeviceArray<core::DeviceSelection> selection_of(std::int32_t candidate) {
  core::DeviceSelection selection;
  selection.candidate = candidate;
  return DeviceArray<core::DeviceSelection>(std::vector{selection});
}

// A condition for device steps that holds or does not hold, and the selection that it refers to.
class TestCondition {
 public:
  explicit TestCondition(std::mt19937_64& random)
      : kind_(static_cast<int>(random() % 4)), array_(selection_of(2)) {}

  bool holds() const { return kind_ != 1; }
  core::DeviceCondition condition() const {
    if (kind_ == 0) return {};
    return {array_.data(), kind_ == 1 ? 1 : 2};
  }

 private:
  int kind_;
  DeviceArray<core::DeviceSelection> array_;
};

// An operand, with NaN and infinities in some vectors if `special`, and ranges with random scales.
template <class T>
class TestSide {
 public:
  TestSide(std::mt19937_64& random, std::int64_t vectors, std::int64_t k, bool right, bool special,
           int spread = 8)
      : matrix_(random, vectors, k, spread), right_(right),
        conjugated_(core::is_complex<T> && random() % 2 == 0) {
    if (special && k > 0) {
      for (int s = 0; s < 3; ++s)
        put_special(random, draw_size(random, 0, vectors - 1), draw_size(random, 0, k - 1));
    }
    const core::OperandView<T> operand = view();
    ranges_.resize(static_cast<std::size_t>(operand.rows));
    for (std::int64_t v = 0; v < operand.rows; ++v) {
      auto& range = ranges_[static_cast<std::size_t>(v)];
      for (std::int64_t p = 0; p < operand.columns; ++p) core::extend(range, operand(v, p));
      range.scale = static_cast<int>(draw_size(random, -60, 60));
    }
  }

  core::OperandView<T> view() {
    const auto m = matrix_.view();
    const core::MatrixView<const T> vectors{m.data, m.rows, m.columns, m.row_stride, m.column_stride};
    if constexpr (core::is_complex<T>) {
      return {vectors, right_, conjugated_};
    } else {
      return vectors;
    }
  }
  std::span<const core::VectorRange> ranges() const { return ranges_; }
  core::DeviceSide on_device() {
    array_ = std::make_unique<DeviceArray<core::VectorRange>>(ranges_);
    core::DeviceMatrix matrix = matrix_.on_device();
    matrix.right = right_;
    matrix.conjugated = conjugated_;
    return {matrix, matrix_.item(), array_->data()};
  }

 private:
  void put_special(std::mt19937_64& random, std::int64_t v, std::int64_t p) {
    using R = core::RealOf<T>;
    const R values[] = {std::numeric_limits<R>::infinity(), -std::numeric_limits<R>::infinity(),
                        std::numeric_limits<R>::quiet_NaN()};
    matrix_.view()(v, p) = T(values[random() % 3]);
  }

  TestMatrix<T> matrix_;
  bool right_;
  bool conjugated_;
  std::vector<core::VectorRange> ranges_;
  std::unique_ptr<DeviceArray<core::VectorRange>> array_;
};

// The sums of a tile: dense for the host, with padding behind the rows of a column for the device.
// draw(group, element) gives each.
template <class Part>
class TestSums {
 public:
  template <class Draw>
  TestSums(core::SumType type, std::int64_t rows, std::int64_t columns, int groups, const Draw& draw)
      : host_(core::make_accumulators(type, rows, columns, groups)),
        device_(core::make_accumulators(type, core::round_up(rows, 16), columns, groups)),
        values_(static_cast<std::size_t>(rows * columns * groups)),
        array_(padded(rows, columns, groups, draw)) {
    host_.data = reinterpret_cast<std::byte*>(values_.data());
    device_.data = reinterpret_cast<std::byte*>(array_.data());
  }
  TestSums(const TestSums&) = delete;
  TestSums& operator=(const TestSums&) = delete;

  const core::Accumulators& host() const { return host_; }
  const core::Accumulators& device() const { return device_; }

 private:
  template <class Draw>
  std::vector<Part> padded(std::int64_t rows, std::int64_t columns, int groups, const Draw& draw) {
    std::vector<Part> all(static_cast<std::size_t>(device_.rows * columns * groups), Part(77));
    for (std::int64_t column = 0; column < columns * groups; ++column) {
      for (std::int64_t i = 0; i < rows; ++i) {
        const Part part = draw(static_cast<int>(column / columns), i + column % columns * rows);
        values_[static_cast<std::size_t>(i + column * rows)] = part;
        all[static_cast<std::size_t>(i + column * device_.rows)] = part;
      }
    }
    return all;
  }

  core::Accumulators host_;
  core::Accumulators device_;
  std::vector<Part> values_;
  DeviceArray<Part> array_;
};

// A tile at a random position of C; it may be all of C.
template <class T>
class TestTile {
 public:
  TestTile(std::mt19937_64& random, std::int64_t max_size, bool special)
      : TestTile(random, draw_size(random, 1, max_size), draw_size(random, 1, max_size),
                 draw_size(random, 1, 40), special) {}
  TestTile(std::mt19937_64& random, std::int64_t rows_of_tile, std::int64_t columns_of_tile, std::int64_t k,
           bool special, int spread = 8)
      : rows(rows_of_tile), columns(columns_of_tile),
        first_row(random() % 2 == 0 ? 0 : draw_size(random, 1, 40)),
        first_column(random() % 2 == 0 ? 0 : draw_size(random, 1, 40)),
        a(random, first_row + rows, k, false, special, spread),
        b(random, first_column + columns, k, true, special, spread),
        c(random, first_row + rows + draw_size(random, 0, 5),
          first_column + columns + draw_size(random, 0, 5), 20),
        scalars(random), condition(random) {}

  core::DeviceTile on_device() {
    const core::DeviceMatrix matrix = c.on_device();
    return {a.on_device(), b.on_device(), matrix,  c.item(),          first_row,
            first_column,  rows,          columns, scalars.scalars(), condition.condition()};
  }

  // C after `recombine` with the ranges of the tile's rows and columns, alpha and beta.
  template <class Recombine>
  std::vector<T> expected(const Recombine& recombine) {
    std::vector<T> values = c.values();
    if (!condition.holds()) return values;
    const auto tile = c.view(values).block(first_row, first_column, rows, columns);
    if (scalars.alpha == T(0)) {
      scale_on_host(tile, scalars.beta);
      return values;
    }
    constexpr std::int64_t parts = core::parts_of<T>;
    const auto row_ranges = a.ranges().subspan(static_cast<std::size_t>(first_row));
    const auto column_ranges = b.ranges().subspan(static_cast<std::size_t>(parts * first_column));
    recombine(row_ranges, column_ranges, scalars.alpha, scalars.beta, tile);
    core::write_special_values<T>(a.view().vectors(first_row, rows),
                                  b.view().vectors(parts * first_column, parts * columns), row_ranges,
                                  column_ranges, scalars.alpha, scalars.beta, tile, 1);
    return values;
  }

  std::string text() const {
    return fmt::format("tile {} x {} at ({}, {}), {}{}", rows, columns, first_row, first_column,
                       scalars.text(), condition.holds() ? "" : ", condition does not hold");
  }

  std::int64_t rows, columns, first_row, first_column;
  TestSide<T> a, b;
  TestMatrix<T> c;
  TestScalars<T> scalars;
  TestCondition condition;
};

// Every run has another seed, which messages of failures name.
inline std::uint64_t fresh_seed() { return std::random_device{}(); }

template <class T>
class Recombine : public testing::Test {
 protected:
  const std::uint64_t seed = fresh_seed();
  std::mt19937_64 random{seed};
  const testing::ScopedTrace trace{__FILE__, __LINE__, fmt::format("seed {}", seed)};
};
using Types = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Recombine, Types);

}  // namespace kintsugi::test

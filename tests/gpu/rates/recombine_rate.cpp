// Not a test: measures recombinations and products of unsplit operands on the device.
//   build/tests/recombine_rate [--json FILE]
// Each step is timed by events around it; times are medians.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "arith/epilogue.hpp"
#include "base/embedding.hpp"
#include "engines/cuda/recombine/recombine.hpp"
#include "tests/gpu/rates/rate.hpp"

namespace kintsugi::core {
namespace {

template <class T>
class Array {
 public:
  explicit Array(const std::vector<T>& values) : memory_(values.size() * sizeof(T)) {
    core::cuda::copy_to_device({}, data(), values.data(), values.size() * sizeof(T));
  }
  explicit Array(std::int64_t size) : Array(std::vector<T>(static_cast<std::size_t>(size))) {}

  T* data() const { return reinterpret_cast<T*>(memory_.address()); }
  cuda::Address address() const { return memory_.address(); }
  T host(std::int64_t element) const {
    T value;
    core::cuda::copy_to_host({}, &value, data() + element, sizeof value);
    core::cuda::synchronize(Queue{});
    return value;
  }

 private:
  Memory memory_;
};

// Median time of 21 runs, each timed alone.
double seconds_of(const std::function<void()>& step) {
  return seconds(
      1, [&](int) { step(); }, 21);
}

class Table {
 public:
  Table() {
    constexpr std::int64_t bytes = std::int64_t{1} << 30;
    const Array<std::uint8_t> source(bytes);
    const Array<std::uint8_t> target(bytes);
    const double seconds = seconds_of([&] {
      check(driver().copy_on_device_async(target.address(), source.address(), bytes, nullptr),
            "cuMemcpyDtoDAsync");
    });
    copy_ = 2.0 * bytes / seconds;
    fmt::print("{:44} {:>9.1f} us {:>8.1f} GB/s\n", "copy of 1 GiB", seconds * 1e6, copy_ * 1e-9);
    json_["copy_bytes_per_second"] = copy_;
  }

  // Measures a step that is bound by memory.
  void add_transfer(const std::string& name, double bytes, const std::function<void()>& step) {
    const double seconds = seconds_of(step);
    fmt::print("{:44} {:>9.1f} us {:>8.1f} GB/s {:>6.1f} % of the copy\n", name, seconds * 1e6,
               bytes / seconds * 1e-9, bytes / seconds / copy_ * 100);
    json_["rows"].push_back(
        {{"step", name}, {"seconds", seconds}, {"bytes", bytes}, {"of_copy", bytes / seconds / copy_}});
  }
  // Measures a step that is bound by arithmetic.
  void add_arithmetic(const std::string& name, double operations, const std::function<void()>& step) {
    const double seconds = seconds_of(step);
    fmt::print("{:44} {:>9.1f} us {:>8.2f} TFLOP/s\n", name, seconds * 1e6, operations / seconds * 1e-12);
    json_["rows"].push_back({{"step", name}, {"seconds", seconds}, {"operations", operations}});
  }

  const nlohmann::json& json() const { return json_; }

 private:
  double copy_ = 0;
  nlohmann::json json_;
};

void expect(double found, double expected, const std::string& what) {
  if (found == expected) return;
  fmt::print(stderr, "recombine_rate: {} is {:a} instead of {:a}\n", what, found, expected);
  std::exit(1);
}

// Integers, so that all sums are exact.
template <class T>
std::vector<T> small_integers(std::int64_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = static_cast<T>(static_cast<int>(random() % 15) - 7);
  return values;
}

// A square product whose tile is all of C.
template <class T>
struct Square {
  explicit Square(std::int64_t size, bool by_rows = false)
      : n(size),
        ranges(std::vector<VectorRange>(static_cast<std::size_t>(2 * size),
                                        VectorRange{.scale = 1, .largest = 63, .smallest = 0, .flags = 0})),
        c(size * size) {
    constexpr ElementType type = is_complex<T>    ? ElementType::c64
                                 : sizeof(T) == 4 ? ElementType::f32
                                                  : ElementType::f64;
    const DeviceMatrix result{.data = c.data(),
                              .type = type,
                              .rows = n,
                              .columns = n,
                              .row_stride = by_rows ? n : 1,
                              .column_stride = by_rows ? 1 : n};
    const DeviceMatrix operand{
        .data = nullptr, .type = type, .rows = n, .columns = n, .row_stride = 1, .column_stride = n};
    tile.a = tile.b = {operand, 0, ranges.data()};
    tile.c = result;
    tile.rows = tile.columns = n;
  }

  std::int64_t n;
  Array<VectorRange> ranges;
  Array<T> c;
  DeviceTile tile;
};

void time_weighted(Table& table, std::int64_t n, int groups, bool by_rows) {
  const Square<float> square(n, by_rows);
  const std::vector<float> values = small_integers<float>(n * n * groups);
  const Array<float> sums(values);
  Accumulators accumulators = make_accumulators(SumType::f32, n, n, groups);
  accumulators.data = reinterpret_cast<std::byte*>(sums.data());
  const std::vector<int> exponents{0, -11, -22};
  const std::string name =
      fmt::format("weighted f32, {} of {} x {}{}", groups, n, n, by_rows ? ", by rows" : "");
  table.add_transfer(name, 4.0 * static_cast<double>(n * n) * (groups + 1),
                     [&] { core::cuda::recombine_weighted({}, accumulators, exponents, square.tile); });
  for (const std::int64_t i : {std::int64_t{0}, n / 3, n - 1}) {
    const std::int64_t j = n - 2;
    double sum = 0;
    for (int g = 0; g < groups; ++g)
      sum += std::ldexp(values[static_cast<std::size_t>(g * n * n + i + j * n)],
                        exponents[static_cast<std::size_t>(g)]);
    expect(square.c.host(by_rows ? i * n + j : i + j * n), static_cast<float>(std::ldexp(sum, -2)), name);
  }
}

// Residues of integers modulo the moduli of all slices. `modulus_of`: modulus of each slice; 0: a slice of
// zeros.
std::vector<std::uint8_t> residues_of(const std::vector<int>& integers, const std::vector<int>& modulus_of) {
  std::vector<std::uint8_t> residues;
  for (const int modulus : modulus_of) {
    std::transform(integers.begin(), integers.end(), std::back_inserter(residues), [&](int x) {
      return static_cast<std::uint8_t>(modulus == 0 ? 0 : x < 0 ? x + modulus : x);
    });
  }
  return residues;
}

// Recombination into C = AB, by columns or rows, into C - AB, or into 0.7 AB + 0.3 C.
enum class Target : std::uint8_t { columns, rows, sum, scaled_sum };

template <class T>
void time_recombination(Table& table, std::int64_t n, const ResidueSystem& system,
                        const std::vector<int>& modulus_of, Target target) {
  Square<T> square(n, target == Target::rows);
  const bool adds = target == Target::sum || target == Target::scaled_sum;
  if (target == Target::sum) square.tile.scalars = {.alpha = -1, .beta = 1};
  if (target == Target::scaled_sum) square.tile.scalars = {.alpha = 0.7, .beta = 0.3};
  const auto slices = static_cast<int>(modulus_of.size());
  const std::vector<int> integers = small_integers<int>(n * n);
  const Array<std::uint8_t> sums(residues_of(integers, modulus_of));
  Accumulators accumulators = make_accumulators(SumType::residue, n, n, slices);
  accumulators.data = reinterpret_cast<std::byte*>(sums.data());
  const std::string name =
      fmt::format("residues {}, {} slices, {} x {}{}", is_complex<T> ? "c64" : "f64", slices, n, n,
                  target == Target::sum          ? ", added to C"
                  : target == Target::scaled_sum ? ", 0.7 AB + 0.3 C"
                  : target == Target::rows       ? ", by rows"
                                                 : "");
  const double bytes = slices + static_cast<double>(sizeof(T)) * (adds ? 2 : 1);
  table.add_transfer(name, static_cast<double>(n * n) * bytes,
                     [&] { core::cuda::recombine_residues({}, accumulators, system, square.tile); });
  if (adds) return;  // C has the sum of all runs
  for (const std::int64_t e : {std::int64_t{0}, n * n / 3, n * n - 1}) {
    const T found = square.c.host(target == Target::rows ? e % n * n + e / n : e);
    expect(std::real(found), integers[static_cast<std::size_t>(e)] * 0.25, name);
    expect(std::imag(found), 0, name);
  }
}

void time_residues(Table& table, std::int64_t n, int count) {
  const std::vector<int> modulus_of(moduli.begin(), moduli.begin() + count);
  for (const Target target : {Target::columns, Target::rows, Target::sum, Target::scaled_sum})
    time_recombination<double>(table, n, {.real_count = count}, modulus_of, target);
}

// Elements of complex matrices whose imaginary parts are zero.
void time_complex_residues(Table& table, std::int64_t n, int count) {
  const ComplexBasis basis = cheapest_basis(residue_bits(count));
  std::vector<int> modulus_of;
  for (int t = 0; t < basis.count(); ++t) {
    const int modulus = basis.modulus(t);
    if (basis.has_root(t)) {
      modulus_of.insert(modulus_of.end(), {modulus, modulus});
    } else {
      modulus_of.insert(modulus_of.end(), {modulus, 0, modulus});
    }
  }
  for (const Target target : {Target::columns, Target::rows, Target::sum, Target::scaled_sum})
    time_recombination<std::complex<double>>(table, n, {.basis = basis}, modulus_of, target);
}

void time_additions_of_k_blocks(Table& table, std::int64_t n, int modulus) {
  const std::vector<std::int32_t> values = small_integers<std::int32_t>(n * n);
  const Array<std::int32_t> block_sums(values);
  const Array<std::int64_t> total_sums(n * n);
  const std::string name = modulus == 0 ? fmt::format("add block of integers, {} x {}", n, n)
                                        : fmt::format("add block of residues, {} x {}", n, n);
  for (const bool first : {true, false}) {
    const double bytes = 4 + (modulus == 0 ? 8 : 1) * (first ? 1 : 2);
    table.add_transfer(name + (first ? ", first" : ", later"), bytes * static_cast<double>(n * n), [&] {
      cuda::add_outside({}, block_sums.data(), n * n, modulus, first, total_sums.data());
    });
    if (!first) continue;
    const std::int32_t value = values[0];
    const std::int64_t word = total_sums.host(0);
    expect(static_cast<double>(modulus == 0 ? word : word & 0xff), value < 0 ? value + modulus : value, name);
  }
}

template <class T>
void time_unsplit_product(Table& table, std::int64_t n) {
  Square<T> square(n);
  const std::vector<T> values = small_integers<T>(n * n);
  const Array<T> operand(values);
  square.tile.a.matrix.data = square.tile.b.matrix.data = operand.data();
  const std::string name = fmt::format("unsplit product f{}, n = {}", 8 * sizeof(T), n);
  table.add_arithmetic(name, 2.0 * std::pow(static_cast<double>(n), 3),
                       [&] { core::cuda::multiply_unsliced({}, square.tile); });
  double sum = 0;  // of row 3 and column n - 1
  for (std::int64_t p = 0; p < n; ++p)
    sum += values[static_cast<std::size_t>(3 + p * n)] * values[static_cast<std::size_t>(n - 1 + p * n)];
  expect(square.c.host(3 + (n - 1) * n), sum, name);
}

// Sums are random integers of 150 bits, so that no element remains open. `inexact` is the number of inexact
// elements of a vector; with 0 the check has nothing to test.
void time_checked(Table& table, std::int64_t n, int count, double inexact, double coefficient) {
  const Square<double> square(n);
  std::mt19937_64 random(7);
  std::vector<std::uint8_t> residues(static_cast<std::size_t>(n * n * count));
  for (std::uint8_t& residue : residues) residue = static_cast<std::uint8_t>(random() % 180);
  const Array<std::uint8_t> sums(residues);
  Accumulators accumulators = make_accumulators(SumType::residue, n, n, count);
  accumulators.data = reinterpret_cast<std::byte*>(sums.data());
  const Array<RoundingErrors> bounds(
      std::vector<RoundingErrors>(static_cast<std::size_t>(n), RoundingErrors{inexact / 2, 0x1p70, 0x1p65}));
  const Array<DeviceCheckState> state(1);
  const std::int64_t words = DeviceOpenElements::masks_for_rows(n);
  const Array<std::uint32_t> bits(words * n);
  const Array<std::uint32_t> list(words * n);
  const DeviceOpenElements open{state.data(), bits.data(), words, list.data()};
  const DeviceCheck check{.rows = bounds.data(), .columns = bounds.data(), .demand = {coefficient, 0x1p-53}};
  const std::string name = fmt::format("checked f64, {} moduli, {} x {}, {}", count, n, n,
                                       inexact == 0       ? "exact"
                                       : coefficient == 0 ? "rounded twice"
                                                          : "bounded");
  table.add_transfer(name, static_cast<double>(n * n) * (count + 8), [&] {
    core::cuda::recombine_checked({}, accumulators, {.real_count = count}, check, square.tile, open);
  });
  constexpr double runs = 100;  // upper limit of the runs above, whose open elements add up
  expect(static_cast<double>(state.host(0).open) < 1e-3 * runs * static_cast<double>(n * n) ? 1 : 0, 1, name);
  const Array<DeviceCheckState> nothing(1);
  const DeviceOpenElements none{nothing.data(), bits.data(), words, list.data()};
  table.add_transfer("exact sums where no element is open", 4,
                     [&] { core::cuda::recompute({}, square.tile, none, nullptr); });
}

template <class T>
void time_exact(Table& table, std::int64_t n, bool along_k) {
  Square<T> square(n);
  const std::vector<T> values = small_integers<T>(n * n);
  const Array<T> operand(values);
  for (DeviceSide* side : {&square.tile.a, &square.tile.b}) {
    side->matrix.data = operand.data();
    if (along_k) std::swap(side->matrix.row_stride, side->matrix.column_stride);
  }
  const std::string name =
      fmt::format("exact sums f{}, n = {}{}", 8 * sizeof(T), n, along_k ? ", along k" : ", across");
  table.add_arithmetic(name, 2.0 * std::pow(static_cast<double>(n), 3),
                       [&] { core::cuda::multiply_exactly({}, square.tile); });
  double sum = 0;  // of row 3 and column n - 1
  const auto value = [&](std::int64_t v, std::int64_t p) {
    return values[static_cast<std::size_t>(along_k ? v * n + p : v + p * n)];
  };
  for (std::int64_t p = 0; p < n; ++p) sum += value(3, p) * value(n - 1, p);
  expect(square.c.host(3 + (n - 1) * n), sum, name);
}

// Bounds, ranges and norms, each of which reads an operand once before its split.
void time_scans(Table& table, std::int64_t n) {
  const Square<double> square(n);
  const Array<double> operand(small_integers<double>(n * n));
  const Array<RoundingErrors> bounds(n);
  for (const bool along_k : {false, true}) {
    DeviceSide side = square.tile.a;
    side.matrix.data = operand.data();
    if (along_k) std::swap(side.matrix.row_stride, side.matrix.column_stride);
    const Array<VectorNorm> norms(n);
    const auto move = [&](const char* name, const auto& find) {
      table.add_transfer(fmt::format("{} f64, {} x {}{}", name, n, n, along_k ? ", along k" : ", across"),
                         8.0 * static_cast<double>(n * n), find);
    };
    move("rounding errors", [&] {
      core::cuda::find_rounding_errors({}, {side, bounds.data(), 0, n}, {}, {});
    });
    move("ranges", [&] { core::cuda::find_ranges({}, side, {}, {}); });
    side.norms = norms.data();
    move("ranges, exponents", [&] { core::cuda::find_ranges({}, side, {}, {}); });
    move("ranges and norms", [&] { core::cuda::find_norms({}, side, {}, {}); });
  }
}

int run(const char* file) {
  Table table;
  for (const std::int64_t n : {4096, 8192}) {
    for (const bool by_rows : {false, true}) {
      time_weighted(table, n, 1, by_rows);
      time_weighted(table, n, 3, by_rows);
    }
  }
  for (const int count : {8, 15, 16, 20, 49}) time_residues(table, 4096, count);
  time_residues(table, 8192, 15);
  for (const int count : {15, 16}) time_complex_residues(table, 4096, count);
  time_checked(table, 4096, 19, 0, 0);
  time_checked(table, 4096, 19, 3, 0);
  time_checked(table, 4096, 19, 3, 0x1p-50);
  for (const bool along_k : {false, true}) {
    time_exact<float>(table, 1024, along_k);
    time_exact<double>(table, 1024, along_k);
  }
  time_scans(table, 4096);
  time_additions_of_k_blocks(table, 4096, 0);
  time_additions_of_k_blocks(table, 4096, 251);
  for (const std::int64_t n : {512, 1024, 4096}) {
    time_unsplit_product<float>(table, n);
    time_unsplit_product<double>(table, n);
  }
  write_json(file, table.json());
  return 0;
}

}  // namespace
}  // namespace kintsugi::core

int main(int count, char** arguments) {
  if (count != 1 && (count != 3 || std::strcmp(arguments[1], "--json") != 0)) {
    fmt::print(stderr, "usage: recombine_rate [--json FILE]\n");
    return 2;
  }
  const char* file = count == 3 ? arguments[2] : nullptr;
  return kintsugi::core::run_on_device("recombine_rate", [&] { return kintsugi::core::run(file); });
}

// Not a test: how near splits on a device come to the speed at which it copies.
//   build/tests/split_rate [--json FILE]
// Times are medians of events around many splits, ranges included; bytes are those of the operand, once, and of the slices.
#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "base/cuda_driver.hpp"
#include "engines/device.hpp"
#include "engines/registry.hpp"
#include "lab/random.hpp"
#include "plan/program.hpp"
#include "splits/split.hpp"

namespace kintsugi::core {
namespace {

using cuda::check;
using cuda::driver;

const DeviceEngine& engine() {
  const DeviceEngine& device = *find_engine("cuda")->device();
  device.prepare();
  return device;
}

class Memory {
 public:
  explicit Memory(std::size_t bytes) { check(driver().memory_allocate(&address_, bytes), "cuMemAlloc"); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { driver().memory_free(address_); }
  cuda::Address address() const { return address_; }
  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }

 private:
  cuda::Address address_ = 0;
};

// Median over rounds of the seconds that one of `count` runs takes.
template <class Run>
double seconds(int count, const Run& run) {
  constexpr int rounds = 7;
  cuda::Event start = nullptr;
  cuda::Event stop = nullptr;
  check(driver().event_create(&start, 0), "cuEventCreate");
  check(driver().event_create(&stop, 0), "cuEventCreate");
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) run(i);
  for (int round = 0; round < rounds; ++round) {
    check(driver().event_record(start, nullptr), "cuEventRecord");
    for (int i = 0; i < count; ++i) run(i);
    check(driver().event_record(stop, nullptr), "cuEventRecord");
    check(driver().event_synchronize(stop), "cuEventSynchronize");
    float milliseconds = 0;
    check(driver().event_elapsed(&milliseconds, start, stop), "cuEventElapsedTime");
    times.push_back(1e-3 * milliseconds / count);
  }
  driver().event_destroy(start);
  driver().event_destroy(stop);
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[rounds / 2];
}

double copy_bandwidth() {
  constexpr std::size_t bytes = std::size_t{16384} * 16384 * sizeof(float);
  const Memory source(bytes);
  const Memory target(bytes);
  check(driver().set_bytes_async(source.address(), 1, bytes, nullptr), "cuMemsetD8Async");
  const double time = seconds(10, [&](int) {
    check(driver().copy_on_device_async(target.address(), source.address(), bytes, nullptr),
          "cuMemcpyDtoDAsync");
  });
  return 2.0 * static_cast<double>(bytes) / time;
}

// Numbers over and over: their count is odd, so that neither rows nor columns are equal.
template <class T>
struct Pattern {
  explicit Pattern(std::uint64_t seed) {
    lab::Random random(seed);
    for (T& x : values) x = static_cast<T>(random.symmetric());
  }
  T at(std::int64_t index) const { return values[static_cast<std::size_t>(index) % values.size()]; }
  void fill(const Memory& memory, std::size_t count) const {
    const std::size_t whole = std::min(values.size(), count);
    engine().copy_to_device({}, memory.data(), values.data(), whole * sizeof(T));
    for (std::size_t first = whole; first < count; first += whole) {
      check(driver().copy_on_device_async(memory.address() + first * sizeof(T), memory.address(),
                                          std::min(whole, count - first) * sizeof(T), nullptr),
            "cuMemcpyDtoDAsync");
    }
  }
  std::vector<T> values = std::vector<T>((1 << 22) - 3);
};

// An operand, its ranges and its slices.
template <class T>
struct Buffers {
  Buffers(const Pattern<T>& pattern, const SplitRule& rule, std::int64_t n, bool along_k)
      : slices(make_slices(*rule.format, SliceStorage::packed, rule.slices, n, n)),
        operand(static_cast<std::size_t>(n * n) * sizeof(T)),
        ranges(static_cast<std::size_t>(n) * sizeof(VectorRange)), memory(slices.bytes()) {
    pattern.fill(operand, static_cast<std::size_t>(n * n));
    slices.data = memory.data();
    matrix = {.data = operand.data(),
              .type = std::is_same_v<T, float> ? EntryType::f32 : EntryType::f64,
              .rows = n,
              .columns = n,
              .row_stride = along_k ? n : 1,
              .column_stride = along_k ? 1 : n};
  }
  DeviceSide side() const { return {matrix, 0, reinterpret_cast<VectorRange*>(ranges.data())}; }

  Slices slices;
  Memory operand;
  Memory ranges;
  Memory memory;
  DeviceMatrix matrix;
};

// Some vectors against the host's.
template <class T>
bool is_right(const Buffers<T>& buffers, const Pattern<T>& pattern, const SplitRule& rule) {
  const std::int64_t n = buffers.matrix.rows;
  for (const std::int64_t v : {std::int64_t{0}, n / 3, n / 2 + 1, n - 1}) {
    std::vector<T> vector(static_cast<std::size_t>(n));
    for (std::int64_t p = 0; p < n; ++p) {
      vector[static_cast<std::size_t>(p)] =
          pattern.at(v * buffers.matrix.row_stride + p * buffers.matrix.column_stride);
    }
    const MatrixView<const T> view{vector.data(), 1, n, n, 1};
    std::vector<VectorRange> ranges(1);
    find_ranges(view, rule, ranges, 1);
    Slices slices = make_slices(*rule.format, SliceStorage::packed, rule.slices, 1, n);
    std::vector<std::byte> expected(slices.bytes());
    slices.data = expected.data();
    split_operand(view, rule, ranges, slices, 1);
    const std::size_t bytes = static_cast<std::size_t>(slices.vector_stride()) * slices.element_bytes();
    std::vector<std::byte> found(bytes);
    for (int s = 0; s < rule.slices; ++s) {
      const auto place =
          static_cast<std::size_t>(s * buffers.slices.slice_stride() + v * buffers.slices.vector_stride());
      engine().copy_to_host({}, found.data(), buffers.slices.data + place * slices.element_bytes(), bytes);
      engine().synchronize(Queue{});
      const std::byte* host =
          expected.data() + static_cast<std::size_t>(s * slices.slice_stride()) * slices.element_bytes();
      if (std::memcmp(found.data(), host, bytes) != 0) return false;
    }
  }
  return true;
}

struct Row {
  std::string what;
  std::int64_t n = 0;
  bool along_k = false;
  double bytes = 0;
  double time = 0;
  bool right = false;
};

// So many operands that none of what a run reads is left in a cache of up to 128 MiB from the run before.
template <class T>
std::vector<std::unique_ptr<Buffers<T>>> make_buffers(const Pattern<T>& pattern, const SplitRule& rule,
                                                      std::int64_t n, bool along_k) {
  constexpr std::size_t enough = std::size_t{512} << 20;
  const std::size_t bytes = static_cast<std::size_t>(n * n) * sizeof(T);
  std::vector<std::unique_ptr<Buffers<T>>> buffers;
  for (std::size_t i = 0; i < std::max<std::size_t>(2, enough / bytes); ++i)
    buffers.push_back(std::make_unique<Buffers<T>>(pattern, rule, n, along_k));
  return buffers;
}

template <class T>
void measure(const char* name, const Pattern<T>& pattern, std::int64_t n, bool along_k,
             std::vector<Row>& rows) {
  const Scheme& scheme = *find_scheme(name);
  Program program = scheme.program;
  if (scheme.fit != nullptr)
    scheme.fit(program, std::is_same_v<T, float> ? OperandType::f32 : OperandType::f64, n);
  const SplitRule& rule = program.split_a;
  const auto buffers = make_buffers(pattern, rule, n, along_k);
  const auto of = [&](int i) -> const Buffers<T>& {
    return *buffers[static_cast<std::size_t>(i) % buffers.size()];
  };
  const int count = n <= 8192 ? 24 : 8;
  const double read = static_cast<double>(n * n) * sizeof(T);
  Row row{name, n, along_k, read + static_cast<double>(buffers[0]->slices.bytes())};
  row.time = seconds(count, [&](int i) {
    const DeviceSplit split{of(i).side(), 0, &rule, of(i).slices, false};
    engine().split({}, {&split, 1}, {});
  });
  row.right = is_right(*buffers[0], pattern, rule);
  rows.push_back(row);
}

void print(const Row& row, double copy) {
  fmt::print("{:16} {:6} {:16} {:9.1f} {:9.0f} {:9.2f}  {}\n", row.what, row.n,
             row.along_k ? "element stride 1" : "vector stride 1", 1e6 * row.time,
             1e-9 * row.bytes / row.time, row.bytes / row.time / copy, row.right ? "right" : "WRONG");
  std::fflush(stdout);
}

nlohmann::json to_json(const std::vector<Row>& rows, double copy, std::uint64_t seed) {
  nlohmann::json result{{"device", find_engine("cuda")->details()},
                        {"copy_bytes_per_second", copy},
                        {"seed", seed},
                        {"rows", nlohmann::json::array()}};
  for (const Row& row : rows) {
    result["rows"].push_back({{"what", row.what},
                              {"n", row.n},
                              {"orientation", row.along_k ? "element stride 1" : "vector stride 1"},
                              {"seconds", row.time},
                              {"bytes", row.bytes},
                              {"fraction_of_copy", row.bytes / row.time / copy},
                              {"right", row.right}});
  }
  return result;
}

int run(const char* json_file) {
  if (const std::string reason = find_engine("cuda")->unavailable_reason(); !reason.empty()) {
    fmt::print(stderr, "split_rate: {}\n", reason);
    return 1;
  }
  const std::uint64_t seed = std::random_device{}();
  engine();
  const double copy = copy_bandwidth();
  fmt::print("copy: {:.0f} GB/s read and written; seed {}\n", 1e-9 * copy, seed);
  fmt::print("{:16} {:>6} {:16} {:>9} {:>9} {:>9}\n", "scheme", "n", "orientation", "µs", "GB/s", "of copy");
  const Pattern<float> singles(seed);
  const Pattern<double> doubles(seed);
  std::vector<Row> rows;
  for (const char* name : {"fp16x3", "bf16x6", "int8x6", "ozaki2:moduli=15"}) {
    for (const std::int64_t n : {4096, 8192, 16384}) {
      for (const bool along_k : {true, false}) {
        if (std::string_view(name).starts_with("ozaki2")) {
          measure(name, doubles, n, along_k, rows);
        } else {
          measure(name, singles, n, along_k, rows);
        }
        print(rows.back(), copy);
        if (json_file != nullptr) std::ofstream(json_file) << to_json(rows, copy, seed).dump(2) << '\n';
      }
    }
  }
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.right; }) ? 0 : 1;
}

}  // namespace
}  // namespace kintsugi::core

int main(int count, char** words) {
  const bool json = count == 3 && std::strcmp(words[1], "--json") == 0;
  if (count != 1 && !json) {
    fmt::print(stderr, "usage: split_rate [--json FILE]\n");
    return 2;
  }
  return kintsugi::core::run(json ? words[2] : nullptr);
}

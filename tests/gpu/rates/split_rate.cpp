// Not a test: measures how near splits on a device come to the speed at which it copies.
//   build/tests/split_rate [--json FILE] [SCHEME...]
// Times are medians of events around many splits, ranges included; bytes count the operand once, and its
// slices. Graphs time both operands of a product of column-major matrices (vector stride 1 in A, element
// stride 1 in B), split by one call of split() and by two.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "schemes/program.hpp"
#include "split/norms.hpp"
#include "split/split.hpp"
#include "tests/gpu/rates/rate.hpp"

namespace kintsugi::core {
namespace {

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

// An operand, its ranges and its slices.
template <class T>
struct Buffers {
  Buffers(const Pattern<T>& pattern, const SplitRule& rule, std::int64_t n, std::int64_t length, bool along_k)
      : slices(make_slices(*rule.format, SliceStorage::packed, rule.slices, n, length)),
        operand(static_cast<std::size_t>(n * length) * sizeof(T)),
        ranges(static_cast<std::size_t>(n) * sizeof(VectorRange)),
        norms(static_cast<std::size_t>(n) * sizeof(VectorNorm)), memory(slices.bytes()) {
    pattern.fill(operand, static_cast<std::size_t>(n * length));
    slices.data = memory.data();
    matrix = {.data = operand.data(),
              .type = std::is_same_v<T, float> ? ElementType::f32 : ElementType::f64,
              .rows = n,
              .columns = length,
              .row_stride = along_k ? length : 1,
              .column_stride = along_k ? 1 : n};
  }
  DeviceSide side() const {
    return {.matrix = matrix,
            .ranges = reinterpret_cast<VectorRange*>(ranges.data()),
            .norms = reinterpret_cast<VectorNorm*>(norms.data())};
  }

  Slices slices;
  Memory operand;
  Memory ranges;
  Memory norms;
  Memory memory;
  DeviceMatrix matrix;
};

constexpr const char* along_k_text = "element stride 1";
constexpr const char* across_text = "vector stride 1";

// True if the slices of some vectors are those of the host.
template <class T>
bool is_right(const Buffers<T>& buffers, const Pattern<T>& pattern, const SplitRule& rule) {
  const std::int64_t n = buffers.matrix.rows;
  const std::int64_t length = buffers.matrix.columns;
  for (const std::int64_t v : {std::int64_t{0}, n / 3, n / 2 + 1, n - 1}) {
    std::vector<T> vector(static_cast<std::size_t>(length));
    for (std::int64_t p = 0; p < length; ++p) {
      vector[static_cast<std::size_t>(p)] =
          pattern.at(v * buffers.matrix.row_stride + p * buffers.matrix.column_stride);
    }
    const MatrixView<const T> view{vector.data(), 1, length, length, 1};
    std::vector<VectorRange> ranges(1);
    find_ranges(view, rule, ranges, 1);
    if (rule.scales == ScaleRule::norm) scale_by_norms(view, rule, ranges, 1);
    Slices slices = make_slices(*rule.format, SliceStorage::packed, rule.slices, 1, length);
    std::vector<std::byte> expected(slices.bytes());
    slices.data = expected.data();
    split_operand(view, rule, ranges, slices, 1);
    const std::size_t bytes = static_cast<std::size_t>(slices.vector_stride()) * slices.element_bytes();
    std::vector<std::byte> found(bytes);
    for (int s = 0; s < rule.slices; ++s) {
      const auto offset =
          static_cast<std::size_t>(s * buffers.slices.slice_stride() + v * buffers.slices.vector_stride());
      core::cuda::copy_to_host({}, found.data(), buffers.slices.data + offset * slices.element_bytes(),
                               bytes);
      core::cuda::synchronize(Queue{});
      const std::byte* host =
          expected.data() + static_cast<std::size_t>(s * slices.slice_stride()) * slices.element_bytes();
      if (std::memcmp(found.data(), host, bytes) != 0) return false;
    }
  }
  return true;
}

struct Row {
  std::string what;
  std::int64_t n = 0;  // number of vectors
  std::int64_t length = 0;
  std::string orientation;
  double bytes = 0;
  double time = 0;
  bool right = false;
};

// Makes so many operands that a cache of up to 128 MiB no longer holds an operand when it is read again.
template <class T>
std::vector<std::unique_ptr<Buffers<T>>> make_buffers(const Pattern<T>& pattern, const SplitRule& rule,
                                                      std::int64_t n, std::int64_t length, bool along_k) {
  constexpr std::size_t enough = std::size_t{512} << 20;
  const std::size_t bytes = static_cast<std::size_t>(n * length) * sizeof(T);
  std::vector<std::unique_ptr<Buffers<T>>> buffers;
  for (std::size_t i = 0; i < std::max<std::size_t>(2, enough / bytes); ++i)
    buffers.push_back(std::make_unique<Buffers<T>>(pattern, rule, n, length, along_k));
  return buffers;
}

template <class T>
SplitRule rule_of(const char* name, std::int64_t length) {
  const Scheme& scheme = *find_scheme(name);
  Program program = scheme.program;
  if (scheme.fit != nullptr)
    scheme.fit(program, std::is_same_v<T, float> ? OperandType::f32 : OperandType::f64, length);
  return program.split_a;
}

template <class T>
double bytes_of(const Buffers<T>& buffers) {
  const auto elements = static_cast<double>(buffers.matrix.rows * buffers.matrix.columns);
  return elements * sizeof(T) + static_cast<double>(buffers.slices.bytes());
}

DeviceSelection* selection() {
  // Never freed: the driver may be gone before statics are.
  static const Memory& memory = *new Memory(sizeof(DeviceSelection));
  return reinterpret_cast<DeviceSelection*>(memory.data());
}

// Splits with norms where the rule scales by them.
void split(const Queue& queue, std::span<const DeviceSplit> splits) {
  if (splits.front().rule->scales == ScaleRule::norm)
    return core::cuda::split_by_norms(queue, splits, {}, 1, selection());
  core::cuda::split(queue, splits, {});
}

template <class T>
void measure(const char* name, const Pattern<T>& pattern, std::int64_t n, std::int64_t length, bool along_k,
             std::vector<Row>& rows) {
  const SplitRule rule = rule_of<T>(name, length);
  const auto buffers = make_buffers(pattern, rule, n, length, along_k);
  const auto buffers_of = [&](int i) -> const Buffers<T>& {
    return *buffers[static_cast<std::size_t>(i) % buffers.size()];
  };
  const DeviceSplit first{.side = buffers_of(0).side(), .rule = &rule, .slices = buffers_of(0).slices};
  if (rule.scales == ScaleRule::norm && !core::cuda::finds_norms(first))
    return;  // no kernel reads such an operand only once
  const int count = n * length <= (std::int64_t{1} << 26) ? 24 : 8;
  Row row{name, n, length, along_k ? along_k_text : across_text, bytes_of(*buffers[0])};
  row.time = seconds(count, [&](int i) {
    const DeviceSplit next{.side = buffers_of(i).side(), .rule = &rule, .slices = buffers_of(i).slices};
    split({}, {&next, 1});
  });
  row.right = is_right(*buffers[0], pattern, rule);
  rows.push_back(row);
}

// A and B of a product of column-major matrices.
template <class T>
struct Pair {
  Pair(const Pattern<T>& pattern, const SplitRule& rule, std::int64_t n)
      : a(pattern, rule, n, n, false), b(pattern, rule, n, n, true) {}
  Buffers<T> a;
  Buffers<T> b;
};

template <class T>
void measure_both(const char* name, const Pattern<T>& pattern, std::int64_t n, std::vector<Row>& rows) {
  const SplitRule rule = rule_of<T>(name, n);
  // So many pairs that a cache of 60 MiB holds nothing of the first when the last are split.
  constexpr double enough = 160.0 * (1 << 20);
  std::vector<std::unique_ptr<Pair<T>>> pairs;
  double bytes = 0;
  for (double all = 0; all < enough || pairs.size() < 2; all += bytes) {
    pairs.push_back(std::make_unique<Pair<T>>(pattern, rule, n));
    bytes = bytes_of(pairs.back()->a) + bytes_of(pairs.back()->b);
  }
  const int count = static_cast<int>(round_up(48, static_cast<std::int64_t>(pairs.size())));
  constexpr double slow_bytes_per_second = 2e12, launch_seconds = 5e-6;
  for (const bool in_one_call : {true, false}) {
    Row row{name, n, n, in_one_call ? "A and B, one call" : "A and B, two calls", bytes};
    row.time = seconds_in_graph(
        count, bytes / slow_bytes_per_second + launch_seconds, [&](const Queue& queue, int i) {
          const Pair<T>& pair = *pairs[static_cast<std::size_t>(i) % pairs.size()];
          const std::array splits{DeviceSplit{.side = pair.a.side(), .rule = &rule, .slices = pair.a.slices},
                                  DeviceSplit{.side = pair.b.side(), .rule = &rule, .slices = pair.b.slices}};
          if (in_one_call) return split(queue, splits);
          for (const DeviceSplit& operand_split : splits) split(queue, {&operand_split, 1});
        });
    row.right = is_right(pairs[0]->a, pattern, rule) && is_right(pairs[0]->b, pattern, rule);
    for (const auto& pair : pairs) {
      core::cuda::clear({}, pair->a.slices.data, pair->a.slices.bytes());
      core::cuda::clear({}, pair->b.slices.data, pair->b.slices.bytes());
    }
    rows.push_back(row);
  }
}

void print(const Row& row, double copy) {
  fmt::print("{:27} {:6} x {:7} {:18} {:9.1f} {:9.0f} {:9.2f}  {}\n", row.what, row.n, row.length,
             row.orientation, 1e6 * row.time, 1e-9 * row.bytes / row.time, row.bytes / row.time / copy,
             row.right ? "right" : "WRONG");
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
                              {"k", row.length},
                              {"orientation", row.orientation},
                              {"seconds", row.time},
                              {"bytes", row.bytes},
                              {"fraction_of_copy", row.bytes / row.time / copy},
                              {"right", row.right}});
  }
  return result;
}

// Numbers and lengths of vectors; the last ones are too long for a thread block or a cluster to hold.
constexpr std::int64_t long_vectors[][2] = {{1024, 8192},   {1024, 16384}, {1024, 32768}, {1024, 65536},
                                            {128, 1 << 20}, {64, 1 << 20}, {100, 100000}};

// Rows that were measured, which are printed and written as they come.
class Report {
 public:
  Report(const char* json_file, double copy, std::uint64_t seed)
      : json_file_(json_file), copy_(copy), seed_(seed) {
    fmt::print("copy: {:.0f} GB/s read and written; seed {}\n", 1e-9 * copy, seed);
    fmt::print("{:27} {:>6} x {:>7} {:18} {:>9} {:>9} {:>9}\n", "scheme", "n", "k", "orientation", "µs",
               "GB/s", "of copy");
  }

  template <class T>
  void measure_scheme(const char* name, const Pattern<T>& pattern) {
    for (const std::int64_t n : {256, 512, 1024, 2048, 4096, 8192}) {
      measure_both(name, pattern, n, rows_);
      show_new_rows();
    }
    for (const std::int64_t n : {4096, 8192, 16384}) measure_orientations(name, pattern, n, n);
    for (const auto& [n, k] : long_vectors) measure_orientations(name, pattern, n, k);
  }

  bool is_right() const {
    return std::all_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.right; });
  }

 private:
  template <class T>
  void measure_orientations(const char* name, const Pattern<T>& pattern, std::int64_t n, std::int64_t k) {
    for (const bool along_k : {true, false}) {
      measure(name, pattern, n, k, along_k, rows_);
      show_new_rows();
    }
  }

  void show_new_rows() {
    for (; shown_ < rows_.size(); ++shown_) print(rows_[shown_], copy_);
    write_json(json_file_, to_json(rows_, copy_, seed_));
  }

  const char* json_file_;
  double copy_;
  std::uint64_t seed_;
  std::vector<Row> rows_;
  std::size_t shown_ = 0;
};

int run(const char* json_file, const std::vector<const char*>& schemes) {
  const std::uint64_t seed = std::random_device{}();
  selection();  // allocates now, since it cannot while a stream is captured
  Report report(json_file, copy_bandwidth(), seed);
  const Pattern<float> singles(seed);
  const Pattern<double> doubles(seed);
  for (const char* name : schemes) {
    if (std::string_view(name).starts_with("ozaki2")) {
      report.measure_scheme(name, doubles);
    } else {
      report.measure_scheme(name, singles);
    }
  }
  return report.is_right() ? 0 : 1;
}

}  // namespace
}  // namespace kintsugi::core

int main(int count, char** words) {
  const bool json = count >= 3 && std::strcmp(words[1], "--json") == 0;
  std::vector<const char*> schemes(words + (json ? 3 : 1), words + count);
  for (const char* name : schemes) {
    if (kintsugi::core::find_scheme(name) != nullptr) continue;
    fmt::print(stderr, "split_rate: there is no scheme \"{}\"\nusage: split_rate [--json FILE] [SCHEME...]\n",
               name);
    return 2;
  }
  if (schemes.empty())
    schemes = {"fp16x3", "bf16x6", "int8x6", "ozaki2:moduli=15", "ozaki2:moduli=15:scale=norm"};
  return kintsugi::core::run_on_device(
      "split_rate", [&] { return kintsugi::core::run(json ? words[2] : nullptr, schemes); });
}

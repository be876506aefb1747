// Not a test: measures products of matrices in pageable memory that are offloaded, and what their time goes
// to.
//   build/tests/offload_rate [--json FILE] [N[:GIB]...]
// FP64 products of order N, of whose matrices at most GIB are on the device at a time. Beside them are the
// same product in device memory and copies of pinned memory. Times are the least of some calls.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/cuda/owned.hpp"
#include "base/stopwatch.hpp"
#include "execute/execute.hpp"
#include "planner/plan.hpp"
#include "tests/gpu/rates/rate.hpp"

namespace kintsugi::core {
namespace {

using cuda::OwnedMemory;
using cuda::OwnedStream;

template <class Run>
double least_seconds(int runs, const Run& run) {
  double least = INFINITY;
  for (int i = 0; i < runs; ++i) {
    double seconds = 0;
    {
      const Stopwatch watch(seconds);
      run();
    }
    least = std::min(least, seconds);
  }
  return least;
}

struct CopyRates {
  double up = 0, down = 0;  // bytes per second of copies in one direction
  double at_once = 0;       // seconds per byte of a matrix: two are copied up while one is copied down
};

CopyRates measure_pinned_copies() {
  constexpr std::size_t bytes = std::size_t{256} << 20;
  void* pinned = nullptr;
  check(driver().host_allocate(&pinned, 2 * bytes, 0), "cuMemHostAlloc");
  auto* const host = static_cast<std::byte*>(pinned);
  const OwnedMemory device(2 * bytes);
  const OwnedStream up, down;
  const auto upload = [&] { up.upload(device.data(), host, bytes); };
  const auto download = [&] { down.download(host + bytes, device.data() + bytes, bytes); };
  const auto copy_at_once = [&] {
    for (int matrix = 0; matrix < 4; ++matrix) {
      upload();
      if (matrix % 2 == 0) download();
    }
    up.synchronize();
    down.synchronize();
  };
  double up_seconds = INFINITY;
  double down_seconds = INFINITY;
  for (int i = 0; i < 3; ++i) {
    up_seconds = std::min(up_seconds, up.seconds_of(upload));
    down_seconds = std::min(down_seconds, down.seconds_of(download));
  }
  const double both_seconds = least_seconds(3, copy_at_once);
  driver().host_free(pinned);
  return {bytes / up_seconds, bytes / down_seconds, both_seconds / (2 * bytes)};
}

// A square matrix in pageable memory, whose pages exist.
struct Matrix {
  Matrix(const Pattern<double>& pattern, std::int64_t order)
      : elements(new double[static_cast<std::size_t>(order * order)]) {
#pragma omp parallel for
    for (std::int64_t i = 0; i < order * order; ++i) elements[static_cast<std::size_t>(i)] = pattern.at(i);
  }
  double operator[](std::int64_t index) const { return elements[static_cast<std::size_t>(index)]; }
  std::unique_ptr<double[]> elements;
};

struct Case {
  std::int64_t order = 0;
  double gib = 0;  // 0: no limit

  double matrix_bytes() const { return 8.0 * static_cast<double>(order) * static_cast<double>(order); }
  Problem problem(MemorySpace memory) const {
    Problem problem{.m = order, .n = order, .k = order, .lda = order, .ldb = order, .ldc = order};
    problem.type = OperandType::f64;
    problem.memory = memory;
    return problem;
  }
};

double seconds_on_device(const Case& test, const Pattern<double>& pattern) {
  const auto bytes = static_cast<std::size_t>(test.matrix_bytes());
  const Memory a(bytes), b(bytes), c(bytes);
  pattern.fill(a, bytes / 8);
  pattern.fill(b, bytes / 8);
  const OwnedStream stream;
  const Queue queue{QueueKind::cuda, stream.native()};
  const Settings settings({}, {}, environment_settings(), file_settings());
  const Plan plan = make_plan(test.problem(MemorySpace::device), settings, {}, queue);
  Operands operands;
  operands.a = a.data();
  operands.b = b.data();
  operands.c = c.data();
  operands.queue = queue;
  const auto multiply = [&] {
    Report report;
    execute(plan, operands, report);
  };
  multiply();
  double least = INFINITY;
  for (int i = 0; i < 4; ++i) least = std::min(least, stream.seconds_of(multiply));
  return least;
}

// Largest |C - AB| / |A||B| of some elements.
double sampled_error(std::int64_t n, const Matrix& a, const Matrix& b, const Matrix& c) {
  double largest = 0;
  for (std::int64_t sample = 0; sample < 48; ++sample) {
    const std::int64_t i = sample * 7919 % n;
    const std::int64_t j = sample * 104729 % n;
    long double sum = 0;
    long double magnitude = 0;
    for (std::int64_t p = 0; p < n; ++p) {
      const long double product = static_cast<long double>(a[i + p * n]) * b[p + j * n];
      sum += product;
      magnitude += std::abs(product);
    }
    largest = std::max(largest, static_cast<double>(std::abs(c[i + j * n] - sum) / magnitude));
  }
  return largest;
}

// A hash of all bits, to compare runs: with other numbers of devices, under other limits.
std::uint64_t hash_of(std::int64_t order, const Matrix& matrix) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::int64_t i = 0; i < order * order; ++i)
    hash = (hash ^ std::bit_cast<std::uint64_t>(matrix[i])) * 0x100000001b3u;
  return hash;
}

struct Measured {
  double seconds = 0, first_seconds = 0, error = 0;
  std::uint64_t hash = 0;
  OffloadReport report;
};

Measured measure_offload(const Case& test, const Pattern<double>& pattern) {
  const Matrix a(pattern, test.order), b(pattern, test.order), c(pattern, test.order);
  SettingLayer call;
  const auto set = [&](const char* name, const std::string& value) {
    call.set(find_setting(name), value, "offload_rate");
  };
  set("offload", "force");
  set("offload_memory", fmt::format("{:.0f}", test.gib * 1024 * 1024 * 1024));
  const Settings settings(call, {}, environment_settings(), file_settings());
  const Plan plan = make_plan(test.problem(MemorySpace::host), settings, {});
  Operands operands;
  operands.a = a.elements.get();
  operands.b = b.elements.get();
  operands.c = c.elements.get();
  Measured measured;
  measured.seconds = INFINITY;
  const auto multiply = [&] {
    Report report;
    const double seconds = least_seconds(1, [&] { execute(plan, operands, report); });
    if (seconds < measured.seconds) measured.report = report.offload.value_or(OffloadReport{});
    measured.seconds = std::min(measured.seconds, seconds);
    return seconds;
  };
  measured.first_seconds = multiply();
  const int more = test.order > 20000 ? 1 : 5;
  for (int i = 0; i < more; ++i) multiply();
  measured.error = sampled_error(test.order, a, b, c);
  measured.hash = hash_of(test.order, c);
  return measured;
}

void print_copies(const char* name, const cuda::CopyTimes& times, std::int64_t bytes) {
  const auto each = [&](double seconds) { return 1e3 * seconds / std::max(times.threads, 1); };
  fmt::print(
      "  {}: {:.2f} GB by {} threads, each ms: copying {:.2f} ({:.1f} GB/s), queueing {:.2f}, waiting {:.2f}\n",
      name, 1e-9 * static_cast<double>(bytes), times.threads, each(times.copying),
      1e-9 * static_cast<double>(bytes) / times.copying, each(times.queueing), each(times.waiting));
}

nlohmann::json show(const Case& test, const Measured& measured, double alone, const CopyRates& rates) {
  const double up = 2 * test.matrix_bytes() / rates.up;
  const double down = test.matrix_bytes() / rates.down;
  const double at_once = test.matrix_bytes() * rates.at_once;
  const OffloadReport& report = measured.report;
  const OffloadSeconds& parts = report.seconds;
  const auto share = [&](double copies) { return 100 * std::max(alone, copies) / measured.seconds; };
  fmt::print(
      "n {} limit {} GiB: {:.2f} ms (first {:.1f}), product alone {:.2f}; pinned copies up {:.2f}, down {:.2f}, "
      "at once {:.2f}: {:.0f} % of max(product, copies at once), {:.0f} % of max(product, up), {:.0f} % of "
      "max(product, up + down)\n",
      test.order, test.gib, 1e3 * measured.seconds, 1e3 * measured.first_seconds, 1e3 * alone, 1e3 * up,
      1e3 * down, 1e3 * at_once, share(at_once), share(up), share(up + down));
  fmt::print(
      "  error {:.2g}, hash {:016x}; {} devices, {} products, {} parts of k, {} elements by the host {}\n",
      measured.error, measured.hash, report.devices, report.products, report.inner_parts,
      report.host_elements, report.host_reason);
  fmt::print(
      "  ms: preparation {:.2f}, waits for operands {:.2f}, launches {:.2f}, waits for C {:.2f}, end {:.2f}\n",
      1e3 * parts.preparation, 1e3 * parts.load_waits, 1e3 * parts.launches, 1e3 * parts.result_waits,
      1e3 * parts.end);
  print_copies("up", parts.uploads, report.uploaded_bytes);
  print_copies("down", parts.downloads, report.downloaded_bytes);
  std::fflush(stdout);
  return {{"order", test.order},         {"gib", test.gib},
          {"seconds", measured.seconds}, {"product_seconds", alone},
          {"up_bytes_per_s", rates.up},  {"down_bytes_per_s", rates.down},
          {"at_once_seconds", at_once},  {"share", share(at_once) / 100},
          {"error", measured.error}};
}

int run(const char* json_file, const std::vector<Case>& cases) {
  const CopyRates rates = measure_pinned_copies();
  const Pattern<double> pattern(7);
  fmt::print("{}: pinned copies up {:.1f}, down {:.1f} GB/s, {:.1f} at once; {} threads\n",
             measure::device_facts().name, 1e-9 * rates.up, 1e-9 * rates.down, 3e-9 / rates.at_once,
             omp_get_max_threads());
  bool is_right = true;
  nlohmann::json rows;
  for (const Case& test : cases) {
    const double alone = seconds_on_device(test, pattern);
    const Measured measured = measure_offload(test, pattern);
    rows.push_back(show(test, measured, alone, rates));
    is_right = is_right && measured.error < 1e-14 && measured.report.host_elements == 0;
  }
  write_json(json_file, rows);
  return is_right ? 0 : 1;
}

// N or N:GIB; order 0 for anything else.
Case case_of(const std::string& text) {
  Case test;
  char end = 0;
  long long order = 0;
  const int read = std::sscanf(text.c_str(), "%lld:%lf%c", &order, &test.gib, &end);
  if (read >= 1 && read <= 2 && (read == 2) == (text.find(':') != std::string::npos)) test.order = order;
  return test;
}

}  // namespace
}  // namespace kintsugi::core

int main(int count, char** words) {
  using kintsugi::core::Case;
  const bool json = count >= 3 && std::strcmp(words[1], "--json") == 0;
  std::vector<Case> cases;
  for (int i = json ? 3 : 1; i < count; ++i) {
    cases.push_back(kintsugi::core::case_of(words[i]));
    if (cases.back().order > 0) continue;
    fmt::print(stderr, "offload_rate: \"{}\" is no order\nusage: offload_rate [--json FILE] [N[:GIB]...]\n",
               words[i]);
    return 2;
  }
  if (cases.empty()) cases = {{8192, 0}, {8192, 1}};
  return kintsugi::core::run_on_device("offload_rate",
                                       [&] { return kintsugi::core::run(json ? words[2] : nullptr, cases); });
}

#include "tools/measure/machine/ceilings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "base/status.hpp"
#include "tools/measure/probes/probe_kernels.hpp"
#include "tools/measure/probes/probe_values.hpp"

namespace kintsugi::measure {

namespace {

struct Unit {
  const char* format;
  int element_bytes;
  int limit;  // the limit of probe_element()
  bool integer;
};
constexpr std::array<Unit, 4> units{{{"fp16", 2, probe_limit_11_bits, false},
                                     {"bf16", 2, probe_limit_8_bits, false},
                                     {"tf32", 4, probe_limit_11_bits, false},
                                     {"int8", 1, probe_limit_int8, true}}};

// One kind of kernel: a pass adds row_bytes of k to m x n sums, in each of a block's `tiles` tiles.
struct ProbeKernel {
  const char* file;
  const char* kernel;  // name without the format
  const char* text;
  int m;
  int n;
  int row_bytes;
  int tiles;
  int blocks_an_sm;
  int threads;
  int shared_bytes;
};
constexpr ProbeKernel wgmma{.file = "probe_wgmma_sm90a",
                            .kernel = "wgmma",
                            .text = "wgmma m64n256, both operands in shared memory",
                            .m = wgmma_warpgroups * wgmma_m,
                            .n = wgmma_n,
                            .row_bytes = wgmma_row_bytes,
                            .tiles = 1,
                            .blocks_an_sm = 1,
                            .threads = 128 * wgmma_warpgroups,
                            .shared_bytes = wgmma_shared_bytes};
constexpr ProbeKernel mma{.file = "probe_mma",
                          .kernel = "mma",
                          .text = "mma.sync, operands in registers",
                          .m = mma_m,
                          .n = mma_n,
                          .row_bytes = mma_row_bytes,
                          .tiles = mma_warps,
                          .blocks_an_sm = 2,
                          .threads = 32 * mma_warps,
                          .shared_bytes = 0};

// Returns the kernel kind for the device; code of sm_90a runs on compute capability 9.0 only.
const ProbeKernel& probe_of(const DeviceFacts& facts) {
  return facts.major == 9 && facts.minor == 0 && has_probes("probe_wgmma_sm90a") ? wgmma : mma;
}

// Returns the rate of `work`, which makes `operations` operations.
Ceiling timed(const DeviceStream& stream, const DeviceMonitor& monitor, double operations,
              const std::function<void()>& work) {
  constexpr int warm_up = 2;
  constexpr int runs = 5;
  Ceiling ceiling;
  std::vector<double> rates;
  for (int run = 0; run < warm_up + runs; ++run) {
    const double seconds = stream.seconds_of(work, [&] { ceiling.state = monitor.now(); });
    if (run >= warm_up) rates.push_back(operations / seconds);
  }
  std::sort(rates.begin(), rates.end());
  ceiling.rate = rates[runs / 2];
  ceiling.lowest = rates.front();
  ceiling.highest = rates.back();
  return ceiling;
}

// Returns how often work of `seconds` seconds is repeated in a run.
std::int64_t repetitions_for(double seconds) {
  constexpr double run_seconds = 0.1;
  return std::max<std::int64_t>(1, std::llround(std::ceil(run_seconds / seconds)));
}

// ------------------------------------------------------------------ matrix units

struct ExpectedSum {
  double value = 0;
  double allowed = 0;
};

// Returns the sum of one period. In any order, each addition of a floating-point unit loses at most 2^-22 of
// the sum of magnitudes.
ExpectedSum expected_sum(const Unit& unit, const ProbeKernel& probe, int row, int column) {
  const int length = probe.row_bytes / unit.element_bytes;
  std::int64_t sum = 0;
  std::int64_t magnitudes = 0;
  for (int k = 0; k < length; ++k) {
    const std::int64_t product = std::int64_t{probe_element(ProbeSide::a, row, k, unit.limit)} *
                                 probe_element(ProbeSide::b, column, k, unit.limit);
    sum += product;
    magnitudes += std::abs(product);
  }
  const double scale = unit.integer ? 1 : std::pow(unit.limit + 1.0, -2);
  const double lost = unit.integer ? 0 : std::ldexp(static_cast<double>(probe_period * length), -22);
  return {probe_period * scale * static_cast<double>(sum),
          lost * probe_period * scale * static_cast<double>(magnitudes)};
}

template <class Sum>
void check_sums(const Unit& unit, const ProbeKernel& probe, const std::vector<Sum>& sums) {
  for (int row = 0; row < probe.m; ++row) {
    for (int column = 0; column < probe.n; ++column) {
      const double sum = static_cast<double>(sums[static_cast<std::size_t>(row * probe.n + column)]);
      const ExpectedSum expected = expected_sum(unit, probe, row, column);
      if (std::fabs(sum - expected.value) <= expected.allowed) continue;
      core::fail(core::Status::device_error,
                 "the probe of {} units ({}) is wrong: sum ({}, {}) is {}, and should be {} +- {}",
                 unit.format, probe.text, row, column, sum, expected.value, expected.allowed);
    }
  }
}

template <class Sum>
void download_and_check(const DeviceStream& stream, const Unit& unit, const ProbeKernel& probe,
                        const DeviceMemory& result) {
  std::vector<Sum> sums(result.bytes() / sizeof(Sum));
  stream.download(sums.data(), result.data(), result.bytes());
  stream.synchronize();
  check_sums(unit, probe, sums);
}

Ceiling measure_unit(const DeviceStream& stream, const DeviceFacts& facts, const DeviceMonitor& monitor,
                     const Unit& unit) {
  const ProbeKernel& probe = probe_of(facts);
  const ProbeGrid grid{probe.blocks_an_sm * facts.sms, probe.threads, probe.shared_bytes};
  const core::cuda::Kernel kernel =
      probe_kernel(probe.file, fmt::format("{}_{}", probe.kernel, unit.format).c_str());
  const DeviceMemory result(static_cast<std::size_t>(probe.m) * probe.n * sizeof(float));
  stream.fill(result.data(), 0xff, result.bytes());
  const auto launch = [&](int periods) { launch_probe(stream, kernel, grid, result.data(), periods); };
  constexpr int first_periods = 256;
  launch(1);  // loads its code
  const double first = stream.seconds_of([&] { launch(first_periods); });
  const int periods = static_cast<int>(repetitions_for(first / first_periods));
  const double products_a_period =
      static_cast<double>(probe_period) * probe.m * probe.n * (probe.row_bytes / unit.element_bytes);
  const double operations = 2 * products_a_period * static_cast<double>(grid.blocks) * probe.tiles * periods;
  Ceiling ceiling = timed(stream, monitor, operations, [&] { launch(periods); });
  ceiling.name = unit.format;
  ceiling.method = probe.text;
  if (unit.integer) {
    download_and_check<std::int32_t>(stream, unit, probe, result);
  } else {
    download_and_check<float>(stream, unit, probe, result);
  }
  return ceiling;
}

// ------------------------------------------------------------------ memory

constexpr std::size_t copied_bytes = std::size_t{1} << 30;  // several times the size of any L2 cache

// Checks the first and the last 1 MiB of the copy.
void check_copy(const DeviceStream& stream, const DeviceMemory& target, const char* method) {
  std::vector<std::uint32_t> words(std::size_t{1} << 18);
  const std::size_t bytes = words.size() * sizeof(std::uint32_t);
  for (const std::size_t offset : {std::size_t{0}, copied_bytes - bytes}) {
    stream.download(words.data(), target.data() + offset, bytes);
    stream.synchronize();
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::uint64_t index = offset / sizeof(std::uint32_t) + i;
      if (words[i] == probe_word(index)) continue;
      core::fail(core::Status::device_error,
                 "the probe of copies ({}) is wrong: word {} is {}, and should be {}", method, index,
                 words[i], probe_word(index));
    }
  }
}

class CopyProbe {
 public:
  CopyProbe(const DeviceStream& stream, const DeviceFacts& facts, const DeviceMonitor& monitor)
      : stream_(stream), monitor_(monitor), source_(copied_bytes), target_(copied_bytes) {
    constexpr int blocks_an_sm = 8;
    const auto count = static_cast<std::int64_t>(copied_bytes / access_bytes);
    launch_probe(stream, probe_kernel("probe_copy", "fill_words"),
                 {std::int64_t{blocks_an_sm} * facts.sms, threads}, source_.data(), count);
  }

  Ceiling by_kernel() const {
    constexpr std::size_t accesses_a_thread = 4;
    const core::cuda::Kernel kernel = probe_kernel("probe_copy", "copy_units");
    const ProbeGrid grid{static_cast<std::int64_t>(copied_bytes / access_bytes / accesses_a_thread / threads),
                         threads};
    return measured("a kernel, 16 bytes an access",
                    [&] { launch_probe(stream_, kernel, grid, target_.data(), source_.data()); });
  }
  Ceiling by_driver() const {
    return measured("cuMemcpyDtoDAsync", [&] { stream_.copy(target_.data(), source_.data(), copied_bytes); });
  }

 private:
  static constexpr int threads = 256;
  static constexpr std::size_t access_bytes = 16;

  Ceiling measured(const char* method, const std::function<void()>& copy) const {
    stream_.fill(target_.data(), 0xff, copied_bytes);
    copy();
    const std::int64_t copies = repetitions_for(stream_.seconds_of(copy));
    const double bytes = 2 * static_cast<double>(copied_bytes) * static_cast<double>(copies);
    Ceiling ceiling = timed(stream_, monitor_, bytes, [&] {
      for (std::int64_t i = 0; i < copies; ++i) copy();
    });
    ceiling.name = "copy";
    ceiling.method = method;
    check_copy(stream_, target_, method);
    return ceiling;
  }

  const DeviceStream& stream_;
  const DeviceMonitor& monitor_;
  DeviceMemory source_;
  DeviceMemory target_;
};

}  // namespace

std::vector<Ceiling> measure_ceilings(const DeviceStream& stream, const DeviceFacts& facts,
                                      const DeviceMonitor& monitor) {
  std::vector<Ceiling> ceilings;
  for (const Unit& unit : units) ceilings.push_back(measure_unit(stream, facts, monitor, unit));
  const CopyProbe copy(stream, facts, monitor);
  const Ceiling by_kernel = copy.by_kernel();
  const Ceiling by_driver = copy.by_driver();
  ceilings.push_back(by_kernel.rate > by_driver.rate ? by_kernel : by_driver);
  return ceilings;
}

}  // namespace kintsugi::measure

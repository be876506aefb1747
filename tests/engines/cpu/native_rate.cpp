// Not a test: rates of native products in a fixed order beside OpenBLAS's own on this machine, for
// lab/results/log.
//   build/tests/native_rate
// Prints ratios of the least wall-clock times, and of the least processor times of all threads together,
// which a busy machine disturbs less.
#include <fmt/format.h>

#include <chrono>
#include <complex>
#include <ctime>
#include <limits>
#include <vector>

#include "base/embedding.hpp"
#include "engines/cpu/products.hpp"
#include "engines/registry.hpp"
#include "tools/measure/generators/random.hpp"

namespace {

using namespace kintsugi::core;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Times {
  double wall = std::numeric_limits<double>::infinity();
  double cpu = std::numeric_limits<double>::infinity();
};

template <class T>
void run_once(const NativeProduct<T>& task, Times& times) {
  const auto begin = std::chrono::steady_clock::now();
  const double cpu_begin = cpu_seconds();
  find_engine("cpu")->host()->native(task);
  times.cpu = std::min(times.cpu, cpu_seconds() - cpu_begin);
  times.wall =
      std::min(times.wall, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

template <class T>
std::vector<T> random_matrix(std::int64_t n, std::uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(n * n));
  auto* reals = reinterpret_cast<RealOf<T>*>(values.data());
  for (std::size_t e = 0; e < values.size() * sizeof(T) / sizeof(*reals); ++e)
    reals[e] = static_cast<RealOf<T>>(static_cast<double>(kintsugi::measure::mix_bits(seed + e)) * 0x1p-64);
  return values;
}

template <class T>
void measure(const char* name) {
  for (const std::int64_t n : {256, 1024, 2048}) {
    const std::vector<T> a = random_matrix<T>(n, 1);
    const std::vector<T> b = random_matrix<T>(n, 1U << 30U);
    std::vector<T> c(a.size());
    for (const int threads : {1, 2}) {
      for (const bool transposed : {false, true}) {
        const MatrixView<const T> view_a{a.data(), n, n, transposed ? n : 1, transposed ? 1 : n};
        NativeProduct<T> task{view_a, {b.data(), n, n, 1, n}, {c.data(), n, n, 1, n}, T(1), T(0), threads};
        std::vector<std::byte> scratch(
            native_tiles_bytes(sizeof(RealOf<T>), n, parts_of<T> * n, parts_of<T> * n, threads));
        Times vendor;
        Times ours;
        for (int repetition = 0; repetition < (n == 256 ? 50 : 6); ++repetition) {
          task.fixed_order = false;
          run_once(task, vendor);
          task.fixed_order = true;
          task.scratch = scratch;
          run_once(task, ours);
        }
        fmt::print(
            "{} n = {}, {} thread{}, op(A) {}: {:.2f} of OpenBLAS's rate, {:.2f} by time of all threads\n",
            name, n, threads, threads == 1 ? "" : "s", transposed ? "T" : "N", vendor.wall / ours.wall,
            vendor.cpu / ours.cpu);
      }
    }
  }
}

}  // namespace

int main() {
  measure<float>("f32");
  measure<double>("f64");
  measure<std::complex<float>>("c32");
  measure<std::complex<double>>("c64");
}

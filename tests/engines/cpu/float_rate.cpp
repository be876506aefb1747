// Not a test: rates of products of floating slices on this machine, for lab/results/log.
//   build/tests/float_rate [m = n = k] [rounds]
// One thread: the multiply-adds of a schedule by each family of kernels and of OpenBLAS's FP32 product, one
// after the other, per second of processor time: best of all rounds, so that a busy machine counts less.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/memory.hpp"
#include "engines/cpu/products.hpp"
#include "engines/registry.hpp"
#include "formats/formats.hpp"
#include "schemes/fp32_scaled.hpp"
#include "tests/support/processor_time.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::core {
namespace {

template <class Work>
void measure(double operations, double& best, const Work& work) {
  const double start = processor_seconds();
  work();
  best = std::max(best, operations / (processor_seconds() - start) * 1e-9);
}

// Small integers, whose sums stay normal numbers.
void fill(float* elements, std::int64_t count) {
  for (std::int64_t e = 0; e < count; ++e)
    elements[e] = static_cast<float>(measure::mix_bits(static_cast<std::uint64_t>(e)) >> 60) - 8;
}

class Rates {
 public:
  explicit Rates(std::int64_t size)
      : size_(size), schedule_(schemes::fp16x3.program.schedule),
        slices_(make_slices(fp16, SliceStorage::panels, 2, size, size)), slice_memory_({}, slices_.bytes()),
        sums_(make_accumulators(SumType::f32, size, size, 1)), sums_memory_({}, sums_.bytes()),
        scratch_({}, floats_worker_bytes(schedule_)) {
    slices_.data = static_cast<std::byte*>(slice_memory_.pointer());
    sums_.data = static_cast<std::byte*>(sums_memory_.pointer());
    fill(slices_.vector<float>(0, 0), static_cast<std::int64_t>(slices_.bytes() / sizeof(float)));
  }

  void multiply(const FloatKernels& kernels) const {
    multiply_floats({&schedule_, slices_, slices_, sums_, Accumulator::fp32,
                     static_cast<std::byte*>(scratch_.pointer()), 1},
                    kernels);
  }

  void multiply_natively() const {
    float* c = sums_.group<float>(0);
    const float* a = slices_.vector<float>(0, 0);
    find_engine("cpu")->host()->native(NativeProduct<float>{
        {a, size_, size_, 1, size_}, {a, size_, size_, 1, size_}, {c, size_, size_, 1, size_}});
  }

  double operations() const { return 2.0 * static_cast<double>(size_) * static_cast<double>(size_ * size_); }

  void print(int rounds) const {
    const auto families = float_families();
    std::vector<double> best(families.size());
    double native = 0;
    for (int round = 0; round < rounds; ++round) {
      measure(operations(), native, [&] { multiply_natively(); });
      for (std::size_t f = 0; f < families.size(); ++f)
        measure(3 * operations(), best[f], [&] { multiply(*families[f]); });
    }
    fmt::print("n = {}: OpenBLAS {:.1f} GFLOP/s", size_, native);
    for (std::size_t f = 0; f < families.size(); ++f)
      fmt::print(", {} {:.1f} ({:.2f})", families[f]->name, best[f], best[f] / native);
    fmt::print("\n");
  }

 private:
  std::int64_t size_;
  Schedule schedule_;
  Slices slices_;
  HostBuffer slice_memory_;
  Accumulators sums_;
  HostBuffer sums_memory_;
  HostBuffer scratch_;
};

}  // namespace
}  // namespace kintsugi::core

int main(int count, char** words) {
  const std::int64_t size = count > 1 ? std::atol(words[1]) : 768;
  kintsugi::core::Rates(size).print(count > 2 ? std::atoi(words[2]) : 7);
}

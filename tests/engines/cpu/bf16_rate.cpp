// Not a test: rates of the matrix unit's kernels for bf16 slices on this machine, for lab/results/log.
//   build/tests/bf16_rate [m = n = k] [rounds]
// One thread, best of all rounds: products from tiles in the L1 cache, which is the unit's ceiling with
// loaded tiles; OpenBLAS's FP32 product; and bf16x3, bf16x6 and bf16x9 in several k-blocks.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "base/memory.hpp"
#include "engines/cpu/products.hpp"
#include "engines/registry.hpp"
#include "schemes/fp32_scaled.hpp"
#include "split/ranges.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::core {
namespace {

template <class Work>
double seconds(int rounds, const Work& work) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

std::byte* filled(const HostBuffer& buffer, std::size_t bytes) {
  auto* const numbers = static_cast<std::uint16_t*>(buffer.pointer());
  for (std::size_t i = 0; i < bytes / 2; ++i)
    numbers[i] = static_cast<std::uint16_t>(0x3f80 | (measure::mix_bits(i) & 0x807f));
  return static_cast<std::byte*>(buffer.pointer());
}

// Operations per second of products whose tiles stay in the L1 cache.
double ceiling(const Bf16Kernels& kernels, int rounds) {
  constexpr int steps = 4;
  constexpr int terms = 512;
  constexpr std::size_t bytes = steps * Bf16Panel::step_bytes;
  const HostBuffer left({}, bytes), right({}, bytes), sums({}, Bf16Panel::sums * sizeof(float));
  const std::vector<Bf16Term> same(terms, Bf16Term{0, 0, false});
  const Bf16Products task{.left = filled(left, bytes),
                          .right = filled(right, bytes),
                          .next_left = static_cast<std::byte*>(left.pointer()),
                          .next_right = static_cast<std::byte*>(right.pointer()),
                          .panel_stride = 0,
                          .slice_stride = 0,
                          .left_panels = 1,
                          .right_panels = 1,
                          .steps = steps,
                          .terms = same.data(),
                          .term_count = terms,
                          .rescale = 1,
                          .continues = false,
                          .is_first = true,
                          .sums = static_cast<float*>(sums.pointer())};
  const double time = seconds(20 * rounds, [&] { kernels.multiply(task); });
  return 2.0 * terms * steps * Bf16Panel::step * Bf16Panel::sums / time;
}

class Rates {
 public:
  Rates(std::int64_t size, int rounds)
      : size_(size), rounds_(rounds), a_(matrix(1)), b_(matrix(2)), c_(matrix(3)) {}

  void print(const Bf16Kernels& kernels) const {
    const double most = ceiling(kernels, rounds_);
    const double native = seconds(rounds_, [&] {
      find_engine("cpu")->host()->native(NativeProduct<float>{view(a_), view(b_), view(c_)});
    });
    fmt::print("n = {}, unit {} ({}): ceiling {:.0f} GFLOP/s, OpenBLAS {:.1f} GFLOP/s\n", size_, kernels.name,
               is_slow(amx_state(1)) ? "slow" : "fast", most * 1e-9, products() / native * 1e-9);
    for (const Scheme* scheme : {&schemes::bf16x3, &schemes::bf16x6, &schemes::bf16x9}) {
      for (const int block : {64, 128, 256}) print(kernels, *scheme, block, most, native);
    }
  }

 private:
  std::vector<float> matrix(std::uint64_t seed) const {
    std::vector<float> elements(static_cast<std::size_t>(size_ * size_));
    for (std::size_t e = 0; e < elements.size(); ++e)
      elements[e] =
          static_cast<float>(static_cast<std::int64_t>(measure::mix_bits(seed << 40 | e))) * 0x1p-63F;
    return elements;
  }
  template <class T>
  MatrixView<T> view(std::vector<T>& elements) const {
    return {elements.data(), size_, size_, 1, size_};
  }
  MatrixView<const float> view(const std::vector<float>& elements) const {
    return {elements.data(), size_, size_, 1, size_};
  }
  double products() const { return 2.0 * static_cast<double>(size_) * static_cast<double>(size_ * size_); }

  // Times of the whole product, and of one with a single term, whose difference is that of the other terms.
  void print(const Bf16Kernels& kernels, const Scheme& scheme, int block, double most, double native) const {
    Schedule schedule = scheme.program.schedule;
    schedule.k_block = block;
    const double all = run(kernels, scheme.program, schedule);
    schedule.terms = schedule.terms.last(1);
    const double one = run(kernels, scheme.program, schedule);
    const auto terms = static_cast<double>(scheme.program.schedule.terms.size());
    const double rate = (terms - 1) * products() / (all - one);
    const double rest = one - products() / rate;
    fmt::print(
        "{:7} block {:3}: {:.1f} GFLOP/s, {:.2f} of native; terms {:.0f} GFLOP/s, {:.2f} of the ceiling; the "
        "rest {:.2f} ns an element of C\n",
        scheme.name, block, products() / all * 1e-9, native / all, rate * 1e-9, rate / most,
        rest / static_cast<double>(size_ * size_) * 1e9);
  }

  double run(const Bf16Kernels& kernels, const Program& program, const Schedule& schedule) const {
    const FusedProblem problem{.split_a = program.split_a,
                               .split_b = program.split_b,
                               .schedule = schedule,
                               .accumulator = Accumulator::amx_bf16,
                               .weighted = true,
                               .type = ElementType::f32,
                               .m = size_,
                               .n = size_,
                               .k = size_};
    std::vector<VectorRange> rows(static_cast<std::size_t>(size_)), columns(rows);
    const HostBuffer scratch({}, bf16_products.scratch_bytes(problem, 1));
    return seconds(rounds_, [&] {
      find_ranges(view(a_), problem.split_a, rows, 1);
      find_ranges(view(b_).transposed(), problem.split_b, columns, 1);
      multiply_bf16(FusedProduct<float>{.problem = problem,
                                        .a = view(a_),
                                        .b = view(b_).transposed(),
                                        .rows = rows,
                                        .columns = columns,
                                        .c = view(c_),
                                        .alpha = 1,
                                        .beta = 0,
                                        .scratch = static_cast<std::byte*>(scratch.pointer()),
                                        .threads = 1},
                    kernels);
    });
  }

  std::int64_t size_;
  int rounds_;
  std::vector<float> a_, b_;
  mutable std::vector<float> c_;
};

}  // namespace
}  // namespace kintsugi::core

int main(int count, char** words) {
  using namespace kintsugi::core;
  const Bf16Kernels* const kernels = bf16_kernels();
  if (kernels == nullptr) {
    fmt::print("this CPU has no matrix unit for bf16, or Linux refuses its registers\n");
    return 1;
  }
  Rates(count > 1 ? std::atol(words[1]) : 2048, count > 2 ? std::atoi(words[2]) : 5).print(*kernels);
}

// Multiplies integer slices by each family of kernels and by the reference engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engines/registry.hpp"
#include "split/slices.hpp"
#include "tools/measure/generators/random.hpp"

namespace kintsugi::test {

// Slices of a kind of integers, and the sums of both engines. A Kind has:
//   Element, Kernels     types
//   format, sum_type, accumulator
//   worker_bytes(kernels), multiply(task, kernels)
//   padding              the byte that fills the memory beyond the elements
template <class Kind>
class FamilyOperands {
 public:
  using Kernels = typename Kind::Kernels;

  // element_a(random bits, slice) and element_b() give the elements; states of the random bits begin at seed
  // << 32.
  template <class ElementA, class ElementB>
  FamilyOperands(const core::Schedule& schedule, std::int64_t m, std::int64_t n, std::int64_t k,
                 std::uint64_t seed_a, const ElementA& element_a, std::uint64_t seed_b,
                 const ElementB& element_b)
      : schedule_(schedule), m_(m), n_(n), a_(fill(schedule.slices_a, m, k, seed_a, element_a, a_memory_)),
        b_(fill(schedule.slices_b, n, k, seed_b, element_b, b_memory_)) {}

  std::vector<std::byte> reference() const {
    const core::Engine& engine = *core::find_engine("reference");
    return run(engine.host()->scratch_bytes(schedule_, Kind::format.id, a_.k, 2), 2,
               [&](const core::Multiplication& task) { engine.host()->multiply(task); });
  }

  std::vector<std::byte> by(const Kernels& kernels, int threads) const {
    return run(static_cast<std::size_t>(threads) * Kind::worker_bytes(kernels), threads,
               [&](const core::Multiplication& task) { Kind::multiply(task, kernels); });
  }

 private:
  template <class Element>
  static core::Slices fill(int count, std::int64_t vectors, std::int64_t k, std::uint64_t seed,
                           const Element& element, std::vector<std::byte>& memory) {
    core::Slices slices = core::make_slices(Kind::format, core::SliceStorage::packed, count, vectors, k);
    memory.assign(slices.bytes(), Kind::padding);
    slices.data = memory.data();
    std::uint64_t state = seed << 32;
    for (int s = 0; s < count; ++s) {
      for (std::int64_t v = 0; v < vectors; ++v) {
        for (std::int64_t p = 0; p < k; ++p)
          slices.vector<typename Kind::Element>(s, v)[p] = element(measure::mix_bits(state++), s);
      }
    }
    return slices;
  }

  // Sums and scratch memory begin with garbage, which a kernel must not read.
  template <class Multiply>
  std::vector<std::byte> run(std::size_t scratch_bytes, int threads, const Multiply& multiply) const {
    core::Accumulators sums = core::make_accumulators(Kind::sum_type, m_, n_, schedule_.groups);
    std::vector<std::byte> memory(sums.bytes(), std::byte{0xcd});
    std::vector<std::byte> scratch(scratch_bytes, std::byte{0xab});
    sums.data = memory.data();
    multiply(core::Multiplication{&schedule_, a_, b_, sums, Kind::accumulator, scratch.data(), threads});
    return memory;
  }

  const core::Schedule& schedule_;
  std::int64_t m_;
  std::int64_t n_;
  std::vector<std::byte> a_memory_, b_memory_;
  core::Slices a_, b_;
};

}  // namespace kintsugi::test

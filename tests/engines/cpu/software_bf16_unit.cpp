// Compiled for AVX-512; the model is not (kernels.hpp gives the reason).
#if defined(__x86_64__) && defined(__linux__)

#include "tests/engines/cpu/software_bf16_unit.hpp"

#include <cstring>

#include "engines/cpu/bf16_loops.hpp"

namespace kintsugi::core {

namespace {

class SoftwareUnit {
 public:
  void clear() { std::memset(sums_, 0, sizeof sums_); }
  void load(const float* sums) { std::memcpy(sums_, sums, sizeof sums_); }
  void store(float* sums) const { std::memcpy(sums, sums_, sizeof sums_); }

  template <class Between>
  void step(const std::byte* left, const std::byte* right, const Between& between) {
    for (int pair = 0; pair < 4; ++pair) {
      multiply_tiles_by_model(left + pair / 2 * Bf16Panel::tile_bytes,
                              right + pair % 2 * Bf16Panel::tile_bytes, sums_ + 256 * pair);
      if (pair == 2) between();
    }
  }

 private:
  float sums_[Bf16Panel::sums];
};

}  // namespace

void multiply_bf16_panels_by_model(const Bf16Products& task) { multiply_bf16_panels<SoftwareUnit>(task); }

}  // namespace kintsugi::core

#endif

// Thread blocks that occupy their SMs, to test a product on the remaining ones.
#include <cstdint>

namespace kintsugi::measure {

// Runs until `released` becomes non-zero, by a copy into device memory, or the time is up.
extern "C" __global__ void hold_sms(const volatile std::uint32_t* released, std::uint64_t max_nanoseconds) {
  std::uint64_t begin = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  for (std::uint64_t now = begin; *released == 0 && now - begin < max_nanoseconds;)
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
}

}  // namespace kintsugi::measure

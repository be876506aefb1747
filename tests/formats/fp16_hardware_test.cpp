// fp16 against the processor's own conversion (F16C), over a dense sample of all floats.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "formats/formats.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

namespace kintsugi::core {
namespace {

// Reads cpuid directly, since clang 14's __builtin_cpu_supports has no f16c; "avx" asks the operating system
// as well.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __builtin_cpu_supports("avx") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 &&
         (ecx & bit_F16C) != 0;
}

struct Halves {
  std::uint16_t nearest;
  std::uint16_t towards_zero;
};

__attribute__((target("f16c"))) Halves convert_in_hardware(float x) {
  const __m128 vector = _mm_set_ss(x);
  const __m128i nearest = _mm_cvtps_ph(vector, _MM_FROUND_TO_NEAREST_INT);
  const __m128i towards_zero = _mm_cvtps_ph(vector, _MM_FROUND_TO_ZERO);
  return {static_cast<std::uint16_t>(_mm_extract_epi16(nearest, 0)),
          static_cast<std::uint16_t>(_mm_extract_epi16(towards_zero, 0))};
}

__attribute__((target("f16c"))) float convert_back_in_hardware(std::uint16_t half) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}

bool is_nan(std::uint64_t half) { return (half & 0x7fff) > 0x7c00; }

bool agrees(std::uint64_t ours, std::uint16_t theirs) {
  return is_nan(ours) ? is_nan(theirs) : ours == theirs;  // hardware keeps a NaN's sign and payload
}

TEST(Fp16Hardware, EncodesADenseSampleOfFloatsAlike) {
  if (!has_f16c()) GTEST_SKIP() << "this processor has no F16C";
  constexpr std::uint64_t stride = 499;  // prime: every exponent, all kinds of last bits; 8.6 million floats
  for (std::uint64_t bits = 0; bits < (1ULL << 32); bits += stride) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    const Halves expected = convert_in_hardware(x);
    const double value = static_cast<double>(x);
    ASSERT_TRUE(agrees(encode(fp16, value), expected.nearest)) << std::hexfloat << x;
    ASSERT_TRUE(agrees(encode(fp16, value, Rounding::towards_zero), expected.towards_zero))
        << std::hexfloat << x;
  }
}

TEST(Fp16Hardware, DecodesEveryHalfAlike) {
  if (!has_f16c()) GTEST_SKIP() << "this processor has no F16C";
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const auto expected = static_cast<double>(convert_back_in_hardware(static_cast<std::uint16_t>(half)));
    const double value = decode(fp16, half);
    ASSERT_TRUE(std::isnan(value)
                    ? std::isnan(expected)
                    : std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(expected))
        << half;
  }
}

}  // namespace
}  // namespace kintsugi::core
#endif

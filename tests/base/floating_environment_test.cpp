// The floating-point environment of a call: the default one inside, the caller's with its flags afterwards.
#include "base/floating_environment.hpp"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace kintsugi::core {
namespace {

volatile double third_of = 3;
volatile double tiny = 1e-300;

// Raises inexact and underflow.
void raise_some() {
  [[maybe_unused]] volatile double quotient = 1 / third_of;
  quotient = tiny * tiny;
}

TEST(FloatingEnvironment, FlagsOfTheCallerStay) {
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_DIVBYZERO);
  {
    const FloatingEnvironment environment;
    raise_some();
    ASSERT_NE(std::fetestexcept(FE_INEXACT), 0);
  }
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), FE_DIVBYZERO);
  {
    const FloatingEnvironment environment;
    std::feclearexcept(FE_ALL_EXCEPT);
  }
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), FE_DIVBYZERO);
  std::feclearexcept(FE_ALL_EXCEPT);
}

TEST(FloatingEnvironment, RoundingIsToNearestOnlyInside) {
  for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
    std::fesetround(rounding);
    {
      const FloatingEnvironment environment;
      EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    }
    EXPECT_EQ(std::fegetround(), rounding);
  }
}

#if defined(__x86_64__)
TEST(FloatingEnvironment, SubnormalsAreKeptOnlyInside) {
  const unsigned before = _mm_getcsr();
  for (const unsigned bits : {0x8000U, 0x40U}) {  // flush to zero, denormals are zero
    _mm_setcsr(before | bits);
    {
      const FloatingEnvironment environment;
      EXPECT_EQ(_mm_getcsr() & 0x8040U, 0U);
    }
    EXPECT_EQ(_mm_getcsr() & 0x8040U, bits);
  }
  _mm_setcsr(before);
}

// The x87 unit has flags and a precision of its own.
TEST(FloatingEnvironment, X87FlagsStayAndItsPrecisionIsExtendedOnlyInside) {
  std::feclearexcept(FE_ALL_EXCEPT);
  volatile long double three = 3;
  {
    const FloatingEnvironment environment;
    [[maybe_unused]] volatile long double third = 1 / three;
    third = 0 / (three - 3);
    ASSERT_NE(std::fetestexcept(FE_INVALID | FE_INEXACT), 0);
  }
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0);
  unsigned short control = 0;
  asm volatile("fnstcw %0" : "=m"(control));
  const auto short_precision = static_cast<unsigned short>(control & ~0x300U);
  asm volatile("fldcw %0" : : "m"(short_precision));
  {
    const FloatingEnvironment environment;
    unsigned short inside = 0;
    asm volatile("fnstcw %0" : "=m"(inside));
    EXPECT_EQ(inside & 0x300U, 0x300U);
  }
  unsigned short after = 0;
  asm volatile("fnstcw %0" : "=m"(after));
  EXPECT_EQ(after, short_precision);
  asm volatile("fldcw %0" : : "m"(control));
}
#endif

}  // namespace
}  // namespace kintsugi::core

// Tests that products of 52-bit words on device memory have the bits of the engine reference.
#include "gpu/calls/device_stream.hpp"

namespace kintsugi::test {
namespace {

template <class T>
void expect_bits_of_words(GemmCase test, const DeviceRun& run = {}) {
  SCOPED_TRACE(describe(test));
  const auto bits = device_bits<T>(test, run);
  test.engine = "reference";
  GemmDataOf<T> reference(test);
  reference.run_well();
  ASSERT_EQ(bits, bits_of(reference.result()));
}

template <class T>
class WordsOf : public testing::Test {};
using EveryElement = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(WordsOf, EveryElement);

TYPED_TEST(WordsOf, BitsEqualTheReferencesInSmallCases) {
  for (const char* scheme : {"int52", "int52:words=2", "int52:words=3", "int52:words=4"}) {
    for (const char* distribution : {"uniform", "phi:2", "span:60"}) {
      expect_bits_of_words<TypeParam>(
          {.m = 33, .n = 21, .k = 50, .distribution = distribution, .scheme = scheme});
      expect_bits_of_words<TypeParam>({.m = 5,
                                       .n = 66,
                                       .k = 17,
                                       .op_a = KINTSUGI_OP_T,
                                       .op_b = KINTSUGI_OP_C,
                                       .layout = KINTSUGI_ROW_MAJOR,
                                       .pad_a = 1,
                                       .pad_c = 3,
                                       .batch = 2,
                                       .alpha = -1.5,
                                       .beta = 0.75,
                                       .distribution = distribution,
                                       .scheme = scheme},
                                      {.offset = 1, .pointers = true, .device_scalars = true});
    }
  }
}

// Sizes are about multiples of the tiles' 64 and the steps' 16; the last product has more than one block of
// C.
TEST(Words, EveryShapeHasTheReferencesBits) {
  for (const std::int64_t size : {1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200}) {
    for (const char* scheme : {"int52", "int52:words=3"}) {
      expect_bits_of_words<double>({.m = size, .n = 70, .k = 40, .scheme = scheme});
      expect_bits_of_words<double>({.m = 70, .n = size, .k = 40, .scheme = scheme});
      expect_bits_of_words<double>({.m = 20, .n = 30, .k = size, .scheme = scheme});
    }
  }
  expect_bits_of_words<double>({.m = 4100, .n = 30, .k = 40, .scheme = "int52:words=2"});
}

TEST(Words, LongSumsHaveTheReferencesBits) {
  for (const std::int64_t k : {65537, 300001})
    expect_bits_of_words<double>(
        {.m = 3, .n = 5, .k = k, .op_a = KINTSUGI_OP_T, .distribution = "phi:1", .scheme = "int52:words=2"});
}

}  // namespace
}  // namespace kintsugi::test

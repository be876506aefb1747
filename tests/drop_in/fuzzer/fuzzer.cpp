// libFuzzer's target: the first two bytes select a name of the drop-in, the next ones its arguments and
// matrices.
#include <cstdio>
#include <cstdlib>

#include "tests/drop_in/blas/random.hpp"

// All arguments are legal, so a call of xerbla_ is a failure.
extern "C" __attribute__((visibility("default"))) void xerbla_(const char* routine,
                                                               const std::int32_t* number,
                                                               std::size_t length) {
  std::printf("xerbla got %.*s, %d\n", static_cast<int>(length), routine, *number);
  std::abort();
}

// Limits sides to 66, just beyond the blocks of 64 in which triangles are computed.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  kintsugi::test::largest_side = 66;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto entries = kintsugi::test::entries();
  const auto& entry = entries[(data[0] + 256u * data[1]) % entries.size()];
  const kintsugi::test::Random random(size, {data + 2, size - 2});
  const std::string wrong = kintsugi::test::run_case(entry, random, false);
  if (wrong.empty()) return 0;
  std::printf("%s %s\n", entry.name, wrong.c_str());
  std::abort();
}

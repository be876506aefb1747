// expect: constraints not satisfied|no matching function
#include "kintsugi/kintsugi.hpp"

void multiply(const int* a, const int* b, int* c) {
  kintsugi::gemm(kintsugi::Op::N, kintsugi::Op::N, 1, 1, 1, 1, a, 1, b, 1, 0, c, 1);
}

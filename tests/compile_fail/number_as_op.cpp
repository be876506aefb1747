// expect: no matching function|cannot convert
#include "kintsugi/kintsugi.hpp"

void multiply(const float* a, const float* b, float* c) {
  kintsugi::gemm('N', 'N', 1, 1, 1, 1, a, 1, b, 1, 0, c, 1);
}

// Must compile: the snippets beside it fail for their own reason, not for a broken header or command.
#include <utility>

#include "kintsugi/kintsugi.hpp"

void control(kintsugi::Plan& plan, const float* a, const float* b, float* c) {
  kintsugi::gemm(kintsugi::Op::N, kintsugi::Op::T, 1, 1, 1, 1, a, 1, b, 1, 0, c, 1, {.scheme = "fp16"});
  kintsugi::Plan moved = std::move(plan);
  const kintsugi::Prepared prepared = moved.prepare(kintsugi::Side::A, a);
  moved.execute(1, prepared, b, 0, c);
}

// expect: use of deleted function
#include "kintsugi/kintsugi.hpp"

void multiply(const kintsugi::Plan& plan, const float* a, const float* b, float* c) {
  plan.execute(1, plan.prepare(kintsugi::Side::A, a), b, 0, c);
}

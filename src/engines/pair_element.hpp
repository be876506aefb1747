// Native double-double products: their loop, and the last step of an element.
#pragma once

#include "arith/pair_sum.hpp"
#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "engines/engine.hpp"
#include "recombine/pair_element.hpp"

namespace kintsugi::core {

// Computes C(i, j) = alpha sum + beta C(i, j). Two kinds of results are computed again: those that are not
// finite, since error-free transformations turn infinities into NaN, and those that underflow may have
// spoiled.
inline void finish_pair_element(const NativeProduct<DoubleDouble>& task, std::int64_t i, std::int64_t j,
                                const DoubleDouble& sum) {
  DoubleDouble& element = task.c(i, j);
  const DoubleDouble* old = task.beta == DoubleDouble(0) ? nullptr : &element;
  DoubleDouble result = pair_epilogue(sum, task.alpha, task.beta, old);
  if (!is_finite(result.hi) ||
      may_underflow(task.a, task.b.transposed(), i, j, sum, task.alpha, task.beta, old))
    result = pair_element_beyond_range(task.a, task.b.transposed(), i, j, task.alpha, task.beta, old);
  element = result;
}

// Computes C = alpha A B + beta C, element by element.
inline void sequential_pair_product(const NativeProduct<DoubleDouble>& task) {
#pragma omp parallel for num_threads(workers_for(task.c.columns, task.threads)) schedule(static)
  for (std::int64_t j = 0; j < task.c.columns; ++j) {
    const FloatingEnvironment environment;
    for (std::int64_t i = 0; i < task.c.rows; ++i) {
      ScalarPairSum sum{0, 0};
      for (std::int64_t p = 0; p < task.a.columns; ++p) {
        const DoubleDouble x = normalized(task.a(i, p));
        const DoubleDouble y = normalized(task.b(p, j));
        sum.add_product(x.hi, x.lo, y.hi, y.lo);
      }
      finish_pair_element(task, i, j, {sum.hi, sum.lo});
    }
  }
}

}  // namespace kintsugi::core

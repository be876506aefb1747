// Loop over the elements of C that a recombination writes.
#pragma once

#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "base/embedding.hpp"
#include "base/floating_environment.hpp"
#include "base/threads/workers.hpp"

namespace kintsugi::core {

// Calls visit(i, j, element) for every element whose row of A and column of B are finite;
// write_special_values() writes the others. `columns` has parts_of<T> vectors for each column of C. Both
// vectors of a complex column have the same elements of B, so that the first one tells whether they are
// finite.
template <class T, class Visit>
void for_each_finite_element(std::span<const VectorRange> rows, std::span<const VectorRange> columns,
                             const MatrixView<T>& c, int threads, const Visit& visit) {
#pragma omp parallel for num_threads(workers_for(c.columns, threads)) schedule(static)
  for (std::int64_t j = 0; j < c.columns; ++j) {
    const FloatingEnvironment environment;
    if (!columns[parts_of<T> * j].finite()) continue;
    for (std::int64_t i = 0; i < c.rows; ++i) {
      if (rows[i].finite()) visit(i, j, c(i, j));
    }
  }
}

}  // namespace kintsugi::core

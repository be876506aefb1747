// Memory of a product by Ozaki scheme I on the host (execute/host/ozaki1.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory.hpp"
#include "planner/plan.hpp"
#include "recombine/ozaki1.hpp"
#include "split/slices.hpp"
#include "split/successive.hpp"

namespace kintsugi::core {

// Vectors of B that one step multiplies: one tile of an engine.
inline constexpr std::int64_t ozaki1_vectors_at_once = Slices::vector_multiple;

struct Ozaki1Memory {
  SuccessiveSplit a;
  SuccessiveSplit b;
  double* weights;         // weights of the inner indices in Algorithm 3 of dgemm-tc (arith/successive.hpp)
  Scaled* row_sums;        // weighted sums of A's rows
  Scaled* slice_row_sums;  // weighted sums of the rows of one slice
  // Number of slices that each row needs. -s means that the residual is 0 after s slices.
  std::int32_t* slice_counts;
  std::byte* products;  // products of ozaki1_vectors_at_once vectors of one slice of B
  std::byte* sums;      // sums of the same elements as `products`
  std::byte* scratch;   // scratch memory of the engine
};
Ozaki1Memory lay_out_ozaki1(const Plan& plan, const Program& program, const Blocking& blocking,
                            Workspace& workspace);

}  // namespace kintsugi::core

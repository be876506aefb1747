// Memory of a product by Ozaki scheme I on the host (execute/host/ozaki1.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory.hpp"
#include "planner/plan.hpp"
#include "recombine/error_free.hpp"
#include "splits/slice_count.hpp"
#include "splits/slices.hpp"
#include "splits/successive.hpp"

namespace kintsugi::core {

// Vectors of B whose products are held at once: one tile of an engine.
inline constexpr std::int64_t ozaki1_vectors_at_once = Slices::vector_multiple;

struct Ozaki1Memory {
  SuccessiveSplit a;
  SuccessiveSplit b;
  double* weights;        // of the inner indices, Algorithm 3
  Scaled* whole;          // of A's rows
  Scaled* slice;          // of the rows of a slice
  std::int32_t* lengths;  // slices that a row asks for; negative: until nothing is left
  std::byte* products;    // of one slice of B, for ozaki1_vectors_at_once
  std::byte* sums;        // of as many elements
  std::byte* scratch;     // the engine's
};
Ozaki1Memory lay_out_ozaki1(const Plan& plan, const Program& program, const Blocking& blocking,
                            Workspace& workspace);

}  // namespace kintsugi::core

// Memory of one batch item on the host. The lay_out_...() functions take memory from the workspace in an
// execution; when a plan is made, the same functions count its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "arith/residue/rounding_errors.hpp"
#include "base/memory.hpp"
#include "planner/plan.hpp"
#include "recombine/accumulators.hpp"
#include "recombine/ozaki1.hpp"
#include "split/equilibrate.hpp"
#include "split/slices.hpp"
#include "split/successive.hpp"

namespace kintsugi::core {

// Ranges of the rows of op(A) and of the columns of op(B).
struct RangeMemory {
  std::span<VectorRange> rows;
  std::span<VectorRange> columns;
};
RangeMemory lay_out_ranges(const Plan& plan, Workspace& workspace);

// Memory of one block of C: slices of both sides, sums, and the engine's scratch.
struct BlockMemory {
  Slices a;
  Slices b;
  Accumulators sums;
  std::byte* scratch = nullptr;
};
BlockMemory lay_out_block(const Plan& plan, const Program& program, const Blocking& blocking,
                          Workspace& workspace);

// Bit lengths of the largest element in each row and each column of |A||B|. ScaleRule::product takes the
// scales from them.
struct ProductBitMemory {
  std::span<std::int32_t> rows;
  std::span<std::int32_t> columns;
};
ProductBitMemory lay_out_product_bits(const Plan& plan, Workspace& workspace);

// Memory of the element checks of a block (execute/host/checked.cpp).
struct CheckMemory {
  std::span<RoundingBound> rounding_bounds_a;
  std::span<RoundingBound> rounding_bounds_b;
  // Memory of the equilibration (split/equilibrate.hpp): ranges of the elements at every inner index, and
  // factors.
  std::span<InnerRange> inner_a;
  std::span<InnerRange> inner_b;
  std::span<double> factors_a;
  std::span<double> factors_b;
  std::uint8_t* states = nullptr;  // ElementCheck::State of every element of a block
  std::byte* exact_scratch = nullptr;
};
CheckMemory lay_out_check(const Plan& plan, const Blocking& blocking, Workspace& workspace);

// Takes the scratch of exact sums.
std::byte* lay_out_exact_sums(const Plan& plan, Workspace& workspace);

// Takes memory for the list of elements in a block of C that are not accepted on the grid of a reproducible
// product.
std::byte* lay_out_refused_elements(const Plan& plan, const Blocking& blocking, Workspace& workspace);

// Takes memory for the states of all elements of C.
std::uint8_t* lay_out_element_states(const Plan& plan, Workspace& workspace);

// Returns the bytes of workspace for the candidate that needs most.
std::size_t host_workspace_bytes(const Plan& plan, const Blocking& blocking);

// Memory of a product by Ozaki scheme I (execute/host/ozaki1.hpp).

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

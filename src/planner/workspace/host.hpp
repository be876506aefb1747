// Memory of one batch item on the host. The same functions take it from the workspace in an execution and
// count its bytes when a plan is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "arith/range.hpp"
#include "arith/rounding_bound.hpp"
#include "base/memory.hpp"
#include "planner/plan.hpp"
#include "recombine/accumulators.hpp"
#include "split/equilibrate.hpp"
#include "split/slices.hpp"

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

// Bit lengths of the largest sum in every row and in every column of the product of the operands' magnitudes,
// from which ScaleRule::product takes the scales.
struct ProductBitMemory {
  std::span<std::int32_t> rows;
  std::span<std::int32_t> columns;
};
ProductBitMemory lay_out_product_bits(const Plan& plan, Workspace& workspace);

// Memory of element checks in addition to a candidate's block (execute/host/checked.cpp).
struct CheckMemory {
  std::span<RoundingBound> rounding_bounds_a;
  std::span<RoundingBound> rounding_bounds_b;
  // Equilibration along k (split/equilibrate.hpp): ranges of both sides' elements at every inner index, and
  // the factors of both sides.
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

// Takes memory for the elements of a block of C that the grid of a reproducible product does not accept.
std::byte* lay_out_refused_elements(const Plan& plan, const Blocking& blocking, Workspace& workspace);

// Takes memory for the states of all elements of C.
std::uint8_t* lay_out_element_states(const Plan& plan, Workspace& workspace);

// Returns the bytes of workspace for the candidate that needs most.
std::size_t host_workspace_bytes(const Plan& plan, const Blocking& blocking);

}  // namespace kintsugi::core

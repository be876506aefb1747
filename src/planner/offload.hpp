// Steps of an offloaded product. Each step copies rows of A or columns of B to a device, then multiplies rows
// and columns that are there. The steps do not depend on the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/plan.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

// Device memory of an offloaded product. A strip of A holds up to `rows` rows of op(A), and a strip of B up
// to `columns` columns of op(B), each with `inner` inner indices. A strip of C holds rows x columns elements.
// An operand that fits the device has one strip. Other operands, and the operands of a batch, have two
// strips, so that one strip is filled while the other is multiplied.
struct OffloadLayout {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
  std::int64_t items = 1;  // batch items whose matrices each strip holds
  int strips_a = 0;
  int strips_b = 0;
  int strips_c = 0;
};

// A copy of vectors into a strip.
struct OffloadLoad {
  Side side = Side::a;
  Interval vectors{};
  Interval inner{};
  Interval items{0, 1};
  int strip = 0;
  std::int64_t position = 0;  // position of the first vector in the strip
  bool replaces = false;      // true: the load overwrites vectors that earlier steps multiply
};

// Loads, and then a product. Its operands consist of whole loads.
struct OffloadStep {
  std::vector<OffloadLoad> loads{};
  Interval rows{};     // rows of C
  Interval columns{};  // columns of C
  Interval inner{};
  Interval items{0, 1};  // batch items
  int strip_a = 0;
  int strip_b = 0;
  int strip_c = 0;
  std::int64_t row = 0;       // position of the first row in the strips of A and C
  std::int64_t column = 0;    // position of the first column in the strips of B and C
  bool is_first = true;       // true: the step has the first inner indices, so that beta applies
  bool is_last = true;        // true: the step has the last inner indices, so that C is complete after it
  bool begins_strip = false;  // true: the first step in its strip of C, which may hold older elements
};

// Rows and columns of C, and items of a batch, that one device computes.
struct OffloadPart {
  Interval rows;
  Interval columns;
  Interval items{0, 1};

  std::int64_t elements() const { return rows.count * columns.count * items.count; }
};

// Divides the items of a batch between devices. A single product is divided along the longer side of C, at
// multiples of 128. Each part has at least 1024 rows or columns, so a small C has fewer parts than there are
// devices.
std::vector<OffloadPart> offload_parts(const Problem& problem, int devices);

// Returns the number of elements from one batch item to the next in a strip of A, B or C.
std::int64_t strip_stride(std::int64_t rows, std::int64_t columns);

// Returns the bytes of all strips in device memory.
std::size_t strip_bytes(const Problem& problem, const OffloadLayout& layout);

// Returns the layout for a part of C whose strips take at most `bytes`; a layout with rows = 0 if nothing
// fits. k is cut only if `may_cut_k` is true, strips with all inner indices would be narrow, and larger tiles
// of C save copies.
OffloadLayout fit_layout(const Problem& problem, const OffloadPart& part, std::size_t bytes, bool may_cut_k);

// Returns the steps for a part of C. If the part fits the device, each element is loaded once: loads of A
// and B alternate if C is large; else the shorter side is loaded as a whole, and the other one in parts.
std::vector<OffloadStep> offload_steps(const Problem& problem, const OffloadPart& part,
                                       const OffloadLayout& layout);

// Choice between host and devices for matrices in the host's memory.

// Returns a plan for devices, which contains the given host plan, if settings and expected times choose
// devices. Otherwise returns the given plan, with the reason. A plan for device matrices is returned
// unchanged.
Plan offloaded_if_chosen(Plan plan);

// Returns the plan of the same call in the current context of a device, with `inner` inner indices.
Plan plan_of_inner_indices(const Plan& plan, std::int64_t inner);

// Returns the plan of one step: a smaller problem with the candidates of `plan`. Its workspace is at most
// `workspace_limit`, unless that is 0. Fails with workspace_too_small.
Plan plan_of_step(const Plan& plan, const Problem& problem, std::size_t workspace_limit);

// True if the plan keeps its accuracy when C is rounded after each of several parts of k.
bool may_cut_k(const Plan& plan);

}  // namespace kintsugi::core

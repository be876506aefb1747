// Steps of an offloaded product. Each step copies rows of A or columns of B to a device, then multiplies rows
// and columns that are there. The steps do not depend on the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/problem.hpp"

namespace kintsugi::core {

struct IndexRange {
  std::int64_t first = 0;
  std::int64_t count = 0;

  std::int64_t end() const { return first + count; }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

// Device memory of an offloaded product. A strip of A holds up to `rows` rows of op(A), and a strip of B up
// to `columns` columns of op(B), both with `inner` inner indices. A strip of C holds rows x columns elements.
// An operand that fits has one strip. Otherwise it has two, one of which is filled while the other one is
// multiplied.
struct OffloadLayout {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
  int strips_a = 0;
  int strips_b = 0;
  int strips_c = 0;
};

// A copy of vectors into a strip.
struct OffloadLoad {
  Side side = Side::a;
  IndexRange vectors{};
  IndexRange inner{};
  int strip = 0;
  std::int64_t position = 0;  // position of the first vector in the strip
  bool replaces = false;      // true: the load overwrites vectors that earlier steps multiply
};

// One or two loads, and then a product. A step without columns has no product.
struct OffloadStep {
  std::vector<OffloadLoad> loads{};
  IndexRange rows{};     // rows of C
  IndexRange columns{};  // columns of C
  IndexRange inner{};
  int strip_a = 0;
  int strip_b = 0;
  int strip_c = 0;
  std::int64_t row = 0;     // first row of the product in the strips of A and C
  std::int64_t column = 0;  // first column of the product in the strips of B and C
  bool is_first = true;     // true: the product has the first inner indices, so beta is applied
  bool is_last = true;      // true: the product has the last inner indices, so C is complete
  bool begins_strip =
      false;  // true: the product is the first one in a strip of C that may hold older elements

  bool multiplies() const { return columns.count > 0; }
};

// Rows and columns of C that one device computes.
struct OffloadPart {
  IndexRange rows;
  IndexRange columns;
};

// Divides C between devices along its longer side, at multiples of 128. Parts have at least 1024 rows or
// columns, so a small C has fewer of them.
std::vector<OffloadPart> offload_parts(const Problem& problem, int devices);

// Returns the distance of a strip's lines in device memory, in elements, if `length` is the longest line.
std::int64_t strip_pitch(std::int64_t length);

// Returns the bytes of all strips in device memory.
std::size_t strip_bytes(const Problem& problem, const OffloadLayout& layout);

// Returns the layout for a part of C whose strips take at most `bytes`; a layout with rows = 0 if nothing
// fits. k is cut only if `may_cut_k` is true and strips with all inner indices would be narrow.
OffloadLayout fit_layout(const Problem& problem, const OffloadPart& part, std::size_t bytes, bool may_cut_k);

// Returns the steps for a part of C. If the part fits the device, the first and the last loads are small, so
// that products begin early and little remains to be multiplied after the last load.
std::vector<OffloadStep> offload_steps(const Problem& problem, const OffloadPart& part,
                                       const OffloadLayout& layout);

}  // namespace kintsugi::core

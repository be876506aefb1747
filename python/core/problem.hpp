// From arrays to a problem of the C ABI, by the rules of kintsugi/_arrays.py and kintsugi/_calls.py; no
// Python here.
#pragma once

#include <kintsugi/kintsugi.h>

#include "array.hpp"

namespace kintsugi_python {

// Shape of a product: (batch..., m, n), where a vector counts as one row of A or one column of B.
struct ProductShape {
  int64_t sizes[most_dimensions];
  int batch_dimensions;
  int64_t k;

  int64_t m() const { return sizes[batch_dimensions]; }
  int64_t n() const { return sizes[batch_dimensions + 1]; }
};

// All functions return false for what is left to the Python code: errors, empty arrays, whatever needs a
// copy.

bool find_shape(const Array& a, const Array& b, ProductShape& shape);

// Returns the array with a row or column in place of the dimension that a vector does not have.
Array with_row(const Array& array);
Array with_column(const Array& array);

// a, b and c have at least two dimensions and one element type; c has the shape of the product.
bool describe(const Array& a, const Array& b, const Array& c, const ProductShape& shape,
              kintsugi_problem& problem);

// True if C shares no memory with A or B, and none of its elements shares memory with another. The arrays are
// those that the problem was made of.
bool shares_no_memory(const Array& a, const Array& b, const Array& c, const kintsugi_problem& problem);

}  // namespace kintsugi_python

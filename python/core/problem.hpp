// Makes the problem of the C ABI for arrays, by the rules of kintsugi/_arrays.py and kintsugi/_calls.py. No
// Python objects occur here.
#pragma once

#include <kintsugi/kintsugi.h>

#include "array.hpp"

namespace kintsugi_python {

// Shape of a product: (batch..., m, n), where a vector counts as one row of A or one column of B.
struct ProductShape {
  int64_t sizes[max_dimensions];
  int batch_dimensions;
  int64_t k;

  int64_t m() const { return sizes[batch_dimensions]; }
  int64_t n() const { return sizes[batch_dimensions + 1]; }
};

// find_shape() and describe() return false for arrays that are left to the Python code: wrong shapes, empty
// arrays, and arrays that must be copied.

// Sets the shape of the product of two arrays with at least two dimensions.
bool find_shape(const Array& a, const Array& b, ProductShape& shape);

// These functions insert a dimension of length 1 into a vector, or into the result of a product with a
// vector. The vector becomes a single row or a single column.
Array with_row(const Array& array);
Array with_column(const Array& array);

// Sets the problem. a, b and c have at least two dimensions and one element type; c has the shape of the
// product.
bool describe(const Array& a, const Array& b, const Array& c, const ProductShape& shape,
              kintsugi_problem& problem);

// True if C shares no memory with A or B, and no two elements of C share memory. `problem`: the problem of
// these arrays.
bool shares_no_memory(const Array& a, const Array& b, const Array& c, const kintsugi_problem& problem);

}  // namespace kintsugi_python

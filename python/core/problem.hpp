// Makes the problem of the C ABI for arrays.
#pragma once

#include <kintsugi/kintsugi.h>

#include <vector>

#include "array.hpp"
#include "ref.hpp"

namespace kintsugi_python {

// Shape of a product: (batch..., m, n), where a vector counts as one row of A or one column of B.
struct ProductShape {
  int64_t sizes[max_dimensions];
  int batch_dimensions;
  int64_t k;

  int64_t m() const { return sizes[batch_dimensions]; }
  int64_t n() const { return sizes[batch_dimensions + 1]; }
};

// Sets the shape of the product of two arrays with at least two dimensions. Returns false for shapes that do
// not fit, and for empty products.
bool find_shape(const Array& a, const Array& b, ProductShape& shape);

// These functions insert a dimension of length 1 into a vector, or into the result of a product with a
// vector. The vector becomes a single row or a single column.
void add_row(Array& array);
void add_column(Array& array);

// Ways in which BLAS can address the matrices of an array (..., rows, columns): not at all, as its rows and
// columns have no unit stride; by one stride between equally spaced items; or by a pointer to each item.
enum class BatchKind { none, strided, pointers };
BatchKind batch_kind(const Array& array);

// Sets the problem. a, b and c have at least two dimensions and one element type; c has the shape of the
// product, a and b broadcast to its batch; nullptr stands for a prepared operand. Returns false if BLAS
// cannot address an array.
bool describe(const Array* a, const Array* b, const Array& c, int64_t k, kintsugi_problem& problem);

// Returns the addresses of an array's batch items, whose batch has the dimensions of C's.
std::vector<void*> item_addresses(const Array& array);

// True if C shares no memory with A or B, and no two elements of C share memory. `problem`: the problem of
// these arrays.
bool shares_no_memory(const Array& a, const Array& b, const Array& c, const kintsugi_problem& problem);

// True if the memory from the first to the last element of one array overlaps that of the other.
bool share_memory(const Array& x, const Array& y);

// Returns the members of a problem by name, without struct_size, as a new dict; null with a Python error.
Ref members_of(const kintsugi_problem& problem);

// Sets the members that the dict has. Returns false, with a Python error, for other keys and for values that
// are no integers.
bool set_members(PyObject* dict, kintsugi_problem& problem);

}  // namespace kintsugi_python

#include "problem.hpp"

#include <algorithm>
#include <optional>

namespace kintsugi_python {
namespace {

// A batch of matrices that BLAS can address. Distances are in elements.
struct Matrices {
  bool is_row_major;
  int64_t leading_dimension;
  int64_t stride;  // distance of two batch items
};

// Returns the leading dimension, in elements, of `lines` lines with `length` elements each; nothing if lines
// are not contiguous, or overlap. Strides and the size of an element are in bytes.
std::optional<int64_t> leading_dimension(int64_t element_stride, int64_t line_stride, int64_t lines,
                                         int64_t length, int64_t element_bytes) {
  if (length > 1 && element_stride != element_bytes) return std::nullopt;
  if (lines == 1) return length;
  if (line_stride % element_bytes != 0 || line_stride < length * element_bytes) return std::nullopt;
  return line_stride / element_bytes;
}

// Returns the distance of two batch items in bytes; nothing if the items are not equally spaced. Items are
// equally spaced if the stride of each batch dimension is the stride of the next inner one times its length.
// Returns 0 for one item, and for an array that is broadcast over all batch dimensions.
std::optional<int64_t> uniform_step(const Array& array, const ProductShape& shape) {
  int64_t step = 0;
  int64_t items = 1;
  for (int d = shape.batch_dimensions - 1; d >= 0; --d) {
    if (shape.sizes[d] == 1) continue;
    const int dimension = d - shape.batch_dimensions + array.dimensions - 2;
    const int64_t stride = dimension < 0 || array.shape[dimension] == 1 ? 0 : array.strides[dimension];
    if (items == 1) step = stride;
    if (stride != step * items) return std::nullopt;
    items *= shape.sizes[d];
  }
  return step;
}

// Returns the array as matrices; nothing if BLAS cannot address it.
std::optional<Matrices> as_matrices(const Array& array, const ProductShape& shape) {
  const int64_t size = element_size(array.type);
  const int64_t rows = array.rows();
  const int64_t columns = array.columns();
  const int64_t row_stride = array.strides[array.dimensions - 2];
  const int64_t column_stride = array.strides[array.dimensions - 1];
  const std::optional<int64_t> ld_of_rows = leading_dimension(column_stride, row_stride, rows, columns, size);
  const std::optional<int64_t> ld_of_columns =
      leading_dimension(row_stride, column_stride, columns, rows, size);
  const std::optional<int64_t> step = uniform_step(array, shape);
  if ((!ld_of_rows && !ld_of_columns) || !step || *step < 0 || *step % size != 0) return std::nullopt;
  return Matrices{.is_row_major = ld_of_rows.has_value(),
                  .leading_dimension = ld_of_rows ? *ld_of_rows : *ld_of_columns,
                  .stride = *step / size};
}

int32_t op_of(const Matrices& operand, const Matrices& c) {
  return operand.is_row_major == c.is_row_major ? KINTSUGI_OP_N : KINTSUGI_OP_T;
}

// Returns the array with a dimension of length 1 inserted at a position.
Array with_dimension(const Array& array, int position) {
  Array result = array;
  for (int d = array.dimensions; d > position; --d) {
    result.shape[d] = array.shape[d - 1];
    result.strides[d] = array.strides[d - 1];
  }
  result.shape[position] = 1;
  result.strides[position] = 0;  // not used, since the length is 1
  result.dimensions = array.dimensions + 1;
  return result;
}

struct Extent {
  const char* first;
  const char* end;
};

// Returns the memory from the first to the last element of an array, including gaps.
Extent extent_of(const Array& array) {
  Extent extent{array.data, array.data + element_size(array.type)};
  for (int d = 0; d < array.dimensions; ++d) {
    const int64_t reach = array.strides[d] * (array.shape[d] - 1);
    if (reach < 0) {
      extent.first += reach;
    } else {
      extent.end += reach;
    }
  }
  return extent;
}

bool overlap(const Extent& x, const Extent& y) { return x.first < y.end && y.first < x.end; }

}  // namespace

Array with_row(const Array& array) { return with_dimension(array, array.dimensions - 1); }

Array with_column(const Array& array) { return with_dimension(array, array.dimensions); }

bool find_shape(const Array& a, const Array& b, ProductShape& shape) {
  shape.batch_dimensions = std::max(a.dimensions, b.dimensions) - 2;
  shape.k = a.columns();
  if (b.rows() != shape.k || shape.k == 0) return false;
  for (int d = 0; d < shape.batch_dimensions; ++d) {
    const int dimension_a = d - shape.batch_dimensions + a.dimensions - 2;
    const int dimension_b = d - shape.batch_dimensions + b.dimensions - 2;
    const int64_t length_a = dimension_a < 0 ? 1 : a.shape[dimension_a];
    const int64_t length_b = dimension_b < 0 ? 1 : b.shape[dimension_b];
    if (length_a != length_b && length_a != 1 && length_b != 1) return false;
    shape.sizes[d] = length_a == 1 ? length_b : length_a;
  }
  shape.sizes[shape.batch_dimensions] = a.rows();
  shape.sizes[shape.batch_dimensions + 1] = b.columns();
  const int64_t* const end = shape.sizes + shape.batch_dimensions + 2;
  const bool is_empty = std::find<const int64_t*>(shape.sizes, end, 0) != end;
  return !is_empty;
}

bool describe(const Array& a, const Array& b, const Array& c, const ProductShape& shape,
              kintsugi_problem& problem) {
  const std::optional<Matrices> of_a = as_matrices(a, shape);
  const std::optional<Matrices> of_b = as_matrices(b, shape);
  const std::optional<Matrices> of_c = as_matrices(c, shape);
  if (!of_a || !of_b || !of_c) return false;
  problem = KINTSUGI_PROBLEM_INIT;
  problem.m = shape.m();
  problem.n = shape.n();
  problem.k = shape.k;
  problem.lda = of_a->leading_dimension;
  problem.ldb = of_b->leading_dimension;
  problem.ldc = of_c->leading_dimension;
  for (int d = 0; d < shape.batch_dimensions; ++d) problem.batch_count *= shape.sizes[d];
  problem.stride_a = of_a->stride;
  problem.stride_b = of_b->stride;
  problem.stride_c = of_c->stride;
  problem.op_a = op_of(*of_a, *of_c);
  problem.op_b = op_of(*of_b, *of_c);
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = c.type;
  problem.layout = of_c->is_row_major ? KINTSUGI_ROW_MAJOR : KINTSUGI_COLUMN_MAJOR;
  problem.memory = c.device == on_host ? KINTSUGI_HOST : KINTSUGI_DEVICE;
  return true;
}

bool shares_no_memory(const Array& a, const Array& b, const Array& c, const kintsugi_problem& problem) {
  const bool is_row_major = problem.layout == KINTSUGI_ROW_MAJOR;
  const int64_t lines = is_row_major ? problem.m : problem.n;
  const int64_t length = is_row_major ? problem.n : problem.m;
  const int64_t elements_of_item = (lines - 1) * problem.ldc + length;
  if (problem.batch_count > 1 && problem.stride_c < elements_of_item) return false;
  const Extent extent = extent_of(c);
  return !overlap(extent, extent_of(a)) && !overlap(extent, extent_of(b));
}

}  // namespace kintsugi_python

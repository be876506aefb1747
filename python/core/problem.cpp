#include "problem.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>

namespace kintsugi_python {
namespace {

// A batch of matrices that BLAS can address. Distances are in elements.
struct Matrices {
  bool is_row_major;
  int64_t leading_dimension;
  std::optional<int64_t> stride;  // distance of two batch items; nothing if items are not equally spaced
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

// Returns the stride, in bytes, of an array's dimension that corresponds to a batch dimension of the
// product. An array with fewer dimensions, or with length 1, is broadcast: its stride is 0.
int64_t batch_stride(const Array& array, int batch_dimension, int batch_dimensions) {
  const int dimension = batch_dimension - batch_dimensions + array.dimensions - 2;
  return dimension < 0 || array.shape[dimension] == 1 ? 0 : array.strides[dimension];
}

int64_t item_count(const int64_t* batch, int batch_dimensions) {
  return std::accumulate(batch, batch + batch_dimensions, int64_t{1}, std::multiplies<>());
}

// Returns the distance of two batch items in elements; nothing if it is negative or no whole number of
// elements, or if the items are not equally spaced. Items are equally spaced if the stride of each batch
// dimension is the stride of the next inner one times its length. Returns 0 for one item, and for an array
// that is broadcast over all batch dimensions.
std::optional<int64_t> uniform_stride(const Array& array, const int64_t* batch, int batch_dimensions) {
  int64_t step = 0;
  int64_t items = 1;
  for (int d = batch_dimensions - 1; d >= 0; --d) {
    if (batch[d] == 1) continue;
    const int64_t stride = batch_stride(array, d, batch_dimensions);
    if (items == 1) step = stride;
    if (stride != step * items) return std::nullopt;
    items *= batch[d];
  }
  if (step < 0 || step % element_size(array.type) != 0) return std::nullopt;
  return step / element_size(array.type);
}

// Returns the array, broadcast to a batch, as matrices; nothing if BLAS cannot address it.
std::optional<Matrices> as_matrices(const Array& array, const int64_t* batch, int batch_dimensions) {
  const int64_t size = element_size(array.type);
  const int64_t rows = array.rows();
  const int64_t columns = array.columns();
  const int64_t items = item_count(batch, batch_dimensions);
  if (rows == 0 || columns == 0 || items == 0) {  // nothing is read or written, and strides mean nothing
    const int64_t stride = items > 1 ? std::max<int64_t>(rows * columns, 1) : 0;
    return Matrices{
        .is_row_major = true, .leading_dimension = std::max<int64_t>(columns, 1), .stride = stride};
  }
  const int64_t row_stride = array.strides[array.dimensions - 2];
  const int64_t column_stride = array.strides[array.dimensions - 1];
  const std::optional<int64_t> ld_of_rows = leading_dimension(column_stride, row_stride, rows, columns, size);
  const std::optional<int64_t> ld_of_columns =
      ld_of_rows ? std::nullopt : leading_dimension(row_stride, column_stride, columns, rows, size);
  if (!ld_of_rows && !ld_of_columns) return std::nullopt;
  return Matrices{.is_row_major = ld_of_rows.has_value(),
                  .leading_dimension = ld_of_rows ? *ld_of_rows : *ld_of_columns,
                  .stride = uniform_stride(array, batch, batch_dimensions)};
}

// A prepared operand's leading dimension may be any valid one.
Matrices prepared_matrices(bool is_row_major, int64_t rows, int64_t columns) {
  return {.is_row_major = is_row_major,
          .leading_dimension = std::max<int64_t>(is_row_major ? columns : rows, 1),
          .stride = 0};
}

int32_t op_of(const Matrices& operand, const Matrices& c) {
  return operand.is_row_major == c.is_row_major ? KINTSUGI_OP_N : KINTSUGI_OP_T;
}

// Inserts a dimension of length 1 at a position.
void add_dimension(Array& array, int position) {
  for (int d = array.dimensions; d > position; --d) {
    array.shape[d] = array.shape[d - 1];
    array.strides[d] = array.strides[d - 1];
  }
  array.shape[position] = 1;
  array.strides[position] = 0;  // not used, since the length is 1
  ++array.dimensions;
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

struct Wide {
  const char* name;
  int64_t kintsugi_problem::*member;
};
struct Narrow {
  const char* name;
  int32_t kintsugi_problem::*member;
};

#define MEMBER(name) \
  { #name, &kintsugi_problem::name }
constexpr Wide wide[] = {MEMBER(m),        MEMBER(n),       MEMBER(k),           MEMBER(lda),
                         MEMBER(ldb),      MEMBER(ldc),     MEMBER(batch_count), MEMBER(stride_a),
                         MEMBER(stride_b), MEMBER(stride_c)};
constexpr Narrow narrow[] = {MEMBER(op_a),       MEMBER(op_b),
                             MEMBER(type_a),     MEMBER(type_b),
                             MEMBER(type_c),     MEMBER(type_scalar),
                             MEMBER(layout),     MEMBER(pointer_mode),
                             MEMBER(memory),     MEMBER(batch_kind),
                             MEMBER(prepared_a), MEMBER(prepared_b),
                             MEMBER(adds_to_c),  MEMBER(native_elsewhere)};
#undef MEMBER

template <typename Table>
bool add_members(const Table& table, const kintsugi_problem& problem, PyObject* dict) {
  for (const auto& [name, member] : table) {
    const Ref value(PyLong_FromLongLong(problem.*member));
    if (!value || PyDict_SetItemString(dict, name, value.get()) != 0) return false;
  }
  return true;
}

// Sets one member. Returns false if the table has none of the name.
template <typename Table>
bool set_member(const Table& table, const char* wanted, long long value, kintsugi_problem& problem) {
  for (const auto& [name, member] : table) {
    if (std::strcmp(name, wanted) != 0) continue;
    problem.*member = static_cast<std::decay_t<decltype(problem.*member)>>(value);
    return true;
  }
  return false;
}

}  // namespace

void add_row(Array& array) { add_dimension(array, array.dimensions - 1); }

void add_column(Array& array) { add_dimension(array, array.dimensions); }

BatchKind batch_kind(const Array& array) {
  const std::optional<Matrices> matrices = as_matrices(array, array.shape, array.dimensions - 2);
  if (!matrices) return BatchKind::none;
  return matrices->stride ? BatchKind::strided : BatchKind::pointers;
}

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

bool describe(const Array* a, const Array* b, const Array& c, int64_t k, kintsugi_problem& problem) {
  const int dimensions = c.dimensions - 2;
  const std::optional<Matrices> of_c = as_matrices(c, c.shape, dimensions);
  if (!of_c) return false;
  const bool is_row_major = of_c->is_row_major;
  const std::optional<Matrices> of_a =
      a == nullptr ? prepared_matrices(is_row_major, c.rows(), k) : as_matrices(*a, c.shape, dimensions);
  const std::optional<Matrices> of_b =
      b == nullptr ? prepared_matrices(is_row_major, k, c.columns()) : as_matrices(*b, c.shape, dimensions);
  if (!of_a || !of_b) return false;
  problem = KINTSUGI_PROBLEM_INIT;
  problem.m = c.rows();
  problem.n = c.columns();
  problem.k = k;
  problem.lda = of_a->leading_dimension;
  problem.ldb = of_b->leading_dimension;
  problem.ldc = of_c->leading_dimension;
  problem.batch_count = item_count(c.shape, dimensions);
  if (of_a->stride && of_b->stride && of_c->stride) {
    problem.stride_a = *of_a->stride;
    problem.stride_b = *of_b->stride;
    problem.stride_c = *of_c->stride;
  } else {
    problem.batch_kind = KINTSUGI_BATCH_POINTERS;
  }
  problem.op_a = op_of(*of_a, *of_c);
  problem.op_b = op_of(*of_b, *of_c);
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = c.type;
  problem.layout = is_row_major ? KINTSUGI_ROW_MAJOR : KINTSUGI_COLUMN_MAJOR;
  problem.memory = c.device == on_host ? KINTSUGI_HOST : KINTSUGI_DEVICE;
  return true;
}

std::vector<void*> item_addresses(const Array& array) {
  std::vector<void*> addresses{array.data};
  for (int d = 0; d < array.dimensions - 2; ++d) {
    std::vector<void*> inner;
    inner.reserve(addresses.size() * array.shape[d]);
    for (void* const address : addresses) {
      for (int64_t i = 0; i < array.shape[d]; ++i)
        inner.push_back(static_cast<char*>(address) + i * array.strides[d]);
    }
    addresses = std::move(inner);
  }
  return addresses;
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

bool share_memory(const Array& x, const Array& y) { return overlap(extent_of(x), extent_of(y)); }

Ref members_of(const kintsugi_problem& problem) {
  Ref dict(PyDict_New());
  const bool is_complete =
      dict && add_members(wide, problem, dict.get()) && add_members(narrow, problem, dict.get());
  return is_complete ? std::move(dict) : Ref();
}

bool set_members(PyObject* dict, kintsugi_problem& problem) {
  PyObject *key = nullptr, *number = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &number) != 0) {
    const long long value = PyLong_AsLongLong(number);
    const Ref name(PyUnicode_AsUTF8String(key));
    if (!name || PyErr_Occurred() != nullptr) return false;
    const char* const text = PyBytes_AsString(name.get());
    if (set_member(wide, text, value, problem) || set_member(narrow, text, value, problem)) continue;
    PyErr_Format(PyExc_KeyError, "kintsugi_problem has no member %s", text);
    return false;
  }
  return true;
}

}  // namespace kintsugi_python

#include "product.hpp"

#include <algorithm>

#include "arguments.hpp"

namespace kintsugi_python {
namespace {

// Returns the tuple (batch..., m, n), without m if A is a vector and without n if B is one.
Ref shape_of_result(const ProductShape& shape, bool a_is_vector, bool b_is_vector) {
  int64_t sizes[max_dimensions];
  int64_t* end = std::copy_n(shape.sizes, shape.batch_dimensions, sizes);
  if (!a_is_vector) *end++ = shape.m();
  if (!b_is_vector) *end++ = shape.n();
  Ref tuple(PyTuple_New(end - sizes));
  if (!tuple) return tuple;
  for (Py_ssize_t i = 0; i < end - sizes; ++i) {
    PyObject* size = PyLong_FromLongLong(sizes[i]);
    if (size == nullptr || PyTuple_SetItem(tuple.get(), i, size) != 0) return Ref();
  }
  return tuple;
}

// Sets shape and strides of the result, in C order. `array`: its type is set.
void set_dense_geometry(const ProductShape& shape, bool a_is_vector, bool b_is_vector, Array& array) {
  int64_t* end = std::copy_n(shape.sizes, shape.batch_dimensions, array.shape);
  if (!a_is_vector) *end++ = shape.m();
  if (!b_is_vector) *end++ = shape.n();
  array.dimensions = static_cast<int>(end - array.shape);
  int64_t stride = element_size(array.type);
  for (int d = array.dimensions - 1; d >= 0; --d) {
    array.strides[d] = stride;
    stride *= array.shape[d];
  }
}

}  // namespace

Product::Owner Product::owner_of(PyObject* x) {
  if (state_.numpy.owns(x)) return Owner::numpy;
  return state_.torch.owns(x) ? Owner::torch : Owner::none;
}

bool Product::read_array(PyObject* x, Array& array) {
  if (owner_ == Owner::numpy) return state_.numpy.owns(x) && state_.numpy.read(x, array);
  return state_.torch.is_tensor(x) && state_.torch.read(x, array);
}

bool Product::read_operand(PyObject* x, bool is_right, Array& array, PreparedMatrix& prepared) {
  if (owner_of(x) != Owner::none) return read_array(x, array);
  return prepared.read(x, array) && prepared.is_right == is_right;
}

bool Product::was_prepared_with(PyObject* const given[option_count]) const {
  for (const PreparedMatrix* matrix : {&prepared_a_, &prepared_b_}) {
    if (matrix->prepared == nullptr) continue;
    for (Py_ssize_t i = 0; i < 3; ++i) {
      const int is_equal =
          PyObject_RichCompareBool(PyTuple_GetItem(matrix->options.get(), i), given[i], Py_EQ);
      if (is_equal < 0) PyErr_Clear();
      if (is_equal != 1) return false;
    }
  }
  return true;
}

bool Product::read_operands(const Given& given) {
  owner_ = owner_of(given.a);
  if (owner_ == Owner::none) owner_ = owner_of(given.b);
  if (owner_ == Owner::none || !read_operand(given.a, false, a_, prepared_a_) ||
      !read_operand(given.b, true, b_, prepared_b_))
    return false;
  const auto take_memory = [](const PreparedMatrix& matrix, Array& array, const Array& other) {
    if (matrix.prepared == nullptr) return true;
    array.device = other.device;
    return matrix.is_on_device == (other.device != on_host);
  };
  if (!take_memory(prepared_a_, a_, b_) || !take_memory(prepared_b_, b_, a_)) return false;
  if (a_.type != b_.type || a_.device != b_.device) return false;
  a_is_vector_ = a_.is_vector();
  b_is_vector_ = b_.is_vector();
  if (a_is_vector_ && b_is_vector_) return false;
  if (a_is_vector_) add_row(a_);
  if (b_is_vector_) add_column(b_);
  return find_shape(a_, b_, shape_);
}

bool Product::read_scalars(const Given& given) {
  if (!read_scalar(given.alpha, a_.type, alpha_) || !read_scalar(given.beta, a_.type, beta_)) return false;
  return given.out != Py_None || is_zero(beta_, a_.type);
}

void Product::add_vector_dimensions(Array& c) const {
  if (a_is_vector_) add_row(c);
  if (b_is_vector_) add_column(c);
}

bool Product::make_result(const Given& given) {
  const Ref shape = shape_of_result(shape_, a_is_vector_, b_is_vector_);
  if (!shape) return false;
  c_.type = a_.type;
  c_.device = a_.device;
  if (owner_ == Owner::numpy) {
    result_ = state_.numpy.empty(shape.get(), a_.type);
    return result_ && state_.numpy.read(result_.get(), c_);
  }
  result_ = state_.torch.empty(prepared_a_.prepared == nullptr ? given.a : given.b, shape.get());
  set_dense_geometry(shape_, a_is_vector_, b_is_vector_, c_);
  return result_ && state_.torch.read_data(result_.get(), c_);
}

bool Product::describe_problem() {
  const bool has_a = prepared_a_.prepared == nullptr;
  const bool has_b = prepared_b_.prepared == nullptr;
  if (!describe(has_a ? &a_ : nullptr, has_b ? &b_ : nullptr, c_, shape_.k, problem_) ||
      problem_.batch_kind != KINTSUGI_BATCH_STRIDED)
    return false;
  problem_.prepared_a = has_a ? 0 : 1;
  problem_.prepared_b = has_b ? 0 : 1;
  return true;
}

bool Product::choose_result(const Given& given) {
  out_is_given_ = given.out != Py_None;
  if (!out_is_given_) {
    if (!make_result(given)) return false;
    add_vector_dimensions(c_);
    return describe_problem();
  }
  if (!read_array(given.out, c_) || c_.type != a_.type || c_.device != a_.device || !c_.is_writeable)
    return false;
  if (c_.dimensions + a_is_vector_ + b_is_vector_ != shape_.batch_dimensions + 2) return false;
  add_vector_dimensions(c_);
  if (!std::equal(c_.shape, c_.shape + c_.dimensions, shape_.sizes)) return false;
  result_ = Ref::borrowed(given.out);
  return describe_problem() && shares_no_memory(a_, b_, c_, problem_);
}

bool Product::read(const Given& given) {
  operands_ = KINTSUGI_OPERANDS_INIT;
  if (!read_operands(given) || !read_scalars(given) || !choose_result(given)) return false;
  return device() == on_host || state_.torch.find_stream(device(), operands_.queue);
}

bool Product::announce_write() const {
  if (!out_is_given_ || owner_ != Owner::torch) return true;
  return bool(Ref(PyObject_CallFunctionObjArgs(state_.note_write.get(), result_.get(), nullptr)));
}

bool Product::take_workspace(size_t bytes) {
  constexpr size_t alignment = 256;  // alignment that the library demands of workspaces
  if (bytes == 0 || device() == on_host) return true;
  DeviceMemory* const memory = memory_of(state_, device());
  if (memory == nullptr) return false;
  uintptr_t address = 0;
  workspace_ = take_spare(*memory, uses_null_stream(), bytes, alignment, address);
  if (!workspace_) workspace_ = aligned_bytes(state_.torch, device(), bytes, alignment, address);
  if (!workspace_) {
    // If torch has too little memory, the library allocates less memory itself. An interrupt is no Exception.
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return false;
    PyErr_Clear();
    return true;
  }
  operands_.workspace = reinterpret_cast<void*>(address);
  operands_.workspace_size = bytes;
  return true;
}

Product::~Product() {
  if (!workspace_ || PyErr_Occurred() != nullptr) return;
  keep_spare(state_.memory[device()], uses_null_stream(), std::move(workspace_),
             reinterpret_cast<uintptr_t>(operands_.workspace), operands_.workspace_size);
}

void Product::fill_operands() {
  operands_.alpha = alpha_;
  operands_.beta = beta_;
  operands_.a = a_.data;
  operands_.b = b_.data;
  operands_.prepared_a = prepared_a_.prepared;
  operands_.prepared_b = prepared_b_.prepared;
  operands_.c = c_.data;
}

}  // namespace kintsugi_python

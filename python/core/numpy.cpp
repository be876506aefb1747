#include "numpy.hpp"

#include <algorithm>

namespace kintsugi_python {
namespace {

// Contents of a capsule of __array_struct__ (numpy's reference, "The array interface protocol", version 3).
struct ArrayInterface {
  int two;  // always 2, to check the struct
  int dimensions;
  char kind;
  int item_size;
  int flags;
  Py_ssize_t* shape;
  Py_ssize_t* strides;  // in bytes
  void* data;
  PyObject* description;
};

// Bits of ArrayInterface::flags.
constexpr int aligned = 0x100;
constexpr int native_order = 0x200;
constexpr int writeable = 0x400;

constexpr int32_t no_type = -1;

// Returns the kintsugi_type of an element; no_type if there is none.
int32_t type_of(char kind, int size) {
  if (kind == 'f') return size == 4 ? KINTSUGI_F32 : size == 8 ? KINTSUGI_F64 : no_type;
  if (kind == 'c') return size == 8 ? KINTSUGI_C32 : size == 16 ? KINTSUGI_C64 : no_type;
  return no_type;
}

}  // namespace

bool Numpy::load() {
  const Ref numpy(PyImport_ImportModule("numpy"));
  if (!numpy) return false;
  array_type_ = Ref(PyObject_GetAttrString(numpy.get(), "ndarray"));
  empty_ = Ref(PyObject_GetAttrString(numpy.get(), "empty"));
  protocol_ = Ref(PyUnicode_InternFromString("__array_struct__"));
  const char* const names[] = {"float32", "float64", "complex64", "complex128"};
  for (int type = 0; type < 4; ++type) {
    types_[type] = Ref(PyObject_CallMethod(numpy.get(), "dtype", "s", names[type]));
    if (!types_[type]) return false;
  }
  return array_type_ && empty_ && protocol_;
}

bool Numpy::read(PyObject* x, Array& array) const {
  const Ref capsule(PyObject_GetAttr(x, protocol_.get()));
  if (!capsule) return false;
  const auto* interface = static_cast<const ArrayInterface*>(PyCapsule_GetPointer(capsule.get(), nullptr));
  if (interface == nullptr || interface->two != 2) return false;
  array.type = type_of(interface->kind, interface->item_size);
  array.dimensions = interface->dimensions;
  const bool is_plain = (interface->flags & (aligned | native_order)) == (aligned | native_order);
  if (array.type == no_type || !is_plain || array.dimensions < 1 || array.dimensions > max_dimensions)
    return false;
  std::copy_n(interface->shape, array.dimensions, array.shape);
  std::copy_n(interface->strides, array.dimensions, array.strides);
  array.data = static_cast<char*>(interface->data);
  array.device = on_host;
  array.is_writeable = (interface->flags & writeable) != 0;
  return true;
}

Ref Numpy::empty(PyObject* shape, int32_t type) const {
  return Ref(PyObject_CallFunctionObjArgs(empty_.get(), shape, types_[type].get(), nullptr));
}

}  // namespace kintsugi_python

// Reads numpy arrays by numpy's protocol __array_struct__, without numpy's headers and without a copy. The
// buffer protocol is four times as slow, and it is in the stable ABI only since Python 3.11.
#pragma once

#include "array.hpp"
#include "ref.hpp"

namespace kintsugi_python {

class Numpy {
 public:
  // Imports numpy. Returns false, with a Python error, if that fails.
  bool load();

  // Returns true only for numpy's own class, since subclasses may define other products.
  bool owns(PyObject* x) const { return Py_TYPE(x) == reinterpret_cast<PyTypeObject*>(array_type_.get()); }

  // Returns true for arrays of all classes.
  bool is_array(PyObject* x) const { return PyObject_IsInstance(x, array_type_.get()) == 1; }

  // Reads an array. Returns false unless the elements are aligned, have the machine's byte order, and have a
  // type that the library multiplies.
  bool read(PyObject* x, Array& array) const;

  // Returns a new array in C order.
  Ref empty(PyObject* shape, int32_t type) const;

 private:
  Ref array_type_, empty_, protocol_;
  Ref types_[4];  // numpy.dtype of each kintsugi_type
};

}  // namespace kintsugi_python

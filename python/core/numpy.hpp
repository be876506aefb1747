// numpy's arrays by its protocol __array_struct__, which needs neither its headers nor a copy. The buffer
// protocol is four times as slow, and is in the stable ABI since Python 3.11 only.
#pragma once

#include "array.hpp"
#include "ref.hpp"

namespace kintsugi_python {

class Numpy {
 public:
  // Imports numpy; returns false, with a Python error, if that fails.
  bool load();

  // Returns true for numpy's own class alone, since subclasses may define other products.
  bool owns(PyObject* x) const { return Py_TYPE(x) == reinterpret_cast<PyTypeObject*>(array_type_.get()); }

  // Returns false unless the elements are aligned, have the machine's byte order and a type that the library
  // multiplies.
  bool read(PyObject* x, Array& array) const;

  // Returns a new array in C order.
  Ref empty(PyObject* shape, int32_t type) const;

 private:
  Ref array_type_, empty_, protocol_;
  Ref types_[4];  // numpy.dtype of each kintsugi_type
};

}  // namespace kintsugi_python

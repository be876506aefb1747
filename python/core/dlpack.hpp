// Capsules of the DLPack protocol (https://dmlc.github.io/dlpack), with arrays of CUDA devices.
#pragma once

#include "ref.hpp"

namespace kintsugi_python {

// The functions return null with a Python error.

// Takes the tensor out of the capsule that x's __dlpack__() has returned. Returns (address, shape, strides in
// bytes or None for C order, type as numpy's typestr, number of the device, True if it is read-only, owner).
// The library gets the tensor back when the owner is deleted.
Ref import_dlpack(PyObject* capsule, PyObject* x);

// Returns a capsule with an array, which keeps `owner` alive until its consumer deletes the tensor.
// `strides`: in bytes; None for C order.
Ref export_dlpack(PyObject* owner, PyObject* address, PyObject* shape, PyObject* strides, const char* typestr,
                  int device);

}  // namespace kintsugi_python

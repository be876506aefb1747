// Reads torch tensors by their attributes. This module does not import torch: there are no tensors unless the
// program has imported it.
#pragma once

#include <kintsugi/kintsugi.h>

#include "array.hpp"
#include "ref.hpp"

namespace kintsugi_python {

class Torch {
 public:
  // Makes the names of attributes. Returns false, with a Python error, if that fails.
  bool load_names();

  // Takes what this class needs of the imported module torch. Returns false, with a Python error, if that
  // fails.
  bool load(PyObject* module);

  // Returns true only for objects of the class torch.Tensor itself, of the module torch that is imported now.
  // Subclasses may define other products, and parameters require gradients.
  bool owns(PyObject* x);
  // The same, without a look for the module. Precondition: owns() was true in this call.
  bool is_tensor(PyObject* x) const {
    return Py_TYPE(x) == reinterpret_cast<PyTypeObject*>(tensor_type_.get());
  }

  // Reads a tensor. Returns false for tensors that are left to the Python code: lazy conjugates, tensors that
  // require a gradient or may have a tangent, tensors on other devices than the CPU and CUDA devices, and
  // other types.
  bool read(PyObject* x, Array& array) const;

  // Reads the address of a tensor. Preconditions: array.type is set, and read() would accept the tensor.
  bool read_data(PyObject* x, Array& array) const;

  // Returns a new tensor in C order, of the type and on the device of `example`.
  Ref empty(PyObject* example, PyObject* shape) const;

  // Sets the queue to torch's current stream of a device. Returns false unless the device is torch's current
  // device.
  bool find_stream(int device, kintsugi_queue& queue) const;

  // True if the current stream is known not to be captured into a graph.
  bool is_known_not_to_capture() const;

  // True if tensors may have tangents: in a level of torch.autograd.forward_ad.
  bool is_in_forward_mode() const;

  // Returns a tensor of `size` bytes on a device.
  Ref bytes(int device, size_t size) const;
  Ref address_of(PyObject* tensor) const;

 private:
  // Reads shape, strides and address. Preconditions: those of read_data().
  bool read_geometry(PyObject* x, Array& array) const;
  // Loads functions of torch's C++ part, which take a tenth of the time of the public functions. The public
  // functions are used if this version of torch lacks the others.
  void load_quick_functions(PyObject* module);
  Ref current_device() const;
  Ref address_of_stream(int device) const;
  bool is_true(PyObject* x, const Ref& attribute) const;
  bool returns_false(PyObject* x, const Ref& method) const;

  Ref module_, tensor_type_, empty_, cuda_, byte_;
  Ref types_[4];  // torch.dtype by kintsugi_type
  Ref name_, requires_grad_, is_conj_, is_neg_, dtype_, is_cuda_, is_cpu_, get_device_, shape_, stride_,
      data_ptr_, new_empty_;
  Ref current_device_, current_stream_, cuda_stream_, current_level_;
  Ref quick_device_, quick_stream_, quick_is_capturing_, forward_mode_;  // null: this version has none
};

}  // namespace kintsugi_python

// torch's tensors, by their attributes. This module does not import torch: without an imported torch there is
// no tensor.
#pragma once

#include <kintsugi/kintsugi.h>

#include "array.hpp"
#include "ref.hpp"

namespace kintsugi_python {

class Torch {
 public:
  bool load_names();

  // Exactly torch.Tensor of the module torch as it is now: parameters require gradients, and other subclasses
  // may define other products.
  bool owns(PyObject* x);

  // False for what Python code has to look at: lazy conjugates, tensors that require a gradient, other
  // devices than the CPU and CUDA's, other types.
  bool read(PyObject* x, Array& array) const;

  // Shape, strides and address of a tensor of array.type, which is known to be an ordinary one.
  bool read_geometry(PyObject* x, Array& array) const;

  // A new tensor in C order, of the type and on the device of `example`.
  Ref empty(PyObject* example, PyObject* shape) const;

  // The current stream of a device; false unless the device is torch's current one.
  bool find_stream(int device, kintsugi_queue& queue) const;

  // True if the current stream is known not to be captured into a graph.
  bool is_known_not_to_capture() const;

  // A tensor of so many bytes on a device.
  Ref bytes(int device, size_t size) const;
  Ref address_of(PyObject* tensor) const;

 private:
  bool load(PyObject* module);
  // Loads functions of torch's C++ part, which take a tenth of the public ones' time; versions without them
  // have the public ones.
  void load_quick_functions(PyObject* module);
  Ref current_device() const;
  Ref address_of_stream(int device) const;
  bool is_true(PyObject* x, const Ref& attribute) const;
  bool returns_false(PyObject* x, const Ref& method) const;

  Ref module_, tensor_type_, empty_, cuda_, byte_;
  Ref types_[4];  // torch.dtype by kintsugi_type
  Ref name_, requires_grad_, is_conj_, is_neg_, dtype_, is_cuda_, is_cpu_, get_device_, shape_, stride_,
      data_ptr_, new_empty_;
  Ref current_device_, current_stream_, cuda_stream_;
  Ref quick_device_, quick_stream_, quick_is_capturing_;  // null: this version has none
};

}  // namespace kintsugi_python

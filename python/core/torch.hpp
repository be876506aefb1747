// torch's tensors, by their attributes. This module does not import torch: as long as nobody has imported it
// there is no tensor.
#pragma once

#include <kintsugi/kintsugi.h>

#include "array.hpp"
#include "ref.hpp"

namespace kintsugi_python {

class Torch {
 public:
  // Makes the attributes' names; returns false, with a Python error, if that fails.
  bool load_names();

  // Returns true for the class torch.Tensor itself, of the module torch that is imported now: parameters
  // require gradients, and other subclasses may define other products.
  bool owns(PyObject* x);

  // Reads a tensor. Returns false for those that Python code has to look at: lazy conjugates, tensors that
  // require a gradient, devices other than the CPU and CUDA's, other types.
  bool read(PyObject* x, Array& array) const;

  // Reads shape, strides and address of a tensor whose type is in `array` already and that read() would
  // accept.
  bool read_geometry(PyObject* x, Array& array) const;

  // Returns a new tensor in C order, of the type and on the device of `example`.
  Ref empty(PyObject* example, PyObject* shape) const;

  // Sets the queue to torch's current stream of a device; returns false unless the device is torch's current
  // one.
  bool find_stream(int device, kintsugi_queue& queue) const;

  // True if the current stream is known not to be captured into a graph.
  bool is_known_not_to_capture() const;

  // Returns a tensor of so many bytes on a device.
  Ref bytes(int device, size_t size) const;
  Ref address_of(PyObject* tensor) const;

 private:
  // Takes classes and functions of the imported module torch.
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

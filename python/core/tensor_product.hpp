// One product of torch's tensors over LibTorch's stable ABI: no object of Python has to be made to read or
// allocate a tensor.
#pragma once

#include <memory>

#include "array.hpp"
#include "libtorch.hpp"
#include "problem.hpp"
#include "state.hpp"

namespace kintsugi_python {

// The loaded torch, which nothing here may call before load() has returned true.
LibTorch& libtorch();

struct DeleteTensor {
  void operator()(TensorObject* tensor) const { libtorch().delete_tensor(tensor); }
};
using Tensor = std::unique_ptr<TensorObject, DeleteTensor>;

// Meanings of the operands (_torch_ops.py has the same numbers).
enum Form : int64_t { form_gemm = 0, form_linear = 1, form_mm = 2, form_bmm = 3, form_prepared = 4 };

struct TensorOperands {
  Form form;
  TensorHandle a;
  TensorHandle b;
  TensorHandle c = nullptr;              // is added, broadcast to the result's shape; null: nothing is
  TensorHandle out = nullptr;            // the result; null: a new tensor
  kintsugi_prepared prepared = nullptr;  // in place of b's elements
  PyObject* alpha = nullptr;             // numbers of Python; null: 1
  PyObject* beta = nullptr;
};

class TensorProduct {
 public:
  explicit TensorProduct(State& state) : state_(state) {}

  // Returns false, with nothing changed, if the Python code must compute the product or refuse it.
  bool read(const TensorOperands& given);

  bool is_complex() const { return a_.type == KINTSUGI_C32 || a_.type == KINTSUGI_C64; }

  enum class Outcome { done, declined, failed };
  // Multiplies. Returns declined if memory is too short, so that the Python code must compute the product or
  // refuse it. Returns failed with a Python error.
  // `accuracy`: a text or None. Precondition: the calling thread has the interpreter's lock, which is free
  // while the product runs.
  Outcome run(PyObject* accuracy);

  // Returns the new tensor. Preconditions: run() has returned done, and no `out` was given.
  TensorHandle take_result() { return result_.release(); }
  // Returns a new reference to Python's object of the result; null with a Python error. Precondition: run()
  // has returned done, and torch can wrap.
  Ref result_object() const { return Ref(libtorch().wrap(target())); }

 private:
  bool read_tensor(TensorHandle tensor, Array& array) const;
  bool read_scalars();
  bool read_shapes();
  bool read_result();
  bool make_result();
  bool find_queue();
  bool read_added();
  bool fits_result(const Array& added) const;
  bool adds_afterwards(PyObject* accuracy) const;
  TensorHandle target() const { return given_.out != nullptr ? given_.out : result_.get(); }

  State& state_;
  TensorOperands given_;
  Array a_, b_, c_;  // c_: the result
  int32_t device_type_ = 0;
  int32_t device_index_ = 0;
  ProductShape shape_;
  alignas(16) char alpha_[16], beta_[16];
  kintsugi_problem problem_;
  kintsugi_operands operands_ = KINTSUGI_OPERANDS_INIT;
  Tensor result_;
};

// Gives back to torch the workspaces that are kept for later products.
void release_spare_tensors();

}  // namespace kintsugi_python

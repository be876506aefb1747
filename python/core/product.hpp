// One product: from Python objects to the arguments of the C ABI, its run and its result.
#pragma once

#include "problem.hpp"
#include "state.hpp"

namespace kintsugi_python {

// Arguments of a product; borrowed references.
struct Given {
  PyObject* a;
  PyObject* b;
  PyObject* alpha;
  PyObject* beta;
  PyObject* out;
};

class Product {
 public:
  explicit Product(State& state) : state_(state) {}
  ~Product();
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  // False, with or without a Python error, where the product is left to the Python code; nothing has happened
  // then.
  bool read(const Given& given);

  // Announces to autograd that a tensor given as `out` will change; false with a Python error set.
  bool announce_write() const;

  // On a device, a workspace of that many bytes from torch, which is released when the work is in the stream;
  // torch reuses it in the stream's order. If torch has no memory for it, the plan's allocator is asked for
  // less. On the CPU the library has its own.
  bool take_workspace(size_t bytes);

  const kintsugi_problem& problem() const { return problem_; }
  int device() const { return c_.device; }

  // Returns the result, or null with the library's error set in Python. call(operands) multiplies; it runs
  // without the interpreter's lock.
  template <typename Call>
  Ref run(Call call);

 private:
  enum class Owner { none, numpy, torch };

  Owner owner_of(PyObject* x);
  bool read_array(PyObject* x, Array& array);
  bool read_operands(const Given& given);
  bool read_scalars(const Given& given);
  bool choose_result(const Given& given);
  bool make_result(const Given& given);
  void restore_dimensions(Array& c) const;
  void fill_operands();
  bool uses_null_stream() const { return operands_.queue.stream == nullptr; }
  Ref raise(kintsugi_status status, Ref cause) const;

  State& state_;
  Owner owner_ = Owner::none;
  Array a_, b_, c_;
  bool a_is_vector_ = false, b_is_vector_ = false, is_given_ = false;
  ProductShape shape_;
  alignas(16) char alpha_[16], beta_[16];
  kintsugi_problem problem_;
  kintsugi_operands operands_;
  Ref result_, workspace_;
};

}  // namespace kintsugi_python

#include "memory.hpp"

namespace kintsugi_python {

template <typename Call>
Ref Product::run(Call call) {
  fill_operands();
  AllocatingCall allocating(uses_null_stream());
  PyThreadState* const saved = PyEval_SaveThread();
  const kintsugi_status status = call(&operands_);
  PyEval_RestoreThread(saved);
  return status == KINTSUGI_SUCCESS ? std::move(result_) : raise(status, allocating.take_last_error());
}

}  // namespace kintsugi_python

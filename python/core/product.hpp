// One product of plain operands: numpy's arrays or torch's tensors that the library can read as they are.
// Makes the arguments of the C ABI from them, executes it, and returns the result.
#pragma once

#include "arguments.hpp"
#include "plan.hpp"
#include "problem.hpp"
#include "state.hpp"

namespace kintsugi_python {

// Arguments of a product, as borrowed references.
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

  // Reads the arguments, and makes the result unless it is given. Returns false, with or without a Python
  // error, if the Python code must make the operands plain, or refuse them; nothing is changed then.
  bool read(const Given& given);

  // Tells autograd that a tensor given as `out` will change. Returns false with a Python error if that fails.
  bool announce_write() const;

  // Takes a workspace of `bytes` bytes on a device from torch. The workspace is released when the work is in
  // the stream, since torch reuses memory in the stream's order. If torch has too little memory, the library
  // later asks the plan's allocator for less. Does nothing on the CPU, where the library allocates. Returns
  // false for an error that must be raised, such as an interrupt.
  bool take_workspace(size_t bytes);

  const kintsugi_problem& problem() const { return problem_; }
  // True if prepared operands were prepared with these options of kintsugi.matmul().
  bool was_prepared_with(PyObject* const given[option_count]) const;
  int device() const { return c_.device; }
  bool adds_to_c() const { return !is_zero(beta_, a_.type); }

  // Returns the result, or null with the library's error as a Python error. call(operands) multiplies. It
  // runs without the interpreter's lock.
  template <typename Call>
  Ref run(Call call);

 private:
  enum class Owner { none, numpy, torch };

  Owner owner_of(PyObject* x);
  bool read_array(PyObject* x, Array& array);
  // Reads A or B, which may be a prepared matrix beside an operand of the same memory.
  bool read_operand(PyObject* x, bool is_right, Array& array, PreparedMatrix& prepared);
  bool read_operands(const Given& given);
  bool read_scalars(const Given& given);
  bool choose_result(const Given& given);
  bool describe_problem();
  bool make_result(const Given& given);
  // If A or B is a vector, adds the missing dimension of length 1 to C.
  void add_vector_dimensions(Array& c) const;
  void fill_operands();
  bool uses_null_stream() const { return operands_.queue.stream == nullptr; }
  State& state_;
  Owner owner_ = Owner::none;
  Array a_, b_, c_;
  PreparedMatrix prepared_a_, prepared_b_;
  bool a_is_vector_ = false, b_is_vector_ = false, out_is_given_ = false;
  ProductShape shape_;
  alignas(16) char alpha_[16], beta_[16];
  kintsugi_problem problem_;
  kintsugi_operands operands_;
  Ref result_, workspace_;
};

}  // namespace kintsugi_python

#include "call.hpp"
#include "memory.hpp"

namespace kintsugi_python {

template <typename Call>
Ref Product::run(Call call) {
  fill_operands();
  AllocatingCall allocating(uses_null_stream());
  const kintsugi_status status = without_lock([&] { return call(&operands_); });
  return check(state_, status, allocating.take_last_error()) ? std::move(result_) : Ref();
}

}  // namespace kintsugi_python

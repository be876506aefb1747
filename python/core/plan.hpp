// Plans and prepared operands of the library as capsules, and products of described operands: numpy arrays
// that have addresses, shapes and strides of the operands, which may lie in any memory.
#pragma once

#include <kintsugi/kintsugi.h>

#include <memory>

#include "array.hpp"
#include "state.hpp"
#include "thread.hpp"

namespace kintsugi_python {

struct Plan {
  kintsugi_plan plan = nullptr;
  kintsugi_problem problem;  // without the hints adds_to_c and native_elsewhere
  size_t workspace_bytes = 0;
  std::shared_ptr<DeviceMemory> memory;  // null: the library allocates

  ~Plan();
};

// A kintsugi.Prepared of two dimensions. Its type, shape and memory are known, and no address.
struct PreparedMatrix {
  kintsugi_prepared prepared = nullptr;  // null: the operand is no such matrix
  bool is_right = false;
  bool is_on_device = false;
  Ref options;  // tuple (accuracy, scheme, engine)

  // Returns false, without a Python error, if x is no such matrix.
  bool read(PyObject* x, Array& array);
};

// Returns the address of a prepared operand's object as a number, for operators of torch. Returns null with a
// Python error if the capsule is none.
Ref address_of_prepared(PyObject* capsule);
kintsugi_prepared prepared_at(uint64_t address);

// Returns the capsule's Plan; nullptr, with a Python error, if the object is no such capsule.
Plan* plan_of(PyObject* capsule);

// The functions below return null with a Python error.

// Returns a new plan. `members`: the problem as a dict; `given`: options. `stream`: address of the CUDA
// stream of prepare_operand(), or None. `allocate`: function of DeviceMemory, or None.
Ref make_plan(State& state, PyObject* members, PyObject* const given[option_count], PyObject* stream,
              PyObject* allocate);

// Returns a new plan that is read from a description.
Ref read_plan(State& state, const char* description);

// Returns a dict with the members of the problem of the product of described operands with broadcast batches;
// a and b may be anything but an array, which stands for a prepared operand. k: the columns of A.
Ref describe_problem(const State& state, PyObject* a, PyObject* b, PyObject* c, int64_t k);

// Multiplies described operands, where a and b may be prepared, and returns None. alpha and beta: numbers of
// Python. stream: address of a CUDA stream, or None to wait for the result.
Ref run_plan(State& state, PyObject* plan, PyObject* a, PyObject* b, PyObject* c, PyObject* alpha,
             PyObject* beta, PyObject* stream);

// Computes the products of a list of (problem, a, b, c, alpha, beta), whose members are those of
// describe_problem() and run_plan(), and returns None.
Ref run_groups(State& state, PyObject* groups, PyObject* const given[option_count], PyObject* stream);

// Returns a new prepared operand, made of a described one.
Ref prepare_operand(State& state, PyObject* plan, kintsugi_side side, PyObject* array);

}  // namespace kintsugi_python

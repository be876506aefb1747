#include "operators.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include "plan.hpp"
#include "tensor_product.hpp"

// torch throws C++ exceptions through its dispatcher, and pybind11 makes Python's of them. It lets an
// exception of this class, which it has under this name, say itself what to raise; of another class than
// pybind11's it would make a RuntimeError with the same text.
namespace pybind11 {
class builtin_exception : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  virtual void set_error() const = 0;
};
}  // namespace pybind11

namespace kintsugi_python {
namespace {

State* state = nullptr;
PyObject* thread_accuracy = nullptr;
std::atomic<bool> has_use = false;

class InterpreterLock {
 public:
  InterpreterLock() : lock_(PyGILState_Ensure()) {}
  ~InterpreterLock() { PyGILState_Release(lock_); }
  InterpreterLock(const InterpreterLock&) = delete;
  InterpreterLock& operator=(const InterpreterLock&) = delete;

 private:
  PyGILState_STATE lock_;
};

// Torch's C functions keep nothing of an exception but its text, which they print. So an operator that a
// kernel here calls keeps its exception and returns any tensor, and the kernel that called it throws.
thread_local bool is_called_by_kernel = false;  // by one here, and nothing of ours has run since
thread_local PyObject* kept_error = nullptr;

// An exception of Python on its way through torch.
class PythonError : public pybind11::builtin_exception {
 public:
  // Takes the reference.
  explicit PythonError(PyObject* error) : builtin_exception(text_of(error)), error_(error, release) {}

  void set_error() const override {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error_.get())), error_.get());
  }

  PyObject* error() const { return error_.get(); }

 private:
  static std::string text_of(PyObject* error) {
    const InterpreterLock lock;
    const Ref text(PyObject_Str(error));
    const Ref bytes(text ? PyUnicode_AsUTF8String(text.get()) : nullptr);
    if (!bytes) PyErr_Clear();
    return bytes ? PyBytes_AsString(bytes.get()) : "kintsugi: an error without a text";
  }
  static void release(PyObject* error) {
    const InterpreterLock lock;
    Py_DECREF(error);
  }

  std::shared_ptr<PyObject> error_;
};

// Throws the current error of Python. Precondition: the calling thread has the interpreter's lock.
[[noreturn]] void throw_current_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref of_type(type), of_trace(trace);
  throw PythonError(value);
}

// Calls an operator with the arguments on a stack, which it takes. Sets the result; with a PythonError to
// any tensor.
void call_operator(const char* name, StackValue* stack, StackValue& result) {
  is_called_by_kernel = true;
  const Failure failure = libtorch().call_dispatcher(name, "", stack, LibTorch::version);
  is_called_by_kernel = false;
  if (failure != 0) throw std::runtime_error(std::string(name) + " failed in torch");
  result = stack[0];
  if (kept_error != nullptr) throw PythonError(std::exchange(kept_error, nullptr));
}

TensorHandle tensor_of(StackValue value) { return reinterpret_cast<TensorHandle>(value); }

TensorHandle optional_tensor(StackValue value) {
  return value == 0 ? nullptr : tensor_of(*reinterpret_cast<StackValue*>(value));
}

// ------------------------------------------------------------------------------------------------- kernels
// The arguments of kintsugi::below.
enum Place { place_a, place_b, place_c, place_accuracy, place_gradient_accuracy, place_form, place_prepared };

StringObject* optional_text(StackValue value) {
  return value == 0 ? nullptr : *reinterpret_cast<StringObject**>(value);
}

// Deletes the arguments of kintsugi::below but the first.
void clear(const StackValue* stack) {
  libtorch().delete_tensor(tensor_of(stack[place_b]));
  if (TensorHandle c = optional_tensor(stack[place_c])) libtorch().delete_tensor(c);
  for (const int place : {place_accuracy, place_gradient_accuracy}) {
    if (StringObject* text = optional_text(stack[place])) libtorch().delete_string(text);
  }
  for (const int place : {place_c, place_accuracy, place_gradient_accuracy})
    delete reinterpret_cast<StackValue*>(stack[place]);
}

// Computes a product. Returns its tensor, or null if the Python code must compute it or refuse it. Throws.
Tensor product_of(const StackValue* stack) {
  const auto form = static_cast<Form>(stack[place_form]);
  TensorProduct product(*state);
  if (!product.read({.form = form,
                     .a = tensor_of(stack[place_a]),
                     .b = tensor_of(stack[place_b]),
                     .c = optional_tensor(stack[place_c]),
                     .prepared = form == form_prepared ? prepared_at(stack[place_prepared]) : nullptr}))
    return nullptr;
  const char* given = nullptr;
  StringObject* const text = optional_text(stack[place_accuracy]);
  if (text != nullptr && libtorch().text_of(text, &given) != 0) given = nullptr;
  const Ref accuracy = text == nullptr ? accuracy_of_thread(Py_None)
                       : given == nullptr || *given == '\0'  // "": that of no thread
                           ? Ref::borrowed(Py_None)
                           : Ref(PyUnicode_FromString(given));
  if (!accuracy) throw_current_error();
  const TensorProduct::Outcome outcome = product.run(accuracy.get());
  if (outcome == TensorProduct::Outcome::failed) throw_current_error();
  return Tensor(outcome == TensorProduct::Outcome::done ? product.take_result() : nullptr);
}

// The kernel of kintsugi::below on the CPU and on CUDA devices.
void multiply(StackValue* stack) {
  Tensor result;
  try {
    result = product_of(stack);
  } catch (...) {
    clear(stack);
    throw;
  }
  if (!result) return call_operator("kintsugi::product_in_python", stack, stack[0]);
  clear(stack);
  libtorch().delete_tensor(tensor_of(stack[place_a]));
  stack[0] = reinterpret_cast<StackValue>(result.release());
}

// --------------------------------------------------------------------------------------------- above kernels

// True if an operator of the tensors has to be differentiated.
bool needs_gradient(std::initializer_list<TensorHandle> tensors) {
  const auto requires_gradient = [](TensorHandle x) {
    return x != nullptr && libtorch().requires_gradient(x);
  };
  if (libtorch().gradients_are_enabled() && std::any_of(tensors.begin(), tensors.end(), requires_gradient))
    return true;
  return state->torch.is_in_forward_mode();
}

// Calls the operator below autograd: with two operands, c or 0, and the two accuracies.
void pass_on(StackValue* stack, StackValue c, const StackValue* accuracies, Form form,
             StackValue prepared = 0) {
  const StackValue gradient_accuracy = form == form_prepared ? 0 : accuracies[1];
  StackValue all[] = {stack[0], stack[1], c, accuracies[0], gradient_accuracy, StackValue(form), prepared};
  call_operator("kintsugi::below", all, stack[0]);
}

void gemm_above_autograd(StackValue* stack) {
  constexpr int settings = 5;  // those of which the compiled kernel knows nothing
  if (stack[settings] != 0 ||
      needs_gradient({tensor_of(stack[0]), tensor_of(stack[1]), optional_tensor(stack[2])}))
    return call_operator("kintsugi::gemm_in_python", stack, stack[0]);
  pass_on(stack, stack[2], stack + 3, form_gemm);
}

bool has_dimensions(StackValue tensor, int64_t wanted) {
  int64_t dimensions = 0;
  return libtorch().dimensions(tensor_of(tensor), &dimensions) == 0 && dimensions == wanted;
}

void matrices_above_autograd(StackValue* stack, Form form, int64_t dimensions, const char* in_python) {
  if (!has_dimensions(stack[0], dimensions) || !has_dimensions(stack[1], dimensions) ||
      needs_gradient({tensor_of(stack[0]), tensor_of(stack[1])}))
    return call_operator(in_python, stack, stack[0]);
  pass_on(stack, 0, stack + 2, form);
}

void mm_above_autograd(StackValue* stack) {
  matrices_above_autograd(stack, form_mm, 2, "kintsugi::mm_in_python");
}

void bmm_above_autograd(StackValue* stack) {
  matrices_above_autograd(stack, form_bmm, 3, "kintsugi::bmm_in_python");
}

bool is_linear(const StackValue* stack) {
  return has_dimensions(stack[1], 2) && !has_dimensions(stack[0], 0) &&
         !needs_gradient({tensor_of(stack[0]), tensor_of(stack[1]), optional_tensor(stack[2])});
}

void linear_above_autograd(StackValue* stack) {
  if (!is_linear(stack)) return call_operator("kintsugi::linear_in_python", stack, stack[0]);
  pass_on(stack, stack[2], stack + 3, form_linear);
}

void prepared_linear_above_autograd(StackValue* stack) {
  if (!is_linear(stack)) return call_operator("kintsugi::prepared_linear_in_python", stack, stack[0]);
  pass_on(stack, stack[2], stack + 3, form_prepared, stack[4]);
}

// A kernel as torch calls it. A kernel that throws a PythonError has left a tensor on the stack. The
// interpreter's lock is taken once for all that the kernel calls; a product is computed without it.
template <void (*kernel)(StackValue* stack)>
void called(StackValue* stack, uint64_t, uint64_t) {
  const bool by_kernel = std::exchange(is_called_by_kernel, false);
  const InterpreterLock lock;
  try {
    kernel(stack);
  } catch (const PythonError& error) {
    if (!by_kernel) {
      libtorch().delete_tensor(tensor_of(stack[0]));
      throw;
    }
    keep_error(error.error());
  }
}

struct Registration {
  const char* name;
  const char* key;
  Kernel kernel;
};
constexpr Registration registrations[] = {
    {"below", "CPU", called<multiply>},
    {"below", "CUDA", called<multiply>},
    {"gemm", "Autograd", called<gemm_above_autograd>},
    {"mm", "CompositeImplicitAutograd", called<mm_above_autograd>},
    {"bmm", "CompositeImplicitAutograd", called<bmm_above_autograd>},
    {"linear", "CompositeImplicitAutograd", called<linear_above_autograd>},
    {"prepared_linear", "CompositeImplicitAutograd", called<prepared_linear_above_autograd>},
};

}  // namespace

bool register_operators(State& given_state, PyObject* given_thread_accuracy) {
  if (!libtorch().load()) return false;
  state = &given_state;
  thread_accuracy = Ref::borrowed(given_thread_accuracy).release();
  for (const Registration& one : registrations) {
    LibraryObject* library = nullptr;  // never deleted: that would unregister the kernel
    if (libtorch().init_implementations("kintsugi", one.key, __FILE__, __LINE__, &library) != 0 ||
        libtorch().implement(library, one.name, one.kernel, LibTorch::version) != 0)
      return false;
  }
  return true;
}

void note_use() { has_use = true; }

Ref accuracy_of_thread(PyObject* otherwise) {
  if (!has_use) return Ref::borrowed(otherwise);
  return Ref(PyObject_CallFunctionObjArgs(thread_accuracy, otherwise, nullptr));
}

bool take_call() { return std::exchange(is_called_by_kernel, false); }

void keep_error(PyObject* error) {
  PyObject* const before = std::exchange(kept_error, Ref::borrowed(error).release());
  Py_XDECREF(before);
}

}  // namespace kintsugi_python

#include "operators.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "arguments.hpp"
#include "call.hpp"
#include "libtorch.hpp"
#include "plan.hpp"
#include "problem.hpp"
#include "thread.hpp"

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

LibTorch torch;
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
  const Failure failure = torch.call_dispatcher(name, "", stack, LibTorch::version);
  is_called_by_kernel = false;
  if (failure != 0) throw std::runtime_error(std::string(name) + " failed in torch");
  result = stack[0];
  if (kept_error != nullptr) throw PythonError(std::exchange(kept_error, nullptr));
}

TensorHandle tensor_of(StackValue value) { return reinterpret_cast<TensorHandle>(value); }

TensorHandle optional_tensor(StackValue value) {
  return value == 0 ? nullptr : tensor_of(*reinterpret_cast<StackValue*>(value));
}

void delete_tensor(TensorHandle tensor) { torch.delete_tensor(tensor); }
using Tensor = std::unique_ptr<TensorObject, decltype(&delete_tensor)>;

// ------------------------------------------------------------------------------------------------- kernels
// What an operator's arguments mean (_torch_ops.py has the same numbers).
enum Form : int64_t { form_gemm = 0, form_linear = 1, form_mm = 2, form_bmm = 3, form_prepared = 4 };

// The arguments of kintsugi::below.
enum Place { place_a, place_b, place_c, place_accuracy, place_gradient_accuracy, place_form, place_prepared };

StringObject* optional_text(StackValue value) {
  return value == 0 ? nullptr : *reinterpret_cast<StringObject**>(value);
}

// Deletes the arguments of kintsugi::below but the first.
void clear(const StackValue* stack) {
  torch.delete_tensor(tensor_of(stack[place_b]));
  if (TensorHandle c = optional_tensor(stack[place_c])) torch.delete_tensor(c);
  for (const int place : {place_accuracy, place_gradient_accuracy}) {
    if (StringObject* text = optional_text(stack[place])) torch.delete_string(text);
  }
  for (const int place : {place_c, place_accuracy, place_gradient_accuracy})
    delete reinterpret_cast<StackValue*>(stack[place]);
}

// Data of the library's allocator callbacks: tensors on one device, in the order of torch's current stream.
class DeviceTensors {
 public:
  explicit DeviceTensors(int device) : device_(device) {}

  void use(kintsugi_options& options) {
    options.allocate = allocate;
    options.deallocate = deallocate;
    options.allocator_user = this;
  }

 private:
  static void* allocate(void* user, size_t bytes, size_t alignment) {
    auto& tensors = *static_cast<DeviceTensors*>(user);
    const auto size = static_cast<int64_t>(bytes);
    constexpr int64_t stride = 1;
    TensorHandle made = nullptr;
    void* address = nullptr;
    if (torch.empty(1, &size, &stride, torch.byte_code(), torch.cuda_code(), tensors.device_, &made) != 0)
      return nullptr;
    Tensor tensor(made, delete_tensor);
    if (torch.address(made, &address) != 0 || reinterpret_cast<uintptr_t>(address) % alignment != 0)
      return nullptr;
    const std::lock_guard lock(tensors.mutex_);
    tensors.held_.emplace(address, std::move(tensor));
    return address;
  }

  static void deallocate(void* user, void* address, size_t) {
    auto& tensors = *static_cast<DeviceTensors*>(user);
    const std::lock_guard lock(tensors.mutex_);
    tensors.held_.erase(address);
  }

  int device_;
  std::mutex mutex_;
  std::unordered_map<void*, Tensor> held_;
};

// Never destroyed, since the library may have memory of them as long as it lives.
DeviceTensors& tensors_of(int device) {
  static std::mutex mutex;
  static auto* const all = new std::map<int, DeviceTensors>;
  const std::lock_guard lock(mutex);
  return all->try_emplace(device, device).first->second;
}

// The product of a kernel's arguments.
class Operation {
 public:
  explicit Operation(StackValue* stack) : stack_(stack) {}

  // Returns false, with nothing changed, if the Python code must compute it or refuse it.
  bool read();
  // Returns the result; null if the device has too little memory. Throws.
  Tensor run();

 private:
  bool read_tensor(TensorHandle tensor, Array& array) const;
  bool read_shapes();
  bool make_result();
  bool find_queue();

  StackValue* stack_;
  Array a_, b_, c_;
  int32_t device_type_ = 0;
  int32_t device_index_ = 0;
  ProductShape shape_;
  kintsugi_prepared prepared_ = nullptr;
  kintsugi_problem problem_;
  kintsugi_operands operands_ = KINTSUGI_OPERANDS_INIT;
  Tensor result_{nullptr, delete_tensor};
};

bool Operation::read_tensor(TensorHandle tensor, Array& array) const {
  int32_t type = 0, device_type = 0, device_index = 0;
  int64_t dimensions = 0, *sizes = nullptr, *strides = nullptr;
  void* address = nullptr;
  if (torch.type(tensor, &type) != 0 || torch.device_type(tensor, &device_type) != 0 ||
      torch.device_index(tensor, &device_index) != 0 || torch.dimensions(tensor, &dimensions) != 0 ||
      torch.sizes(tensor, &sizes) != 0 || torch.strides(tensor, &strides) != 0)
    return false;
  constexpr int type_count = 4;
  array.type = 0;
  while (array.type < type_count && torch.type_codes[array.type]() != type) ++array.type;
  if (array.type == type_count || dimensions < 1 || dimensions > max_dimensions) return false;
  if (device_type == torch.cpu_code())
    array.device = on_host;
  else if (device_type == torch.cuda_code() && torch.has_cuda())
    array.device = device_index;
  else
    return false;
  array.dimensions = static_cast<int>(dimensions);
  for (int d = 0; d < array.dimensions; ++d) {
    if (sizes[d] == 0) return false;
    array.shape[d] = sizes[d];
    array.strides[d] = strides[d] * element_size(array.type);
  }
  if (torch.address(tensor, &address) != 0 || address == nullptr) return false;
  array.data = static_cast<char*>(address);
  array.is_writeable = true;
  const bool is_single = array.type == KINTSUGI_F32 || array.type == KINTSUGI_C32;
  return reinterpret_cast<uintptr_t>(address) % (is_single ? 4 : 8) == 0;
}

// Makes one matrix of an array (..., k). Returns false if its rows are not equally spaced.
bool flatten(Array& array) {
  if (array.dimensions == 1) add_row(array);
  const int last = array.dimensions - 1;
  int64_t rows = array.shape[last - 1];
  for (int d = last - 2; d >= 0; --d) {
    if (array.shape[d] != 1 && array.strides[d] != array.strides[last - 1] * rows) return false;
    rows *= array.shape[d];
  }
  array.shape[1] = array.shape[last];
  array.strides[0] = array.strides[last - 1];
  array.strides[1] = array.strides[last];
  array.shape[0] = rows;
  array.dimensions = 2;
  return true;
}

// Sets shape and strides in C order.
void set_dense(const int64_t* sizes, int dimensions, Array& array) {
  array.dimensions = dimensions;
  std::copy_n(sizes, dimensions, array.shape);
  int64_t stride = element_size(array.type);
  for (int d = dimensions - 1; d >= 0; --d) {
    array.strides[d] = stride;
    stride *= sizes[d];
  }
}

bool Operation::read_shapes() {
  const auto form = static_cast<Form>(stack_[place_form]);
  if (form == form_linear || form == form_prepared) {
    if (b_.dimensions != 2 || !flatten(a_)) return false;
    std::swap(b_.shape[0], b_.shape[1]);
    std::swap(b_.strides[0], b_.strides[1]);
    return find_shape(a_, b_, shape_);
  }
  if (a_.dimensions < 2 || b_.dimensions < 2) return false;
  if (form == form_bmm && a_.shape[0] != b_.shape[0]) return false;
  return find_shape(a_, b_, shape_);
}

bool Operation::make_result() {
  int64_t sizes[max_dimensions], strides[max_dimensions];
  int dimensions = shape_.batch_dimensions + 2;
  c_.type = a_.type;
  c_.device = a_.device;
  set_dense(shape_.sizes, dimensions, c_);
  std::copy_n(shape_.sizes, dimensions, sizes);
  const auto form = static_cast<Form>(stack_[place_form]);
  if (form == form_linear || form == form_prepared) {  // the input's shape, with other columns
    int64_t given = 0, *given_sizes = nullptr;
    const TensorHandle input = tensor_of(stack_[place_a]);
    if (torch.dimensions(input, &given) != 0 || torch.sizes(input, &given_sizes) != 0) return false;
    dimensions = static_cast<int>(given);
    std::copy_n(given_sizes, dimensions, sizes);
    sizes[dimensions - 1] = shape_.n();
  }
  int64_t stride = 1;
  for (int d = dimensions - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= sizes[d];
  }
  TensorHandle made = nullptr;
  if (torch.empty(dimensions, sizes, strides, torch.type_codes[a_.type](), device_type_, device_index_,
                  &made) != 0)
    return false;  // the Python code has the same failure, with torch's own exception
  result_.reset(made);
  void* address = nullptr;
  if (torch.address(made, &address) != 0) return false;
  c_.data = static_cast<char*>(address);
  return true;
}

bool Operation::find_queue() {
  if (a_.device == on_host) return state->host_is_ready;
  int32_t current = 0;
  void* stream = nullptr;
  if (torch.current_device(&current) != 0 || current != a_.device ||
      torch.current_cuda_stream(a_.device, &stream) != 0)
    return false;
  operands_.queue = {KINTSUGI_QUEUE_CUDA, 0, stream};
  return true;
}

bool Operation::read() {
  const TensorHandle a = tensor_of(stack_[place_a]), c = optional_tensor(stack_[place_c]);
  if (!read_tensor(a, a_) || !read_tensor(tensor_of(stack_[place_b]), b_) || a_.type != b_.type ||
      a_.device != b_.device)
    return false;
  if (torch.device_type(a, &device_type_) != 0 || torch.device_index(a, &device_index_) != 0) return false;
  if (!find_queue() || !read_shapes()) return false;
  if (c != nullptr && (!read_tensor(c, c_) || c_.type != a_.type || c_.device != a_.device)) return false;
  if (stack_[place_form] == form_prepared) prepared_ = prepared_at(stack_[place_prepared]);
  if (!make_result()) return false;
  if (!describe(&a_, prepared_ == nullptr ? &b_ : nullptr, c_, shape_.k, problem_) ||
      problem_.batch_kind != KINTSUGI_BATCH_STRIDED)
    return false;
  problem_.prepared_b = prepared_ == nullptr ? 0 : 1;
  if (c != nullptr) {
    if (torch.copy(result_.get(), c, 0) != 0) return false;
    problem_.adds_to_c = a_.device == on_host ? 0 : 1;
  }
  return true;
}

Tensor Operation::run() {
  static constexpr float single[] = {1, 0, 0};
  static constexpr double wide[] = {1, 0, 0};
  const bool is_single = a_.type == KINTSUGI_F32 || a_.type == KINTSUGI_C32;
  const bool adds = stack_[place_c] != 0;
  operands_.alpha = is_single ? static_cast<const void*>(single) : wide;
  operands_.beta = adds ? operands_.alpha : is_single ? static_cast<const void*>(single + 1) : wide + 1;
  operands_.a = a_.data;
  operands_.b = prepared_ == nullptr ? b_.data : nullptr;
  operands_.prepared_b = prepared_;
  operands_.c = c_.data;
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  StringObject* const given = optional_text(stack_[place_accuracy]);
  if (given != nullptr && (torch.text_of(given, &options.accuracy) != 0 || *options.accuracy == '\0'))
    options.accuracy = nullptr;  // "": that of no thread
  const InterpreterLock lock;
  Ref text;
  Thread* const thread = this_thread(*state);
  Ref accuracy = Ref::borrowed(Py_None);
  if (options.accuracy != nullptr)
    accuracy = Ref(PyUnicode_FromString(options.accuracy));
  else if (given == nullptr && has_use)
    accuracy = Ref(PyObject_CallObject(thread_accuracy, nullptr));
  if (accuracy && accuracy.get() != Py_None && options.accuracy == nullptr) {
    text = Ref(PyUnicode_AsUTF8String(accuracy.get()));
    options.accuracy = text ? PyBytes_AsString(text.get()) : nullptr;
  }
  if (thread == nullptr || PyErr_Occurred() != nullptr) throw_current_error();
  if (a_.device != on_host) tensors_of(a_.device).use(options);
  PyObject* const noted[option_count] = {accuracy.get(), Py_None, Py_None, Py_None, Py_None, Py_None};
  thread->note_call(problem_, noted, a_.device);
  const kintsugi_status status =
      without_lock([&] { return state->library.gemm(thread->handle, &problem_, &options, &operands_); });
  if (status == KINTSUGI_OUT_OF_MEMORY && a_.device != on_host) return Tensor(nullptr, delete_tensor);
  if (!check(*state, status)) throw_current_error();
  return std::move(result_);
}

// The kernel of kintsugi::below on the CPU and on CUDA devices.
void multiply(StackValue* stack) {
  Operation operation(stack);
  if (!operation.read()) return call_operator("kintsugi::product_in_python", stack, stack[0]);
  Tensor result(nullptr, delete_tensor);
  try {
    result = operation.run();
  } catch (...) {
    clear(stack);
    throw;
  }
  if (!result) return call_operator("kintsugi::product_in_python", stack, stack[0]);
  clear(stack);
  torch.delete_tensor(tensor_of(stack[place_a]));
  stack[0] = reinterpret_cast<StackValue>(result.release());
}

// --------------------------------------------------------------------------------------------- above kernels

// True if an operator of the tensors has to be differentiated.
bool needs_gradient(std::initializer_list<TensorHandle> tensors) {
  const auto requires_gradient = [](TensorHandle x) { return x != nullptr && torch.requires_gradient(x); };
  if (torch.gradients_are_enabled() && std::any_of(tensors.begin(), tensors.end(), requires_gradient))
    return true;
  const InterpreterLock lock;
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
  return torch.dimensions(tensor_of(tensor), &dimensions) == 0 && dimensions == wanted;
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

// A kernel as torch calls it. A kernel that throws a PythonError has left a tensor on the stack.
template <void (*kernel)(StackValue* stack)>
void called(StackValue* stack, uint64_t, uint64_t) {
  const bool by_kernel = std::exchange(is_called_by_kernel, false);
  try {
    kernel(stack);
  } catch (const PythonError& error) {
    if (!by_kernel) {
      torch.delete_tensor(tensor_of(stack[0]));
      throw;
    }
    const InterpreterLock lock;
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
  if (!torch.load()) return false;
  state = &given_state;
  thread_accuracy = Ref::borrowed(given_thread_accuracy).release();
  for (const Registration& one : registrations) {
    LibraryObject* library = nullptr;  // never deleted: that would unregister the kernel
    if (torch.init_implementations("kintsugi", one.key, __FILE__, __LINE__, &library) != 0 ||
        torch.implement(library, one.name, one.kernel, LibTorch::version) != 0)
      return false;
  }
  return true;
}

void note_use() { has_use = true; }

bool take_call() { return std::exchange(is_called_by_kernel, false); }

void keep_error(PyObject* error) {
  PyObject* const before = std::exchange(kept_error, Ref::borrowed(error).release());
  Py_XDECREF(before);
}

}  // namespace kintsugi_python

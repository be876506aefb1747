// Functions of LibTorch's stable C ABI, declared here and found in the loaded library: so neither this
// build nor the package depends on torch, and one file serves every version that has them (2.10 and newer).
#pragma once

#include <cstdint>

#include "ref.hpp"

namespace kintsugi_python {

// An argument or result of a kernel: a number, a handle, or, for an optional argument, 0 or the address of
// one on the heap. A kernel owns its arguments.
using StackValue = uint64_t;
using Kernel = void (*)(StackValue* stack, uint64_t arguments, uint64_t results);
struct TensorObject;
using TensorHandle = TensorObject*;
struct LibraryObject;
struct StringObject;
using Failure = int32_t;  // 0: none

struct LibTorch {
  // Finds the functions in the libraries that the program has loaded. Returns false if one is missing, or
  // if they do not see whether a tensor needs a gradient.
  bool load();
  // The functions for CUDA devices, of a library that not every torch has.
  bool has_cuda() const { return current_cuda_stream != nullptr; }
  // Returns a new reference to Python's object of a tensor. Preconditions: can_wrap(), and the calling
  // thread has the interpreter's lock.
  PyObject* wrap(TensorHandle tensor) const { return wrap_(tensor); }
  bool can_wrap() const { return wrap_ != nullptr; }  // false unless load() has returned true
  // The stable ABI does not say whether a tensor requires a gradient. A tensor's handle is the address of its
  // C++ object, whose first member is the address of the implementation.
  bool requires_gradient(TensorHandle tensor) const {
    return implementation_requires_gradient(*reinterpret_cast<void* const*>(tensor));
  }

  Failure (*init_implementations)(const char* name_space, const char* key, const char* file, uint32_t line,
                                  LibraryObject** library) = nullptr;
  Failure (*implement)(LibraryObject* library, const char* name, Kernel kernel, uint64_t version) = nullptr;
  Failure (*call_dispatcher)(const char* name, const char* overload, StackValue* stack,
                             uint64_t version) = nullptr;
  Failure (*delete_tensor)(TensorHandle tensor) = nullptr;
  Failure (*dimensions)(TensorHandle tensor, int64_t* dimensions) = nullptr;
  Failure (*type)(TensorHandle tensor, int32_t* type) = nullptr;
  Failure (*device_type)(TensorHandle tensor, int32_t* type) = nullptr;
  Failure (*device_index)(TensorHandle tensor, int32_t* index) = nullptr;
  Failure (*sizes)(TensorHandle tensor, int64_t** sizes) = nullptr;
  Failure (*strides)(TensorHandle tensor, int64_t** strides) = nullptr;
  Failure (*address)(TensorHandle tensor, void** address) = nullptr;
  Failure (*empty)(int64_t dimensions, const int64_t* sizes, const int64_t* strides, int32_t type,
                   int32_t device_type, int32_t device_index, TensorHandle* tensor) = nullptr;
  Failure (*copy)(TensorHandle to, TensorHandle from, int32_t non_blocking) = nullptr;
  Failure (*text_of)(StringObject* string, const char** text) = nullptr;
  Failure (*delete_string)(StringObject* string) = nullptr;
  bool (*gradients_are_enabled)() = nullptr;
  int32_t (*type_codes[4])() = {};  // by kintsugi_type
  int32_t (*byte_code)() = nullptr;
  int32_t (*cpu_code)() = nullptr;
  int32_t (*cuda_code)() = nullptr;
  Failure (*current_device)(int32_t* index) = nullptr;
  Failure (*current_cuda_stream)(int32_t device, void** stream) = nullptr;
  Failure (*set_requires_gradient)(TensorHandle tensor, bool value) = nullptr;
  bool (*implementation_requires_gradient)(const void* implementation) = nullptr;

  // The ABI's version that kernels and calls are for: 2.10.
  static constexpr uint64_t version = uint64_t{2} << 56 | uint64_t{10} << 48;

 private:
  PyObject* (*wrap_)(TensorHandle tensor) = nullptr;
  // Tries requires_gradient() on a tensor.
  bool sees_gradients() const;
};

}  // namespace kintsugi_python

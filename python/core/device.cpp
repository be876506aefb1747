#include "device.hpp"

#include <dlfcn.h>

#include <map>
#include <memory>

#include "call.hpp"

namespace kintsugi_python {
namespace {

constexpr const char* capsule_name = "kintsugi device memory";
constexpr int out_of_memory = 2;  // CUDA_ERROR_OUT_OF_MEMORY
using Context = void*;            // CUcontext

// Calls a function of the driver. Returns false with a Python error.
template <typename... Parameters, typename... Arguments>
bool call(int (*function)(Parameters...), const char* name, Arguments... arguments) {
  const int status = function(arguments...);
  if (status == out_of_memory)
    PyErr_Format(PyExc_MemoryError, "%s: the device has no memory left", name);
  else if (status != 0)
    PyErr_Format(PyExc_RuntimeError, "%s failed with the driver's error %d", name, status);
  return status == 0;
}

class Driver {
 public:
  // Opens the driver. Returns false with a Python error. Later calls return at once.
  bool open();
  // Returns the primary context of a device, which is never released; null with a Python error.
  Context primary_context(int device);

  int (*get_current)(Context*) = nullptr;
  int (*set_current)(Context) = nullptr;
  int (*allocate)(uintptr_t*, size_t) = nullptr;
  int (*free)(uintptr_t) = nullptr;

 private:
  template <typename Function>
  bool find(const char* name, Function& function);

  bool is_open_ = false;
  void* library_ = nullptr;
  int (*initialize_)(unsigned) = nullptr;
  int (*get_device_)(int*, int) = nullptr;
  int (*retain_)(Context*, int) = nullptr;
  std::map<int, Context> contexts_;
};

template <typename Function>
bool Driver::find(const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library_, name));
  if (function == nullptr) PyErr_Format(PyExc_OSError, "libcuda.so.1 has no function %s", name);
  return function != nullptr;
}

bool Driver::open() {
  if (is_open_) return true;
  library_ = dlopen("libcuda.so.1", RTLD_NOW);
  if (library_ == nullptr) {
    PyErr_SetString(PyExc_OSError, dlerror());
    return false;
  }
  is_open_ = find("cuInit", initialize_) && find("cuDeviceGet", get_device_) &&
             find("cuDevicePrimaryCtxRetain", retain_) && find("cuCtxGetCurrent", get_current) &&
             find("cuCtxSetCurrent", set_current) && find("cuMemAlloc_v2", allocate) &&
             find("cuMemFree_v2", free) && call(initialize_, "cuInit", 0u);
  return is_open_;
}

Context Driver::primary_context(int device) {
  Context& context = contexts_[device];
  int number = 0;
  if (context == nullptr && call(get_device_, "cuDeviceGet", &number, device))
    call(retain_, "cuDevicePrimaryCtxRetain", &context, number);
  return context;
}

// Used only with the interpreter's lock.
Driver driver;

struct Memory {
  Context context;
  uintptr_t address;
};

// Frees the memory; the driver waits for the device. Errors, as at the end of the process, are ignored.
void destroy(PyObject* capsule) {
  const auto* const memory = static_cast<Memory*>(PyCapsule_GetPointer(capsule, capsule_name));
  destroy_without_lock([&] {
    Context outer = nullptr;
    if (driver.get_current(&outer) != 0 || driver.set_current(memory->context) != 0) return;
    driver.free(memory->address);
    driver.set_current(outer);
  });
  delete memory;
}

}  // namespace

Ref enter_device(int device) {
  if (!driver.open()) return Ref();
  Context outer = nullptr;
  const Context context = driver.primary_context(device);
  if (context == nullptr || !call(driver.get_current, "cuCtxGetCurrent", &outer) ||
      !call(driver.set_current, "cuCtxSetCurrent", context))
    return Ref();
  return Ref(PyLong_FromVoidPtr(outer));
}

Ref leave_device(PyObject* outer) {
  const Context context = PyLong_AsVoidPtr(outer);
  if (PyErr_Occurred() != nullptr || !driver.open() || !call(driver.set_current, "cuCtxSetCurrent", context))
    return Ref();
  return Ref::borrowed(Py_None);
}

Ref allocate_on_device(int device, size_t bytes) {
  if (!driver.open()) return Ref();
  auto memory = std::make_unique<Memory>(Memory{driver.primary_context(device), 0});
  if (memory->context == nullptr || !call(driver.allocate, "cuMemAlloc_v2", &memory->address, bytes))
    return Ref();
  const Ref address(PyLong_FromVoidPtr(reinterpret_cast<void*>(memory->address)));
  const Ref owner(PyCapsule_New(memory.get(), capsule_name, destroy));
  if (!owner) {
    driver.free(memory->address);
    return Ref();
  }
  memory.release();
  return Ref(address ? PyTuple_Pack(2, address.get(), owner.get()) : nullptr);
}

}  // namespace kintsugi_python

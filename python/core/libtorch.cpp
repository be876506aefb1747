#include "libtorch.hpp"

#include <dlfcn.h>

namespace kintsugi_python {
namespace {

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

void* loaded(const char* name) { return dlopen(name, RTLD_NOLOAD | RTLD_LAZY); }

}  // namespace

bool LibTorch::sees_gradients() const {
  TensorHandle tensor = nullptr;
  if (empty(0, nullptr, nullptr, type_codes[0](), cpu_code(), 0, &tensor) != 0) return false;
  const bool before = requires_gradient(tensor);
  const bool is_set = set_requires_gradient(tensor, true) == 0;
  const bool after = requires_gradient(tensor);
  delete_tensor(tensor);
  return !before && is_set && after;
}

bool LibTorch::load() {
  void* const torch = loaded("libtorch_cpu.so");
  find(loaded("libtorch_cuda.so"), "aoti_torch_get_current_cuda_stream", current_cuda_stream);
  const bool has_all =
      find(loaded("libc10.so"), "_ZNK3c1010TensorImpl13requires_gradEv", implementation_requires_gradient) &&
      find(torch, "aoti_torch_library_init_impl", init_implementations) &&
      find(torch, "torch_library_impl", implement) && find(torch, "torch_call_dispatcher", call_dispatcher) &&
      find(torch, "aoti_torch_delete_tensor_object", delete_tensor) &&
      find(torch, "aoti_torch_get_dim", dimensions) && find(torch, "aoti_torch_get_dtype", type) &&
      find(torch, "aoti_torch_get_device_type", device_type) &&
      find(torch, "aoti_torch_get_device_index", device_index) &&
      find(torch, "aoti_torch_get_sizes", sizes) && find(torch, "aoti_torch_get_strides", strides) &&
      find(torch, "aoti_torch_get_data_ptr", address) && find(torch, "aoti_torch_empty_strided", empty) &&
      find(torch, "aoti_torch_copy_", copy) && find(torch, "torch_string_c_str", text_of) &&
      find(torch, "torch_delete_string", delete_string) &&
      find(torch, "aoti_torch_grad_mode_is_enabled", gradients_are_enabled) &&
      find(torch, "aoti_torch_dtype_float32", type_codes[0]) &&
      find(torch, "aoti_torch_dtype_float64", type_codes[1]) &&
      find(torch, "aoti_torch_dtype_complex64", type_codes[2]) &&
      find(torch, "aoti_torch_dtype_complex128", type_codes[3]) &&
      find(torch, "aoti_torch_dtype_uint8", byte_code) &&
      find(torch, "aoti_torch_device_type_cpu", cpu_code) &&
      find(torch, "aoti_torch_device_type_cuda", cuda_code) &&
      find(torch, "aoti_torch_get_current_device_index", current_device) &&
      find(torch, "torch_set_requires_grad", set_requires_gradient) && sees_gradients();
  // PyObject* THPVariable_Wrap(const at::TensorBase&)
  if (has_all) find(loaded("libtorch_python.so"), "_Z16THPVariable_WrapRKN2at10TensorBaseE", wrap_);
  return has_all;
}

}  // namespace kintsugi_python

#include "memory.hpp"

namespace kintsugi_python {
namespace {

// Returns the address of new device memory, whose tensor `memory` holds; nullptr, and keeps the error, if
// there is none.
void* hold_bytes(DeviceMemory& memory, size_t bytes, size_t alignment) {
  uintptr_t address = 0;
  const Ref tensor = aligned_bytes(memory.state->torch, memory.device, bytes, alignment, address);
  const Ref key(tensor ? PyLong_FromVoidPtr(reinterpret_cast<void*>(address)) : nullptr);
  if (key && PyDict_SetItem(memory.held.get(), key.get(), tensor.get()) == 0)
    return reinterpret_cast<void*>(address);
  AllocationErrors::keep_current_error();
  return nullptr;
}

void* allocate(void* user, size_t bytes, size_t alignment) {
  const PyGILState_STATE lock = PyGILState_Ensure();
  void* const address = hold_bytes(*static_cast<DeviceMemory*>(user), bytes, alignment);
  PyGILState_Release(lock);
  return address;
}

void deallocate(void* user, void* pointer, size_t) {
  const PyGILState_STATE lock = PyGILState_Ensure();
  {
    const Ref key(PyLong_FromVoidPtr(pointer));
    if (!key || PyDict_DelItem(static_cast<DeviceMemory*>(user)->held.get(), key.get()) != 0) PyErr_Clear();
  }
  PyGILState_Release(lock);
}

}  // namespace

Ref aligned_bytes(const Torch& torch, int device, size_t bytes, size_t alignment, uintptr_t& address) {
  // Tries without room for alignment first: torch's tensors are usually aligned.
  for (const size_t size : {bytes, bytes + alignment}) {
    Ref tensor = torch.bytes(device, size);
    if (!tensor) return Ref();
    const Ref first = torch.address_of(tensor.get());
    if (!first) return Ref();
    address = reinterpret_cast<uintptr_t>(PyLong_AsVoidPtr(first.get()));
    const uintptr_t misalignment = address % alignment;
    if (misalignment == 0) return tensor;
    if (size > bytes) {
      address += alignment - misalignment;
      return tensor;
    }
  }
  return Ref();
}

thread_local AllocationErrors* AllocationErrors::current = nullptr;

void AllocationErrors::keep_current_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref kept_type(type), kept_trace(trace);
  Ref kept(value);
  if (current != nullptr) current->last_ = std::move(kept);
}

bool use_torchs_memory(State& state, int device, kintsugi_options& options) {
  if (device >= max_devices) return false;
  DeviceMemory& memory = state.memory[device];
  if (!memory.held) {
    memory.held = Ref(PyDict_New());
    if (!memory.held) return false;
    memory.state = &state;
    memory.device = device;
  }
  options.allocate = allocate;
  options.deallocate = deallocate;
  options.allocator_user = &memory;
  return true;
}

}  // namespace kintsugi_python

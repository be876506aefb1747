#include "memory.hpp"

namespace kintsugi_python {
namespace {

// Returns true if later calls may use the memory of this call. Memory of a captured call belongs to the
// graph, so no other call may write to it.
bool may_share_memory(const DeviceMemory& memory, bool uses_null_stream) {
  return uses_null_stream && memory.state->torch.is_known_not_to_capture();
}

// Returns the owner of memory that the function of `memory` gives, and sets its address.
Ref bytes_of_function(const DeviceMemory& memory, size_t bytes, size_t alignment, uintptr_t& address) {
  const Ref pair(PyObject_CallFunction(memory.allocate.get(), "nn", static_cast<Py_ssize_t>(bytes),
                                       static_cast<Py_ssize_t>(alignment)));
  PyObject *number = nullptr, *owner = nullptr;
  if (!pair || PyArg_ParseTuple(pair.get(), "OO", &number, &owner) == 0) return Ref();
  address = reinterpret_cast<uintptr_t>(PyLong_AsVoidPtr(number));
  return PyErr_Occurred() == nullptr ? Ref::borrowed(owner) : Ref();
}

// Returns the owner of a spare workspace or of new memory of torch, and sets its address.
Ref bytes_of_torch(DeviceMemory& memory, size_t bytes, size_t alignment, uintptr_t& address) {
  Ref tensor = take_spare(memory, AllocatingCall::uses_null_stream(), bytes, alignment, address);
  return tensor ? std::move(tensor)
                : aligned_bytes(memory.state->torch, memory.device, bytes, alignment, address);
}

// Returns the address of device memory, whose owner `memory` holds. Returns nullptr and keeps the error if
// there is no memory.
void* hold_bytes(DeviceMemory& memory, size_t bytes, size_t alignment) {
  uintptr_t address = 0;
  const Ref owner = memory.allocate ? bytes_of_function(memory, bytes, alignment, address)
                                    : bytes_of_torch(memory, bytes, alignment, address);
  const Ref key(owner ? PyLong_FromVoidPtr(reinterpret_cast<void*>(address)) : nullptr);
  if (key && PyDict_SetItem(memory.held.get(), key.get(), owner.get()) == 0)
    return reinterpret_cast<void*>(address);
  AllocatingCall::keep_current_error();
  return nullptr;
}

void* allocate(void* user, size_t bytes, size_t alignment) {
  const PyGILState_STATE lock = PyGILState_Ensure();
  void* const address = hold_bytes(*static_cast<DeviceMemory*>(user), bytes, alignment);
  PyGILState_Release(lock);
  return address;
}

void deallocate(void* user, void* pointer, size_t bytes) {
  const PyGILState_STATE lock = PyGILState_Ensure();
  {
    DeviceMemory& memory = *static_cast<DeviceMemory*>(user);
    const Ref key(PyLong_FromVoidPtr(pointer));
    if (key && !memory.allocate) {
      keep_spare(memory, AllocatingCall::uses_null_stream(),
                 Ref::borrowed(PyDict_GetItem(memory.held.get(), key.get())),
                 reinterpret_cast<uintptr_t>(pointer), bytes);
    }
    if (!key || PyDict_DelItem(memory.held.get(), key.get()) != 0) PyErr_Clear();
  }
  PyGILState_Release(lock);
}

}  // namespace

Ref aligned_bytes(const Torch& torch, int device, size_t bytes, size_t alignment, uintptr_t& address) {
  // The first try has no room for alignment, since torch's tensors are usually aligned.
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

Ref take_spare(DeviceMemory& memory, bool uses_null_stream, size_t bytes, size_t alignment,
               uintptr_t& address) {
  address = memory.spare_address;
  const bool fits = memory.spare && memory.spare_bytes >= bytes && address % alignment == 0;
  return fits && may_share_memory(memory, uses_null_stream) ? std::move(memory.spare) : Ref();
}

void keep_spare(DeviceMemory& memory, bool uses_null_stream, Ref tensor, uintptr_t address, size_t bytes) {
  constexpr size_t max_bytes = size_t{64} << 20;  // cuBLAS's 32 MiB, and what is beside them
  // If take_spare() has given this memory to the call, it has more bytes than the call needed.
  const bool was_spare = !memory.spare && address == memory.spare_address;
  const size_t size = was_spare ? memory.spare_bytes : bytes;
  if (!memory.spare) memory.spare_address = 0;  // other memory may get that address later
  const bool is_better = !memory.spare || memory.spare_bytes < size;
  if (!tensor || size > max_bytes || !is_better) return;
  if (!was_spare && !may_share_memory(memory, uses_null_stream))
    return;  // take_spare() has asked for its own
  memory.spare = std::move(tensor);
  memory.spare_address = address;
  memory.spare_bytes = size;
}

thread_local AllocatingCall* AllocatingCall::current = nullptr;

void AllocatingCall::keep_current_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref kept_type(type), kept_trace(trace);
  Ref kept(value);
  if (current != nullptr) current->last_error_ = std::move(kept);
}

DeviceMemory* memory_of(State& state, int device) {
  if (device >= max_devices) return nullptr;
  DeviceMemory& memory = state.memory[device];
  if (!memory.held) {
    memory.held = Ref(PyDict_New());
    memory.state = &state;
    memory.device = device;
  }
  return memory.held ? &memory : nullptr;
}

std::shared_ptr<DeviceMemory> memory_from(State& state, PyObject* allocate) {
  auto memory = std::make_shared<DeviceMemory>();
  memory->state = &state;
  memory->allocate = Ref::borrowed(allocate);
  memory->held = Ref(PyDict_New());
  return memory->held ? memory : nullptr;
}

void use_memory(DeviceMemory& memory, kintsugi_options& options) {
  options.allocate = allocate;
  options.deallocate = deallocate;
  options.allocator_user = &memory;
}

}  // namespace kintsugi_python

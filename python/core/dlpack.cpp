#include "dlpack.hpp"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "call.hpp"

namespace kintsugi_python {
namespace {

// Structs and numbers of the protocol (dlpack.h, version 1.0).
struct Device {
  int32_t type;
  int32_t number;
};
constexpr int32_t cuda = 2;

struct ElementType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  int32_t dimensions;
  ElementType type;
  int64_t* shape;
  int64_t* strides;  // in elements; null: C order
  uint64_t byte_offset;
};

struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};

struct ManagedVersioned {
  uint32_t major;
  uint32_t minor;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  Tensor tensor;
};
constexpr uint32_t newest_major = 1;
constexpr uint64_t read_only_flag = 1;

constexpr const char* plain = "dltensor";
constexpr const char* used_plain = "used_dltensor";
constexpr const char* versioned = "dltensor_versioned";
constexpr const char* used_versioned = "used_dltensor_versioned";
constexpr const char* owner_name = "kintsugi DLPack owner";

// numpy's letter of a DLDataTypeCode; 0 if there is none.
char letter_of(uint8_t code) {
  return code == 0 ? 'i' : code == 1 ? 'u' : code == 2 ? 'f' : code == 5 ? 'c' : '\0';
}

uint8_t code_of(char letter) { return letter == 'i' ? 0 : letter == 'u' ? 1 : letter == 'f' ? 2 : 5; }

// Returns a tuple of numbers, each multiplied by `unit`.
Ref tuple_of(const int64_t* numbers, int32_t count, int64_t unit) {
  Ref tuple(PyTuple_New(count));
  for (int32_t i = 0; tuple && i < count; ++i) {
    PyObject* const number = PyLong_FromLongLong(numbers[i] * unit);
    if (number == nullptr || PyTuple_SetItem(tuple.get(), i, number) != 0) return Ref();
  }
  return tuple;
}

bool read_numbers(PyObject* tuple, std::vector<int64_t>& numbers) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i)
    numbers.push_back(PyLong_AsLongLong(PyTuple_GetItem(tuple, i)));
  return PyErr_Occurred() == nullptr;
}

// A tensor that was imported: gives it back to its library.
struct Imported {
  Managed* managed = nullptr;
  ManagedVersioned* managed_versioned = nullptr;

  ~Imported() {
    destroy_without_lock([&] {
      if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
      if (managed_versioned != nullptr && managed_versioned->deleter != nullptr)
        managed_versioned->deleter(managed_versioned);
    });
  }
};

void destroy_imported(PyObject* capsule) {
  delete static_cast<Imported*>(PyCapsule_GetPointer(capsule, owner_name));
}

Ref describe(const Tensor& tensor, bool is_read_only, PyObject* owner) {
  const ElementType type = tensor.type;
  const int size = type.bits / 8;
  const Ref shape = tuple_of(tensor.shape, tensor.dimensions, 1);
  const Ref strides =
      tensor.strides == nullptr ? Ref::borrowed(Py_None) : tuple_of(tensor.strides, tensor.dimensions, size);
  const Ref address(PyLong_FromVoidPtr(static_cast<char*>(tensor.data) + tensor.byte_offset));
  const Ref typestr(PyUnicode_FromFormat("%c%d", letter_of(type.code), size));
  if (!shape || !strides || !address || !typestr) return Ref();
  return Ref(Py_BuildValue("(OOOOiOO)", address.get(), shape.get(), strides.get(), typestr.get(),
                           tensor.device.number, is_read_only ? Py_True : Py_False, owner));
}

bool has_numpys_type(const Tensor& tensor) {
  const ElementType type = tensor.type;
  if (letter_of(type.code) != '\0' && type.lanes == 1) return true;
  PyErr_Format(PyExc_TypeError, "DLPack's type %d of %d bits in %d lanes is no type of numpy", type.code,
               type.bits, type.lanes);
  return false;
}

// An array that was exported, with all that its consumer reads.
struct Exported {
  Managed managed;
  Ref owner;
  std::vector<int64_t> shape, strides;
};

// Called by the consumer, with or without the interpreter's lock.
void delete_exported(Managed* managed) {
  if (Py_IsInitialized() == 0) return;  // the end of the process frees it
  const PyGILState_STATE lock = PyGILState_Ensure();
  delete static_cast<Exported*>(managed->context);
  PyGILState_Release(lock);
}

void destroy_exported(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, plain) == 0)
    return;  // a consumer has taken the tensor and renamed the capsule
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, plain));
  managed->deleter(managed);
}

}  // namespace

Ref import_dlpack(PyObject* capsule, PyObject* x) {
  auto imported = std::make_unique<Imported>();
  Imported* const taken = imported.get();
  Ref owner(PyCapsule_New(taken, owner_name, destroy_imported));
  if (!owner) return Ref();
  imported.release();
  if (PyCapsule_IsValid(capsule, versioned) != 0) {
    auto* const managed = static_cast<ManagedVersioned*>(PyCapsule_GetPointer(capsule, versioned));
    if (managed->major > newest_major) {
      PyErr_Format(PyExc_BufferError, "DLPack %d.%d is unknown here; version 1 was requested", managed->major,
                   managed->minor);
      return Ref();
    }
    Ref found = has_numpys_type(managed->tensor)
                    ? describe(managed->tensor, (managed->flags & read_only_flag) != 0, owner.get())
                    : Ref();
    if (!found || PyCapsule_SetName(capsule, used_versioned) != 0) return Ref();
    taken->managed_versioned = managed;
    return found;
  }
  if (PyCapsule_IsValid(capsule, plain) != 0) {
    auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, plain));
    Ref found = has_numpys_type(managed->tensor) ? describe(managed->tensor, false, owner.get()) : Ref();
    if (!found || PyCapsule_SetName(capsule, used_plain) != 0) return Ref();
    taken->managed = managed;
    return found;
  }
  const Ref name(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(x)), "__name__"));
  if (name) PyErr_Format(PyExc_BufferError, "__dlpack__ of a %U gives no capsule with a tensor", name.get());
  return Ref();
}

Ref export_dlpack(PyObject* owner, PyObject* address, PyObject* shape, PyObject* strides, const char* typestr,
                  int device) {
  auto exported = std::make_unique<Exported>();
  const int size = std::atoi(typestr + 2);  // as in "<f8"
  if (!read_numbers(shape, exported->shape)) return Ref();
  if (strides != Py_None) {
    if (!read_numbers(strides, exported->strides)) return Ref();
    for (int64_t& stride : exported->strides) stride /= size;
  } else {
    int64_t stride = 1;
    exported->strides.resize(exported->shape.size());
    for (size_t i = exported->shape.size(); i-- > 0; stride *= exported->shape[i])
      exported->strides[i] = stride;
  }
  exported->owner = Ref::borrowed(owner);
  exported->managed = {.tensor = {.data = PyLong_AsVoidPtr(address),
                                  .device = {cuda, device},
                                  .dimensions = static_cast<int32_t>(exported->shape.size()),
                                  .type = {code_of(typestr[1]), static_cast<uint8_t>(8 * size), 1},
                                  .shape = exported->shape.data(),
                                  .strides = exported->strides.data(),
                                  .byte_offset = 0},
                       .context = exported.get(),
                       .deleter = delete_exported};
  if (PyErr_Occurred() != nullptr) return Ref();
  Ref capsule(PyCapsule_New(&exported->managed, plain, destroy_exported));
  if (capsule) exported.release();
  return capsule;
}

}  // namespace kintsugi_python

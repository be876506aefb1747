#include "torch.hpp"

namespace kintsugi_python {
namespace {

Ref call_method(PyObject* object, const Ref& name) {
  return Ref(PyObject_CallMethodObjArgs(object, name.get(), nullptr));
}

bool read_number(const Ref& object, int64_t& number) {
  if (!object) return false;
  number = PyLong_AsLongLong(object.get());
  return number != -1 || PyErr_Occurred() == nullptr;
}

// Reads a tuple of `count` numbers, each multiplied by `unit`.
bool read_numbers(const Ref& tuple, int count, int64_t unit, int64_t* numbers) {
  if (!tuple || !PyTuple_Check(tuple.get()) || PyTuple_Size(tuple.get()) != count) return false;
  for (int i = 0; i < count; ++i) {
    const Ref item = Ref::borrowed(PyTuple_GetItem(tuple.get(), i));
    if (!read_number(item, numbers[i])) return false;
    numbers[i] *= unit;
  }
  return true;
}

}  // namespace

bool Torch::load_names() {
  struct Name {
    Ref& ref;
    const char* text;
  };
  const Name names[] = {{name_, "torch"},
                        {requires_grad_, "requires_grad"},
                        {is_conj_, "is_conj"},
                        {is_neg_, "is_neg"},
                        {dtype_, "dtype"},
                        {is_cuda_, "is_cuda"},
                        {is_cpu_, "is_cpu"},
                        {get_device_, "get_device"},
                        {shape_, "shape"},
                        {stride_, "stride"},
                        {data_ptr_, "data_ptr"},
                        {new_empty_, "new_empty"},
                        {current_device_, "current_device"},
                        {current_stream_, "current_stream"},
                        {cuda_stream_, "cuda_stream"},
                        {current_level_, "_current_level"}};
  for (const Name& name : names) {
    name.ref = Ref(PyUnicode_InternFromString(name.text));
    if (!name.ref) return false;
  }
  return true;
}

bool Torch::load(PyObject* module) {
  module_ = Ref();
  const char* const names[] = {"float32", "float64", "complex64", "complex128"};
  for (int type = 0; type < 4; ++type) {
    types_[type] = Ref(PyObject_GetAttrString(module, names[type]));
    if (!types_[type]) return false;
  }
  tensor_type_ = Ref(PyObject_GetAttrString(module, "Tensor"));
  empty_ = Ref(PyObject_GetAttrString(module, "empty"));
  cuda_ = Ref(PyObject_GetAttrString(module, "cuda"));
  byte_ = Ref(PyObject_GetAttrString(module, "uint8"));
  if (!tensor_type_ || !empty_ || !cuda_ || !byte_) return false;
  load_quick_functions(module);
  module_ = Ref::borrowed(module);
  return true;
}

void Torch::load_quick_functions(PyObject* module) {
  const Ref compiled_module(PyObject_GetAttrString(module, "_C"));
  const auto find = [&](const char* name) {
    return Ref(compiled_module ? PyObject_GetAttrString(compiled_module.get(), name) : nullptr);
  };
  quick_device_ = find("_cuda_getDevice");
  quick_stream_ = find("_cuda_getCurrentRawStream");
  quick_is_capturing_ = find("_cuda_isCurrentStreamCapturing");
  const Ref autograd(PyObject_GetAttrString(module, "autograd"));
  forward_mode_ = Ref(autograd ? PyObject_GetAttrString(autograd.get(), "forward_ad") : nullptr);
  PyErr_Clear();  // find() has set an error if this version of torch lacks a function
}

bool Torch::owns(PyObject* x) {
  const Ref module(PyImport_GetModule(name_.get()));
  if (!module || (module.get() != module_.get() && !load(module.get()))) return false;
  return is_tensor(x);
}

bool Torch::is_in_forward_mode() const {
  int64_t level = -1;  // of none
  return forward_mode_ &&
         read_number(Ref(PyObject_GetAttr(forward_mode_.get(), current_level_.get())), level) && level >= 0;
}

bool Torch::is_true(PyObject* x, const Ref& attribute) const {
  return Ref(PyObject_GetAttr(x, attribute.get())).get() == Py_True;
}

bool Torch::returns_false(PyObject* x, const Ref& method) const {
  return call_method(x, method).get() == Py_False;
}

bool Torch::read_data(PyObject* x, Array& array) const {
  const Ref data = call_method(x, data_ptr_);
  if (!data) return false;
  array.data = static_cast<char*>(PyLong_AsVoidPtr(data.get()));
  const bool is_single = array.type == KINTSUGI_F32 || array.type == KINTSUGI_C32;
  const uintptr_t alignment = is_single ? 4 : 8;  // size of a part
  return array.data != nullptr && reinterpret_cast<uintptr_t>(array.data) % alignment == 0;
}

bool Torch::read_geometry(PyObject* x, Array& array) const {
  const Ref shape(PyObject_GetAttr(x, shape_.get()));
  if (!shape || !PyTuple_Check(shape.get())) return false;
  const Py_ssize_t dimensions = PyTuple_Size(shape.get());
  if (dimensions < 1 || dimensions > max_dimensions) return false;
  array.dimensions = static_cast<int>(dimensions);
  return read_data(x, array) && read_numbers(shape, array.dimensions, 1, array.shape) &&
         read_numbers(call_method(x, stride_), array.dimensions, element_size(array.type), array.strides);
}

bool Torch::read(PyObject* x, Array& array) const {
  const Ref gradient(PyObject_GetAttr(x, requires_grad_.get()));
  if (gradient.get() != Py_False || is_in_forward_mode() || !returns_false(x, is_neg_)) return false;
  const Ref type(PyObject_GetAttr(x, dtype_.get()));
  constexpr int type_count = 4;
  array.type = 0;
  while (array.type < type_count && types_[array.type].get() != type.get()) ++array.type;
  const bool is_complex = array.type == KINTSUGI_C32 || array.type == KINTSUGI_C64;
  if (is_complex && !returns_false(x, is_conj_)) return false;  // real tensors are never lazy conjugates
  int64_t device = 0;
  if (array.type == type_count || !read_number(call_method(x, get_device_), device)) return false;
  if (!is_true(x, device < 0 ? is_cpu_ : is_cuda_)) return false;
  array.device = device < 0 ? on_host : static_cast<int>(device);
  array.is_writeable = true;
  return read_geometry(x, array);
}

// A new tensor is contiguous, so only its address is read: shape and strides take torch 0.3 us.
Ref Torch::empty(PyObject* example, PyObject* shape) const {
  return Ref(PyObject_CallMethodObjArgs(example, new_empty_.get(), shape, nullptr));
}

Ref Torch::current_device() const {
  return quick_device_ ? Ref(PyObject_CallObject(quick_device_.get(), nullptr))
                       : call_method(cuda_.get(), current_device_);
}

Ref Torch::address_of_stream(int device) const {
  const Ref number(PyLong_FromLong(device));
  if (!number) return Ref();
  if (quick_stream_) return Ref(PyObject_CallFunctionObjArgs(quick_stream_.get(), number.get(), nullptr));
  const Ref stream(PyObject_CallMethodObjArgs(cuda_.get(), current_stream_.get(), number.get(), nullptr));
  return Ref(stream ? PyObject_GetAttr(stream.get(), cuda_stream_.get()) : nullptr);
}

bool Torch::is_known_not_to_capture() const {
  if (!quick_is_capturing_) return false;
  const Ref captures(PyObject_CallObject(quick_is_capturing_.get(), nullptr));
  if (!captures) PyErr_Clear();
  return captures.get() == Py_False;
}

bool Torch::find_stream(int device, kintsugi_queue& queue) const {
  int64_t current = 0;
  if (!read_number(current_device(), current) || current != device) return false;
  const Ref address = address_of_stream(device);
  if (!address) return false;
  queue = {KINTSUGI_QUEUE_CUDA, 0, PyLong_AsVoidPtr(address.get())};
  return PyErr_Occurred() == nullptr;
}

Ref Torch::bytes(int device, size_t size) const {
  const Ref arguments(Py_BuildValue("(n)", static_cast<Py_ssize_t>(size)));
  const Ref keywords(Py_BuildValue("{s:O,s:i}", "dtype", byte_.get(), "device", device));
  if (!arguments || !keywords) return Ref();
  return Ref(PyObject_Call(empty_.get(), arguments.get(), keywords.get()));
}

Ref Torch::address_of(PyObject* tensor) const { return call_method(tensor, data_ptr_); }

}  // namespace kintsugi_python

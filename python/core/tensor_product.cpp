#include "tensor_product.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "arguments.hpp"
#include "call.hpp"
#include "plan.hpp"
#include "thread.hpp"

namespace kintsugi_python {
namespace {

// True while this thread's product is in the null stream.
thread_local bool uses_null_stream = false;

// Data of the library's allocator callbacks: tensors on one device, in the order of torch's current stream.
// The workspace of a product in the null stream is kept for the next one in that stream, whose order keeps
// their work apart: torch takes 2 us to allocate. Any other stream may be captured into a graph, to which
// its memory then belongs, or be a new one at the address of a destroyed one.
class DeviceTensors {
 public:
  explicit DeviceTensors(int device) : device_(device) {}

  void use(kintsugi_options& options) {
    options.allocate = allocate;
    options.deallocate = deallocate;
    options.allocator_user = this;
  }

  void release_spare() {
    Memory released;  // deleted without the lock
    const std::lock_guard lock(mutex_);
    if (!spare_is_used_) std::swap(released, spare_);
  }

 private:
  struct Memory {
    Tensor tensor;
    void* address = nullptr;
    size_t bytes = 0;
  };

  Memory make(size_t bytes, size_t alignment) {
    LibTorch& torch = libtorch();
    const auto size = static_cast<int64_t>(bytes);
    constexpr int64_t stride = 1;
    TensorHandle made = nullptr;
    Memory memory;
    if (torch.empty(1, &size, &stride, torch.byte_code(), torch.cuda_code(), device_, &made) != 0) return {};
    memory.tensor.reset(made);
    memory.bytes = bytes;
    if (torch.address(made, &memory.address) != 0 ||
        reinterpret_cast<uintptr_t>(memory.address) % alignment != 0)
      return {};
    return memory;
  }

  static void* allocate(void* user, size_t bytes, size_t alignment) {
    auto& tensors = *static_cast<DeviceTensors*>(user);
    if (uses_null_stream) {
      const std::lock_guard lock(tensors.mutex_);
      if (!tensors.spare_is_used_ && tensors.spare_.bytes >= bytes) {
        tensors.spare_is_used_ = true;
        return tensors.spare_.address;
      }
    }
    Memory memory = tensors.make(bytes, alignment);
    void* const address = memory.address;
    if (address == nullptr) return nullptr;
    const std::lock_guard lock(tensors.mutex_);
    tensors.held_.emplace(address, std::move(memory));
    return address;
  }

  static void deallocate(void* user, void* address, size_t) {
    constexpr size_t max_bytes = size_t{64} << 20;  // cuBLAS's 32 MiB, and what is beside them
    auto& tensors = *static_cast<DeviceTensors*>(user);
    Memory memory;  // deleted without the lock
    const std::lock_guard lock(tensors.mutex_);
    if (tensors.spare_is_used_ && address == tensors.spare_.address) {
      tensors.spare_is_used_ = false;
      return;
    }
    const auto held = tensors.held_.find(address);
    if (held == tensors.held_.end()) return;
    std::swap(memory, held->second);
    tensors.held_.erase(held);
    const bool is_better = memory.bytes > tensors.spare_.bytes && memory.bytes <= max_bytes;
    if (uses_null_stream && is_better && !tensors.spare_is_used_) std::swap(memory, tensors.spare_);
  }

  int device_;
  std::mutex mutex_;
  Memory spare_;
  bool spare_is_used_ = false;
  std::unordered_map<void*, Memory> held_;
};

// Never destroyed, since the library may have memory of them as long as it lives.
struct AllTensors {
  std::mutex mutex;
  std::map<int, DeviceTensors> of_device;
};
AllTensors& all_tensors() {
  static auto* const all = new AllTensors;
  return *all;
}
DeviceTensors& tensors_of(int device) {
  AllTensors& all = all_tensors();
  const std::lock_guard lock(all.mutex);
  return all.of_device.try_emplace(device, device).first->second;
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

bool is_single(int32_t type) { return type == KINTSUGI_F32 || type == KINTSUGI_C32; }

bool is_layer(Form form) { return form == form_linear || form == form_prepared; }

// Writes a number of Python, or the value in its place, as a number of the type.
bool store_scalar(PyObject* number, int value, int32_t type, char* scalar) {
  if (number != nullptr) return read_scalar(number, type, scalar);
  std::fill_n(scalar, 16, '\0');
  if (is_single(type))
    *reinterpret_cast<float*>(scalar) = static_cast<float>(value);
  else
    *reinterpret_cast<double*>(scalar) = value;
  return true;
}

bool is_one(const char* scalar, int32_t type) {
  char one[16];
  store_scalar(nullptr, 1, type, one);
  return std::memcmp(scalar, one, element_size(type)) == 0;
}

// True if the environment or the settings file names an accuracy or a scheme for calls that name none, or if
// the library cannot tell. It reads the file once.
bool has_setting() {
  for (const char* variable : {"KINTSUGI_ACCURACY", "KINTSUGI_SCHEME"}) {
    if (std::getenv(variable) != nullptr) return true;
  }
  static const bool is_in_file = [] {
    size_t bytes = 0;
    kintsugi_describe_settings(nullptr, nullptr, 0, &bytes);
    std::string text(bytes, '\0');
    if (kintsugi_describe_settings(nullptr, text.data(), bytes, &bytes) != KINTSUGI_SUCCESS) return true;
    for (const char* member : {"\"name\": \"accuracy\"", "\"name\": \"scheme\""}) {
      const size_t begin = text.find(member);
      const size_t value = text.find("\"value\": ", begin);
      if (value == text.npos || text.find("\"value\": \"\"", begin) != value) return true;
    }
    return false;
  }();
  return is_in_file;
}

// True if both arrays have the same elements at the same addresses.
bool are_same(const Array& x, const Array& y) {
  return x.data == y.data && x.dimensions == y.dimensions &&
         std::equal(x.shape, x.shape + x.dimensions, y.shape) &&
         std::equal(x.strides, x.strides + x.dimensions, y.strides);
}

}  // namespace

LibTorch& libtorch() {
  static LibTorch torch;
  return torch;
}

void release_spare_tensors() {
  AllTensors& all = all_tensors();
  const std::lock_guard lock(all.mutex);
  for (auto& [device, tensors] : all.of_device) tensors.release_spare();
}

bool TensorProduct::read_tensor(TensorHandle tensor, Array& array) const {
  LibTorch& torch = libtorch();
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
  return reinterpret_cast<uintptr_t>(address) % (is_single(array.type) ? 4 : 8) == 0;
}

bool TensorProduct::read_scalars() {
  if (!store_scalar(given_.alpha, 1, a_.type, alpha_)) return false;
  if (!store_scalar(given_.c == nullptr ? nullptr : given_.beta, given_.c == nullptr ? 0 : 1, a_.type, beta_))
    return false;
  if (is_zero(beta_, a_.type)) given_.c = nullptr;
  return true;
}

bool TensorProduct::read_shapes() {
  if (is_layer(given_.form)) {
    if (b_.dimensions != 2 || !flatten(a_)) return false;
    std::swap(b_.shape[0], b_.shape[1]);
    std::swap(b_.strides[0], b_.strides[1]);
    return find_shape(a_, b_, shape_);
  }
  if (a_.dimensions < 2 || b_.dimensions < 2) return false;
  const int wanted = given_.form == form_mm ? 2 : given_.form == form_bmm ? 3 : 0;
  if (wanted != 0 && (a_.dimensions != wanted || b_.dimensions != wanted)) return false;
  if (given_.form == form_bmm && a_.shape[0] != b_.shape[0]) return false;
  return find_shape(a_, b_, shape_);
}

bool TensorProduct::make_result() {
  LibTorch& torch = libtorch();
  int64_t sizes[max_dimensions], strides[max_dimensions];
  int dimensions = shape_.batch_dimensions + 2;
  c_.type = a_.type;
  c_.device = a_.device;
  set_dense(shape_.sizes, dimensions, c_);
  std::copy_n(shape_.sizes, dimensions, sizes);
  if (is_layer(given_.form)) {  // the input's shape, with other columns
    int64_t given = 0, *given_sizes = nullptr;
    if (torch.dimensions(given_.a, &given) != 0 || torch.sizes(given_.a, &given_sizes) != 0) return false;
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

bool TensorProduct::read_result() {
  if (given_.out == nullptr) return make_result();
  const int dimensions = shape_.batch_dimensions + 2;
  return read_tensor(given_.out, c_) && c_.type == a_.type && c_.device == a_.device &&
         c_.dimensions == dimensions && std::equal(c_.shape, c_.shape + dimensions, shape_.sizes);
}

bool TensorProduct::find_queue() {
  if (a_.device == on_host) return state_.host_is_ready;
  int32_t current = 0;
  void* stream = nullptr;
  if (libtorch().current_device(&current) != 0 || current != a_.device ||
      libtorch().current_cuda_stream(a_.device, &stream) != 0)
    return false;
  operands_.queue = {KINTSUGI_QUEUE_CUDA, 0, stream};
  return true;
}

// True if what is added can be broadcast to the result.
bool TensorProduct::fits_result(const Array& added) const {
  int64_t dimensions = 0, *sizes = nullptr;
  if (libtorch().dimensions(target(), &dimensions) != 0 || libtorch().sizes(target(), &sizes) != 0)
    return false;
  const int64_t first = dimensions - added.dimensions;
  if (first < 0) return false;
  for (int d = 0; d < added.dimensions; ++d) {
    if (added.shape[d] != 1 && added.shape[d] != sizes[first + d]) return false;
  }
  return true;
}

// Reads what is added. Unless it is in the result, it is copied there, or added to the product.
bool TensorProduct::read_added() {
  if (given_.c == nullptr) return true;
  Array added;
  if (!read_tensor(given_.c, added) || added.type != a_.type || added.device != a_.device ||
      !fits_result(added))
    return false;
  problem_.adds_to_c = a_.device == on_host ? 0 : 1;
  if (given_.out == nullptr) return true;
  if (are_same(added, c_)) given_.c = nullptr;
  return given_.c == nullptr || !share_memory(added, c_);
}

bool TensorProduct::read(const TensorOperands& given) {
  given_ = given;
  LibTorch& torch = libtorch();
  if (!read_tensor(given_.a, a_) || !read_tensor(given_.b, b_) || a_.type != b_.type ||
      a_.device != b_.device)
    return false;
  if (torch.device_type(given_.a, &device_type_) != 0 || torch.device_index(given_.a, &device_index_) != 0)
    return false;
  if (!read_scalars() || !find_queue() || !read_shapes() || !read_result()) return false;
  if (!describe(&a_, given_.prepared == nullptr ? &b_ : nullptr, c_, shape_.k, problem_) ||
      problem_.batch_kind != KINTSUGI_BATCH_STRIDED)
    return false;
  if (given_.out != nullptr && !shares_no_memory(a_, b_, c_, problem_)) return false;
  problem_.prepared_b = given_.prepared == nullptr ? 0 : 1;
  return read_added();
}

// True if torch adds c to the product, whose kernels are slower where they read C. That rounds once more, and
// the type's own accuracy is that of the product before anything is added (docs/design/bounds.md).
bool TensorProduct::adds_afterwards(PyObject* accuracy) const {
  return given_.c != nullptr && is_one(beta_, a_.type) && accuracy == Py_None && libtorch().can_wrap() &&
         !has_setting();
}

TensorProduct::Outcome TensorProduct::run(PyObject* accuracy) {
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  Ref text;
  if (accuracy != Py_None) {
    text = Ref(PyUnicode_AsUTF8String(accuracy));
    options.accuracy = text ? PyBytes_AsString(text.get()) : nullptr;
  }
  Thread* const thread = this_thread(state_);
  if (thread == nullptr || PyErr_Occurred() != nullptr) return Outcome::failed;
  const bool adds = adds_afterwards(accuracy);
  if (adds) {
    store_scalar(nullptr, 0, a_.type, beta_);
    problem_.adds_to_c = 0;
  }
  operands_.alpha = alpha_;
  operands_.beta = beta_;
  operands_.a = a_.data;
  operands_.b = given_.prepared == nullptr ? b_.data : nullptr;
  operands_.prepared_b = given_.prepared;
  operands_.c = c_.data;
  const bool is_on_device = a_.device != on_host;
  if (is_on_device) tensors_of(a_.device).use(options);
  PyObject* const noted[option_count] = {accuracy, Py_None, Py_None, Py_None, Py_None, Py_None};
  thread->note_call(problem_, noted, a_.device);
  const kintsugi_status status = without_lock([&] {
    if (given_.c != nullptr && !adds && libtorch().copy(target(), given_.c, 0) != 0)
      return KINTSUGI_OUT_OF_MEMORY;
    const bool outer = std::exchange(uses_null_stream, is_on_device && operands_.queue.stream == nullptr);
    const kintsugi_status found = state_.library.gemm(thread->handle, &problem_, &options, &operands_);
    uses_null_stream = outer;
    return found;
  });
  if (status == KINTSUGI_OUT_OF_MEMORY) return Outcome::declined;
  if (!check(state_, status)) return Outcome::failed;
  if (!adds) return Outcome::done;
  static PyObject* const name = PyUnicode_InternFromString("add_");
  const Ref result = result_object(), added(libtorch().wrap(given_.c));
  if (!result || !added) return Outcome::failed;
  return Ref(PyObject_CallMethodObjArgs(result.get(), name, added.get(), nullptr)) ? Outcome::done
                                                                                   : Outcome::failed;
}

}  // namespace kintsugi_python

// Matrix products for JAX on the CPU and on CUDA devices: handlers of XLA's foreign function interface,
// which kintsugi/jax.py registers. The library libkintsugi_jax.so has them alone, since they need JAX's
// headers and nothing of Python.
#include <kintsugi/kintsugi.h>
#include <xla/ffi/api/ffi.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace {

namespace ffi = xla::ffi;

// One of the element types that the library multiplies, with the number 1 as alpha.
struct Element {
  kintsugi_type type;
  int64_t bytes;
  const void* one;
};

constexpr float one_f32 = 1;
constexpr double one_f64 = 1;
constexpr std::complex<float> one_c32 = 1;
constexpr std::complex<double> one_c64 = 1;
constexpr std::complex<double> zero = 0;  // beta of every type

// Returns the element of XLA's type; one of 0 bytes for types that are not multiplied.
Element element_of(ffi::DataType type) {
  switch (type) {
    case ffi::DataType::F32: return {KINTSUGI_F32, 4, &one_f32};
    case ffi::DataType::F64: return {KINTSUGI_F64, 8, &one_f64};
    case ffi::DataType::C64: return {KINTSUGI_C32, 8, &one_c32};
    case ffi::DataType::C128: return {KINTSUGI_C64, 16, &one_c64};
    default: return {KINTSUGI_F32, 0, nullptr};
  }
}

// Matrices (batch..., rows, columns) in row-major order without gaps.
struct Matrices {
  explicit Matrices(const ffi::AnyBuffer& buffer)
      : data(static_cast<char*>(buffer.untyped_data())),
        batch(buffer.dimensions().begin(), buffer.dimensions().end() - 2),
        rows(buffer.dimensions().end()[-2]), columns(buffer.dimensions().end()[-1]) {}

  int64_t leading_dimension() const { return std::max<int64_t>(columns, 1); }

  char* data;
  std::vector<int64_t> batch;
  int64_t rows, columns;
};

// Returns the addresses of an operand's matrices for all items of a batch. A dimension of length 1 is
// broadcast.
std::vector<void*> item_addresses(const Matrices& operand, const std::vector<int64_t>& batch,
                                  int64_t element_bytes) {
  std::vector<void*> addresses{operand.data};
  int64_t stride = operand.rows * operand.columns * element_bytes;
  for (size_t d = batch.size(); d-- > 0;) {
    const int64_t step = operand.batch[d] == 1 ? 0 : stride;
    std::vector<void*> outer;
    for (int64_t i = 0; i < batch[d]; ++i) {
      for (void* const address : addresses) outer.push_back(static_cast<char*>(address) + i * step);
    }
    addresses = std::move(outer);
    stride *= operand.batch[d];
  }
  return addresses;
}

bool broadcasts(const Matrices& operand, const std::vector<int64_t>& batch) {
  return std::equal(operand.batch.begin(), operand.batch.end(), batch.begin(), batch.end(),
                    [](int64_t length, int64_t full) { return length == full || length == 1; });
}

// Returns the distance of an operand's matrices for successive items of a batch, in elements; nothing if it
// varies.
std::optional<int64_t> uniform_stride(const Matrices& operand, const std::vector<int64_t>& batch) {
  const auto is_one = [](int64_t length) { return length == 1; };
  if (std::all_of(operand.batch.begin(), operand.batch.end(), is_one)) return 0;
  if (operand.batch != batch) return std::nullopt;
  return operand.rows * operand.columns;
}

ffi::Error failure() { return ffi::Error(ffi::ErrorCode::kInternal, kintsugi_last_error()); }

ffi::Error invalid(const char* what) { return ffi::Error::InvalidArgument(std::string("kintsugi: ") + what); }

// A product C = op(A) op(B), with op(X) = X or its transpose, as the library has it.
struct Product {
  Element element;
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  std::optional<int64_t> stride_a, stride_b;
  Matrices a, b, c;

  bool is_empty() const { return problem.batch_count == 0 || problem.m == 0 || problem.n == 0; }
  // True if the batch's items are equally spaced. If not, `problem` has no strides.
  bool is_strided() const { return stride_a && stride_b; }
};

// Reads the arguments of a handler. Returns what is wrong with them, or nullptr.
const char* read(const ffi::AnyBuffer& given_a, const ffi::AnyBuffer& given_b, const ffi::AnyBuffer& result,
                 bool transpose_a, bool transpose_b, std::optional<Product>& product) {
  const Element element = element_of(result.element_type());
  if (element.bytes == 0 || given_a.element_type() != result.element_type() ||
      given_b.element_type() != result.element_type())
    return "operands and result have one of the types F32, F64, C64, C128";
  if (given_a.dimensions().size() < 2 || given_b.dimensions().size() < 2 || result.dimensions().size() < 2)
    return "a matrix has two dimensions";
  product.emplace(Product{.element = element,
                          .stride_a = {},
                          .stride_b = {},
                          .a = Matrices(given_a),
                          .b = Matrices(given_b),
                          .c = Matrices(result)});
  const Matrices &a = product->a, &b = product->b, &c = product->c;
  kintsugi_problem& problem = product->problem;
  problem.m = transpose_a ? a.columns : a.rows;
  problem.k = transpose_a ? a.rows : a.columns;
  problem.n = transpose_b ? b.rows : b.columns;
  if ((transpose_b ? b.columns : b.rows) != problem.k || c.rows != problem.m || c.columns != problem.n ||
      !broadcasts(a, c.batch) || !broadcasts(b, c.batch))
    return "the shapes of operands and result do not fit";
  problem.batch_count = std::accumulate(c.batch.begin(), c.batch.end(), int64_t{1}, std::multiplies<>());
  problem.op_a = transpose_a ? KINTSUGI_OP_T : KINTSUGI_OP_N;
  problem.op_b = transpose_b ? KINTSUGI_OP_T : KINTSUGI_OP_N;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = element.type;
  problem.layout = KINTSUGI_ROW_MAJOR;
  problem.lda = a.leading_dimension();
  problem.ldb = b.leading_dimension();
  problem.ldc = c.leading_dimension();
  product->stride_a = uniform_stride(a, c.batch);
  product->stride_b = uniform_stride(b, c.batch);
  if (product->is_strided()) {
    problem.stride_a = *product->stride_a;
    problem.stride_b = *product->stride_b;
    problem.stride_c = c.rows * c.columns;
  }
  return nullptr;
}

kintsugi_operands operands_of(const Product& product) {
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  operands.alpha = product.element.one;
  operands.beta = &zero;
  operands.a = product.a.data;
  operands.b = product.b.data;
  operands.c = product.c.data;
  return operands;
}

// `accuracy`: "" is the type's own.
ffi::Error multiply(ffi::AnyBuffer given_a, ffi::AnyBuffer given_b, ffi::Result<ffi::AnyBuffer> result,
                    std::string_view accuracy, bool transpose_a, bool transpose_b) {
  std::optional<Product> product;
  if (const char* wrong = read(given_a, given_b, *result, transpose_a, transpose_b, product))
    return invalid(wrong);
  if (product->is_empty()) return ffi::Error::Success();
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  const std::string text(accuracy);
  if (!text.empty()) options.accuracy = text.c_str();
  kintsugi_operands operands = operands_of(*product);
  std::vector<void*> items_a, items_b, items_c;
  if (!product->is_strided()) {
    const std::vector<int64_t>& batch = product->c.batch;
    product->problem.batch_kind = KINTSUGI_BATCH_POINTERS;
    items_a = item_addresses(product->a, batch, product->element.bytes);
    items_b = item_addresses(product->b, batch, product->element.bytes);
    items_c = item_addresses(product->c, batch, product->element.bytes);
    operands.a = items_a.data();
    operands.b = items_b.data();
    operands.c = items_c.data();
  }
  return kintsugi_gemm(nullptr, &product->problem, &options, &operands) == KINTSUGI_SUCCESS
             ? ffi::Error::Success()
             : failure();
}

// Plans of products on devices, which are kept: a program runs the same products again and again, and a
// product that XLA captures into a command buffer needs one that was made before.
class Plans {
 public:
  // Returns the plan of a problem on the current device, of which the number is given; nullptr if the
  // library refuses it.
  kintsugi_plan find(const kintsugi_problem& problem, std::string_view accuracy, int device) {
    std::string key(reinterpret_cast<const char*>(&problem), sizeof(problem));
    const std::lock_guard lock(mutex_);
    kintsugi_plan& plan = plans_[{std::move(key), std::string(accuracy), device}];
    if (plan == nullptr) {
      kintsugi_options options = KINTSUGI_OPTIONS_INIT;
      const std::string text(accuracy);
      if (!text.empty()) options.accuracy = text.c_str();
      if (kintsugi_plan_create(nullptr, &problem, &options, &plan) != KINTSUGI_SUCCESS) plan = nullptr;
    }
    return plan;
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<std::string, std::string, int>, kintsugi_plan> plans_;
};

// Never destroyed, since the driver may be gone before.
Plans& plans() {
  static Plans* const all = new Plans;
  return *all;
}

// Reads the arguments of a product on a device; a batch whose items are not equally spaced becomes a
// product of one item, since the addresses of many would have to be in device memory.
const char* read_on_device(const ffi::AnyBuffer& given_a, const ffi::AnyBuffer& given_b,
                           const ffi::AnyBuffer& result, bool transpose_a, bool transpose_b,
                           std::optional<Product>& product, int64_t& items) {
  const char* const wrong = read(given_a, given_b, result, transpose_a, transpose_b, product);
  if (wrong != nullptr) return wrong;
  product->problem.memory = KINTSUGI_DEVICE;
  items = 1;
  if (!product->is_strided()) items = std::exchange(product->problem.batch_count, 1);
  return nullptr;
}

ffi::Error plan_on_device(int32_t device, ffi::AnyBuffer given_a, ffi::AnyBuffer given_b,
                          ffi::Result<ffi::AnyBuffer> result, std::string_view accuracy, bool transpose_a,
                          bool transpose_b) {
  std::optional<Product> product;
  int64_t items = 0;
  if (const char* wrong = read_on_device(given_a, given_b, *result, transpose_a, transpose_b, product, items))
    return invalid(wrong);
  if (items == 0 || product->is_empty()) return ffi::Error::Success();
  return plans().find(product->problem, accuracy, device) != nullptr ? ffi::Error::Success() : failure();
}

ffi::Error multiply_on_device(void* stream, int32_t device, ffi::AnyBuffer given_a, ffi::AnyBuffer given_b,
                              ffi::Result<ffi::AnyBuffer> result, std::string_view accuracy, bool transpose_a,
                              bool transpose_b) {
  std::optional<Product> product;
  int64_t items = 0;
  if (const char* wrong = read_on_device(given_a, given_b, *result, transpose_a, transpose_b, product, items))
    return invalid(wrong);
  if (items == 0 || product->is_empty()) return ffi::Error::Success();
  const kintsugi_plan plan = plans().find(product->problem, accuracy, device);
  if (plan == nullptr) return failure();
  kintsugi_operands operands = operands_of(*product);
  operands.queue = {KINTSUGI_QUEUE_CUDA, 0, stream};
  if (product->is_strided())
    return kintsugi_plan_execute(nullptr, plan, &operands) == KINTSUGI_SUCCESS ? ffi::Error::Success()
                                                                               : failure();
  const std::vector<int64_t>& batch = product->c.batch;
  const std::vector<void*> items_a = item_addresses(product->a, batch, product->element.bytes);
  const std::vector<void*> items_b = item_addresses(product->b, batch, product->element.bytes);
  const std::vector<void*> items_c = item_addresses(product->c, batch, product->element.bytes);
  for (size_t i = 0; i < items_c.size(); ++i) {
    operands.a = items_a[i];
    operands.b = items_b[i];
    operands.c = items_c[i];
    if (kintsugi_plan_execute(nullptr, plan, &operands) != KINTSUGI_SUCCESS) return failure();
  }
  return ffi::Error::Success();
}

// The arguments that all handlers have, after those of the device.
template <typename Binding>
auto with_arguments(Binding binding) {
  return std::move(binding)
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Ret<ffi::AnyBuffer>()
      .template Attr<std::string_view>("accuracy")
      .template Attr<bool>("transpose_a")
      .template Attr<bool>("transpose_b");
}

}  // namespace

#define HANDLER extern "C" __attribute__((visibility("default"))) XLA_FFI_Error*
HANDLER kintsugi_jax_matmul(XLA_FFI_CallFrame*);
HANDLER kintsugi_jax_cuda_plan(XLA_FFI_CallFrame*);
HANDLER kintsugi_jax_cuda_matmul(XLA_FFI_CallFrame*);

XLA_FFI_DEFINE_HANDLER_SYMBOL(kintsugi_jax_matmul, multiply, with_arguments(ffi::Ffi::Bind()));
XLA_FFI_DEFINE_HANDLER_SYMBOL(kintsugi_jax_cuda_plan, plan_on_device,
                              with_arguments(ffi::Ffi::BindInitialize().Ctx<ffi::DeviceOrdinal>()));
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    kintsugi_jax_cuda_matmul, multiply_on_device,
    with_arguments(ffi::Ffi::Bind().Ctx<ffi::PlatformStream<void*>>().Ctx<ffi::DeviceOrdinal>()),
    {ffi::Traits::kCmdBufferCompatible});

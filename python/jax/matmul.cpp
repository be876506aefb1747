// Matrix products for JAX on the CPU: a handler of XLA's foreign function interface, which kintsugi/jax.py
// registers. The library libkintsugi_jax.so has it alone, since it needs JAX's headers and nothing of Python.
#include <kintsugi/kintsugi.h>
#include <xla/ffi/api/ffi.h>

#include <algorithm>
#include <complex>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
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

// Computes C = op(A) op(B) with op(X) = X or its transpose. `accuracy`: "" is the type's own.
ffi::Error multiply(ffi::AnyBuffer given_a, ffi::AnyBuffer given_b, ffi::Result<ffi::AnyBuffer> result,
                    std::string_view accuracy, bool transpose_a, bool transpose_b) {
  const Element element = element_of(result->element_type());
  if (element.bytes == 0 || given_a.element_type() != result->element_type() ||
      given_b.element_type() != result->element_type())
    return invalid("operands and result have one of the types F32, F64, C64, C128");
  if (given_a.dimensions().size() < 2 || given_b.dimensions().size() < 2 || result->dimensions().size() < 2)
    return invalid("a matrix has two dimensions");
  const Matrices a(given_a), b(given_b), c(*result);
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  problem.m = transpose_a ? a.columns : a.rows;
  problem.k = transpose_a ? a.rows : a.columns;
  problem.n = transpose_b ? b.rows : b.columns;
  if ((transpose_b ? b.columns : b.rows) != problem.k || c.rows != problem.m || c.columns != problem.n ||
      !broadcasts(a, c.batch) || !broadcasts(b, c.batch))
    return invalid("the shapes of operands and result do not fit");
  problem.batch_count = std::accumulate(c.batch.begin(), c.batch.end(), int64_t{1}, std::multiplies<>());
  if (problem.batch_count == 0 || problem.m == 0 || problem.n == 0) return ffi::Error::Success();
  problem.op_a = transpose_a ? KINTSUGI_OP_T : KINTSUGI_OP_N;
  problem.op_b = transpose_b ? KINTSUGI_OP_T : KINTSUGI_OP_N;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = element.type;
  problem.layout = KINTSUGI_ROW_MAJOR;
  problem.memory = KINTSUGI_HOST;
  problem.lda = a.leading_dimension();
  problem.ldb = b.leading_dimension();
  problem.ldc = c.leading_dimension();
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  const std::string text(accuracy);
  if (!text.empty()) options.accuracy = text.c_str();
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  operands.alpha = element.one;
  operands.beta = &zero;
  operands.a = a.data;
  operands.b = b.data;
  operands.c = c.data;
  std::vector<void*> items_a, items_b, items_c;
  const std::optional<int64_t> stride_a = uniform_stride(a, c.batch), stride_b = uniform_stride(b, c.batch);
  if (stride_a && stride_b) {
    problem.stride_a = *stride_a;
    problem.stride_b = *stride_b;
    problem.stride_c = c.rows * c.columns;
  } else {
    problem.batch_kind = KINTSUGI_BATCH_POINTERS;
    items_a = item_addresses(a, c.batch, element.bytes);
    items_b = item_addresses(b, c.batch, element.bytes);
    items_c = item_addresses(c, c.batch, element.bytes);
    operands.a = items_a.data();
    operands.b = items_b.data();
    operands.c = items_c.data();
  }
  return kintsugi_gemm(nullptr, &problem, &options, &operands) == KINTSUGI_SUCCESS ? ffi::Error::Success()
                                                                                   : failure();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* kintsugi_jax_matmul(XLA_FFI_CallFrame*);

XLA_FFI_DEFINE_HANDLER_SYMBOL(kintsugi_jax_matmul, multiply,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>()
                                  .Attr<std::string_view>("accuracy")
                                  .Attr<bool>("transpose_a")
                                  .Attr<bool>("transpose_b"));

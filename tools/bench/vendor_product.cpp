// A contestant: a call of cuBLAS itself on matrices in device memory.
#include <dlfcn.h>

#include <array>
#include <cstdlib>

#include "bench/host_timing.hpp"

namespace kintsugi::tools {

namespace {

constexpr int success = 0;       // CUBLAS_STATUS_SUCCESS
constexpr int no_transpose = 0;  // CUBLAS_OP_N

// cuBLAS with a handle of its own, opened in the same way as by a program.
class Cublas {
 public:
  explicit Cublas(void* stream) {
    const char* named_file = std::getenv("KINTSUGI_CUBLAS");
    for (const char* file : {named_file == nullptr ? "libcublas.so.13" : named_file, "libcublas.so.12"}) {
      if (library_ == nullptr) library_ = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    }
    const auto create = function<int (*)(void**)>("cublasCreate_v2");
    const auto set_stream = function<int (*)(void*, void*)>("cublasSetStream_v2");
    if (create(&handle_) != success || set_stream(handle_, stream) != success)
      fail("--baselines", "{}: cuBLAS cannot create a handle for the stream", vendor_call);
  }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;
  ~Cublas() { function<int (*)(void*)>("cublasDestroy_v2")(handle_); }

  void* handle() const { return handle_; }
  // Returns the function. Fails with its name in the message if cuBLAS cannot be opened or has no such
  // function.
  template <class Function>
  Function function(const char* name) const {
    void* found = library_ == nullptr ? nullptr : ::dlsym(library_, name);
    if (found == nullptr) fail("--baselines", "{}: cuBLAS has no function {}", vendor_call, name);
    return reinterpret_cast<Function>(found);
  }

 private:
  void* library_ = nullptr;
  void* handle_ = nullptr;
};

using Multiply = int (*)(void* handle, int op_a, int op_b, int m, int n, int k, const void* alpha,
                         const void* a, int lda, const void* b, int ldb, const void* beta, void* c, int ldc);

template <class T>
const char* multiply_name(bool complex) {
  if (type_of<T> == Type::float32) return complex ? "cublasCgemm_v2" : "cublasSgemm_v2";
  return complex ? "cublasZgemm_v2" : "cublasDgemm_v2";
}

template <class T>
class VendorProduct : public Contestant {
 public:
  VendorProduct(const Bench& bench, BenchMatrices<T>& matrices, const DeviceOperands<T>& operands)
      : matrices_(matrices), operands_(operands), cublas_(operands.device().stream().native()),
        multiply_(cublas_.function<Multiply>(multiply_name<T>(bench.complex))), problems_(bench.problems),
        call_timer_(bench.problems) {}

  const std::string& name() const override { return name_; }
  Shape shape() const override { return matrices_.shape; }
  void run() override {
    const measure::DeviceStream& stream = operands_.device().stream();
    auto* target = reinterpret_cast<std::byte*>(operands_.c(0));
    const std::size_t bytes = matrices_.c.size() * sizeof(T);
    stream.fill(target, byte_of_nan, bytes);
    multiply(0);
    stream.download(matrices_.c.data(), target, bytes);
    stream.synchronize();
  }
  Round time_round() override {
    return call_timer_.time(operands_.device().stream(),
                            [this](std::int64_t call_index) { multiply(call_index); });
  }
  const char* timed_by() const override { return "calls"; }
  Verdict judge(std::int64_t, const measure::ErrorReport& errors,
                const std::vector<measure::ElementError>& elements) const override {
    return verdict_of("contract", errors.contract_bound, elements, [&](const measure::ElementError& element) {
      return errors.contract_bound * element.absolute + errors.contract_underflow;
    });
  }
  Json facts() const override {
    Json facts{{"scheme", name_}};
    for (const char* name : {"engine", "engine_details", "accumulator", "products", "format",
                             "workspace_bytes", "plan_seconds", "prepared"})
      facts[name] = nullptr;
    return facts;
  }

 private:
  // Computes C^T = B^T A^T, which is C in row-major order, for column-major cuBLAS. `call_index` selects the
  // problem by its k, as LibraryProduct::execute() does.
  void multiply(std::int64_t call_index) const {
    alignas(16) constexpr std::array<T, 2> one{1, 0};  // real and imaginary part, for complex scalars
    alignas(16) constexpr std::array<T, 2> zero{0, 0};
    const auto m = static_cast<int>(matrices_.shape.m);
    const auto n = static_cast<int>(matrices_.shape.n);
    const auto full_k = static_cast<int>(matrices_.shape.k);
    const auto k = full_k - static_cast<int>(call_index % std::clamp<std::int64_t>(full_k, 1, problems_));
    if (multiply_(cublas_.handle(), no_transpose, no_transpose, n, m, k, one.data(), operands_.b(0), n,
                  operands_.a(0), full_k, zero.data(), operands_.c(0), n) != success)
      fail("--baselines", "{} refuses {} x {} x {}", vendor_call, m, n, k);
  }

  std::string name_ = vendor_call;
  BenchMatrices<T>& matrices_;
  const DeviceOperands<T>& operands_;
  Cublas cublas_;
  Multiply multiply_;
  std::int64_t problems_;
  CallTimer call_timer_;
};

}  // namespace

template <class T>
std::unique_ptr<Contestant> vendor_product(const Bench& bench, BenchMatrices<T>& matrices,
                                           const DeviceOperands<T>& operands) {
  return std::make_unique<VendorProduct<T>>(bench, matrices, operands);
}

template std::unique_ptr<Contestant> vendor_product(const Bench&, BenchMatrices<float>&,
                                                    const DeviceOperands<float>&);
template std::unique_ptr<Contestant> vendor_product(const Bench&, BenchMatrices<double>&,
                                                    const DeviceOperands<double>&);

}  // namespace kintsugi::tools

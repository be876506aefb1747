// Tests calls with BLAS's arguments on matrices in any memory, over the fakes: the driver is asked where they
// lie, and the product is computed there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "fakes/contexts.hpp"
#include "kintsugi/kintsugi.hpp"

namespace kintsugi::test {
namespace {

using core::cuda::Address;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

enum class In { vector, pinned, device_0, device_1, pool, managed };

constexpr struct { std::int64_t m = 6, n = 4, k = 5; } sizes;
constexpr float minus = -1;  // an alpha with which cuBLAS computes small products, too

// A matrix of equal elements in some memory, which is host memory with the fakes.
template <class T>
class Placed {
 public:
  Placed(In memory, std::int64_t elements, T value) : memory_(memory), elements_(elements), host_(elements) {
    const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(elements);
    const CurrentContext current(primary_context(memory == In::device_1 ? 1 : 0));
    Address address = 0;
    void* pinned = nullptr;
    switch (memory) {
      case In::vector: data_ = host_.data(); break;
      case In::pinned: EXPECT_EQ(driver().host_allocate(&pinned, bytes, 0), 0); break;
      case In::pool: EXPECT_EQ(driver().memory_allocate_async(&address, bytes, stream_.get()), 0); break;
      case In::managed: EXPECT_EQ(cuMemAllocManaged(&address, bytes, 1), 0); break;
      default: EXPECT_EQ(driver().memory_allocate(&address, bytes), 0);
    }
    if (pinned != nullptr) data_ = static_cast<T*>(pinned);
    if (address != 0) data_ = reinterpret_cast<T*>(address);
    std::fill_n(data_, elements, value);
  }
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;
  ~Placed() {
    const CurrentContext current(primary_context(memory_ == In::device_1 ? 1 : 0));
    if (memory_ == In::pinned) {
      driver().host_free(data_);
    } else if (memory_ != In::vector) {
      driver().memory_free(reinterpret_cast<Address>(data_));
    }
  }

  T* data() const { return data_; }
  std::vector<T> values() const { return {data_, data_ + elements_}; }

 private:
  In memory_;
  std::int64_t elements_;
  std::vector<T> host_;
  Stream stream_;
  T* data_ = nullptr;
};

// The functions of the C ABI, by the type of the elements.
kintsugi_status gemm(kintsugi_handle handle, float alpha, const float* a, const float* b, float beta,
                     float* c) {
  return kintsugi_sgemm(handle, KINTSUGI_COLUMN_MAJOR, KINTSUGI_OP_N, KINTSUGI_OP_N, sizes.m, sizes.n,
                        sizes.k, alpha, a, sizes.m, b, sizes.k, beta, c, sizes.m);
}
kintsugi_status gemm(kintsugi_handle handle, double alpha, const double* a, const double* b, double beta,
                     double* c) {
  return kintsugi_dgemm(handle, KINTSUGI_COLUMN_MAJOR, KINTSUGI_OP_N, KINTSUGI_OP_N, sizes.m, sizes.n,
                        sizes.k, alpha, a, sizes.m, b, sizes.k, beta, c, sizes.m);
}
template <class Real>
kintsugi_status gemm(kintsugi_handle handle, std::complex<Real> alpha, const std::complex<Real>* a,
                     const std::complex<Real>* b, std::complex<Real> beta, std::complex<Real>* c) {
  const auto call = std::is_same_v<Real, float> ? kintsugi_cgemm : kintsugi_zgemm;
  return call(handle, KINTSUGI_COLUMN_MAJOR, KINTSUGI_OP_N, KINTSUGI_OP_N, sizes.m, sizes.n, sizes.k, &alpha,
              a, sizes.m, b, sizes.k, &beta, c, sizes.m);
}

class AnyMemory : public Contexts {
 protected:
  void SetUp() override {
    Contexts::SetUp();
    ASSERT_EQ(kintsugi_set(handle_, "policy", "native"), KINTSUGI_SUCCESS);
  }

  // Multiplies matrices of ones and returns the events.
  template <class T = float>
  std::vector<std::string> multiply(In a, In b, In c, kintsugi_status expected = KINTSUGI_SUCCESS,
                                    float alpha = minus) {
    const Placed<T> of_a(a, sizes.m * sizes.k, 1), of_b(b, sizes.k * sizes.n, 1),
        of_c(c, sizes.m * sizes.n, 7);
    fake_cuda_forget();
    EXPECT_EQ(gemm(handle_, T(alpha), of_a.data(), of_b.data(), T(0), of_c.data()), expected)
        << kintsugi_last_error();
    const std::vector<std::string> found = events();
    EXPECT_THAT(of_c.values(), Each(expected == KINTSUGI_SUCCESS ? T(alpha * sizes.k) : T(7)));
    return found;
  }
  static std::size_t products_in(const std::vector<std::string>& list) {
    return static_cast<std::size_t>(std::count_if(list.begin(), list.end(), [](const std::string& event) {
      return event.find("cublasGemm") != std::string::npos;
    }));
  }

  Handle handle_;

 private:
  const GenericDevices capability_{"10.0"};
  const FakeVariable multiplies_{"FAKE_CUDA_MULTIPLY", "1"};
};

template <class T>
class AnyMemoryOf : public AnyMemory {};
using Elements = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(AnyMemoryOf, Elements);

TYPED_TEST(AnyMemoryOf, ProductsRunWhereTheMatricesLie) {
  for (const In host : {In::vector, In::pinned}) {
    EXPECT_THAT(this->template multiply<TypeParam>(host, host, host), IsEmpty());
    EXPECT_THAT(this->template multiply<TypeParam>(In::vector, host, In::pinned), IsEmpty());
  }
  for (const In device : {In::device_0, In::device_1, In::pool, In::managed})
    EXPECT_EQ(this->products_in(this->template multiply<TypeParam>(device, device, device)), 1U);
}

// cuBLAS may multiply an operand by another alpha where a side of C is this short.
TYPED_TEST(AnyMemoryOf, KernelsMultiplySmallMatricesTimesAnyAlpha) {
  for (const In device : {In::device_0, In::device_1, In::pool, In::managed}) {
    const auto list = this->template multiply<TypeParam>(device, device, device, KINTSUGI_SUCCESS, 2);
    EXPECT_EQ(this->products_in(list), 0U);
    EXPECT_THAT(list, Contains(HasSubstr("_simt_")));
  }
  EXPECT_THAT(this->template multiply<TypeParam>(In::vector, In::vector, In::vector, KINTSUGI_SUCCESS, 2),
              IsEmpty());
}

TYPED_TEST(AnyMemoryOf, MatricesInDifferentMemoriesAreRefused) {
  const auto refused = [&](In a, In b, In c, const std::string& message) {
    EXPECT_THAT(this->template multiply<TypeParam>(a, b, c, KINTSUGI_INVALID_ARGUMENT), IsEmpty());
    EXPECT_THAT(kintsugi_last_error(), HasSubstr(message));
  };
  refused(In::vector, In::device_0, In::device_0, "a lies in host memory");
  refused(In::device_0, In::pinned, In::device_0, "b lies in host memory");
  refused(In::device_1, In::device_1, In::vector, "c lies in host memory, a lies on device 1 (context ");
  refused(In::device_0, In::device_1, In::device_0, "b lies on device 1");
  refused(In::pool, In::pool, In::device_1, "a lies on device 0, b lies on device 0");
  refused(
      In::managed, In::vector, In::managed,
      "c lies in managed memory of device 0, a lies in managed memory of device 0, b lies in host memory");
}

// Managed memory serves every device; memory of a pool every context of its device.
TEST_F(AnyMemory, ManagedMemoryGoesWithMemoryOfEveryDevice) {
  EXPECT_EQ(products_in(multiply(In::managed, In::device_1, In::managed)), 1U);
  EXPECT_EQ(products_in(multiply(In::device_0, In::managed, In::pool)), 1U);
  EXPECT_EQ(products_in(multiply(In::pool, In::device_0, In::device_0)), 1U);
}

TEST_F(AnyMemory, ProductsAreInTheHandlesStream) {
  EXPECT_THAT(multiply(In::device_0, In::device_0, In::device_0), Contains(HasSubstr("cuStreamSynchronize")));
  const Stream stream;
  ASSERT_EQ(kintsugi_set_stream(handle_, stream.get()), KINTSUGI_SUCCESS);
  const auto list = multiply(In::device_0, In::device_0, In::device_0);
  EXPECT_EQ(products_in(list), 1U);
  EXPECT_THAT(list, Each(AnyOf(HasSubstr(stream.text()), Not(HasSubstr("stream=")))));
  EXPECT_THAT(list, Not(Contains(HasSubstr("Synchronize"))));
  EXPECT_THAT(multiply(In::vector, In::vector, In::vector), IsEmpty());
  // Options and operands that name a queue precede the handle.
  const Stream other;
  Call call(sizes.m, sizes.n, sizes.k, other);
  call.alpha = minus;
  call.handle = handle_;
  call.make_plan();
  call.run();
  call.options.queue = {};
  call.make_plan();
  fake_cuda_forget();
  EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS);
  EXPECT_THAT(events_with("cublasGemm"), ElementsAre(HasSubstr(stream.text())));
  call.handle = nullptr;  // the fixture destroys it
  EXPECT_EQ(kintsugi_set_stream(nullptr, stream.get()), KINTSUGI_INVALID_ARGUMENT);
}

TEST_F(AnyMemory, ProductsUseTheContextOfTheMemory) {
  void* const first = primary_context(0);
  const CurrentContext current(first);
  core::cuda::Context after = nullptr;
  const auto stream_of_1 = [] {
    const CurrentContext on_device_1(primary_context(1));
    return Stream();
  }();
  ASSERT_EQ(kintsugi_set_stream(handle_, stream_of_1.get()), KINTSUGI_SUCCESS);
  EXPECT_EQ(products_in(multiply(In::device_1, In::device_1, In::device_1)), 1U);
  ASSERT_EQ(driver().context_current(&after), 0);
  EXPECT_EQ(after, first);
  // The stream of the handle belongs to another device.
  multiply(In::device_0, In::device_0, In::device_0, KINTSUGI_INVALID_ARGUMENT);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("the stream belongs to device 1"));
  ASSERT_EQ(driver().context_current(&after), 0);
  EXPECT_EQ(after, first);
}

// A thread without a context must not make one on the first device, which takes hundreds of megabytes.
TEST_F(AnyMemory, ThreadsNeedNoContext) {
  const Placed<float> a(In::device_1, sizes.m * sizes.k, 1), b(In::device_1, sizes.k * sizes.n, 1),
      c(In::device_1, sizes.m * sizes.n, 7);
  fake_cuda_forget();
  std::thread([&] {
    EXPECT_EQ(gemm(handle_, minus, a.data(), b.data(), 0.0F, c.data()), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    core::cuda::Context after = nullptr;
    EXPECT_EQ(driver().context_current(&after), 0);
    EXPECT_EQ(after, nullptr);
  }).join();
  EXPECT_THAT(c.values(), Each(minus * sizes.k));
  EXPECT_THAT(events_with("cuDevicePrimaryCtxRetain"), IsEmpty());
}

// Memory of one context is not that of another one, though the device is the same.
TEST_F(AnyMemory, MemoryOfTwoContextsIsRefused) {
  void* const other = fake_cuda_make_context(0, nullptr);
  const Placed<float> a(In::device_0, sizes.m * sizes.k, 1), b(In::device_0, sizes.k * sizes.n, 1);
  Address address = 0;
  {
    const CurrentContext current(other);
    ASSERT_EQ(driver().memory_allocate(&address, sizes.m * sizes.n * sizeof(float)), 0);
  }
  auto* const c = reinterpret_cast<float*>(address);
  EXPECT_EQ(gemm(handle_, minus, a.data(), b.data(), 0.0F, c), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_THAT(kintsugi_last_error(),
              AllOf(HasSubstr("in one context"), HasSubstr("c lies on device 0 (context ")));
  fake_cuda_destroy_context(other);
}

// Matrices that are neither read nor written may lie anywhere, or be null.
TEST_F(AnyMemory, UnusedMatricesMayLieAnywhere) {
  const Placed<float> a(In::vector, sizes.m * sizes.k, 1), c(In::device_0, sizes.m * sizes.n, 7);
  EXPECT_EQ(gemm(handle_, 0.0F, a.data(), nullptr, 0.0F, c.data()), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  EXPECT_EQ(kintsugi_sgemm(handle_, KINTSUGI_COLUMN_MAJOR, KINTSUGI_OP_N, KINTSUGI_OP_N, sizes.m, sizes.n, 0,
                           1, a.data(), sizes.m, nullptr, 1, 1, c.data(), sizes.m),
            KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  for (const auto& [rows, columns] :
       {std::pair{sizes.m, std::int64_t{0}}, std::pair{std::int64_t{0}, sizes.n}}) {
    EXPECT_EQ(kintsugi_sgemm(handle_, KINTSUGI_COLUMN_MAJOR, KINTSUGI_OP_N, KINTSUGI_OP_N, rows, columns,
                             sizes.k, 1, a.data(), sizes.m, nullptr, sizes.k, 1, nullptr, sizes.m),
              KINTSUGI_SUCCESS)
        << kintsugi_last_error();
  }
  EXPECT_EQ(gemm(handle_, 1.0F, a.data(), nullptr, 0.0F, c.data()), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_EQ(gemm(handle_, 1.0F, c.data(), nullptr, 0.0F, c.data()), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_STREQ(kintsugi_last_error(), "b is null");
}

TEST_F(AnyMemory, ScalarsOnADeviceAreRefused) {
  using Complex = std::complex<float>;
  const Placed<Complex> a(In::device_0, sizes.m * sizes.k, 1), b(In::device_0, sizes.k * sizes.n, 1),
      c(In::device_0, sizes.m * sizes.n, 7);
  const Complex zero = 0;
  const auto call = [&](const Complex* alpha, const Complex* beta) {
    return kintsugi_cgemm(handle_, KINTSUGI_COLUMN_MAJOR, KINTSUGI_OP_N, KINTSUGI_OP_N, sizes.m, sizes.n,
                          sizes.k, alpha, a.data(), sizes.m, b.data(), sizes.k, beta, c.data(), sizes.m);
  };
  const Placed<Complex> on_device(In::device_0, 1, 1), managed(In::managed, 1, 1);
  EXPECT_EQ(call(on_device.data(), &zero), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_THAT(kintsugi_last_error(),
              AllOf(HasSubstr("alpha lies on device 0"), HasSubstr("SCALARS_ON_DEVICE")));
  EXPECT_EQ(call(&zero, on_device.data()), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("beta lies on device 0"));
  EXPECT_EQ(call(managed.data(), &zero), KINTSUGI_SUCCESS) << kintsugi_last_error();
}

TEST_F(AnyMemory, DoubleDoubleMatricesOnADeviceAreRefused) {
  const Placed<kintsugi_dd> matrix(In::device_0, 1, {1, 0});
  const kintsugi_dd one = {1, 0};
  EXPECT_EQ(kintsugi_ddgemm(handle_, KINTSUGI_COLUMN_MAJOR, KINTSUGI_OP_N, KINTSUGI_OP_N, 1, 1, 1, &one,
                            matrix.data(), 1, matrix.data(), 1, &one, matrix.data(), 1),
            KINTSUGI_ENGINE_UNAVAILABLE);
}

// Such a driver has given no memory.
TEST_F(AnyMemory, DriversThatAreNotInitializedAreNoObstacle) {
  const FakeVariable not_initialized("FAKE_CUDA_INIT", "3");
  EXPECT_THAT(multiply(In::vector, In::vector, In::vector), IsEmpty());
}

TEST_F(AnyMemory, CxxCallsRunWhereTheMatricesLie) {
  kintsugi::Handle handle;
  handle.set("policy", "native");
  const CurrentContext current(primary_context(1));
  const Stream stream;
  handle.set_stream(stream.get());
  constexpr std::int64_t items = 3;
  const auto products = [&](In memory) {
    const Placed<float> a(memory, items * sizes.m * sizes.k, 1), b(memory, items * sizes.k * sizes.n, 1),
        c(memory, items * sizes.m * sizes.n, 7);
    const auto expect_written = [&](std::int64_t elements) {
      EXPECT_THAT(std::vector<float>(c.data(), c.data() + elements), Each(minus * sizes.k));
      std::fill_n(c.data(), items * sizes.m * sizes.n, 7.0F);
    };
    fake_cuda_forget();
    kintsugi::gemm(Op::N, Op::N, sizes.m, sizes.n, sizes.k, minus, a.data(), sizes.m, b.data(), sizes.k, 0,
                   c.data(), sizes.m, {}, &handle);
    expect_written(sizes.m * sizes.n);
    kintsugi::gemm(Layout::row_major, Op::N, Op::N, sizes.m, sizes.n, sizes.k, minus, a.data(), sizes.k,
                   b.data(), sizes.n, 0, c.data(), sizes.n, {}, &handle);
    expect_written(sizes.m * sizes.n);
    kintsugi::gemm_strided_batch(Op::N, Op::N, sizes.m, sizes.n, sizes.k, minus, a.data(), sizes.m,
                                 sizes.m * sizes.k, b.data(), sizes.k, sizes.k * sizes.n, 0, c.data(),
                                 sizes.m, sizes.m * sizes.n, items, {}, &handle);
    expect_written(items * sizes.m * sizes.n);
    const Placed<float*> c_items(memory, items, c.data());
    const Placed<const float*> a_items(memory, items, a.data()), b_items(memory, items, b.data());
    for (std::int64_t item = 0; item < items; ++item)
      c_items.data()[item] = c.data() + item * sizes.m * sizes.n;
    kintsugi::gemm_pointer_batch(Op::N, Op::N, sizes.m, sizes.n, sizes.k, minus, a_items.data(), sizes.m,
                                 b_items.data(), sizes.k, 0, c_items.data(), sizes.m, items, {}, &handle);
    expect_written(items * sizes.m * sizes.n);
    const std::size_t count = products_in(events());
    expect_all_on(stream);
    return count;
  };
  EXPECT_EQ(products(In::vector), 0U);
  EXPECT_EQ(products(In::device_1), 4U);
}

// The arrays of pointers must be on the device, too.
TEST_F(AnyMemory, HostArraysOfDevicePointersAreRefused) {
  const Placed<float> matrix(In::device_0, sizes.m * sizes.n, 7);
  const float* inputs[] = {matrix.data(), matrix.data()};
  float* results[] = {matrix.data(), matrix.data()};
  try {
    kintsugi::gemm_pointer_batch(Op::N, Op::N, 2, 2, 2, 1, inputs, 2, inputs, 2, 0, results, 2, 2);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const kintsugi::Error& error) {
    EXPECT_EQ(error.status(), kintsugi::Status::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("c lies in host memory, c[0] lies on device 0"));
  }
}

TEST_F(AnyMemory, PlansNameTheMemory) {
  const Stream stream;
  Call call(sizes.m, sizes.n, sizes.k, stream);
  call.problem.memory = KINTSUGI_ANY_MEMORY;
  EXPECT_EQ(kintsugi_plan_create(nullptr, &call.problem, &call.options, &call.plan),
            KINTSUGI_INVALID_ARGUMENT);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("memory = KINTSUGI_ANY_MEMORY is for kintsugi_gemm"));
  call.problem.pointer_mode = KINTSUGI_SCALARS_ON_DEVICE;
  EXPECT_EQ(kintsugi_gemm(nullptr, &call.problem, nullptr, &call.operands), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("with memory = KINTSUGI_ANY_MEMORY"));
}

}  // namespace
}  // namespace kintsugi::test

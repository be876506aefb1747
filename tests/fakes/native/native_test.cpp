// Tests native products on a device with a fake cuBLAS that multiplies.
#include <complex>
#include <limits>

#include "fakes/device_call.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/integer_case.hpp"

namespace kintsugi::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// The fake device has no profile and no DMMA kernels: cuBLAS multiplies natively, or a SIMT kernel.
class ByVendor : public OverFakes {
  const GenericDevices capability_{"10.0"};
};

template <class T>
class NativeProducts : public ByVendor {};
using Elements = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(NativeProducts, Elements);

TYPED_TEST(NativeProducts, GiveTheExactProducts) {
  const FakeVariable multiplies("FAKE_CUDA_MULTIPLY", "1");
  const Stream stream;
  Place device;
  device.memory = KINTSUGI_DEVICE;
  device.queue = {KINTSUGI_QUEUE_CUDA, 0, stream.get()};
  const int cases = thorough ? 3000 : 300;
  int by_cublas = 0, by_kernel = 0, refused = 0;
  for (int seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed) {
    IntegerCase<TypeParam> test(static_cast<std::uint64_t>(seed));
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, test.text()));
    const std::vector<TypeParam> expected = test.expected();
    fake_cuda_forget();
    const kintsugi_status status = test.run(device);
    if (test.is_refused_on_device()) {
      EXPECT_EQ(status, KINTSUGI_INVALID_ARGUMENT);
      EXPECT_THAT(kintsugi_last_error(), HasSubstr("a table of one pointer"));
      ++refused;
      continue;
    }
    ASSERT_EQ(status, KINTSUGI_SUCCESS) << kintsugi_last_error();
    EXPECT_EQ(events_with("cublasGemm").size(), test.is_of_blas() ? 1U : 0U);
    EXPECT_EQ(events_with("_simt_").size(), test.is_of_blas() ? 0U : 1U);
    EXPECT_EQ(events_with("cuLaunchKernel").size(), test.is_of_blas() ? 0U : 1U);
    EXPECT_TRUE(same_values(test.result(), expected)) << fake_cuda_events();
    ++(test.is_of_blas() ? by_cublas : by_kernel);
  }
  EXPECT_GT(by_cublas, cases / 3);
  EXPECT_GT(by_kernel, cases / 5);
  EXPECT_GT(refused, cases / 100);
}

class NativeConjugates : public ByVendor {};

// A^H has one element and B^H one row, so both strides of A are 1 and a transpose could be mistaken for none.
TEST_F(NativeConjugates, AreKeptForALeadingDimensionOfOne) {
  const FakeVariable multiplies("FAKE_CUDA_MULTIPLY", "1");
  const Stream stream;
  Call call(1, 16, 1, stream);
  call.options.policy = "native";
  call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = KINTSUGI_C32;
  call.problem.op_a = call.problem.op_b = KINTSUGI_OP_C;
  call.problem.lda = 1;
  call.problem.ldb = 16;
  const std::complex<float> a(1, 2), one(1), zero;
  const std::vector<std::complex<float>> b(16, {3, 5});
  std::vector<std::complex<float>> c(16);
  call.operands.alpha = &one;
  call.operands.a = &a;
  call.operands.b = b.data();
  call.operands.beta = &zero;
  call.operands.c = c.data();
  call.make_plan();
  call.run();
  EXPECT_EQ(c, std::vector<std::complex<float>>(16, std::conj(a) * std::conj(b[0])));
}

// ---------------------------------------------------------------- the vendor's workspace

class NativeWorkspace : public ByVendor {};

// A workspace limit may cost speed, but no call fails because of it.
TEST_F(NativeWorkspace, FitsEveryLimit) {
  const FakeVariable multiplies("FAKE_CUDA_MULTIPLY", "1");
  const Stream stream;
  for (const std::int64_t limit :
       {1L, 255L, 256L, 1000L, 20'000L, 1L << 20, (32L << 20) - 1, 32L << 20, 0L}) {
    for (const float beta : {0.0F, 0.5F}) {
      Call call(65, 25, 7, stream);
      call.operands.beta = &beta;
      call.options.policy = "native";
      call.options.workspace_limit = limit;
      ASSERT_NO_FATAL_FAILURE(call.run_in_workspace());
      EXPECT_LE(call.operands.workspace_size,
                limit == 0 ? std::size_t{32} << 20 : static_cast<std::size_t>(limit));
      EXPECT_EQ(events_with("cublasGemm").size(), 1U) << limit;
      EXPECT_EQ(call.c, std::vector<float>(65 * 25, 2 * 7 + beta * 7)) << limit;
    }
  }
}

TEST_F(NativeWorkspace, IsSmallerWhereMemoryIsShort) {
  const FakeVariable multiplies("FAKE_CUDA_MULTIPLY", "1");
  const Stream stream;
  for (const char* max_bytes : {"1000000", "0"}) {
    Call call(65, 25, 7, stream);
    call.options.policy = "native";
    const float beta = 0;
    call.operands.beta = &beta;
    ASSERT_NO_FATAL_FAILURE(call.make_plan());
    const FakeVariable steered("FAKE_CUDA_MOST_BYTES", max_bytes);
    ASSERT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
    EXPECT_EQ(call.c, std::vector<float>(65 * 25, 2 * 7)) << max_bytes;
  }
}

// cuBLAS's documentation says that less than 16 KiB may be too little.
TEST_F(NativeWorkspace, TooSmallForCublasMeansASimtKernel) {
  const FakeVariable demanding("FAKE_CUDA_LEAST_WORKSPACE", "16384");
  const Stream stream;
  for (const kintsugi_type type : {KINTSUGI_F32, KINTSUGI_F64, KINTSUGI_C32, KINTSUGI_C64}) {
    Call call(18, 17, 2, stream);
    call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = type;
    call.options.policy = "native";
    call.options.workspace_limit = 256;
    const std::complex<double> zero;
    const std::vector<std::complex<double>> elements(18 * 17);
    std::vector<std::complex<double>> c(18 * 17);
    call.operands.a = call.operands.b = elements.data();
    call.operands.c = c.data();
    call.operands.alpha = call.operands.beta = &zero;
    call.problem.pointer_mode = KINTSUGI_SCALARS_ON_DEVICE;
    ASSERT_NO_FATAL_FAILURE(call.make_plan());
    call.run();
    EXPECT_EQ(events_with("cublasGemm").size(), 1U);
    EXPECT_EQ(events_with("_simt_").size(), 1U) << type;
    call.options.workspace_limit = 16384 + 256;
    ASSERT_NO_FATAL_FAILURE(call.make_plan());
    call.run();
    EXPECT_EQ(events_with("cublasGemm").size(), 1U);
    EXPECT_THAT(events_with("cuLaunchKernel"), IsEmpty()) << type;
  }
}

// The algorithm that cuBLAS selects for products of floating-point slices, and so the bits, may depend on its
// workspace.
TEST_F(NativeWorkspace, ProductsOfSlicesHaveTheSameCublasWorkspaceUnderEveryLimit) {
  const Stream stream;
  Call call(9000, 300, 64, stream);
  call.options.scheme = "fp16x3";
  call.options.accumulator = "cublas";
  call.run_in_workspace();
  const auto products = events_with("cublasGemm");
  const std::size_t full = call.operands.workspace_size;
  call.options.workspace_limit = static_cast<std::int64_t>(full) - 1;
  call.run_in_workspace();
  EXPECT_LT(call.operands.workspace_size, full);
  EXPECT_THAT(events_with("cublasSetWorkspace"), testing::Each("cublasSetWorkspace 33554432"));
  EXPECT_EQ(events_with("cublasGemm").size(), products.size());
  call.options.workspace_limit = std::int64_t{1} << 20;
  kintsugi_plan plan = nullptr;
  EXPECT_EQ(kintsugi_plan_create(nullptr, &call.problem, &call.options, &plan), KINTSUGI_WORKSPACE_TOO_SMALL);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("a workspace limit of 1048576 bytes is too small"));
}

// ---------------------------------------------------------------- emulation by the vendor

class NativeArithmetic : public ByVendor {
 protected:
  // An element whose last bit an emulation of few bits loses.
  template <class T>
  static T element_of_all_bits() {
    return T(1) + std::numeric_limits<T>::epsilon();
  }

  // Returns the arguments of a cuBLAS call and its result.
  template <class T>
  static std::pair<std::string, T> multiply(const Stream& stream) {
    Call call(1, 1, 1, stream);
    call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = type_of<T>();
    call.options.policy = "native";
    const T a = element_of_all_bits<T>(), one = 1, zero = 0;
    T c = 0;
    call.operands.a = &a;
    call.operands.b = call.operands.alpha = &one;
    call.operands.beta = &zero;
    call.operands.c = &c;
    call.make_plan();
    call.run();
    const auto products = events_with("cublasGemm");
    const std::string product = products.size() == 1 ? products.front() : "";
    return {product.substr(0, product.find(" lda")), c};
  }

  const FakeVariable multiplies_{"FAKE_CUDA_MULTIPLY", "1"};
  const Stream stream_;
};

TEST_F(NativeArithmetic, IsTheDefaultComputeTypeWithoutEmulation) {
  EXPECT_THAT(multiply<float>(stream_).first, HasSubstr("compute=68"));
  EXPECT_THAT(multiply<double>(stream_).first, HasSubstr("compute=70"));
  const FakeVariable none("CUBLAS_EMULATE_DOUBLE_PRECISION", "0");
  EXPECT_THAT(multiply<double>(stream_).first, HasSubstr("compute=70"));
}

TEST_F(NativeArithmetic, IsPedanticIfAVariableEnablesEmulation) {
  {
    const FakeVariable emulated("CUBLAS_EMULATE_DOUBLE_PRECISION", "1");
    const auto [product, c] = multiply<double>(stream_);
    EXPECT_THAT(product, HasSubstr("compute=71"));
    EXPECT_EQ(c, element_of_all_bits<double>());
    EXPECT_THAT(multiply<float>(stream_).first, HasSubstr("compute=68")) << "the variable is for FP64 only";
  }
  const FakeVariable emulated("CUBLAS_EMULATE_SINGLE_PRECISION", "1");
  const auto [product, c] = multiply<float>(stream_);
  EXPECT_THAT(product, HasSubstr("compute=69"));
  EXPECT_EQ(c, element_of_all_bits<float>());
  EXPECT_THAT(multiply<double>(stream_).first, HasSubstr("compute=70")) << "the variable is for FP32 only";
}

TEST_F(NativeArithmetic, IsPedanticIfTheMathModeEnablesEmulation) {
  {
    const FakeVariable fixed_point("FAKE_CUDA_MATH_MODE", "8");
    EXPECT_THAT(multiply<double>(stream_).first, HasSubstr("compute=71"));
    EXPECT_THAT(multiply<float>(stream_).first, HasSubstr("compute=68"));
  }
  const FakeVariable bf16x9("FAKE_CUDA_MATH_MODE", "4");
  EXPECT_THAT(multiply<double>(stream_).first, HasSubstr("compute=70"));
  EXPECT_THAT(multiply<float>(stream_).first, HasSubstr("compute=69"));
}

// Sums of ozaki-fp64 are integers in FP64, which an emulation of fewer bits would not keep.
TEST_F(NativeArithmetic, IsPedanticForFp64Slices) {
  const FakeVariable emulated("CUBLAS_EMULATE_DOUBLE_PRECISION", "1");
  const std::vector<double> ones(40 * 40, 1);
  const double one = 1, zero = 0;
  std::vector<double> c(40 * 40);
  Call call(40, 40, 40, stream_);
  call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = KINTSUGI_F64;
  call.options.scheme = "ozaki-fp64";
  call.operands.a = call.operands.b = ones.data();
  call.operands.c = c.data();
  call.operands.alpha = &one;
  call.operands.beta = &zero;
  call.make_plan();
  call.run();
  const auto products = events_with("cublasGemm");
  EXPECT_THAT(products, Not(IsEmpty()));
  EXPECT_THAT(products, testing::Each(AllOf(HasSubstr(" type=1 result=1 compute=71 "))));
}

}  // namespace
}  // namespace kintsugi::test

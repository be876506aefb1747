// Tests native products by the real cuBLAS: operands of every kind, workspace limits, and arithmetic that
// stays native although environment variables let cuBLAS emulate.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <iostream>
#include <memory>

#include "engines/cuda/cublas.hpp"
#include "gpu/calls/device_gemm.hpp"
#include "tests/support/integer_case.hpp"

namespace kintsugi::test {
namespace {

// Puts copies of operands into device memory.
struct DevicePlace : Place {
  DevicePlace() { memory = KINTSUGI_DEVICE; }
  void* put(void* data, std::size_t bytes) override {
    const auto* first = static_cast<const unsigned char*>(data);
    copies_.push_back({data, std::make_unique<DeviceArray<unsigned char>>(
                                 std::vector<unsigned char>(first, first + bytes))});
    return copies_.back().array->data();
  }
  void fetch() override {
    for (const Copy& copy : copies_) {
      const std::vector<unsigned char> bytes = copy.array->host();
      std::memcpy(copy.original, bytes.data(), bytes.size());
    }
    copies_.clear();
  }

 private:
  struct Copy {
    void* original;
    std::unique_ptr<DeviceArray<unsigned char>> array;
  };
  std::vector<Copy> copies_;
};

template <class T>
class DeviceIntegers : public testing::Test {
 protected:
  static void expect_right(std::uint64_t first_seed, std::uint64_t seeds) {
    for (const char* policy : {"native", "emulate"}) {
      for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
        IntegerCase<T> test(seed);
        if (seed % 5 == 0 && !core::is_complex<T>) test.make_special(seed);
        SCOPED_TRACE(fmt::format("{} seed {}: {}", policy, seed, test.text()));
        const std::vector<T> expected = test.expected();
        DevicePlace device;
        device.policy = policy;
        const kintsugi_status status = test.run(device);
        if (test.is_refused_on_device()) {
          ASSERT_EQ(status, KINTSUGI_INVALID_ARGUMENT);
          continue;
        }
        ASSERT_EQ(status, KINTSUGI_SUCCESS) << kintsugi_last_error();
        ASSERT_TRUE(same_values(test.result(), expected));
      }
    }
  }
};
using Elements = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(DeviceIntegers, Elements);

TYPED_TEST(DeviceIntegers, MatchTheExactProducts) { this->expect_right(0, 500); }
TYPED_TEST(DeviceIntegers, MatchTheExactProductsInSmallCases) { this->expect_right(1000, 25); }

// Operands are small integers, so sums of 4096 products are exact in FP32.
TEST(DeviceNative, IsExactForIntegersUnderEveryWorkspaceLimit) {
  for (const std::int64_t limit : {1L, 256L, 20'000L, 1L << 20, 0L}) {
    for (const auto& [m, n, k] :
         {std::array{65L, 25L, 7L}, std::array{130L, 140L, 4096L}, std::array{1L, 700L, 3000L}}) {
      GemmCase test{.m = m, .n = n, .k = k, .policy = "native", .workspace_limit = limit};
      GemmDataOf<float> data(test);
      for (std::int64_t p = 0; p < k; ++p) {
        for (std::int64_t i = 0; i < m; ++i) data.a()(i, p) = static_cast<float>((3 * i + 5 * p) % 9 - 4);
        for (std::int64_t j = 0; j < n; ++j) data.b()(p, j) = static_cast<float>((7 * j + 2 * p) % 9 - 4);
      }
      DeviceGemm<float>(data).run_well();
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = 0; i < m; ++i) {
          float sum = 0;
          for (std::int64_t p = 0; p < k; ++p) sum += data.a()(i, p) * data.b()(p, j);
          ASSERT_EQ(data.c()(i, j), sum) << limit << " bytes, k = " << k << " at " << i << ", " << j;
        }
      }
    }
  }
}

// ------------------------------------------------------------------ emulation by cuBLAS

constexpr std::int64_t emulated_size = 1024;

// Returns the largest error of some elements of C relative to (k + 8) u |A||B|, which bounds native
// arithmetic.
template <class T>
double largest_error(GemmDataOf<T>& data, const std::vector<T>& c) {
  const double unit = std::numeric_limits<T>::epsilon() / 2;
  double largest = 0;
  for (std::int64_t sample = 0; sample < 200; ++sample) {
    const std::int64_t i = 37 * sample % emulated_size;
    const std::int64_t j = 101 * sample % emulated_size;
    long double sum = 0, magnitudes = 0;
    for (std::int64_t p = 0; p < emulated_size; ++p) {
      const long double product = static_cast<long double>(data.a()(i, p)) * data.b()(p, j);
      sum += product;
      magnitudes += std::fabs(product);
    }
    const long double error = std::fabs(c[static_cast<std::size_t>(i + j * emulated_size)] - sum);
    const long double bound = static_cast<long double>(emulated_size + 8) * unit * magnitudes;
    largest = std::max(largest, static_cast<double>(error / bound));
  }
  return largest;
}

template <class T>
double largest_error(GemmCase test) {
  test.m = test.n = test.k = emulated_size;
  GemmDataOf<T> data(test);
  DeviceGemm<T>(data).run_well();
  return largest_error(data, data.result());
}

// Returns the largest error of a cuBLAS product with the default compute type.
double largest_error_of_the_default() {
  GemmDataOf<double> data(GemmCase{.m = emulated_size, .n = emulated_size, .k = emulated_size});
  const core::cuda::Cublas& blas = core::cuda::cublas();
  core::cuda::BlasHandle handle = nullptr;
  core::cuda::check_blas(blas.create(&handle), "cublasCreate");
  const double one = 1, zero = 0;
  const DeviceArray<double> a(data.raw_a()), b(data.raw_b()), c(emulated_size * emulated_size);
  core::cuda::check_blas(
      blas.gemm(handle, 0, 0, emulated_size, emulated_size, emulated_size, &one, a.data(),
                core::cuda::DataType::f64, emulated_size, b.data(), core::cuda::DataType::f64, emulated_size,
                &zero, c.data(), core::cuda::DataType::f64, emulated_size, core::cuda::ComputeType::f64,
                core::cuda::default_algorithm),
      "cublasGemmEx");
  return largest_error(data, c.host());
}

// KeepsItsArithmetic runs this test in another process with the variables that let cuBLAS emulate.
TEST(NativeBesideEmulation, DISABLED_InThisProcess) {
  EXPECT_LE(largest_error<double>({.policy = "native"}), 1);
  EXPECT_LE(largest_error<float>({.policy = "native"}), 1);
  EXPECT_LE(largest_error<double>({.scheme = "ozaki-fp64"}), 1);
  EXPECT_LE(largest_error<double>({.policy = "emulate"}), 1);
  const double default_error = largest_error_of_the_default();
  if (default_error <= 1) GTEST_SKIP() << "this cuBLAS does not emulate here, so the test cannot fail";
  std::cout << "cuBLAS's default compute type has " << default_error
            << " times the error that native FP64 keeps\n";
}

TEST(NativeBesideEmulation, KeepsItsArithmetic) {
  std::vector<std::string> variables{"CUBLAS_EMULATE_DOUBLE_PRECISION=1", "CUBLAS_EMULATE_SINGLE_PRECISION=1",
                                     "CUBLAS_EMULATION_STRATEGY=eager",
                                     "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT=23"};
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  for (char** element = environ; *element != nullptr; ++element) environment.push_back(*element);
  environment.push_back(nullptr);
  std::string program = "/proc/self/exe",
              filter = "--gtest_filter=NativeBesideEmulation.DISABLED_InThisProcess",
              disabled = "--gtest_also_run_disabled_tests";
  char* arguments[] = {program.data(), filter.data(), disabled.data(), nullptr};
  pid_t child = 0;
  ASSERT_EQ(::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environment.data()), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

}  // namespace
}  // namespace kintsugi::test

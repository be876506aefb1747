// Tests every scheme that the engine cuda runs: errors are within its bound, and integer programs have the
// bits of the engine reference.
#include <random>

#include "gpu/calls/device_gemm.hpp"
#include "tests/support/routes.hpp"
#include "tests/support/scheme_bound.hpp"

namespace kintsugi::test {
namespace {

const core::Engine& cuda() { return *core::find_engine("cuda"); }

template <class T>
std::vector<std::string> device_schemes() {
  constexpr auto type =
      std::is_same_v<core::RealOf<T>, float> ? core::OperandType::f32 : core::OperandType::f64;
  std::vector<std::string> names = schemes_on(cuda(), type);
  names.emplace_back("int52:words=3");
  if (type == core::OperandType::f32) {
    for (const char* name : {"fp16x3:block=1024", "fp16x3-wide:block=1024", "h2sgemm:sb=8"})
      names.emplace_back(name);
  }
  return names;
}

template <class T>
GemmCase random_scheme_case(std::mt19937_64& random, const std::string& scheme) {
  constexpr const char* distributions[] = {"uniform", "uniform01", "phi:0.5", "phi:2", "type2", "graded:10"};
  GemmCase test = random_shape(random, 130, 130, 300);
  test.alpha = below(random, 3) == 0 ? -1.5 : 1;
  test.beta = below(random, 3) == 0 ? 0.75 : 0;
  test.distribution = distributions[below(random, std::size(distributions))];
  test.scheme = scheme;
  test.engine = "cuda";
  return test;
}

template <class T>
void expect_within_bound(const GemmCase& test, const DeviceRun& run) {
  SCOPED_TRACE(describe(test));
  GemmDataOf<T> data(test);
  const std::vector<T> before = data.raw_c();
  const Allowance<T> allowance(*core::find_scheme(test.scheme), cuda(), constant(data.a()),
                               constant(data.b()));
  if (allowance.overflows()) return;
  DeviceGemm<T>(data, run).run_well();
  for (const measure::ElementError& element : element_errors(data, before)) {
    ASSERT_LE(element.error, allowance(element, test.alpha))
        << "element " << element.i << ", " << element.j << " of |A||B| " << element.absolute;
  }
}

template <class T>
void sweep_schemes(int cases) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const std::string& scheme : device_schemes<T>()) {
    for (int i = 0; i < cases; ++i) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      expect_within_bound<T>(random_scheme_case<T>(random, scheme),
                             {.offset = random() % 2, .device_scalars = i % 2 == 1});
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(DeviceSchemes, Fp32ErrorsAreWithinTheBoundsInSmallCases) { sweep_schemes<float>(3); }
TEST(DeviceSchemes, Fp64ErrorsAreWithinTheBoundsInSmallCases) { sweep_schemes<double>(3); }
TEST(DeviceSchemes, Fp32ErrorsAreWithinTheBoundsInManyCases) { sweep_schemes<float>(40); }
TEST(DeviceSchemes, Fp64ErrorsAreWithinTheBoundsInManyCases) { sweep_schemes<double>(40); }

TEST(DeviceSchemes, ErrorsOfLongSumsAreWithinTheBounds) {
  for (const std::string& scheme : device_schemes<float>()) {
    for (const std::int64_t k : {1024, 4097, 20000}) {
      expect_within_bound<float>(
          {.m = 40, .n = 33, .k = k, .op_a = KINTSUGI_OP_T, .scheme = scheme, .engine = "cuda"}, {});
    }
  }
}

bool is_integer_program(const std::string& scheme) {
  return !core::find_scheme(scheme)->program.format().floating;
}

// Complex products have other residues on the device, but the same integers, and so the same bits.
template <class T>
void expect_scheme_bits_of_the_reference(int cases) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const std::string& scheme : device_schemes<T>()) {
    if (!is_integer_program(scheme)) continue;
    for (int i = 0; i < cases; ++i) {
      GemmCase test = random_scheme_case<T>(random, scheme);
      test.batch = 1 + i % 3;
      SCOPED_TRACE(describe(test) + " generator " + std::to_string(seed));
      const auto on_device = device_bits<T>(test, {.pointers = i % 2 == 1});
      test.engine = "reference";
      GemmDataOf<T> reference(test);
      reference.run_well();
      ASSERT_EQ(on_device, bits_of(reference.result()));
    }
  }
}

TEST(DeviceSchemes, IntegerProgramsHaveTheReferencesBitsInSmallCases) {
  expect_scheme_bits_of_the_reference<float>(4);
  expect_scheme_bits_of_the_reference<double>(4);
  expect_scheme_bits_of_the_reference<std::complex<float>>(2);
  expect_scheme_bits_of_the_reference<std::complex<double>>(2);
}

// k is longer than a k-block, and on both sides of what 32-bit sums hold.
TEST(DeviceSchemes, IntegerProgramsOfLongSumsHaveTheReferencesBits) {
  for (const std::string& scheme : device_schemes<double>()) {
    if (!is_integer_program(scheme)) continue;
    for (const std::int64_t k : {65535, 65536, 65537, 140000}) {
      GemmCase test{.m = 5, .n = 3, .k = k, .op_a = KINTSUGI_OP_T, .scheme = scheme, .engine = "cuda"};
      SCOPED_TRACE(describe(test));
      const auto on_device = device_bits<double>(test);
      test.engine = "reference";
      GemmDataOf<double> reference(test);
      reference.run_well();
      ASSERT_EQ(on_device, bits_of(reference.result()));
    }
  }
}

// Expects NaN and infinities where the engine reference has them.
template <class T>
void expect_special_values_of_the_reference() {
  std::mt19937_64 random(std::random_device{}());
  for (const std::string& scheme : device_schemes<T>()) {
    for (int i = 0; i < 3; ++i) {
      GemmCase test = random_scheme_case<T>(random, scheme);
      test.distribution = "uniform";
      SCOPED_TRACE(describe(test));
      const auto run_on = [&](const char* engine) {
        test.engine = engine;
        GemmDataOf<T> data(test);
        const T values[] = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                            -std::numeric_limits<T>::infinity(), T(0)};
        for (int s = 0; s < 6; ++s) {
          const MatrixView<T> view = s % 2 == 0 ? data.a() : data.b();
          view((7 * s + i) % view.rows, (11 * s + 3 * i) % view.columns) = values[(s + i) % 4];
        }
        if (std::string(engine) == "cuda") {
          DeviceGemm<T>(data).run_well();
        } else {
          data.run_well();
        }
        std::vector<int> kinds;
        for (const T x : data.result())
          kinds.push_back(std::isnan(x) ? 2 : std::isinf(x) ? (x > 0 ? 1 : -1) : 0);
        return kinds;
      };
      ASSERT_EQ(run_on("cuda"), run_on("reference"));
    }
  }
}

TEST(DeviceSchemes, SpecialValuesAreThoseOfTheReferenceInSmallCases) {
  expect_special_values_of_the_reference<float>();
  expect_special_values_of_the_reference<double>();
}

TEST(DeviceSchemes, SchemesWithoutKernelsAreRefused) {
  GemmDataOf<double> data({.m = 4, .n = 4, .k = 4, .scheme = "split-n:format=fp8_e4m3"});
  EXPECT_EQ(DeviceGemm<double>(data).run(), KINTSUGI_NOT_SUPPORTED);
  EXPECT_NE(std::string(kintsugi_last_error()).find("engine cuda"), std::string::npos)
      << kintsugi_last_error();
}

}  // namespace
}  // namespace kintsugi::test

// Tests that every program gives a complex product the bits of its embedding, the real product of twice the
// inner length, by any call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/registry.hpp"
#include "schemes/program.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/complex_reference.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::test {
namespace {

template <class T>
void expect_bits_of_embedding(const GemmCase& test) {
  GemmDataOf<std::complex<T>> data(test);
  GemmDataOf<T> real = embedded(data);
  data.run_well();
  real.run_well();
  for (std::int64_t j = 0; j < test.n; ++j) {
    for (std::int64_t i = 0; i < test.m; ++i) {
      const std::complex<T> c = data.c()(i, j);
      const std::vector<T> parts{c.real(), c.imag()}, expected{real.c()(i, 2 * j), real.c()(i, 2 * j + 1)};
      const bool not_numbers = std::isnan(parts[0]) && std::isnan(expected[0]) && std::isnan(parts[1]) &&
                               std::isnan(expected[1]);  // payloads are free
      ASSERT_TRUE(not_numbers || bits_of(parts) == bits_of(expected))
          << test.scheme << " on " << test.engine << " layout " << test.layout << " ops " << test.op_a
          << test.op_b << " at " << i << ", " << j << ": " << c << " for " << expected[0] << ", "
          << expected[1];
    }
  }
}

TEST(Complex, EverySchemeGivesTheBitsOfItsEmbedding) {
  std::mt19937 random(3);
  for (const core::Engine* engine : core::all_engines()) {
    if (!engine->unavailable_reason().empty()) continue;
    for (const core::Scheme* scheme : core::all_schemes()) {
      if (!worth_the_time(scheme->name)) continue;
      for (int trial = 0; trial < 4; ++trial) {
        GemmCase test{.m = draw(random, 9), .n = draw(random, 7), .k = draw(random, 90)};
        test.scheme = scheme->name;
        test.engine = engine->name();
        test.op_a = ops[random() % 3];
        test.op_b = ops[(trial + 1) % 3];
        test.layout = layouts[trial % 2];
        test.pad_a = random() % 3;
        test.distribution = trial == 3 ? "special:0.02" : "phi:1";
        test.seed = random();
        if (scheme->operands.contains(core::OperandType::f32)) expect_bits_of_embedding<float>(test);
        if (trial != 3 && scheme->operands.contains(core::OperandType::f64))
          expect_bits_of_embedding<double>(test);
      }
    }
  }
}

TEST(Complex, FallbackChainsGiveTheBitsOfTheirEmbedding) {
  for (const std::string accuracy : {"fp32", "1e-5", "exact"}) {
    for (const std::string distribution : a_part_of({"uniform", "phi:2", "span:60", "subnormal-mixed"})) {
      if (accuracy == "1e-5" && distribution == "subnormal-mixed") continue;  // wider than any window
      for (const std::int64_t k : {1, 40, 300}) {
        GemmCase test{.m = 6, .n = 5, .k = k, .op_a = KINTSUGI_OP_C, .distribution = distribution};
        test.engine = "reference";
        test.accuracy = accuracy;
        test.policy = "emulate";
        expect_bits_of_embedding<float>(test);
        if (accuracy == "exact") expect_bits_of_embedding<double>(test);
      }
    }
  }
}

template <class T>
class ComplexBits : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(ComplexBits, Reals);

TYPED_TEST(ComplexBits, ThreadsBlocksAndBatchesKeepTheBits) {
  using Element = std::complex<TypeParam>;
  for (const std::string scheme : a_part_of(
           {"ozaki2", "ozaki-fp16", "ozaki-fp64", std::is_same_v<TypeParam, float> ? "fp16x3" : "split-n"})) {
    const std::int64_t n = thorough ? 140 : 30;
    GemmCase test{.m = 270, .n = n, .k = 9, .op_b = KINTSUGI_OP_C, .alpha = 0.3, .alpha_im = 0.7};
    test.scheme = scheme;
    test.engine = has_cpu_engine() ? "cpu" : "reference";
    test.threads = 1;
    GemmDataOf<Element> unlimited(test);
    unlimited.run_well();
    const auto expected = bits_of(unlimited.result());
    const std::size_t full = PlanOf(unlimited).workspace();
    test.threads = 3;
    GemmDataOf<Element> threaded(test);
    threaded.run_well();
    EXPECT_EQ(bits_of(threaded.result()), expected);
    test.threads = 1;
    test.workspace_limit = static_cast<std::int64_t>(full * 3 / 4);
    GemmDataOf<Element> blocked(test);
    EXPECT_LE(PlanOf(blocked).workspace(), full * 3 / 4);
    blocked.run_well();
    EXPECT_EQ(bits_of(blocked.result()), expected);
    test.workspace_limit = 0;
    test.batch = 2;
    GemmDataOf<Element> batch(test);
    batch.run_well();
    const auto batch_result = batch.result();
    EXPECT_EQ(bits_of(std::vector<Element>(batch_result.begin(), batch_result.begin() + 270 * n)), expected);
  }
}

// Exact programs are integer sums and one rounding, so engines cannot differ.
TYPED_TEST(ComplexBits, ExactProgramsGiveTheSameBitsOnEveryEngine) {
  if (!has_cpu_engine()) GTEST_SKIP() << "needs two engines";
  using Element = std::complex<TypeParam>;
  for (const std::string distribution : {"uniform", "phi:2"}) {
    GemmCase test{
        .m = 9, .n = 8, .k = 150, .op_a = KINTSUGI_OP_C, .alpha_im = -0.3, .distribution = distribution};
    test.scheme = "ozaki2:moduli=9";
    test.engine = "reference";
    GemmDataOf<Element> reference(test);
    reference.run_well();
    test.engine = "cpu";
    GemmDataOf<Element> cpu(test);
    cpu.run_well();
    EXPECT_EQ(bits_of(cpu.result()), bits_of(reference.result()));
  }
}

// Residues of complex numbers take fewer products than the embedding and give the same bits, for any number
// of moduli and for k beyond one k-block.
TYPED_TEST(ComplexBits, FewerProductsGiveTheBitsOfTheEmbedding) {
  for (const std::string engine : {"reference", "cpu"}) {
    if (engine == "cpu" && !has_cpu_engine()) continue;
    for (const std::string moduli : a_part_of({"9", "17", "2", "3", "30", "49"})) {
      GemmCase test{.m = 5, .n = 70, .k = 80, .op_a = KINTSUGI_OP_C, .op_b = KINTSUGI_OP_T};
      test.distribution = moduli == "9" ? "phi:2" : "uniform";
      test.scheme = "ozaki2:moduli=" + moduli;
      test.engine = engine;
      expect_bits_of_embedding<TypeParam>(test);
    }
    if (!thorough) continue;
    GemmCase longer{
        .m = 2, .n = 1, .k = 66000, .distribution = "uniform01", .scheme = "ozaki2", .engine = engine};
    expect_bits_of_embedding<TypeParam>(longer);
  }
}

TYPED_TEST(ComplexBits, ResiduesTakeLessThanThreeQuartersOfTheEmbeddingsProducts) {
  const GemmDataOf<std::complex<TypeParam>> data(GemmCase{.m = 4, .n = 4, .k = 100, .scheme = "ozaki2"});
  const json program = PlanOf(data).describe().at("candidates").at(0).at("program");
  const json basis = program.at("split_a").at("complex_basis");
  EXPECT_EQ(program.at("products"),
            2 * basis.at("with_root").get<int>() + 3 * basis.at("without").get<int>());
  EXPECT_LT(program.at("products").get<int>(), 3 * 16);
}

TYPED_TEST(ComplexBits, PreparedOperandsKeepTheBits) {
  using Element = std::complex<TypeParam>;
  for (const std::string choice : {"emulate", "native", "ozaki2"}) {
    GemmCase test{.m = 6, .n = 5, .k = 33, .op_a = KINTSUGI_OP_C, .op_b = KINTSUGI_OP_C};
    test.engine = "reference";
    test.accuracy = std::is_same_v<TypeParam, float> ? "fp32" : "fp64";
    (choice == "ozaki2" ? test.scheme : test.policy) = choice;
    GemmDataOf<Element> plain(test);
    plain.run_well();
    GemmDataOf<Element> data(test);
    const PlanOf plan(data);
    ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
    kintsugi_prepared a = nullptr, b = nullptr;
    ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_A, data.raw_a().data(), &a), KINTSUGI_SUCCESS);
    ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_B, data.raw_b().data(), &b), KINTSUGI_SUCCESS);
    auto operands = data.operands();
    operands.a = operands.b = nullptr;
    operands.prepared_a = a;
    operands.prepared_b = b;
    ASSERT_EQ(kintsugi_plan_execute(nullptr, plan.plan, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    EXPECT_EQ(bits_of(data.result()), bits_of(plain.result()));
    kintsugi_prepared_destroy(a);
    kintsugi_prepared_destroy(b);
  }
}

template <class T, class Call>
void expect_front_call(const Call& call, const T& alpha, const T& beta) {
  GemmCase test{.m = 4, .n = 3, .k = 5, .op_a = KINTSUGI_OP_C, .layout = KINTSUGI_ROW_MAJOR, .pad_c = 2};
  test.alpha = std::real(alpha), test.alpha_im = std::imag(alpha);
  test.beta = std::real(beta), test.beta_im = std::imag(beta);
  GemmDataOf<T> unlimited(test);
  GemmDataOf<T> data(test);
  unlimited.run_well();
  const auto p = data.problem();
  const Handle handle;
  ASSERT_EQ(call(handle, p, data.operands()), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(bits_of(data.raw_c()), bits_of(unlimited.raw_c()));
}

TEST(Complex, TypedCallsHaveTheBitsOfGemm) {
  constexpr auto layout = KINTSUGI_ROW_MAJOR;
  constexpr auto op_a = KINTSUGI_OP_C;
  constexpr auto op_b = KINTSUGI_OP_N;
  expect_front_call<double>(
      [&](kintsugi_handle h, const kintsugi_problem& p, const kintsugi_operands& o) {
        return kintsugi_dgemm(h, layout, op_a, op_b, p.m, p.n, p.k, 0.5, static_cast<const double*>(o.a),
                              p.lda, static_cast<const double*>(o.b), p.ldb, 2, static_cast<double*>(o.c),
                              p.ldc);
      },
      0.5, 2);
  const auto complex_call = [&](auto function) {
    return [=](kintsugi_handle h, const kintsugi_problem& p, const kintsugi_operands& o) {
      return function(h, layout, op_a, op_b, p.m, p.n, p.k, o.alpha, o.a, p.lda, o.b, p.ldb, o.beta, o.c,
                      p.ldc);
    };
  };
  expect_front_call<std::complex<float>>(complex_call(kintsugi_cgemm), {0.5, -1}, {0, 2});
  expect_front_call<std::complex<double>>(complex_call(kintsugi_zgemm), {0.5, -1}, {0, 2});
}

TEST(Complex, PlansOfComplexProblemsAreReadBack) {
  const GemmCase test{.m = 6, .n = 5, .k = 33, .op_a = KINTSUGI_OP_C, .scheme = "ozaki2"};
  const GemmDataOf<std::complex<double>> data(test);
  const PlanOf plan(data);
  ASSERT_EQ(plan.status, KINTSUGI_SUCCESS) << plan.error;
  const json description = plan.describe();
  EXPECT_EQ(description.at("problem").at("type"), "c64");
  kintsugi_plan again = nullptr;
  ASSERT_EQ(kintsugi_plan_read(nullptr, description.dump().c_str(), nullptr, &again), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  ASSERT_EQ(kintsugi_plan_problem(again, &problem), KINTSUGI_SUCCESS);
  EXPECT_EQ(problem.type_a, KINTSUGI_C64);
  EXPECT_EQ(problem.op_a, KINTSUGI_OP_C);
  kintsugi_plan_destroy(again);
}

TEST(Complex, OperandsPreparedForAnotherTypeAreRefused) {
  const GemmCase test{.m = 4, .n = 4, .k = 4};
  GemmDataOf<std::complex<float>> data(test);
  GemmData real(test);
  const PlanOf plan(data), of_real(real);
  kintsugi_prepared a = nullptr;
  ASSERT_EQ(kintsugi_prepare(nullptr, of_real.plan, KINTSUGI_A, real.raw_a().data(), &a), KINTSUGI_SUCCESS);
  auto operands = data.operands();
  operands.prepared_a = a;
  EXPECT_EQ(kintsugi_plan_execute(nullptr, plan.plan, &operands), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_THAT(kintsugi_last_error(), testing::HasSubstr("A was prepared with fp32 elements"));
  kintsugi_prepared_destroy(a);
}

}  // namespace
}  // namespace kintsugi::test

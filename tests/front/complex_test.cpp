// Complex products: every program gives the bits of the real product that the complex one is embedded in; contracts,
// scalars and special values against references of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <random>

#include "engines/registry.hpp"
#include "plan/program.hpp"
#include "tests/lab/mpfr_value.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::test {
namespace {

using lab::testing::Mpfr;

constexpr kintsugi_op ops[] = {KINTSUGI_OP_N, KINTSUGI_OP_T, KINTSUGI_OP_C};
constexpr kintsugi_layout layouts[] = {KINTSUGI_COLUMN_MAJOR, KINTSUGI_ROW_MAJOR};

std::int64_t draw(std::mt19937& random, std::int64_t most) {
  return 1 + static_cast<std::int64_t>(random()) % most;
}

// Entries of op(A) and op(B).
template <class T>
T a_entry(GemmDataOf<T>& data, std::int64_t i, std::int64_t p, std::int64_t t = 0) {
  const T x = data.a(t)(i, p);
  return data.test().op_a == KINTSUGI_OP_C ? std::conj(x) : x;
}
template <class T>
T b_entry(GemmDataOf<T>& data, std::int64_t p, std::int64_t j, std::int64_t t = 0) {
  const T x = data.b(t)(p, j);
  return data.test().op_b == KINTSUGI_OP_C ? std::conj(x) : x;
}

// The real m x 2n product of inner length 2k that has the parts of the complex one as its columns.
template <class T>
GemmDataOf<T> embedded(GemmDataOf<std::complex<T>>& data) {
  GemmCase test = data.test();
  test.n *= 2;
  test.k *= 2;
  test.op_a = test.op_b = KINTSUGI_OP_N;
  test.layout = KINTSUGI_COLUMN_MAJOR;
  test.pad_a = test.pad_b = test.pad_c = 0;
  GemmDataOf<T> real(test);
  for (std::int64_t p = 0; p < data.test().k; ++p) {
    for (std::int64_t i = 0; i < data.test().m; ++i) {
      real.a()(i, 2 * p) = a_entry(data, i, p).real();
      real.a()(i, 2 * p + 1) = a_entry(data, i, p).imag();
    }
    for (std::int64_t j = 0; j < data.test().n; ++j) {
      const std::complex<T> b = b_entry(data, p, j);
      real.b()(2 * p, 2 * j) = b.real();
      real.b()(2 * p + 1, 2 * j) = -b.imag();
      real.b()(2 * p, 2 * j + 1) = b.imag();
      real.b()(2 * p + 1, 2 * j + 1) = b.real();
    }
  }
  return real;
}

template <class T>
void expect_bits_of_embedding(const GemmCase& test) {
  GemmDataOf<std::complex<T>> data(test);
  GemmDataOf<T> real = embedded(data);
  data.run_well();
  real.run_well();
  for (std::int64_t j = 0; j < test.n; ++j) {
    for (std::int64_t i = 0; i < test.m; ++i) {
      const std::complex<T> c = data.c()(i, j);
      const std::vector<T> parts{c.real(), c.imag()}, wanted{real.c()(i, 2 * j), real.c()(i, 2 * j + 1)};
      const bool not_numbers = std::isnan(parts[0]) && std::isnan(wanted[0]) && std::isnan(parts[1]) &&
                               std::isnan(wanted[1]);  // payloads are free
      ASSERT_TRUE(not_numbers || bits_of(parts) == bits_of(wanted))
          << test.scheme << " on " << test.engine << " layout " << test.layout << " ops " << test.op_a
          << test.op_b << " at " << i << ", " << j << ": " << c << " for " << wanted[0] << ", " << wanted[1];
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

TEST(Complex, LaddersAndContractsGiveTheBitsOfTheirEmbedding) {
  for (const std::string accuracy : {"fp32", "1e-5", "exact"}) {
    for (const std::string distribution : {"uniform", "phi:2", "span:60", "subnormal-mixed"}) {
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

// Both parts of alpha AB + beta C, exactly, and the sums of magnitudes that bounds speak of.
struct ExactParts {
  Mpfr re, im, re_magnitude, im_magnitude;
};

template <class T>
ExactParts exact_parts(GemmDataOf<std::complex<T>>& data, std::complex<T> old, std::int64_t i, std::int64_t j,
                       std::int64_t t = 0) {
  ExactParts sum;
  const auto add = [](Mpfr& total, Mpfr& magnitudes, double sign, double x, double y) {
    const Mpfr product = Mpfr(sign) * Mpfr(x) * Mpfr(y);
    total += product;
    magnitudes += magnitude(product);
  };
  const auto add_complex = [&](ExactParts& parts, std::complex<T> x, std::complex<T> y) {
    add(parts.re, parts.re_magnitude, 1, x.real(), y.real());
    add(parts.re, parts.re_magnitude, -1, x.imag(), y.imag());
    add(parts.im, parts.im_magnitude, 1, x.real(), y.imag());
    add(parts.im, parts.im_magnitude, 1, x.imag(), y.real());
  };
  for (std::int64_t p = 0; p < data.test().k; ++p)
    add_complex(sum, a_entry(data, i, p, t), b_entry(data, p, j, t));
  const Mpfr ar(data.alpha().real()), ai(data.alpha().imag());
  ExactParts result{ar * sum.re - ai * sum.im, ar * sum.im + ai * sum.re,
                    magnitude(ar) * sum.re_magnitude + magnitude(ai) * sum.im_magnitude,
                    magnitude(ar) * sum.im_magnitude + magnitude(ai) * sum.re_magnitude};
  if (data.beta() != std::complex<T>()) add_complex(result, data.beta(), old);
  EXPECT_TRUE(result.re.exact() && result.im.exact());
  return result;
}

template <class T>
T rounded_once(const Mpfr& x) {
  if constexpr (std::is_same_v<T, float>) {
    return x.to_float();
  } else {
    return x.to_double();
  }
}

template <class T>
class ComplexOf : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(ComplexOf, Reals);

TYPED_TEST(ComplexOf, ExactRoundsEachPartOnce) {
  using Entry = std::complex<TypeParam>;
  std::mt19937 random(11);
  const double scalars[] = {1, 0, -1, 0.75, 1e-20, -3e7, 0x1.fffffep-3};
  for (const std::string distribution :
       {"uniform", "phi:2", "span:60", "cancellation:30", "subnormal", "subnormal-mixed", "integer:9"}) {
    for (const std::int64_t k : {1, 7, 40}) {
      GemmCase test{.m = 4, .n = 3, .k = k, .distribution = distribution};
      test.accuracy = "exact";
      test.engine = "reference";
      test.alpha = scalars[random() % 7];
      test.alpha_im = scalars[random() % 7];
      test.beta = scalars[random() % 7];
      test.beta_im = scalars[random() % 7];
      test.op_a = ops[random() % 3];
      test.op_b = ops[random() % 3];
      test.layout = layouts[random() % 2];
      test.seed = random();
      GemmDataOf<Entry> data(test);
      const std::vector<Entry> before = data.result();
      data.run_well();
      for (std::int64_t e = 0; e < 12; ++e) {
        const std::int64_t i = e % 4, j = e / 4;
        const ExactParts exact = exact_parts(data, before[e], i, j);
        ASSERT_EQ(data.c()(i, j).real(), rounded_once<TypeParam>(exact.re)) << distribution << " k " << k;
        ASSERT_EQ(data.c()(i, j).imag(), rounded_once<TypeParam>(exact.im)) << distribution << " k " << k;
      }
    }
  }
}

// The contract of a part: coefficient (|Re A||Re B| + |Im A||Im B|), and its like; then the scalars' roundings.
TYPED_TEST(ComplexOf, ContractsHoldForEachPart) {
  using Entry = std::complex<TypeParam>;
  constexpr bool is_single = std::is_same_v<TypeParam, float>;
  constexpr double unit = is_single ? 0x1p-24 : 0x1p-53;
  std::mt19937 random(12);
  for (const std::string engine : {"reference", "cpu"}) {
    if (engine == "cpu" && !has_cpu_engine()) continue;
    for (const std::string policy : {"emulate", "native"}) {
      for (const std::string accuracy : {is_single ? "fp32" : "fp64", is_single ? "1e-4" : "1e-10"}) {
        for (int trial = 0; trial < 12; ++trial) {
          GemmCase test{.m = 3, .n = 4, .k = trial == 0 ? 1 : draw(random, 200)};
          test.distribution = trial % 3 == 0 ? "phi:2" : trial % 3 == 1 ? "uniform" : "graded:40";
          test.engine = engine;
          test.policy = policy;
          test.accuracy = accuracy;
          test.op_a = ops[trial % 3];
          test.op_b = ops[trial / 3 % 3];
          test.layout = layouts[trial % 2];
          test.seed = random();
          if (trial % 4 == 3) test.alpha = -0.7, test.alpha_im = 0.3, test.beta = 0.2, test.beta_im = -5;
          GemmDataOf<Entry> data(test);
          const std::vector<Entry> before = data.result();
          data.run_well();
          const double products = 2.0 * static_cast<double>(test.k);
          const double contract = accuracy.starts_with("fp") ? (products + 8) * unit
                                  : is_single                ? 1e-4
                                                             : 1e-10;
          // Seven operations on scalars; each loses at most one unit of all magnitudes, and underflow a few last places.
          const double allowed = contract + (trial % 4 == 3 ? 8 * unit : unit);
          for (std::int64_t e = 0; e < 12; ++e) {
            const ExactParts exact = exact_parts(data, before[e], e % 3, e / 3);
            const Entry c = data.c()(e % 3, e / 3);
            ASSERT_LE(magnitude(exact.re - Mpfr(c.real())).to_double(),
                      allowed * exact.re_magnitude.to_double() + 8 * (is_single ? 0x1p-149 : 0x1p-1074))
                << engine << " " << policy << " " << accuracy << " trial " << trial;
            ASSERT_LE(magnitude(exact.im - Mpfr(c.imag())).to_double(),
                      allowed * exact.im_magnitude.to_double() + 8 * (is_single ? 0x1p-149 : 0x1p-1074))
                << engine << " " << policy << " " << accuracy << " trial " << trial;
          }
        }
      }
    }
  }
}

// Integers come out exactly whatever adds them: every op and layout of every native product.
TYPED_TEST(ComplexOf, NativeProductsTakeEveryOpAndLayout) {
  using Entry = std::complex<TypeParam>;
  for (const std::string engine : {"reference", "cpu"}) {
    if (engine == "cpu" && !has_cpu_engine()) continue;
    for (const auto layout : layouts) {
      for (const auto op_a : ops) {
        for (const auto op_b : ops) {
          GemmCase test{.m = 5, .n = 3, .k = 7, .op_a = op_a, .op_b = op_b, .layout = layout};
          test.distribution = "integer:9";
          test.engine = engine;
          test.policy = "native";
          test.pad_a = 2, test.pad_c = 1;
          test.alpha = 2, test.alpha_im = -3, test.beta = 0, test.beta_im = 1;
          test.batch = 2;
          GemmDataOf<Entry> data(test);
          for (std::int64_t t = 0; t < 2; ++t) {
            for (std::int64_t e = 0; e < 15; ++e)
              data.c(t)(e % 5, e / 5) = Entry(TypeParam(e), TypeParam(3 - e));
          }
          data.run_well();
          for (std::int64_t t = 0; t < 2; ++t) {
            for (std::int64_t e = 0; e < 15; ++e) {
              const Entry old(TypeParam(e), TypeParam(3 - e));
              const ExactParts exact = exact_parts(data, old, e % 5, e / 5, t);
              ASSERT_EQ(data.c(t)(e % 5, e / 5),
                        Entry(TypeParam(exact.re.to_double()), TypeParam(exact.im.to_double())))
                  << engine << " layout " << layout << " ops " << op_a << op_b;
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(ComplexOf, ThreadsBlocksAndBatchesKeepTheBits) {
  using Entry = std::complex<TypeParam>;
  for (const std::string scheme : {"ozaki2", std::is_same_v<TypeParam, float> ? "fp16x3" : "split-n"}) {
    GemmCase test{.m = 270, .n = 140, .k = 9, .op_b = KINTSUGI_OP_C, .alpha = 0.3, .alpha_im = 0.7};
    test.scheme = scheme;
    test.engine = has_cpu_engine() ? "cpu" : "reference";
    test.threads = 1;
    GemmDataOf<Entry> whole(test);
    whole.run_well();
    const auto expected = bits_of(whole.result());
    const std::size_t full = PlanOf(whole).workspace();
    test.threads = 3;
    GemmDataOf<Entry> threaded(test);
    threaded.run_well();
    EXPECT_EQ(bits_of(threaded.result()), expected);
    test.threads = 1;
    test.workspace_limit = static_cast<std::int64_t>(full * 2 / 3);
    GemmDataOf<Entry> blocked(test);
    EXPECT_LE(PlanOf(blocked).workspace(), full * 2 / 3);
    blocked.run_well();
    EXPECT_EQ(bits_of(blocked.result()), expected);
    test.workspace_limit = 0;
    test.batch = 2;
    GemmDataOf<Entry> batch(test);
    batch.run_well();
    const auto both = batch.result();
    EXPECT_EQ(bits_of(std::vector<Entry>(both.begin(), both.begin() + 270 * 140)), expected);
  }
}

// Exact programs are integers and one rounding: the engine has no say.
TYPED_TEST(ComplexOf, ExactProgramsGiveTheSameBitsOnEveryEngine) {
  if (!has_cpu_engine()) GTEST_SKIP() << "needs two engines";
  using Entry = std::complex<TypeParam>;
  for (const std::string distribution : {"uniform", "phi:2"}) {
    GemmCase test{
        .m = 9, .n = 8, .k = 150, .op_a = KINTSUGI_OP_C, .alpha_im = -0.3, .distribution = distribution};
    test.scheme = "ozaki2:moduli=9";
    test.engine = "reference";
    GemmDataOf<Entry> reference(test);
    reference.run_well();
    test.engine = "cpu";
    GemmDataOf<Entry> cpu(test);
    cpu.run_well();
    EXPECT_EQ(bits_of(cpu.result()), bits_of(reference.result()));
  }
}

// The same integers by fewer products, whatever the moduli: the embedding's bits, beyond a block of k too.
TYPED_TEST(ComplexOf, FewerProductsGiveTheBitsOfTheEmbedding) {
  for (const std::string engine : {"reference", "cpu"}) {
    if (engine == "cpu" && !has_cpu_engine()) continue;
    for (const std::string moduli : {"2", "3", "9", "17", "30", "49"}) {
      GemmCase test{.m = 5, .n = 70, .k = 80, .op_a = KINTSUGI_OP_C, .op_b = KINTSUGI_OP_T};
      test.distribution = moduli == "9" ? "phi:2" : "uniform";
      test.scheme = "ozaki2:moduli=" + moduli;
      test.engine = engine;
      expect_bits_of_embedding<TypeParam>(test);
    }
    GemmCase longer{
        .m = 2, .n = 1, .k = 66000, .distribution = "uniform01", .scheme = "ozaki2", .engine = engine};
    expect_bits_of_embedding<TypeParam>(longer);
  }
}

TYPED_TEST(ComplexOf, ResiduesTakeLessThanThreeQuartersOfTheEmbeddingsProducts) {
  const GemmDataOf<std::complex<TypeParam>> data(GemmCase{.m = 4, .n = 4, .k = 100, .scheme = "ozaki2"});
  const json program = PlanOf(data).describe().at("rungs").at(0).at("program");
  const json basis = program.at("split_a").at("complex_basis");
  EXPECT_EQ(program.at("products"),
            2 * basis.at("with_root").get<int>() + 3 * basis.at("without").get<int>());
  EXPECT_LT(program.at("products").get<int>(), 3 * 16);
}

TYPED_TEST(ComplexOf, PreparedOperandsKeepTheBits) {
  using Entry = std::complex<TypeParam>;
  for (const std::string choice : {"emulate", "native", "ozaki2"}) {
    GemmCase test{.m = 6, .n = 5, .k = 33, .op_a = KINTSUGI_OP_C, .op_b = KINTSUGI_OP_C};
    test.engine = "reference";
    test.accuracy = std::is_same_v<TypeParam, float> ? "fp32" : "fp64";
    (choice == "ozaki2" ? test.scheme : test.policy) = choice;
    GemmDataOf<Entry> plain(test);
    plain.run_well();
    GemmDataOf<Entry> data(test);
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

TYPED_TEST(ComplexOf, ScalarsFollowTheTable) {
  using Entry = std::complex<TypeParam>;
  GemmCase test{.m = 3, .n = 3, .k = 4, .alpha = 0, .beta = 2, .beta_im = -1};
  GemmDataOf<Entry> scaled(test);
  for (std::int64_t e = 0; e < 9; ++e) scaled.c()(e % 3, e / 3) = Entry(TypeParam(e), 4);
  const auto problem = scaled.problem();
  const auto options = scaled.options();
  auto operands = scaled.operands();
  operands.a = operands.b = nullptr;  // alpha = 0: not read
  ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
  for (std::int64_t e = 0; e < 9; ++e)
    EXPECT_EQ(scaled.c()(e % 3, e / 3), Entry(TypeParam(2 * e + 4), TypeParam(8 - e)));

  test.beta = 1, test.beta_im = 0;  // bitwise untouched
  GemmDataOf<Entry> untouched(test);
  for (Entry& x : untouched.raw_c()) x = poison_of<Entry>();
  const auto before = bits_of(untouched.raw_c());
  const auto the_operands = untouched.operands();
  ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &the_operands), KINTSUGI_SUCCESS);
  EXPECT_EQ(bits_of(untouched.raw_c()), before);

  test = {.m = 3, .n = 3, .k = 4};  // beta = 0: the poison of C is not read
  GemmDataOf<Entry> unread(test);
  unread.run_well();
  for (const Entry& x : unread.result()) EXPECT_TRUE(std::isfinite(x.real()) && std::isfinite(x.imag()));
}

enum class Kind { finite, nan, plus_infinity, minus_infinity };

Kind kind_of(double x) {
  if (std::isnan(x)) return Kind::nan;
  if (std::isinf(x)) return x > 0 ? Kind::plus_infinity : Kind::minus_infinity;
  return Kind::finite;
}

// Naive complex arithmetic in double, where finite float data cannot overflow; real alpha and beta act on parts.
TEST(Complex, SpecialValuesStandWhereNaiveArithmeticPutsThem) {
  using Entry = std::complex<float>;
  std::mt19937 random(13);
  int placements = 0;
  for (const std::string scheme : {"fp16x3-wide", "ozaki2", "superaccumulator", ""}) {
    for (int trial = 0; trial < (thorough ? 100 : 10); ++trial) {
      GemmCase test{.m = draw(random, 6), .n = draw(random, 6), .k = draw(random, 30)};
      test.distribution = trial % 3 == 0 ? "special:0.2" : "special:0.01";
      test.seed = 60 + static_cast<std::uint64_t>(trial);
      test.scheme = scheme;
      test.engine = "reference";
      test.op_a = ops[trial % 3];
      test.op_b = ops[trial / 3 % 3];
      test.alpha = -2, test.alpha_im = trial % 2 == 0 ? 0 : 0.5;
      test.beta = trial % 4 == 0 ? 0 : 0.5;
      GemmDataOf<Entry> data(test);
      const std::vector<Entry> before = data.result();
      data.run_well();
      for (std::int64_t e = 0; e < test.m * test.n; ++e) {
        const std::int64_t i = e % test.m, j = e / test.m;
        double re = 0, im = 0;
        for (std::int64_t p = 0; p < test.k; ++p) {
          const std::complex<double> a(a_entry(data, i, p)), b(b_entry(data, p, j));
          re += a.real() * b.real();
          re -= a.imag() * b.imag();
          im += a.real() * b.imag();
          im += a.imag() * b.real();
        }
        double first = -2 * re, second = -2 * im;
        if (test.alpha_im != 0) first -= 0.5 * im, second += 0.5 * re;
        if (test.beta != 0) first += 0.5 * before[e].real(), second += 0.5 * before[e].imag();
        ASSERT_EQ(kind_of(data.c()(i, j).real()), kind_of(first)) << scheme << " trial " << trial;
        ASSERT_EQ(kind_of(data.c()(i, j).imag()), kind_of(second)) << scheme << " trial " << trial;
        placements += kind_of(first) != Kind::finite;
      }
    }
  }
  EXPECT_GT(placements, thorough ? 1000 : 50);
}

template <class T, class Call>
void expect_front_call(const Call& call, const T& alpha, const T& beta) {
  GemmCase test{.m = 4, .n = 3, .k = 5, .op_a = KINTSUGI_OP_C, .layout = KINTSUGI_ROW_MAJOR, .pad_c = 2};
  test.alpha = std::real(alpha), test.alpha_im = std::imag(alpha);
  test.beta = std::real(beta), test.beta_im = std::imag(beta);
  GemmDataOf<T> whole(test);
  GemmDataOf<T> data(test);
  whole.run_well();
  const auto p = data.problem();
  const Handle handle;
  ASSERT_EQ(call(handle, p, data.operands()), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(bits_of(data.raw_c()), bits_of(whole.raw_c()));
}

TEST(Complex, CallsWithTheArgumentsOfBlas) {
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
  EXPECT_THAT(kintsugi_last_error(), testing::HasSubstr("A was prepared with fp32 entries"));
  kintsugi_prepared_destroy(a);
}

}  // namespace
}  // namespace kintsugi::test

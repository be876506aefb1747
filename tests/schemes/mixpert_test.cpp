// Compares the schemes of MixPert with their definition, which tests/support/tile_reference.hpp repeats.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <random>

#include "schemes/bound.hpp"
#include "schemes/program.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/tile_reference.hpp"

namespace kintsugi::test {
namespace {

const char* const engines[] = {"reference", "cpu"};

// Expects C to equal the definition's element by element.
void expect_definition(const TileScheme& scheme, GemmCase test, const std::string& engine) {
  test.scheme = scheme.name();
  test.engine = engine;
  GemmData data(test);
  GemmData before(test);
  data.run_well();
  for (std::int64_t t = 0; t < test.batch; ++t) {
    const TileProduct expected(scheme, constant(data.a(t)), constant(data.b(t)));
    for (std::int64_t j = 0; j < test.n; ++j) {
      for (std::int64_t i = 0; i < test.m; ++i) {
        const float old = test.beta == 0 ? 0 : before.c(t)(i, j);
        ASSERT_EQ(data.c(t)(i, j), expected(i, j, data.alpha(), data.beta(), old))
            << test.scheme << " " << engine << " " << test.distribution << " (" << i << ", " << j << ")";
      }
    }
  }
}

TEST(MixPert, EnginesGiveTheBitsOfTheDefinition) {
  std::uint64_t seed = 1;
  for (const char* engine : engines) {
    for (TileScheme scheme : tile_levels()) {
      for (const char* distribution :
           a_part_of({"uniform", "phi:2", "subnormal", "offset:100", "phi:4", "graded:40", "span:60"})) {
        for (const std::int64_t depth : a_part_of({64, 32, 128, 256})) {
          scheme.depth = depth;
          expect_definition(
              scheme, {.m = 37, .n = 19, .k = 300, .distribution = distribution, .seed = ++seed}, engine);
        }
      }
    }
  }
}

TEST(MixPert, EnginesGiveTheBitsOfTheDefinitionWithPairExponents) {
  std::uint64_t seed = 100;
  for (const char* engine : engines) {
    for (TileScheme scheme : tile_levels()) {
      scheme.pair = true;
      for (const char* distribution : a_part_of({"uniform", "phi:2", "graded-inner:30", "span:16"})) {
        expect_definition(scheme, {.m = 18, .n = 17, .k = 99, .distribution = distribution, .seed = ++seed},
                          engine);
      }
    }
  }
}

TEST(MixPert, ShapesLayoutsAndScalarsFollowTheDefinition) {
  std::mt19937 random(3);
  const auto up_to = [&](int most) { return 1 + static_cast<std::int64_t>(random() % most); };
  for (int draw = 0; draw < (thorough ? 60 : 6); ++draw) {
    GemmCase test{.m = up_to(150), .n = up_to(140), .k = up_to(draw % 5 == 0 ? 700 : 70)};
    test.op_a = random() % 2 == 0 ? KINTSUGI_OP_N : KINTSUGI_OP_T;
    test.op_b = random() % 2 == 0 ? KINTSUGI_OP_N : KINTSUGI_OP_T;
    test.layout = random() % 2 == 0 ? KINTSUGI_COLUMN_MAJOR : KINTSUGI_ROW_MAJOR;
    test.pad_a = up_to(3), test.pad_c = up_to(3);
    test.batch = up_to(2);
    test.alpha = draw % 3 == 0 ? -0.75 : 1;
    test.beta = draw % 4 == 0 ? 1.5 : 0;
    test.distribution = draw % 2 == 0 ? "uniform" : "phi:1";
    test.seed = 50 + static_cast<std::uint64_t>(draw);
    TileScheme scheme = tile_levels()[random() % tile_levels().size()];
    scheme.depth = std::int64_t{32} << random() % 4;
    test.threads = draw % 2 == 0 ? 1 : 2;
    if (draw % 7 == 0) test.workspace_limit = 2'000'000;
    expect_definition(scheme, test, engines[draw % 2]);
  }
}

// Equation 4 over the products that the level keeps, rounded once to FP32 and once more where C is subnormal.
float equation_4(const TileScheme& scheme, float x, float y) {
  if (!std::isfinite(x) || !std::isfinite(y) || x == 0 || y == 0) return x * y;
  const auto segments = [](float value, int count, int& exponent) {
    exponent = std::ilogb(value);
    std::int64_t integer = TileOperand::nearest(value, 7 * count - 1 - exponent);
    if (integer == std::int64_t{1} << (7 * count)) integer /= 2, ++exponent;
    std::vector<std::int64_t> all(static_cast<std::size_t>(count));
    for (int s = count - 1; s >= 0; --s, integer /= 128)
      all[static_cast<std::size_t>(s)] = value < 0 ? -(integer % 128) : integer % 128;
    return all;
  };
  int p = 0, q = 0;
  const auto xs = segments(x, scheme.segments_a, p);
  const auto ys = segments(y, scheme.segments_b, q);
  std::int64_t sum = 0;  // in units of 2^(p + q - 33)
  for (std::size_t i = 0; i < xs.size(); ++i) {
    for (std::size_t j = 0; j < ys.size() && i + j < 4; ++j) sum += xs[i] * ys[j] << (7 * (3 - i - j));
  }
  const auto rounded = static_cast<float>(sum);
  return static_cast<float>(std::ldexp(static_cast<double>(rounded), p + q - 33));
}

// Multiplies each pair as a batch item of one element.
void expect_equation_4(const TileScheme& scheme, const std::vector<std::pair<float, float>>& pairs,
                       const std::string& engine) {
  GemmCase test{.batch = static_cast<std::int64_t>(pairs.size()), .gap = 0};
  test.scheme = scheme.name();
  test.engine = engine;
  test.threads = 1;
  GemmData data(test);
  for (std::size_t t = 0; t < pairs.size(); ++t) {
    data.raw_a()[t] = pairs[t].first;
    data.raw_b()[t] = pairs[t].second;
  }
  data.run_well();
  for (std::size_t t = 0; t < pairs.size(); ++t) {
    const auto [x, y] = pairs[t];
    const float expected = equation_4(scheme, x, y);
    const float found = data.raw_c()[t];
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(found)) << x << " " << y;
    } else {
      ASSERT_EQ(found, expected) << scheme.name() << " " << engine << " " << x << " " << y;
    }
  }
}

TEST(MixPert, ProductsOfScalarsAreEquation4) {
  // Other pairs in every run, so that a fifth of a million finds in five runs what a million would in one.
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  std::vector<std::pair<float, float>> pairs(thorough ? 200'000 : 2000);
  const auto any = [&] { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); };
  // Every other pair has exponents whose product is a normal number.
  const auto moderate = [&] {
    return std::ldexp(1.0F + static_cast<float>(random() >> 9) * 0x1p-23F,
                      static_cast<int>(random() % 60) - 30);
  };
  for (std::size_t t = 0; t < pairs.size(); ++t)
    pairs[t] = t % 2 == 0 ? std::pair(any(), any()) : std::pair(moderate(), -moderate());
  for (const TileScheme& scheme : tile_levels()) {
    expect_equation_4(scheme, pairs, "reference");
    expect_equation_4(scheme, {pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(pairs.size() / 20)},
                      "cpu");
  }
}

TEST(MixPert, EdgeCasesOfScalarsAreEquation4) {
  const float inf = INFINITY;
  const std::vector<float> edges{0.0F,
                                 -0.0F,
                                 1.0F,
                                 -1.0F,
                                 0x1.fffff0p0F,
                                 0x1.fffff8p0F,
                                 0x1.fffff6p0F,
                                 0x1.fffffep0F,
                                 0x1.fffcp0F,
                                 0x1.fffbfep0F,
                                 0x1.fff8p0F,
                                 0x1.000008p0F,
                                 0x1.000018p0F,
                                 0x1.02p0F,
                                 0x1.00fffep0F,
                                 FLT_MAX,
                                 -FLT_MAX,
                                 0x1.fffff0p127F,
                                 FLT_MIN,
                                 0x1.fffffcp-127F,
                                 0x1p-149F,
                                 0x3p-149F,
                                 0x3fffffp-149F,
                                 0x7fffffp-149F,
                                 0x1p-75F,
                                 0x1.8p63F,
                                 inf,
                                 -inf,
                                 NAN};
  std::vector<std::pair<float, float>> pairs;
  for (const float x : edges) {
    for (const float y : edges) pairs.emplace_back(x, y);
  }
  for (const char* engine : engines) {
    for (const TileScheme& scheme : tile_levels()) expect_equation_4(scheme, pairs, engine);
  }
}

TEST(MixPert, FourSegmentsKeepTheLargestNumberAndThreeRoundItUp) {
  EXPECT_EQ(equation_4(tile_levels()[4], FLT_MAX, 1), FLT_MAX);
  EXPECT_EQ(equation_4(tile_levels()[3], FLT_MAX, 1), INFINITY);
}

// Multiplies one element of a random share of the tiles by 2^20.
void put_outliers(MatrixView<float> rows, std::int64_t vectors, std::mt19937& random, double share) {
  for (std::int64_t v = 0; v < rows.rows; v += vectors) {
    for (std::int64_t begin = 0; begin < rows.columns; begin += 32) {
      if (static_cast<double>(random()) > share * 0x1p32) continue;
      const std::int64_t row = v + static_cast<std::int64_t>(random()) % std::min(vectors, rows.rows - v);
      rows(row, begin + static_cast<std::int64_t>(random()) %
                            std::min<std::int64_t>(32, rows.columns - begin)) *= 0x1p20F;
    }
  }
}

TEST(MixPert, FailingTilesAreMultipliedInHalfPrecision) {
  for (const char* engine : engines) {
    for (TileScheme scheme : tile_levels()) {
      std::mt19937 random(21);
      GemmCase test{.m = 50, .n = 30, .k = 257, .scheme = scheme.name(), .engine = engine};
      GemmData data(test);
      put_outliers(data.a(), 16, random, 0.2);
      put_outliers(data.b().transposed(), 8, random, 0.1);
      const Handle handle;
      data.run_well(handle);
      const TileProduct expected(scheme, constant(data.a()), constant(data.b()));
      for (std::int64_t j = 0; j < test.n; ++j) {
        for (std::int64_t i = 0; i < test.m; ++i) ASSERT_EQ(data.c()(i, j), expected(i, j)) << scheme.name();
      }
      const json tiles = handle.report().at("tiles");
      EXPECT_EQ(tiles.at("a"), 4 * 9);
      EXPECT_EQ(tiles.at("b"), 4 * 9);
      EXPECT_EQ(tiles.at("failing_a"), expected.a().failing());
      EXPECT_EQ(tiles.at("failing_b"), expected.b().failing());
      EXPECT_GT(expected.a().failing(), 0);
    }
  }
}

// A tile that fails loses nothing to its range: the smallest elements keep as many bits as others.
TEST(MixPert, OutliersDoNotDestroyTheirTile) {
  GemmCase test{.m = 16, .n = 8, .k = 64, .scheme = "mixpert-4", .engine = "reference"};
  GemmData data(test);
  for (std::int64_t i = 0; i < 16; ++i) data.a()(i, 3) *= 0x1p20F;
  for (std::int64_t j = 0; j < 8; ++j) data.b()(3, j) *= 0x1p-20F;
  data.run_well();
  for (const auto& element : element_errors(data))
    EXPECT_LE(std::abs(element.error), 4e-7 * element.absolute);
}

TEST(MixPert, UniformTilesPassEquation9AtEveryLength) {
  for (const std::int64_t k : {4, 16, 100, 1000}) {
    GemmCase test{.m = 40, .n = 40, .k = k, .scheme = "mixpert-4", .engine = "reference"};
    const Handle handle;
    GemmData data(test);
    data.run_well(handle);
    EXPECT_EQ(handle.report().at("tiles").at("failing_a"), 0) << k;
    EXPECT_EQ(handle.report().at("tiles").at("failing_b"), 0) << k;
  }
}

// exponent=pair shifts the operand with the smaller elements by the difference of the exponents.
TEST(MixPert, PairExponentsDestroyTheSmallerOperand) {
  if (!thorough) GTEST_SKIP() << "long sums";
  const auto error = [](const std::string& scheme) {
    GemmData data(GemmCase{.m = 32, .n = 32, .k = 512, .scheme = scheme, .engine = "reference"});
    for (std::int64_t p = 0; p < 512; ++p) {
      for (std::int64_t j = 0; j < 32; ++j) data.b()(p, j) *= 0x1p-12F;
    }
    data.run_well();
    return frobenius_error(element_errors(data));
  };
  EXPECT_LT(error("mixpert-4:exponent=operand"), 5e-7);
  EXPECT_GT(error("mixpert-4:exponent=pair"), 5e-4);
}

TEST(MixPert, ParametersAreChecked) {
  for (const char* name : {"mixpert-4:tile=16", "mixpert-4:tile=48", "mixpert-4:tile=512",
                           "mixpert-4:exponent=both", "mixpert-4:depth=32"})
    EXPECT_THROW(core::find_scheme(name), core::Error) << name;
  EXPECT_EQ(core::find_scheme("mixpert-4:tile=128")->program.schedule.tiles.depth, 128);
}

// Level IV keeps the error that the paper gives for it, and from k = 1024 on is as accurate as native FP32.
TEST(MixPert, LevelFourIsAsAccurateAsThePaperSaysAndAsNative) {
  if (!thorough) GTEST_SKIP() << "long sums";
  for (const std::int64_t k : {1024, 4096}) {
    GemmCase test{.m = 64, .n = 64, .k = k, .scheme = "mixpert-4", .engine = "reference"};
    const double error = frobenius_of(test);
    test.scheme = "native";
    EXPECT_LE(error, 4.46e-7) << k;
    EXPECT_LE(error, frobenius_of(test)) << k;
  }
}

}  // namespace
}  // namespace kintsugi::test

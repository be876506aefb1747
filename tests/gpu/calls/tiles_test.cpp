// Tests MixPert's schemes on matrices in device memory: they have the bits, special values and reports of the
// engine reference.
#include <gmock/gmock.h>

#include <cfloat>
#include <functional>
#include <limits>
#include <random>

#include "fakes/profiles/profile_in_force.hpp"
#include "gpu/calls/planned.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

const char* const levels[] = {"mixpert-1", "mixpert-2", "mixpert-3", "mixpert-4", "mixpert-full"};
constexpr int depths[] = {32, 64, 128};

std::string scheme_of(const std::string& level, int depth) {
  return level + ":tile=" + std::to_string(depth);
}

// Returns true if the device has the kernels.
bool is_offered() {
  GemmDataOf<float> data({.scheme = "mixpert-4", .engine = "cuda"});
  return DeviceGemm<float>(data).run() != KINTSUGI_NOT_SUPPORTED;
}

class DeviceTiles : public testing::Test {
  void SetUp() override {
    if (!is_offered()) GTEST_SKIP() << kintsugi_last_error();
  }
};

using Change = std::function<void(GemmDataOf<float>&)>;

// Bits of C, with one pattern for all NaN, and the report's tiles.
struct Result {
  std::vector<std::uint32_t> bits;
  json tiles;
};

Result result_of(GemmDataOf<float>& data, const Handle& handle) {
  std::vector<float> values = data.result();
  for (float& x : values) x = std::isnan(x) ? std::numeric_limits<float>::quiet_NaN() : x;
  return {bits_of(values), handle.report()["tiles"]};
}

Result on_device(GemmCase test, const DeviceRun& run, const Change& change) {
  test.engine = "cuda";
  GemmDataOf<float> data(test);
  change(data);
  const Handle handle;
  DeviceGemm<float>(data, run).run_well(handle);
  return result_of(data, handle);
}

Result on_host(GemmCase test, const std::string& engine, const Change& change) {
  test.engine = engine;
  GemmDataOf<float> data(test);
  change(data);
  const Handle handle;
  data.run_well(handle);
  return result_of(data, handle);
}

// Expects the bits and tile counts of a host engine. Returns the number of failing tiles.
std::int64_t expect_reference(
    const GemmCase& test, const DeviceRun& run = {}, const Change& change = [](auto&) {},
    const std::string& engine = "reference") {
  SCOPED_TRACE(describe(test));
  const Result expected = on_host(test, engine, change);
  const Result found = on_device(test, run, change);
  EXPECT_EQ(found.tiles, expected.tiles);
  std::size_t wrong = 0;
  std::size_t first = 0;
  for (std::size_t i = found.bits.size(); i-- > 0;) {
    if (found.bits[i] == expected.bits[i]) continue;
    ++wrong;
    first = i;
  }
  EXPECT_EQ(wrong, 0U) << "of " << found.bits.size() << " elements; the first is number " << first << ", "
                       << std::bit_cast<float>(found.bits[first]) << " instead of "
                       << std::bit_cast<float>(expected.bits[first]);
  return expected.tiles["failing_a"].get<std::int64_t>() + expected.tiles["failing_b"].get<std::int64_t>();
}

// A single tile is small enough to find an error by hand.
TEST_F(DeviceTiles, ASingleTileHasTheReferencesBitsInSmallCases) {
  for (const char* level : levels) {
    for (const int depth : depths)
      expect_reference({.m = 16, .n = 8, .k = 32, .op_a = KINTSUGI_OP_T, .scheme = scheme_of(level, depth)});
  }
}

TEST_F(DeviceTiles, EdgesOfTilesHaveTheReferencesBitsInSmallCases) {
  for (const std::int64_t m : {1, 64, 129, 257}) {
    for (const std::int64_t n : {1, 63, 130}) {
      for (const std::int64_t k : {1, 33, 129, 300}) {
        const int depth = depths[(m + n + k) % 3];
        expect_reference({.m = m, .n = n, .k = k, .scheme = scheme_of("mixpert-4", depth)});
        if (HasFailure()) return;
      }
    }
  }
}

constexpr float special_values[] = {std::numeric_limits<float>::quiet_NaN(),
                                    std::numeric_limits<float>::infinity(),
                                    -std::numeric_limits<float>::infinity(),
                                    0,
                                    -0.0F,
                                    FLT_TRUE_MIN,
                                    FLT_MIN,
                                    FLT_MAX,
                                    -FLT_MAX,
                                    0x1.fffffcp0F};

// Puts up to `most` of these values into A, B and C of every item.
void put_special_values(GemmDataOf<float>& data, const GemmCase& test, std::int64_t most) {
  std::mt19937_64 random(test.seed);
  const auto put = [&](const MatrixView<float>& matrix) {
    const std::int64_t count = below(random, most + 1);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto row = below(random, matrix.rows);
      matrix(row, below(random, matrix.columns)) = special_values[below(random, std::size(special_values))];
    }
  };
  for (std::int64_t t = 0; t < test.batch; ++t) {
    put(data.a(t));
    put(data.b(t));
    put(data.c(t));
  }
}

// A third of the cases has special values: a few, or many.
void expect_random_cases(int cases, std::int64_t max_size, std::int64_t max_k) {
  constexpr const char* distributions[] = {"uniform",   "phi:2",   "subnormal", "offset:100",
                                           "graded:40", "span:60", "phi:4"};
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("generator " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < cases; ++i) {
    GemmCase test = random_shape(random, max_size, max_size, max_k);
    test.scheme = scheme_of(levels[i % 5], depths[below(random, 3)]);
    test.distribution = distributions[below(random, std::size(distributions))];
    test.alpha = below(random, 3) == 0 ? -0.75 : 1;
    test.beta = below(random, 3) == 0 ? 1.5 : 0;
    test.batch = 1 + below(random, 3);
    const std::int64_t special = below(random, 3) != 0 ? 0 : below(random, 2) == 0 ? 5 : test.m + test.n;
    expect_reference(test, {.offset = random() % 2, .pointers = i % 2 == 1, .device_scalars = i % 3 == 2},
                     [&](GemmDataOf<float>& data) { put_special_values(data, test, special); });
    if (testing::Test::HasFailure()) return;
  }
}

TEST_F(DeviceTiles, RandomCallsHaveTheReferencesBitsInSmallCases) { expect_random_cases(20, 150, 300); }
TEST_F(DeviceTiles, RandomCallsHaveTheReferencesBits) { expect_random_cases(60, 400, 900); }

// The engine cpu has the bits of the reference (tests/schemes/mixpert_test.cpp) and is faster.
TEST_F(DeviceTiles, ManyTilesOfCHaveTheBitsOfTheEngineCpu) {
  for (const int depth : depths) {
    expect_reference(
        {.m = 2100,
         .n = 1700,
         .k = 700,
         .op_a = KINTSUGI_OP_T,
         .distribution = "phi:1",
         .scheme = scheme_of("mixpert-4", depth)},
        {}, [](auto&) {}, "cpu");
  }
  expect_reference(
      {.m = 300, .n = 200, .k = 20000, .scheme = "mixpert-full"}, {}, [](auto&) {}, "cpu");
}

// Multiplies six of seven elements of every fourth tile by 2^-30, so that these tiles fail Eq. 9.
void make_tiles_fail(MatrixView<float> vectors, std::int64_t tile_vectors, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::int64_t v = 0; v < vectors.rows; v += tile_vectors) {
    for (std::int64_t p = 0; p < vectors.columns; p += 32) {
      if (random() % 4 != 0) continue;
      for (std::int64_t i = v; i < std::min(vectors.rows, v + tile_vectors); ++i) {
        for (std::int64_t q = p; q < std::min(vectors.columns, p + 32); ++q) {
          if (random() % 7 != 0) vectors(i, q) *= 0x1p-30F;
        }
      }
    }
  }
}

TEST_F(DeviceTiles, FailingTilesHaveTheReferencesBitsInSmallCases) {
  for (const char* level : levels) {
    for (const int depth : depths) {
      for (const int sides : {1, 2, 3}) {
        const GemmCase test{.m = 150,
                            .n = 75,
                            .k = 290,
                            .op_b = KINTSUGI_OP_T,
                            .batch = 2,
                            .alpha = 1.25,
                            .beta = sides == 2 ? 0.5 : 0.0,
                            .scheme = scheme_of(level, depth)};
        const std::int64_t failing = expect_reference(test, {}, [&](GemmDataOf<float>& data) {
          for (std::int64_t t = 0; t < test.batch; ++t) {
            if ((sides & 1) != 0) make_tiles_fail(data.a(t), 16, 1 + static_cast<std::uint64_t>(t));
            if ((sides & 2) != 0)
              make_tiles_fail(data.b(t).transposed(), 8, 5 + static_cast<std::uint64_t>(t));
          }
        });
        EXPECT_GT(failing, 0);
        if (HasFailure()) return;
      }
    }
  }
}

// More tiles along k than the kernel for failing tiles finds at a time, and several of its thread blocks.
TEST_F(DeviceTiles, FailingTilesOfLongSumsHaveTheBitsOfTheEngineCpu) {
  const GemmCase test{.m = 290, .n = 150, .k = 9100, .pad_a = 1, .scheme = scheme_of("mixpert-4", 32)};
  const std::int64_t failing = expect_reference(
      test, {},
      [](GemmDataOf<float>& data) {
        make_tiles_fail(data.a(), 16, 3);
        make_tiles_fail(data.b().transposed(), 8, 4);
      },
      "cpu");
  EXPECT_GT(failing, 0);
}

// Zeros, subnormal numbers, FLT_MAX, NaN and infinities among ordinary elements.
TEST_F(DeviceTiles, SpecialElementsHaveTheReferencesBitsInSmallCases) {
  constexpr float values[] = {0,       -0.0F,    FLT_TRUE_MIN,  0x1p-130F, FLT_MIN,
                              FLT_MAX, -FLT_MAX, 0x1.fffffcp0F, 0x1.fcp0F, 0x1.fbfffep0F};
  constexpr float special[] = {std::numeric_limits<float>::quiet_NaN(),
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity()};
  for (const char* level : levels) {
    for (const bool with_special : {false, true}) {
      const GemmCase test{.m = 90,
                          .n = 70,
                          .k = 140,
                          .beta = with_special ? 1.0 : 0.0,
                          .scheme = scheme_of(level, with_special ? 128 : 32)};
      expect_reference(test, {}, [&](GemmDataOf<float>& data) {
        std::mt19937_64 random(9);
        for (int i = 0; i < 300; ++i) {
          data.a()(below(random, test.m), below(random, test.k)) = values[below(random, std::size(values))];
          data.b()(below(random, test.k), below(random, test.n)) = values[below(random, std::size(values))];
        }
        for (int i = 0; with_special && i < 6; ++i) {
          data.a()(below(random, test.m), below(random, test.k)) = special[i % 3];
          data.b()(below(random, test.k), below(random, test.n)) = special[(i + 1) % 3];
        }
      });
    }
    expect_reference({.m = 40, .n = 20, .k = 70, .scheme = level}, {}, [](GemmDataOf<float>& data) {
      std::fill(data.raw_a().begin(), data.raw_a().end(), 0.0F);
    });
  }
}

TEST_F(DeviceTiles, PreparedOperandsKeepTheBitsInSmallCases) {
  for (const std::int64_t batch : {1, 3}) {
    const GemmCase test{.m = 70,
                        .n = 131,
                        .k = 299,
                        .pad_a = 2,
                        .batch = batch,
                        .distribution = "span:60",
                        .scheme = "mixpert-4:tile=128"};
    const auto bits = device_bits<float>(test);
    GemmDataOf<float> data(test);
    DeviceGemm<float> device(data);
    const Planned planned(device.problem(), device.options());
    const PreparedOperands prepared(planned.plan, device.operands());
    for (const int prepared_sides : {1, 2, 3}) {
      const kintsugi_operands operands = prepared.add_to(device.operands(), prepared_sides);
      ASSERT_EQ(kintsugi_plan_execute(nullptr, planned.plan, &operands), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      device.fetch();
      EXPECT_EQ(bits_of(data.result()), bits) << "prepared: " << prepared_sides << " batch " << batch;
    }
  }
}

TEST_F(DeviceTiles, KeepTheirBitsUnderAWorkspaceLimit) {
  GemmCase test{.m = 1300, .n = 900, .k = 130, .distribution = "span:60", .scheme = "mixpert-4"};
  const Result unlimited = on_device(test, {}, [](auto&) {});
  for (const std::int64_t limit : {1'100'000, 700'000}) {
    test.workspace_limit = limit;
    const Result limited = on_device(test, {}, [](auto&) {});
    EXPECT_EQ(limited.bits, unlimited.bits) << limit;
    EXPECT_EQ(limited.tiles, unlimited.tiles) << limit;
  }
}

TEST_F(DeviceTiles, ReportsOfHostMatricesCountTilesInSmallCases) {
  GemmCase test{.m = 60, .n = 50, .k = 200, .distribution = "span:60", .scheme = "mixpert-4"};
  const Result expected = on_host(test, "reference", [](auto&) {});
  const Result found = on_host(test, "cuda", [](auto&) {});
  EXPECT_EQ(found.bits, expected.bits);
  EXPECT_EQ(found.tiles, expected.tiles);
}

// Fills items with 1, 1.5, 2 and 3 of either sign, a range of two binades; every second item if `mixed`.
void fill_narrowly(GemmDataOf<float>& data, std::int64_t items, bool mixed) {
  constexpr float values[] = {1, 1.5, 2, 3, -1, -1.5, -2, -3};
  std::mt19937_64 random(17);
  for (std::int64_t t = 0; t < items; t += mixed ? 2 : 1) {
    for (const MatrixView<float>& matrix : {data.a(t), data.b(t)}) {
      for (std::int64_t i = 0; i < matrix.rows; ++i) {
        for (std::int64_t j = 0; j < matrix.columns; ++j) matrix(i, j) = values[random() % std::size(values)];
      }
    }
  }
}

// C of a batch, some of whose items have a narrow range, and the call's report.
struct BatchResult {
  BatchResult(const GemmCase& test, bool mixed, int prepared_sides) : data(test) {
    fill_narrowly(data, test.batch, mixed);
    DeviceGemm<float> device(data);
    const Handle handle;
    const Planned planned(device.problem(), device.options(), handle);
    const PreparedOperands prepared(planned.plan, device.operands());
    const kintsugi_operands operands = prepared.add_to(device.operands(), prepared_sides);
    EXPECT_EQ(kintsugi_plan_execute(handle, planned.plan, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    device.fetch();
    report = handle.report();
  }
  std::uint32_t bits(std::int64_t item, std::int64_t i, std::int64_t j) {
    return std::bit_cast<std::uint32_t>(data.c(item)(i, j));
  }

  GemmDataOf<float> data;
  json report;
};

// A chain whose first candidate is a level: items that it accepts have its bits, and the others have those of
// the next candidate.
TEST_F(DeviceTiles, LevelsInAChainHaveTheirBitsInSmallCases) {
  core::cuda::Costs costs = costs_for_levels();
  costs.weighted_tiles.product = 0.1;  // else mixpert-full is faster, whose tiles of C have fewer columns
  for (const char* level : {"mixpert-1", "mixpert-1:tile=128"}) {
    costs.weighted_tiles.conversion_32 = std::string(level).ends_with("128") ? 0.2 : 1e-3;
    const ProfileInForce profile(costs);
    for (const int prepared_sides : {0, 2}) {
      for (const bool mixed : {false, true}) {
        GemmCase test{.m = 260,
                      .n = 190,
                      .k = 500,
                      .batch = 4,
                      .engine = "cuda",
                      .policy = "emulate",
                      .accuracy = "1e-2"};
        SCOPED_TRACE(describe(test));
        BatchResult chain(test, mixed, prepared_sides);
        EXPECT_EQ(chain.report["candidates"][0]["scheme"], level) << chain.report;
        EXPECT_EQ(chain.report["candidates"][0]["items"], mixed ? 2 : 4) << chain.report;
        test.policy.clear();
        test.accuracy.clear();
        test.scheme = level;
        BatchResult accepted(test, mixed, 0);
        test.scheme = "fp16x3-wide";
        BatchResult refused(test, mixed, 0);
        std::int64_t wrong = 0;
        for (std::int64_t t = 0; t < test.batch; ++t) {
          BatchResult& expected = mixed && t % 2 == 1 ? refused : accepted;
          for (std::int64_t i = 0; i < test.m; ++i) {
            for (std::int64_t j = 0; j < test.n; ++j) wrong += chain.bits(t, i, j) != expected.bits(t, i, j);
          }
        }
        EXPECT_EQ(wrong, 0);
      }
    }
  }
}

TEST_F(DeviceTiles, SchemesWithoutKernelsAreRefusedInSmallCases) {
  GemmDataOf<float> pair({.m = 4, .n = 4, .k = 4, .scheme = "mixpert-4:exponent=pair", .engine = "cuda"});
  EXPECT_EQ(DeviceGemm<float>(pair).run(), KINTSUGI_NOT_SUPPORTED);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("exponent=operand alone"));
  GemmDataOf<std::complex<float>> parts({.m = 4, .n = 4, .k = 4, .scheme = "mixpert-4", .engine = "cuda"});
  EXPECT_EQ(DeviceGemm<std::complex<float>>(parts).run(), KINTSUGI_NOT_SUPPORTED);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("of real matrices alone"));
}

}  // namespace
}  // namespace kintsugi::test

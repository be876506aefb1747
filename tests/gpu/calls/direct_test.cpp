// Tests bf16x6-direct on matrices in device memory: one launch has the bits, special values and reports of
// the engine reference, whatever tiles and layouts are.
#include <gmock/gmock.h>

#include <limits>
#include <random>

#include "gpu/calls/device_gemm.hpp"

namespace kintsugi::test {
namespace {

class DeviceDirect : public testing::Test {
  void SetUp() override {
    GemmDataOf<float> data({.scheme = "bf16x6-direct", .engine = "cuda"});
    if (DeviceGemm<float>(data).run() == KINTSUGI_NOT_SUPPORTED) GTEST_SKIP() << kintsugi_last_error();
  }
};

struct ProductBits {
  std::vector<std::uint32_t> bits;  // with one pattern for all NaN
  json recomputed;
};

ProductBits bits_of_product(GemmDataOf<float>& data, const Handle& handle) {
  std::vector<float> values = data.result();
  for (float& x : values) x = std::isnan(x) ? std::numeric_limits<float>::quiet_NaN() : x;
  return {bits_of(values), handle.report()["recomputed_elements"]};
}

template <class Change>
void expect_model(GemmCase test, const DeviceRun& run, bool has_special_values, const Change& change) {
  SCOPED_TRACE(describe(test));
  test.scheme = "bf16x6-direct";
  test.engine = "reference";
  test.accumulator = "h200";
  GemmDataOf<float> on_host(test);
  change(on_host);
  const Handle host;
  on_host.run_well(host);
  test.engine = "cuda";
  test.accumulator = {};
  GemmDataOf<float> on_device(test);
  change(on_device);
  const Handle device;
  DeviceGemm<float>(on_device, run).run_well(device);
  const ProductBits expected = bits_of_product(on_host, host);
  const ProductBits found = bits_of_product(on_device, device);
  EXPECT_EQ(found.bits, expected.bits);
  if (!has_special_values) EXPECT_EQ(found.recomputed, expected.recomputed);
}

TEST_F(DeviceDirect, HaveTheReferencesBitsInRandomCases) {
  constexpr const char* distributions[] = {"uniform", "uniform01", "phi:2", "phi:4", "phi:8", "graded:10"};
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 60 && !HasFailure(); ++i) {
    // Tiles of all sizes, few and many of them, one leaf and several groups.
    const bool is_skinny = i % 3 == 0;
    GemmCase test =
        random_shape(random, is_skinny ? 600 : 300, is_skinny ? 16 : 300, i % 5 == 0 ? 3000 : 700);
    if (i % 2 == 0) std::swap(test.m, test.n);
    test.batch = below(random, 4) == 0 ? 3 : 1;
    test.alpha = below(random, 3) == 0 ? -1.5 : 1;
    test.beta = below(random, 3) == 0 ? 0.75 : 0;
    test.distribution = distributions[below(random, std::size(distributions))];
    const DeviceRun run{.offset = static_cast<std::size_t>(below(random, 3)),
                        .pointers = test.batch > 1 && below(random, 2) == 0,
                        .device_scalars = below(random, 3) == 0};
    expect_model(test, run, false, [](auto&) {});
  }
}

// The sums of one column are open: one thread block of a cluster tests its elements while the others have
// ended.
TEST_F(DeviceDirect, OneThreadBlockOfAClusterHasOpenElements) {
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{640, 640, 512}, {768, 768, 768}, {512, 1024, 1024}}) {
    GemmDataOf<float> data({.m = m, .n = n, .k = k, .scheme = "bf16x6-direct", .engine = "cuda"});
    for (std::int64_t p = 0; p < k; ++p) {
      for (std::int64_t i = 0; i < m; i += 64) data.a()(i, p) *= 0x1p10F;
      for (std::int64_t j = 5; j < n; j += 64) data.b()(p, j) *= 0x1p-100F;
    }
    DeviceGemm<float> product(data);
    product.run_well();
    const std::vector<float> first = data.result();
    for (int i = 0; i < 1000; ++i)
      ASSERT_EQ(product.run(), KINTSUGI_SUCCESS) << kintsugi_last_error() << ", run " << i;
    product.fetch();
    EXPECT_EQ(bits_of(data.result()), bits_of(first)) << m << " x " << n << " x " << k;
  }
}

// Thread blocks that share k by groups, by segments, and one that has all of k: the levels of sums have the
// bits of the reference's one chain.
TEST_F(DeviceDirect, LongSumsHaveTheReferencesBits) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{3, 5, 40'000},
                                {33, 70, 20'000},
                                {130, 3, 70'001},
                                {2, 1, 1'200'000},
                                {1500, 30, 17'000}}) {
    GemmCase test = random_shape(random, 1, 1, 1);
    test.m = m, test.n = n, test.k = k;
    if (below(random, 2) == 0) std::swap(test.m, test.n);
    test.distribution = below(random, 2) == 0 ? "uniform" : "phi:4";
    expect_model(test, {}, false, [](auto&) {});
  }
}

// k of 2^22 in sections, whose tiles differ between the products.
TEST_F(DeviceDirect, VeryLongSumsDoNotDependOnTheirTile) {
  const GemmCase test{.m = 130, .n = 9, .k = (1 << 20) + 77, .scheme = "bf16x6-direct", .engine = "cuda"};
  GemmDataOf<float> data(test);
  DeviceGemm<float> whole(data);
  whole.run_well();
  for (const std::int64_t rows : {1, 40, 100}) {
    GemmDataOf<float> part(test);
    DeviceGemm<float> device(part);
    kintsugi_problem problem = device.problem();
    problem.m = rows;
    const kintsugi_options options = device.options();
    const kintsugi_operands operands = device.operands();
    ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    part.raw_c() = device.c().host();
    for (std::int64_t i = 0; i < rows; ++i) EXPECT_EQ(part.c()(i, 8), data.c()(i, 8)) << rows << ", " << i;
  }
}

TEST_F(DeviceDirect, SpecialValuesStayInTheirRowsAndColumns) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{40, 16, 300}, {150, 140, 300}, {33, 9, 12}}) {
    expect_model({.m = m, .n = n, .k = k}, {}, true, [&](GemmDataOf<float>& data) {
      data.a()(3, 5) = std::numeric_limits<float>::quiet_NaN();
      data.a()(4, 6) = std::numeric_limits<float>::infinity();
      data.b()(6, 2) = 0;
      data.b()(7, 1) = -std::numeric_limits<float>::infinity();
      data.a()(0, 7) = std::numeric_limits<float>::max();
      data.b()(8, 0) = std::numeric_limits<float>::denorm_min();
    });
  }
}

// A row of zeros, and one whose elements all lie far below its largest, which is large.
TEST_F(DeviceDirect, WideRowsLeaveOtherRowsAlone) {
  const GemmCase test{.m = 130, .n = 130, .k = 520, .scheme = "bf16x6-direct", .engine = "cuda"};
  GemmDataOf<float> before(test);
  DeviceGemm<float>(before).run_well();
  GemmDataOf<float> after(test);
  for (std::int64_t p = 0; p < test.k; ++p) {
    after.a()(7, p) = p == 0 ? 0x1p90F : 0x1p-120F;
    after.a()(8, p) = 0;
  }
  DeviceGemm<float>(after).run_well();
  for (std::int64_t j = 0; j < test.n; ++j) {
    for (std::int64_t i = 0; i < test.m; ++i) {
      if (i == 7 || i == 8) continue;
      ASSERT_EQ(before.c()(i, j), after.c()(i, j)) << i << ", " << j;
    }
    EXPECT_EQ(after.c()(8, j), 0);
  }
}

}  // namespace
}  // namespace kintsugi::test

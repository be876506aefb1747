// Tests that prepared operands in device memory give the bits of the call without them.
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/calls/planned.hpp"

namespace kintsugi::test {
namespace {

template <class T>
void expect_prepared_bits(const GemmCase& test, bool borrow) {
  SCOPED_TRACE(describe(test));
  const auto bits = device_bits<T>(test);
  GemmDataOf<T> data(test);
  DeviceGemm<T> device(data);
  const Planned planned(device.problem(), device.options());
  const PreparedOperands prepared(planned.plan, device.operands(), borrow);
  for (const int prepared_sides : {1, 2, 3}) {
    GemmDataOf<T> fresh(test);
    core::cuda::copy_to_device({}, device.c().data(), fresh.raw_c().data(), fresh.raw_c().size() * sizeof(T));
    const kintsugi_operands operands = prepared.add_to(device.operands(), prepared_sides);
    ASSERT_EQ(kintsugi_plan_execute(nullptr, planned.plan, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    fresh.raw_c() = device.c().host();
    EXPECT_EQ(bits_of(fresh.result()), bits) << "prepared: " << prepared_sides;
  }
}

TEST(DevicePrepared, OperandsKeepTheBitsInSmallCases) {
  for (const bool borrow : {false, true}) {
    for (const std::int64_t batch : {1, 3}) {
      expect_prepared_bits<float>(
          {.m = 70, .n = 131, .k = 99, .pad_a = 2, .batch = batch, .beta = -1, .scheme = "fp16x3"}, borrow);
      expect_prepared_bits<double>(
          {.m = 70, .n = 31, .k = 99, .op_b = KINTSUGI_OP_T, .batch = batch, .scheme = "ozaki2:moduli=15"},
          borrow);
      expect_prepared_bits<float>(
          {.m = 70, .n = 131, .k = 99, .op_a = KINTSUGI_OP_T, .batch = batch, .policy = "emulate"}, borrow);
      // So many uniform numbers have a wider range than the first candidate's window: accepted by mean depth.
      expect_prepared_bits<float>(
          {.m = 300, .n = 131, .k = 2000, .op_a = KINTSUGI_OP_T, .batch = batch, .policy = "emulate"},
          borrow);
      expect_prepared_bits<double>(
          {.m = 33, .n = 31, .k = 99, .layout = KINTSUGI_ROW_MAJOR, .batch = batch, .policy = "native"},
          borrow);
      for (const auto& [accuracy, distribution] :
           {std::pair("exact", "phi:4"), std::pair("fp64", "uniform"), std::pair("fp64", "phi:1.5"),
            std::pair("fp64", "phi:4")}) {
        const GemmCase test{.m = 70,
                            .n = 31,
                            .k = 99,
                            .op_b = KINTSUGI_OP_T,
                            .batch = batch,
                            .beta = 0.5,
                            .distribution = distribution,
                            .policy = "emulate",
                            .accuracy = accuracy};
        expect_prepared_bits<double>(test, borrow);
        expect_prepared_bits<std::complex<double>>(test, borrow);
      }
      expect_prepared_bits<double>({.m = 20, .n = 31, .k = 99, .batch = batch, .scheme = "superaccumulator"},
                                   borrow);
    }
  }
}

// Returns the bits of C and the report's candidates of a call on copies of the operands, with A prepared if
// bit 0 of `prepared_sides` is set, and B if bit 1 is.
std::pair<std::vector<std::uint32_t>, json> run_on_copies(GemmDataOf<float>& data, int prepared_sides) {
  GemmDataOf<float> copy(data.test());
  copy.raw_a() = data.raw_a();
  copy.raw_b() = data.raw_b();
  DeviceGemm<float> device(copy);
  const Handle handle;
  const Planned planned(device.problem(), device.options(), handle);
  std::optional<PreparedOperands> prepared;
  if (prepared_sides != 0) prepared.emplace(planned.plan, device.operands());
  const kintsugi_operands operands =
      prepared ? prepared->add_to(device.operands(), prepared_sides) : device.operands();
  EXPECT_EQ(kintsugi_plan_execute(handle, planned.plan, &operands), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  device.fetch();
  return {bits_of(copy.result()), handle.report()["candidates"]};
}

// A or B of three of the four batch items has a wider dynamic range than the first candidate accepts, each of
// them wider than the one before: each item selects another candidate, with prepared operands or without.
TEST(DevicePrepared, BatchItemsHaveTheirOwnSelectionInSmallCases) {
  const GemmCase test{.m = 70, .n = 90, .k = 200, .batch = 4, .policy = "emulate"};
  SCOPED_TRACE(describe(test));
  GemmDataOf<float> data(test);
  for (std::int64_t p = 0; p < test.k; p += 2) {
    data.a(1)(3, p) *= 0x1p-60F;
    data.b(2)(p, 7) *= 0x1p-50F;
    data.b(3)(p, 7) *= 0x1p-120F;
    data.a(3)(3, p) = 0;  // where one factor is zero, no depth counts
    if (p > 0) data.b(3)(p + 1, 7) = 0;
  }
  const auto [bits, candidates] = run_on_copies(data, 0);
  std::vector<std::string> schemes;
  for (const json& candidate : candidates) {
    schemes.push_back(candidate["scheme"]);
    EXPECT_EQ(candidate["items"], 1) << candidates;
  }
  EXPECT_EQ(schemes, (std::vector<std::string>{"fp16x3", "fp16x3-wide", "bf16x6", "native"}));
  for (const int prepared_sides : {1, 2, 3}) {
    const auto prepared = run_on_copies(data, prepared_sides);
    EXPECT_TRUE(prepared.first == bits) << "prepared: " << prepared_sides;
    EXPECT_EQ(prepared.second, candidates) << "prepared: " << prepared_sides;
  }
}

// If a chain has one emulation and C is not read, the native kernel after it selects the candidate for each
// batch item itself, in tiles of 128, 64 or 32; operands of many vectors have a selector kernel. Products
// with k up to 4 have such chains, since only bf16x6 is proved for them.
void expect_selections_of_items(const GemmCase& test) {
  SCOPED_TRACE(describe(test));
  GemmDataOf<float> data(test);
  GemmCase named = test;
  named.policy.clear();
  named.scheme = "bf16x6";
  const auto emulated = device_bits<float>(named);
  // Vectors of k = 1 have no range: their items are accepted.
  const bool has_range = test.k > 1;
  for (const std::int64_t item : {1, 4}) {
    data.a(item)(test.m - 1, 0) = 0x1p-90F;
    data.a(item)(test.m - 1, test.k - 1) = has_range ? 0x1p60F : 0x1p-90F;
  }
  const auto [bits, candidates] = run_on_copies(data, 0);
  ASSERT_EQ(candidates.size(), has_range ? 2U : 1U) << candidates;
  EXPECT_EQ(candidates[0]["scheme"], "bf16x6");
  EXPECT_EQ(candidates[0]["items"], has_range ? 4 : 6);
  const auto item_size = static_cast<std::size_t>(test.m * test.n);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const auto item = static_cast<std::int64_t>(i / item_size);
    if (item != 1 && item != 4) {
      ASSERT_EQ(bits[i], emulated[i]) << "item " << item;
    }
  }
  for (const std::int64_t item : {1, 4}) {
    for (std::int64_t e = 0; has_range && e < test.m * test.n; e += 7) {
      float sum = 0;
      for (std::int64_t p = 0; p < test.k; ++p)
        sum = std::fma(data.a(item)(e % test.m, p), data.b(item)(p, e / test.m), sum);
      const std::size_t index = static_cast<std::size_t>(item) * item_size + static_cast<std::size_t>(e);
      ASSERT_EQ(bits[index], std::bit_cast<std::uint32_t>(sum)) << "item " << item << ", element " << e;
    }
  }
  for (const int prepared_sides : {1, 2, 3}) {
    const auto prepared = run_on_copies(data, prepared_sides);
    EXPECT_TRUE(prepared.first == bits) << "prepared: " << prepared_sides;
    EXPECT_EQ(prepared.second, candidates) << "prepared: " << prepared_sides;
  }
}

TEST(DevicePrepared, NativeKernelsSelectTheCandidateInSmallCases) {
  expect_selections_of_items({.m = 70, .n = 90, .k = 4, .batch = 6, .policy = "emulate"});
}

TEST(DevicePrepared, NativeKernelsOfEveryTileSelectTheCandidate) {
  expect_selections_of_items({.m = 1500, .n = 900, .k = 3, .batch = 6, .policy = "emulate"});
  expect_selections_of_items({.m = 20, .n = 5000, .k = 1, .batch = 6, .policy = "emulate"});
  expect_selections_of_items({.m = 3000, .n = 2000, .k = 4, .batch = 6, .policy = "emulate"});
}

// Prepared slices keep their scales although another call splits the operand again for another candidate or
// scheme.
TEST(DevicePrepared, ScalesAreKeptWhenAnotherCallSplitsAgainInSmallCases) {
  for (const auto& [scheme, other_scheme] : {std::pair("", ""), std::pair("fp16x3", "bf16x6")}) {
    GemmCase test{.m = 70, .n = 90, .k = 200, .scheme = scheme, .policy = *scheme == 0 ? "emulate" : ""};
    GemmCase between = test;
    between.scheme = other_scheme;
    SCOPED_TRACE(describe(test));
    const auto bits = device_bits<float>(test);
    GemmDataOf<float> data(test);
    GemmDataOf<float> wide(between);
    wide.a()(3, 7) = 0x1p-60F;  // a fallback chain selects bf16x6 for it
    DeviceGemm<float> device(data);
    DeviceGemm<float> other(wide);
    const Planned planned(device.problem(), device.options());
    const Planned other_planned(other.problem(), other.options());
    kintsugi_operands operands = device.operands();
    kintsugi_operands other_operands = other.operands();
    kintsugi_prepared b = nullptr;
    ASSERT_EQ(kintsugi_prepare(nullptr, planned.plan, KINTSUGI_B, operands.b, &b), KINTSUGI_SUCCESS);
    operands.prepared_b = other_operands.prepared_b = b;
    ASSERT_EQ(kintsugi_plan_execute(nullptr, other_planned.plan, &other_operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    ASSERT_EQ(kintsugi_plan_execute(nullptr, planned.plan, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    device.fetch();
    EXPECT_EQ(bits_of(data.result()), bits);
    kintsugi_prepared_destroy(b);
  }
}

}  // namespace
}  // namespace kintsugi::test

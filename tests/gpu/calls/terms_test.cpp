// Tests the multi-term GEMM kernels on Hopper: they have the bits of the model of its matrix units, for all
// tiles and for tiles split along k.
#include <array>
#include <random>

#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/hopper/tiles.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/common/run_time_compiler.hpp"
#include "engines/cuda/gemm/multi_term_tiles.hpp"
#include "engines/cuda/gemm/term_sums.hpp"
#include "gpu/calls/device_stream.hpp"

namespace kintsugi::test {
namespace {

constexpr std::array multi_term_schemes{"fp16x3", "fp16x3-wide", "bf16x6"};

std::vector<std::uint32_t> modelled_bits(GemmCase test) {
  test.engine = "reference";
  test.accumulator = "h200";
  GemmDataOf<float> data(test);
  data.run_well();
  return bits_of(data.result());
}

GemmCase random_terms_case(std::mt19937_64& random, const std::string& scheme) {
  const auto below_limit = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  constexpr const char* distributions[] = {"uniform", "uniform01", "phi:2",    "phi:4",
                                           "type3",   "graded:20", "subnormal"};
  GemmCase test{.m = 1 + below_limit(300), .n = 1 + below_limit(210), .k = 1 + below_limit(400)};
  test.op_a = static_cast<kintsugi_op>(below_limit(2));
  test.op_b = static_cast<kintsugi_op>(below_limit(2));
  test.layout = static_cast<kintsugi_layout>(below_limit(2));
  test.pad_c = below_limit(3);
  test.alpha = std::array{1.0, 1.0, -1.5, 0x1p-30}[static_cast<std::size_t>(below_limit(4))];
  test.beta = below_limit(3) == 0 ? 0.75 : 0;
  test.distribution = distributions[below_limit(std::size(distributions))];
  test.scheme = scheme;
  test.seed = random() % 1000000;
  return test;
}

TEST(DeviceTerms, BitsEqualThoseOfTheModel) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const std::string scheme : multi_term_schemes) {
    for (int i = 0; i < 25; ++i) {
      const GemmCase test = random_terms_case(random, scheme);
      SCOPED_TRACE(describe(test) + " generator " + std::to_string(seed));
      ASSERT_EQ(device_bits<float>(test, {.offset = random() % 2, .device_scalars = i % 4 == 3}),
                modelled_bits(test));
    }
  }
}

constexpr std::array compiled_schemes{
    "fp16",    "bf16",           "tf32",   "markidis",        "egemm",  "ootomo", "ootomo-tf32",    "legemm",
    "h2sgemm", "h2sgemm:sb=eq6", "tf32x3", "h2sgemm-element", "bf16x3", "bf16x9", "split-n:a=2:b=1"};

TEST(DeviceTerms, KernelsCompiledAtFirstUseHaveTheBitsOfTheModel) {
  if (const std::string reason = core::cuda::no_compiler_reason(); !reason.empty()) GTEST_SKIP() << reason;
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  constexpr std::array distributions{"uniform", "uniform01", "phi:2", "graded:10", "subnormal"};
  for (const std::string scheme : compiled_schemes) {
    for (int i = 0; i < 15; ++i) {
      GemmCase test = random_terms_case(random, scheme);
      test.distribution = distributions[random() % distributions.size()];
      if (i % 5 == 4) test.k += 3000;
      test.batch = 1 + i % 2;
      SCOPED_TRACE(describe(test) + " generator " + std::to_string(seed));
      ASSERT_EQ(device_bits<float>(test, {.offset = random() % 2, .device_scalars = i % 4 == 3}),
                modelled_bits(test));
    }
  }
}

// The driver says what the loaded code needs, however it was compiled.
TEST(DeviceTerms, KernelsCompiledAtFirstUseHaveNoLocalMemory) {
  if (const std::string reason = core::cuda::no_compiler_reason(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr int local_bytes = 3;  // CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
  for (const std::string name : compiled_schemes) {
    const core::Scheme& scheme = *core::find_scheme(name);
    const core::FormatId format = scheme.program.format().id;
    const auto structure = *core::cuda::term_structure(scheme.program.schedule, format);
    const bool has_wgmma = core::cuda::current_family().has_wgmma;
    for (const auto& [tile, time] :
         core::cuda::term_sums_variants(structure, 8192, 8192, 132, 227 << 10, has_wgmma)) {
      const core::cuda::KernelName& kernel =
          core::cuda::compiled_kernel(core::cuda::term_sums_source(structure, format, tile), {});
      int bytes = -1;
      core::cuda::check(core::cuda::driver().kernel_attribute(&bytes, local_bytes, kernel.get(),
                                                              core::cuda::current_device()),
                        "cuKernelGetAttribute");
      EXPECT_EQ(bytes, 0) << name << ", tile of " << tile.tile.rows << " x " << tile.tile.columns;
    }
  }
}

// Elements of a row of C are stored in pairs only if the pairs are aligned.
TEST(DeviceTerms, RowsOfAnyAlignmentHaveTheBitsOfTheModelInSmallCases) {
  for (const std::string scheme : multi_term_schemes) {
    for (const std::int64_t pad : {0, 1, 2}) {
      const GemmCase test{
          .m = 320, .n = 320, .k = 70, .layout = KINTSUGI_ROW_MAJOR, .pad_c = pad, .scheme = scheme};
      const auto bits = modelled_bits(test);
      for (const std::size_t offset : {0, 1, 2}) {
        SCOPED_TRACE(describe(test) + " offset " + std::to_string(offset));
        ASSERT_EQ(device_bits<float>(test, {.offset = offset}), bits);
      }
    }
  }
}

// The batches have tens of thousands of short vectors.
TEST(DeviceTerms, BatchesOfManyItemsKeepTheBits) {
  for (const std::string scheme : {"fp16x3", "bf16x6"}) {
    for (const kintsugi_op op_b : {KINTSUGI_OP_N, KINTSUGI_OP_T}) {
      const GemmCase test{.m = 500,
                          .n = 33,
                          .k = 100,
                          .op_b = op_b,
                          .layout = KINTSUGI_ROW_MAJOR,
                          .pad_a = 1,
                          .batch = 80,
                          .distribution = "phi:2",
                          .scheme = scheme};
      SCOPED_TRACE(describe(test));
      EXPECT_TRUE(device_bits<float>(test) == modelled_bits(test));
    }
  }
}

// Computes m rows and n columns from (row, column) on of the product `whole` as a separate product, with the
// k-blocks of the whole: for so few elements of C the scheme would have shorter ones.
std::vector<std::uint32_t> part_bits(const GemmCase& whole, GemmDataOf<float>& data, std::int64_t row,
                                     std::int64_t m, std::int64_t column, std::int64_t n) {
  GemmCase test = whole;
  test.m = m;
  test.n = n;
  test.scheme += ":block=64";
  GemmDataOf<float> part(test);
  for (std::int64_t p = 0; p < test.k; ++p) {
    for (std::int64_t i = 0; i < m; ++i) part.a()(i, p) = data.a()(row + i, p);
    for (std::int64_t j = 0; j < n; ++j) part.b()(p, j) = data.b()(p, column + j);
  }
  DeviceGemm<float>(part).run_well();
  return bits_of(part.result());
}

// Products of these sizes have tiles of different widths, and some are cut along k.
TEST(DeviceTerms, BitsDoNotDependOnTilesAndTheirPartsOfK) {
  constexpr std::int64_t m = 5120;
  constexpr std::int64_t n = 5000;
  constexpr std::int64_t k = 2100;
  constexpr std::int32_t clusters = 66;
  if (core::cuda::profile_in_force() == nullptr) GTEST_SKIP() << "the device's kernels have no costs";
  const auto choice = core::cuda::choose_tile_schedule(
      core::cuda::hopper::fp16x3_tiles[0], 0, core::cuda::current_costs().multi_term.tiles[0][0],
      {m, n, k, 1}, 1, clusters, core::cuda::current_costs().multi_term);
  EXPECT_GT(choice.schedule.k_parts, 1) << "this size should have tiles split along k";
  for (const std::string scheme : multi_term_schemes) {
    GemmCase test{.m = m, .n = n, .k = k, .distribution = "phi:1", .scheme = scheme};
    SCOPED_TRACE(scheme);
    GemmDataOf<float> data(test);
    DeviceGemm<float>(data).run_well();
    const core::MatrixView<float> c = data.c();
    for (const auto& [row, rows, column, columns] :
         {std::array<std::int64_t, 4>{0, 300, 0, 200}, {4820, 300, 4800, 200}, {1000, 2048, 2500, 2048}}) {
      const auto bits = part_bits(test, data, row, rows, column, columns);
      std::vector<float> found;
      for (std::int64_t j = 0; j < columns; ++j) {
        for (std::int64_t i = 0; i < rows; ++i) found.push_back(c(row + i, column + j));
      }
      EXPECT_TRUE(bits_of(found) == bits) << rows << " x " << columns << " from " << row << ", " << column;
    }
  }
}

// Few tiles and a long k: segments of k have their own thread blocks.
TEST(DeviceTerms, SegmentsInSeparateThreadBlocksKeepTheBits) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const std::string scheme : {"fp16x3", "fp16x3-wide"}) {
    for (int i = 0; i < 6; ++i) {
      GemmCase test = random_terms_case(random, scheme);
      test.m = 1 + test.m % 30;
      test.n = 1 + test.n % 30;
      test.k = 2000 + 60 * test.k;
      test.batch = 1 + i % 3 / 2;
      SCOPED_TRACE(describe(test) + " generator " + std::to_string(seed));
      ASSERT_EQ(device_bits<float>(test, {.offset = random() % 2, .device_scalars = i % 4 == 3}),
                modelled_bits(test));
    }
  }
}

// Many tiles have separate segments of k. Elements are compared with separate products of their rows and
// columns, whose C has few elements too, and so the same segments.
TEST(DeviceTerms, SegmentsOfManyTilesKeepTheBits) {
  for (const std::string scheme : {"fp16x3", "fp16x3-wide"}) {
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{700, 600, 20000}, {130, 65, 70001}}) {
      const GemmCase test{.m = m, .n = n, .k = k, .distribution = "phi:1", .scheme = scheme};
      SCOPED_TRACE(describe(test));
      GemmDataOf<float> data(test);
      for (int round = 0; round < 2; ++round) DeviceGemm<float>(data).run_well();
      for (const auto& [row, column] :
           {std::pair{std::int64_t{0}, std::int64_t{0}}, {m - 9, n - 7}, {63, 31}}) {
        GemmCase part_test = test;
        part_test.m = 9;
        part_test.n = 7;
        part_test.engine = "reference";
        part_test.accumulator = "h200";
        GemmDataOf<float> part(part_test);
        for (std::int64_t p = 0; p < k; ++p) {
          for (std::int64_t i = 0; i < part_test.m; ++i) part.a()(i, p) = data.a()(row + i, p);
          for (std::int64_t j = 0; j < part_test.n; ++j) part.b()(p, j) = data.b()(p, column + j);
        }
        part.run_well();
        std::vector<float> found;
        for (std::int64_t j = 0; j < part_test.n; ++j) {
          for (std::int64_t i = 0; i < part_test.m; ++i) found.push_back(data.c()(row + i, column + j));
        }
        EXPECT_EQ(bits_of(found), bits_of(part.result())) << "from " << row << ", " << column;
      }
    }
  }
}

// Every batch item selects its own candidate.
TEST(DeviceTerms, BatchItemsHaveTheirOwnSelection) {
  GemmCase test{.m = 150, .n = 140, .k = 500, .batch = 4, .policy = "emulate"};
  GemmDataOf<float> data(test);
  for (std::int64_t p = 1; p < test.k; ++p) {
    data.a(1)(3, p) = 0x1p-60F;                    // bf16x6
    data.a(2)(3, p) = p % 2 == 1 ? 0x1p-130F : 0;  // beyond its window too
    if (p % 2 == 1) data.b(2)(p, 5) = 0;           // where one factor is zero, no depth counts
  }
  const Handle handle;
  DeviceGemm<float>(data).run_well(handle);
  const json report = handle.report();
  ASSERT_EQ(report["candidates"].size(), 3U) << report;
  EXPECT_EQ(report["candidates"][0]["items"], 2) << report;
  EXPECT_EQ(report["candidates"][1]["items"], 1) << report;
  EXPECT_EQ(report["candidates"][2]["items"], 1) << report;
  expect_accurate(data, static_cast<double>(test.k) + 8);
}

}  // namespace
}  // namespace kintsugi::test

// Tests which kernels ranges, selection and splits launch, and how often, over the fakes. Nothing is
// computed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "engines/cuda/steps.hpp"
#include "engines/registry.hpp"
#include "fakes/device_call.hpp"
#include "planner/plan.hpp"
#include "schemes/program.hpp"

namespace kintsugi::test {
namespace {

using namespace core;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class SplitLaunches : public OverFakes {
 protected:
  // An operand without elements is not read.
  DeviceSide side(bool along_k, std::int64_t vectors, std::int64_t k, std::int64_t items) {
    DeviceMatrix matrix{.batch_stride = vectors * k, .rows = vectors, .columns = k};
    matrix.row_stride = along_k ? k : 1;
    matrix.column_stride = along_k ? 1 : vectors;
    return {matrix, 0, &range_, items};
  }
  DeviceSplit split(const DeviceSide& side) const {
    const SplitRule& rule = find_scheme("fp16x3")->program.split_a;
    return {
        side, 0, &rule,
        make_slices(*rule.format, SliceStorage::packed, rule.slices, side.matrix.rows, side.matrix.columns),
        false};
  }
  // A split of FP64 into residues.
  DeviceSplit residue_split(const SplitRule& rule, const DeviceSide& operand) const {
    DeviceSplit one = split(operand);
    one.side.matrix.type = ElementType::f64;
    one.rule = &rule;
    one.slices = make_slices(*rule.format, SliceStorage::packed, rule.slices, operand.matrix.rows,
                             operand.matrix.columns);
    return one;
  }
  std::vector<std::string> launches() const {
    std::vector<std::string> found = events();
    std::erase_if(found, [](const std::string& event) { return !event.starts_with("cuLaunchKernel"); });
    fake_cuda_forget();
    return found;
  }

  VectorRange range_;
};

TEST_F(SplitLaunches, ABatchHasOneLaunchOfEachKernel) {
  const DeviceSide a = side(false, 200, 500, 7);
  const DeviceSide b = side(true, 300, 500, 7);
  DeviceSelection selections[7];
  core::cuda::find_ranges({}, a, b, {});
  core::cuda::select({}, a, b, {}, {{{5, 0, 5}}, 1}, selections, {});
  const std::array splits{split(b), split(a)};
  core::cuda::split({}, splits, {selections, 0});
  // Ranges: 7 thread blocks take 32 vectors of A each, 38 take 8 of B. Splits: A has 16 panels of 8 thread
  // blocks each, and 96 thread blocks take 4 vectors of B each.
  EXPECT_THAT(launches(), ElementsAre(StartsWith("cuLaunchKernel find_ranges 45x7x1 "),
                                      StartsWith("cuLaunchKernel select_candidate 7x1x1 "),
                                      StartsWith("cuLaunchKernel split_f32_fp16_columns 224x7x1 ")));
}

TEST_F(SplitLaunches, AnOperandSharedByTheBatchHasItsOwnLaunches) {
  const DeviceSide a = side(false, 200, 500, 7);
  const DeviceSide b = side(true, 300, 500, 1);
  DeviceSelection selections[7];
  core::cuda::find_ranges({}, a, b, {});
  core::cuda::select({}, a, b, {}, {{{5, 0, 5}}, 1}, selections, {});
  const std::array splits{split(b), split(a)};
  core::cuda::split({}, splits, {selections, 0});
  EXPECT_THAT(launches(), ElementsAre(StartsWith("cuLaunchKernel find_ranges 7x7x1 "),
                                      StartsWith("cuLaunchKernel find_ranges 38x1x1 "),
                                      StartsWith("cuLaunchKernel select_candidate 7x1x1 "),
                                      StartsWith("cuLaunchKernel split_f32_fp16_rows 96x1x1 "),
                                      StartsWith("cuLaunchKernel split_f32_fp16_columns 128x7x1 ")));
}

TEST_F(SplitLaunches, ManyItemsAreSeveralLaunches) {
  const DeviceSide a = side(false, 8, 8, 150000);
  const std::array splits{split(a), split(a)};
  core::cuda::find_ranges({}, a, a, {});
  core::cuda::split({}, splits, {});
  EXPECT_THAT(launches(), ElementsAre(StartsWith("cuLaunchKernel find_ranges 2x65535x1 "),
                                      StartsWith("cuLaunchKernel find_ranges 2x65535x1 "),
                                      StartsWith("cuLaunchKernel find_ranges 2x18930x1 "),
                                      StartsWith("cuLaunchKernel split_f32_fp16_columns 16x65535x1 "),
                                      StartsWith("cuLaunchKernel split_f32_fp16_columns 16x65535x1 "),
                                      StartsWith("cuLaunchKernel split_f32_fp16_columns 16x18930x1 ")));
}

// One launch splits both operands, with as many thread blocks per panel as fill the device; three fit on an
// SM.
TEST_F(SplitLaunches, OperandsOfDifferentLayoutsAreOneLaunchOfAnySize) {
  struct Size {
    std::int64_t n;
    std::int64_t items;
    int cluster;
  };
  for (const auto& [n, items, cluster] :
       {Size{256, 1, 8}, Size{512, 64, 1}, Size{1024, 1, 8}, Size{2048, 1, 4}, Size{4096, 1, 4},
        Size{8192, 1, 8}, Size{12288, 1, 8}}) {
    const std::array splits{split(side(true, n, n, items)), split(side(false, n, n, items))};
    core::cuda::split({}, splits, {});
    EXPECT_THAT(launches(), ElementsAre(AllOf(StartsWith("cuLaunchKernel split_f32_fp16_columns "),
                                              HasSubstr(fmt::format(" cluster={}", cluster)))))
        << n;
  }
}

// The request is shared by all threads: a launch with less memory must not lower it.
TEST_F(SplitLaunches, RequestedSharedMemoryNeverShrinks) {
  const auto requests = [&](std::int64_t n) {
    const std::array splits{split(side(false, n, n, 1))};
    core::cuda::split({}, splits, {});
    return events_with("cuKernelSetAttribute split_f32_fp16_columns 8 ").size();
  };
  requests(16384);
  fake_cuda_forget();
  EXPECT_EQ(requests(8192), 0U) << "a larger request was made before";
}

// The shared memory of split kernels depends on the length of vectors, and may need a request.
TEST_F(SplitLaunches, AreAcceptedForEveryLength) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const Stream stream;
  Call call(2048, 2048, 8192, stream);
  for (const char* scheme : {"", "fp16x3-wide", "bf16x6"}) {
    call.options.scheme = *scheme != '\0' ? scheme : nullptr;
    for (call.problem.k = 64; call.problem.k <= 8192; call.problem.k += 64) {
      ASSERT_EQ(kintsugi_gemm(nullptr, &call.problem, &call.options, &call.operands), KINTSUGI_SUCCESS)
          << kintsugi_last_error() << ", k = " << call.problem.k;
    }
  }
}

// First panels whose parts take half of an SM's memory, then panels of both operands in one launch.
TEST_F(SplitLaunches, LongVectorsAndBothOperandsHaveClustersOf8) {
  const std::array long_vectors{split(side(false, 1024, 12288, 1))};
  core::cuda::split({}, long_vectors, {});
  EXPECT_THAT(launches(), ElementsAre(HasSubstr(" cluster=8")));
  const std::array both_operands{split(side(false, 8192, 2048, 1)), split(side(false, 16, 2048, 1))};
  core::cuda::split({}, both_operands, {});
  EXPECT_THAT(launches(), ElementsAre(HasSubstr(" cluster=8")));
}

// Short vectors are split by a thread each; a persistent grid of as many thread blocks as the device holds
// goes through the vectors of both operands.
TEST_F(SplitLaunches, ManyShortVectorsHaveAPersistentGrid) {
  const std::array both_operands{split(side(true, 64, 64, 1)), split(side(false, 262144, 64, 1))};
  core::cuda::split({}, both_operands, {});
  EXPECT_THAT(launches(), ElementsAre(HasSubstr(" split_f32_fp16_short 396x1x1 threads=256 shared=0 ")));
  // A alone would have clusters of 8; the grid of 396 is no multiple of these.
  const std::array first_in_columns{split(side(false, 64, 64, 1)), split(side(true, 262144, 64, 1))};
  core::cuda::split({}, first_in_columns, {});
  EXPECT_THAT(launches(), ElementsAre(AllOf(HasSubstr(" split_f32_fp16_short 396x1x1 threads=256 shared=0 "),
                                            Not(HasSubstr(" cluster=")))));
}

// Split kernels of an unlikely candidate mostly exit early, so they have no more thread blocks than fit on
// the device.
TEST_F(SplitLaunches, UnlikelyCandidatesHaveFewThreadBlocks) {
  DeviceSelection selection;
  DeviceSplit known = split(side(true, 1024, 65536, 1));
  known.ranges_known = true;
  core::cuda::split({}, {&known, 1}, {&selection, 1});
  EXPECT_THAT(launches(), ElementsAre(HasSubstr(" split_f32_parts 396x1x1 ")));
  known.unlikely = true;
  core::cuda::split({}, {&known, 1}, {&selection, 1});
  EXPECT_THAT(launches(), ElementsAre(HasSubstr(" split_f32_tiles 264x1x1 ")));
}

// Residues of integers of more than 62 bits, with known ranges: a persistent grid goes through the tiles of
// both operands. Items of a batch share the thread blocks that the device holds.
TEST_F(SplitLaunches, WideResiduesOfKnownRangesStream) {
  const SplitRule rule =
      fitted_program(*find_scheme("ozaki2:moduli=17:scale=norm"), OperandType::f64, 4096).split_a;
  const auto wide_split = [&](bool along_k, std::int64_t vectors, std::int64_t k, std::int64_t items) {
    DeviceSplit wide = residue_split(rule, side(along_k, vectors, k, items));
    wide.ranges_known = true;
    return wide;
  };
  const auto launch_of = [](std::int64_t blocks, std::int64_t items) {
    return HasSubstr(
        fmt::format(" split_f64_wide_residues_streaming {}x{}x1 threads=256 shared=66560 ", blocks, items));
  };
  for (const bool along_k : {false, true}) {
    const std::array both{wide_split(true, 4096, 4096, 1), wide_split(along_k, 4096, 4096, 1)};
    core::cuda::split({}, both, {});
    EXPECT_THAT(launches(), ElementsAre(launch_of(396, 1)));
  }
  // A has two tiles for each of 16 times 16 vectors, B has 128 vectors of 512 elements.
  const std::array small{wide_split(false, 250, 500, 1), wide_split(true, 60, 500, 1)};
  core::cuda::split({}, small, {});
  EXPECT_THAT(launches(), ElementsAre(launch_of(32 + 16, 1)));
  const std::array batch{wide_split(false, 1000, 1000, 10)};
  core::cuda::split({}, batch, {});
  EXPECT_THAT(launches(), ElementsAre(launch_of(40, 10)));
  DeviceSplit unknown = wide_split(false, 1000, 1000, 1);
  unknown.ranges_known = false;
  core::cuda::split({}, {&unknown, 1}, {});
  EXPECT_THAT(launches(), ElementsAre(HasSubstr(" find_ranges 63x1x1 "), launch_of(256, 1)));
  const std::array short_vectors{wide_split(false, 1000, 190, 1)};
  core::cuda::split({}, short_vectors, {});
  EXPECT_THAT(launches(), ElementsAre(HasSubstr(" split_f64_tiles ")));
}

// Splits of small operands that find norms have few thread blocks in small clusters. Blocks have 128 threads
// if blocks of 256 would need a second round.
TEST_F(SplitLaunches, SmallSplitsByNormsHaveSmallClusters) {
  struct Size {
    std::int64_t n;
    int blocks;
    int threads;
    int cluster;
  };
  for (const auto& [n, blocks, threads, cluster] :
       {Size{384, 192 + 96, 256, 4}, Size{768, 192 + 192, 256, 2}, Size{1024, 256 + 512, 128, 2},
        Size{1408, 352 + 704, 128, 2}, Size{1536, 384 + 384, 256, 2}, Size{2048, 512 + 512, 256, 2},
        Size{4096, 2048 + 2048, 256, 4}}) {
    const SplitRule rule =
        fitted_program(*find_scheme("ozaki2:moduli=15:scale=norm"), OperandType::f64, n).split_a;
    DeviceSelection selection;
    const DeviceSplit by_rows = residue_split(rule, side(true, n, n, 1));
    const std::array both{by_rows, residue_split(rule, side(false, n, n, 1))};
    const std::array rows{by_rows, by_rows};
    core::cuda::split_by_norms({}, rows, {}, 1, &selection);
    const std::int64_t row_threads = n == 4096 ? 128 : 64;
    EXPECT_THAT(launches(),
                Contains(HasSubstr(fmt::format(" split_f64_residues_by_norms_rows {}x1x1 threads=128 ",
                                               2 * n * row_threads / 128))))
        << n;
    core::cuda::split_by_norms({}, both, {}, 1, &selection);
    EXPECT_THAT(
        launches(),
        Contains(AllOf(HasSubstr(fmt::format(" split_f64_residues_by_norms_columns {}x1x1 threads={} ",
                                             blocks, threads)),
                       HasSubstr(fmt::format(" cluster={}", cluster)))))
        << n;
  }
}

// Both operands of any extents. 128 threads are too few where a row needs 256.
TEST_F(SplitLaunches, ByNormsOfAnyExtentsHaveThreadsForAllRows) {
  std::mt19937_64 random(31);
  const auto extent = [&](int most) { return std::int64_t{1} + static_cast<std::int64_t>(random() % most); };
  std::vector<std::array<std::int64_t, 3>> extents{{128, 400, 5000}};
  for (int draw = 0; draw < 300; ++draw) extents.push_back({extent(1000), extent(1000), extent(12000)});
  for (const auto& [m, n, k] : extents) {
    const SplitRule rule =
        fitted_program(*find_scheme("ozaki2:moduli=15:scale=norm"), OperandType::f64, k).split_a;
    DeviceSelection selection;
    const std::array both{residue_split(rule, side(true, m, k, 1)),
                          residue_split(rule, side(false, n, k, 1))};
    if (!std::all_of(both.begin(), both.end(),
                     [&](const DeviceSplit& one) { return core::cuda::finds_norms(one); }))
      continue;
    core::cuda::split_by_norms({}, both, {}, 1, &selection);
    for (const std::string& launch : launches()) {
      if (k > 4096 && launch.find(" split_f64_residues_by_norms_columns ") != std::string::npos)
        EXPECT_THAT(launch, HasSubstr(" threads=256 ")) << m << " x " << n << " x " << k;
    }
  }
}

// Vectors too long for a cluster on four SMs are divided into parts after their ranges are found: a larger
// cluster may not fit on a MIG partition. A thread block has 1024 elements of 16 columns, or 8192 of a row.
TEST_F(SplitLaunches, VectorsTooLongForAClusterAreDivided) {
  for (const std::int64_t length : {16384, 32768, 131072}) {
    const std::array longest{split(side(false, 128, length, 1))};
    core::cuda::split({}, longest, {});
    EXPECT_THAT(
        launches(),
        ElementsAre(
            StartsWith("cuLaunchKernel begin_parts 1x1x1 "),
            StartsWith(fmt::format("cuLaunchKernel find_ranges {}x1x1 ", 4 * length / 1024)),
            StartsWith("cuLaunchKernel end_parts 1x1x1 "),
            AllOf(StartsWith(fmt::format("cuLaunchKernel split_f32_parts {}x1x1 ", 8 * length / 1024)),
                  Not(HasSubstr("cluster")))));
  }
  const std::array rows{split(side(true, 128, 65536, 1))};
  core::cuda::split({}, rows, {});
  EXPECT_THAT(launches(),
              ElementsAre(HasSubstr(" begin_parts 1x1x1 "), HasSubstr(" find_ranges 256x1x1 "),
                          HasSubstr(" end_parts 1x1x1 "), HasSubstr(" split_f32_parts 1024x1x1 ")));
  // Each of the kernels splits both operands in one launch.
  const std::array both_operands{split(side(false, 128, 65536, 1)), split(side(true, 256, 65536, 1))};
  core::cuda::split({}, both_operands, {});
  EXPECT_THAT(launches(),
              ElementsAre(HasSubstr(" begin_parts 2x1x1 "), HasSubstr(" find_ranges 768x1x1 "),
                          HasSubstr(" end_parts 2x1x1 "), HasSubstr(" split_f32_parts 2560x1x1 ")));
}

// Kernels of persistent grids divide the device's thread blocks among items, of which a batch may have none.
TEST_F(SplitLaunches, OfEmptyBatchesAreNone) {
  const Stream stream;
  for (const kintsugi_type type : {KINTSUGI_F64, KINTSUGI_C64}) {
    for (const char* accuracy : {"exact", "fp64"}) {
      Call call(700, 800, 600, stream);
      kintsugi_problem& problem = call.problem;
      problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = type;
      problem.batch_count = 0;
      const double scalars[] = {1, 0, 0, 0};
      call.options.accuracy = accuracy;
      call.options.policy = "emulate";
      call.operands.alpha = scalars;
      call.operands.beta = scalars + 2;
      call.run_in_workspace();
      for (const kintsugi_side side : {KINTSUGI_A, KINTSUGI_B}) const Prepared prepared(call, side);
      EXPECT_THAT(launches(), testing::Each(Not(HasSubstr(" split_")))) << accuracy;
    }
  }
}

}  // namespace
}  // namespace kintsugi::test

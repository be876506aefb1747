// Ranges, selection and splits over the fakes: how many launches there are, and of which kernels. Nothing is
// computed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/device_engine.hpp"
#include "engines/registry.hpp"
#include "fakes/device_call.hpp"
#include "schemes/program.hpp"

namespace kintsugi::test {
namespace {

using namespace core;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class SplitLaunches : public OverFakes {
 protected:
  void SetUp() override {
    OverFakes::SetUp();
    if (!IsSkipped()) engine_ = find_engine("cuda")->device();
  }

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
  std::vector<std::string> launches() const {
    std::vector<std::string> found = events();
    std::erase_if(found, [](const std::string& event) { return !event.starts_with("cuLaunchKernel"); });
    fake_cuda_forget();
    return found;
  }

  const DeviceEngine* engine_ = nullptr;
  VectorRange range_;
};

TEST_F(SplitLaunches, ABatchIsOneOfEach) {
  const DeviceSide a = side(false, 200, 500, 7);
  const DeviceSide b = side(true, 300, 500, 7);
  DeviceSelection selections[7];
  engine_->find_ranges({}, a, b, {});
  engine_->select({}, a, b, {}, {{{5, 0, 5}}, 1}, selections, {});
  const std::array splits{split(b), split(a)};
  engine_->split({}, splits, {selections, 0});
  // 16 panels of 8 blocks, and 96 blocks of 4 vectors.
  EXPECT_THAT(launches(), ElementsAre(StartsWith("cuLaunchKernel find_ranges 32x7x1 "),
                                      StartsWith("cuLaunchKernel select_candidate 7x1x1 "),
                                      StartsWith("cuLaunchKernel split_columns_float_fp16 224x7x1 ")));
}

TEST_F(SplitLaunches, AnOperandThatServesAllIsOneByItself) {
  const DeviceSide a = side(false, 200, 500, 7);
  const DeviceSide b = side(true, 300, 500, 1);
  DeviceSelection selections[7];
  engine_->find_ranges({}, a, b, {});
  engine_->select({}, a, b, {}, {{{5, 0, 5}}, 1}, selections, {});
  const std::array splits{split(b), split(a)};
  engine_->split({}, splits, {selections, 0});
  EXPECT_THAT(launches(), ElementsAre(StartsWith("cuLaunchKernel find_ranges 13x7x1 "),
                                      StartsWith("cuLaunchKernel find_ranges 19x1x1 "),
                                      StartsWith("cuLaunchKernel select_candidate 7x1x1 "),
                                      StartsWith("cuLaunchKernel split_rows_float_fp16 96x1x1 "),
                                      StartsWith("cuLaunchKernel split_columns_float_fp16 128x7x1 ")));
}

TEST_F(SplitLaunches, ManyItemsAreSeveralLaunches) {
  const DeviceSide a = side(false, 8, 8, 150000);
  const std::array splits{split(a), split(a)};
  engine_->find_ranges({}, a, a, {});
  engine_->split({}, splits, {});
  EXPECT_THAT(launches(), ElementsAre(StartsWith("cuLaunchKernel find_ranges 2x65535x1 "),
                                      StartsWith("cuLaunchKernel find_ranges 2x65535x1 "),
                                      StartsWith("cuLaunchKernel find_ranges 2x18930x1 "),
                                      StartsWith("cuLaunchKernel split_columns_float_fp16 16x65535x1 "),
                                      StartsWith("cuLaunchKernel split_columns_float_fp16 16x65535x1 "),
                                      StartsWith("cuLaunchKernel split_columns_float_fp16 16x18930x1 ")));
}

// One launch of any size, with as many thread blocks per panel as fill the device, three of which fit on an
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
    engine_->split({}, splits, {});
    EXPECT_THAT(launches(), ElementsAre(AllOf(StartsWith("cuLaunchKernel split_columns_float_fp16 "),
                                              HasSubstr(fmt::format(" cluster={}", cluster)))))
        << n;
  }
}

// A thread may launch with the memory that another asked for: a smaller launch must not take it away.
TEST_F(SplitLaunches, SharedMemoryOfAKernelOnlyGrows) {
  const auto asked = [&](std::int64_t n) {
    const std::array splits{split(side(false, n, n, 1))};
    engine_->split({}, splits, {});
    return events_with("cuKernelSetAttribute split_columns_float_fp16 8 ").size();
  };
  asked(16384);
  fake_cuda_forget();
  EXPECT_EQ(asked(8192), 0U) << "as much was allowed before";
}

// Vectors of every length: thread blocks hold different parts of them, and need less or more shared memory
// than a kernel has without asking for more.
TEST_F(SplitLaunches, CoverEveryLength) {
  const Steered measured("FAKE_CUDA_NAME", "NVIDIA H200");
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

// Panels whose parts take half of an SM's memory, and panels of both operands in one launch.
TEST_F(SplitLaunches, ClustersOfLongVectorsAndOfBothOperands) {
  const std::array one{split(side(false, 1024, 12288, 1))};
  engine_->split({}, one, {});
  EXPECT_THAT(launches(), ElementsAre(HasSubstr(" cluster=8")));
  const std::array both{split(side(false, 8192, 2048, 1)), split(side(false, 16, 2048, 1))};
  engine_->split({}, both, {});
  EXPECT_THAT(launches(), ElementsAre(HasSubstr(" cluster=8")));
}

// Vectors of thin products have threads instead of blocks; as many blocks as the device holds go through
// them, and through those of the other operand.
TEST_F(SplitLaunches, ManyShortVectorsAreOneWave) {
  const std::array both{split(side(true, 64, 64, 1)), split(side(false, 262144, 64, 1))};
  engine_->split({}, both, {});
  EXPECT_THAT(launches(), ElementsAre(HasSubstr(" split_short_float_fp16 396x1x1 threads=256 shared=0 ")));
  // The other operand alone would have clusters, of which 396 is no multiple.
  const std::array first_in_columns{split(side(false, 64, 64, 1)), split(side(true, 262144, 64, 1))};
  engine_->split({}, first_in_columns, {});
  EXPECT_THAT(launches(),
              ElementsAre(AllOf(HasSubstr(" split_short_float_fp16 396x1x1 threads=256 shared=0 "),
                                Not(HasSubstr(" cluster=")))));
}

// Kernels of a candidate that few calls select exit early: they have no more blocks than the device holds.
TEST_F(SplitLaunches, LaterCandidatesHaveFewBlocks) {
  DeviceSelection selection;
  DeviceSplit known = split(side(true, 1024, 65536, 1));
  known.ranges_known = true;
  engine_->split({}, {&known, 1}, {&selection, 1});
  EXPECT_THAT(launches(), ElementsAre(HasSubstr(" split_parts_float_fp16 396x1x1 ")));
  known.unlikely = true;
  engine_->split({}, {&known, 1}, {&selection, 1});
  EXPECT_THAT(launches(), ElementsAre(HasSubstr(" split_tiles_float_fp16 264x1x1 ")));
}

// A cluster that needs more than four SMs of a GPC may find no place on a share of the device: vectors are
// divided, once their ranges are known. Blocks have 1024 elements of 16 columns, or 8192 of a row.
TEST_F(SplitLaunches, VectorsThatNoBlockHoldsAreDivided) {
  for (const std::int64_t length : {16384, 32768, 131072}) {
    const std::array longest{split(side(false, 128, length, 1))};
    engine_->split({}, longest, {});
    EXPECT_THAT(
        launches(),
        ElementsAre(
            StartsWith("cuLaunchKernel begin_range_parts 1x1x1 "),
            StartsWith(fmt::format("cuLaunchKernel add_range_parts {}x1x1 ", 4 * length / 1024)),
            StartsWith("cuLaunchKernel end_range_parts 1x1x1 "),
            AllOf(StartsWith(fmt::format("cuLaunchKernel split_parts_float_fp16 {}x1x1 ", 8 * length / 1024)),
                  Not(HasSubstr("cluster")))));
  }
  const std::array rows{split(side(true, 128, 65536, 1))};
  engine_->split({}, rows, {});
  EXPECT_THAT(
      launches(),
      ElementsAre(HasSubstr(" begin_range_parts 1x1x1 "), HasSubstr(" add_range_parts 256x1x1 "),
                  HasSubstr(" end_range_parts 1x1x1 "), HasSubstr(" split_parts_float_fp16 1024x1x1 ")));
  // Each of the kernels splits both operands in one launch.
  const std::array both{split(side(false, 128, 65536, 1)), split(side(true, 256, 65536, 1))};
  engine_->split({}, both, {});
  EXPECT_THAT(
      launches(),
      ElementsAre(HasSubstr(" begin_range_parts 2x1x1 "), HasSubstr(" add_range_parts 768x1x1 "),
                  HasSubstr(" end_range_parts 2x1x1 "), HasSubstr(" split_parts_float_fp16 2560x1x1 ")));
}

}  // namespace
}  // namespace kintsugi::test

// Tests the order of steps of schemes whose products cuBLAS computes and a kernel recombines, and of
// contracts whose elements are checked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engines/cuda/steps.hpp"
#include "engines/registry.hpp"
#include "fakes/device_call.hpp"

namespace kintsugi::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Steps = OverFakes;

// The ranges of the operands decide the exponent of the residuals, before split and recombination.
TEST_F(Steps, ResidualsAreFittedBeforeTheSplit) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "h2sgemm:sb=eq6";
  call.run_in_workspace();
  EXPECT_THAT(work(), ElementsAre("find_ranges", "select_candidate", HasSubstr("split_"), "cublasGemmEx",
                                  "cublasGemmEx", "cublasGemmEx", "recombine_f32_weighted_floats",
                                  "multiply_f32_simt_32"));
}

// Fitted weights of joint sums are the alpha of cuBLAS products, which read it from device memory.
TEST_F(Steps, FittedWeightsOfJointSumsAreReadFromDeviceMemory) {
  const Stream stream;
  Call call(16, 16, 16, stream);
  call.options.scheme = "h2sgemm-element";
  call.run_in_workspace();
  const auto products = events_with("cublasGemmEx");
  ASSERT_EQ(products.size() % 3, 0U);
  for (std::size_t i = 0; i < products.size(); ++i)
    EXPECT_THAT(products[i], HasSubstr(i % 3 == 2 ? " alpha=1 beta=1 " : " alpha=0x"));
}

// One launch computes and adds all products of slices that a tile of C needs.
TEST_F(Steps, OnHopperOneLaunchAddsAllProductsOfSlices) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "ozaki-fp16:slices=9:fast=off";
  call.run_in_workspace();
  EXPECT_THAT(work(), ElementsAre("find_ranges", "select_candidate", "clear_bytes", "clear_bytes",
                                  "slice_vectors", "slice_vectors", "add_slice_products",
                                  "recombine_f32_products", "finish_item", "multiply_f32_simt_32"));
}

// Products of CR mode are stored as integers, four of a slice of B at once, and then added.
TEST_F(Steps, OnHopperExactSumsAddProductsAsIntegers) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "ozaki-fp16:mode=cr";
  call.run_in_workspace();
  const auto steps = work();
  // 40 + 26 binades in slices of 9 bits are 8 slices.
  EXPECT_EQ(std::count(steps.begin(), steps.end(), "add_slice_products"), 16);
  EXPECT_EQ(std::count(steps.begin(), steps.end(), "add_products"), 16);
  EXPECT_EQ(std::count(steps.begin(), steps.end(), "cublasGemmEx"), 0);
}

// Sums over several k-blocks stay in the kernel while 31 bits hold them.
TEST_F(Steps, OnHopperOneLaunchAddsProductsOfSeveralKBlocks) {
  const Stream stream;
  Call call(40, 30, 3000, stream);
  call.options.scheme = "ozaki-fp16:slices=2:k-block=1024";
  call.run_in_workspace();
  const auto steps = work();
  EXPECT_EQ(std::count(steps.begin(), steps.end(), "add_slice_products"), 1);
  EXPECT_EQ(std::count(steps.begin(), steps.end(), "add_products"), 0);
}

// Expected order of slice products: B's slices, A's, then q in the outer loop and p in the inner one, each
// product's sums converted to integers.
TEST_F(Steps, OnOlderDevicesOzakiProductsComeInTheOrderOfTheirSlices) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  const GenericDevices older("8.0");
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "ozaki-fp16:slices=2";
  call.run_in_workspace();
  EXPECT_THAT(work(),
              ElementsAre("find_ranges", "select_candidate", "clear_bytes", "clear_bytes", "slice_vectors",
                          "slice_vectors", "cublasGemmEx", "add_k_block", "cublasGemmEx", "add_k_block",
                          "add_products", "cublasGemmEx", "add_k_block", "add_products",
                          "recombine_f32_products", "finish_item", "multiply_f32_simt_32"));
}

// Algorithm 3 of dgemm-tc splits A while it counts slices, so A is not split again.
TEST_F(Steps, SlicesAreCountedBeforeTheProducts) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "ozaki-fp16";
  call.make_plan();
  call.run();
  EXPECT_THAT(work(), ElementsAre("cuMemAllocFromPoolAsync", "find_ranges", "select_candidate", "clear_bytes",
                                  "clear_bytes", "weigh_inner_indices", "slice_vectors", "find_slice_counts",
                                  "slice_vectors", "add_slice_products", "recombine_f32_products",
                                  "finish_item", "multiply_f32_simt_32", "cuMemFreeAsync"));
}

// 24 + 16 bits in slices of 9 bits, and one more, are 6 slices with 21 products. Products beyond them, which
// few operands need, are computed by one kernel, four slices of A at once.
TEST_F(Steps, OnOlderDevicesProductsOfFastModeAlwaysRun) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  const GenericDevices older("8.0");
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "ozaki-fp16";
  call.make_plan();
  call.run();
  const auto steps = work();
  EXPECT_EQ(std::count(steps.begin(), steps.end(), "slice_vectors"), 2);
  EXPECT_EQ(std::count(steps.begin(), steps.end(), "cublasGemmEx"), 21);
  EXPECT_EQ(std::count(steps.begin(), steps.end(), "multiply_counted_slices"), 6);
}

TEST_F(Steps, OzakiFp64AddsProductsAsIntegersAndRoundsOnce) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "ozaki-fp64";
  call.run_in_workspace();
  const auto steps = work();
  // 40 + 26 binades in slices of 24 bits are 3 slices, which have 9 products.
  EXPECT_EQ(std::count(steps.begin(), steps.end(), "add_k_block"), 9);
  EXPECT_EQ(std::count(steps.begin(), steps.end(), "recombine_f32_products"), 1);
  EXPECT_THAT(events_with("cublasGemmEx").front(), HasSubstr(" type=1 result=1 compute=70"));
}

TEST_F(Steps, Int52IsSplitMultipliedAndRecombinedByOneKernelEach) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "int52:words=2";
  call.run_in_workspace();
  EXPECT_THAT(work(), ElementsAre("split_f64_tiles", "multiply_int52", "recombine_f32_words"));
}

// ---------------------------------------------------------------- residues

TEST_F(Steps, OnHopperOneLaunchMultipliesAllResidues) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "ozaki2:moduli=7";
  call.run_in_workspace();
  EXPECT_THAT(work(),
              ElementsAre(HasSubstr("split_"), HasSubstr("multiply_int8_residues"), "recombine_f32_limbs_2"));
}

TEST_F(Steps, OnOlderDevicesCublasMultipliesResiduesAndAKernelReducesThem) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  const GenericDevices older("8.0");
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "ozaki2:moduli=3";
  call.run_in_workspace();
  EXPECT_THAT(work(),
              ElementsAre("find_ranges", HasSubstr("split_"), "cublasGemmEx", "add_k_block", "cublasGemmEx",
                          "add_k_block", "cublasGemmEx", "add_k_block", "recombine_f32_limbs_2"));
}

// ---------------------------------------------------------------- exact and checked contracts

// Steps except products and the additions of their sums outside the matrix unit.
std::vector<std::string> steps_without_products() {
  std::vector<std::string> names = work();
  std::erase_if(names, [](const std::string& name) {
    return name == "cublasGemmEx" || name == "add_k_block" || name.starts_with("multiply_int8_");
  });
  return names;
}

TEST_F(Steps, ExactResultsAreCheckedAndOpenElementsRecomputed) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.accuracy = "exact";
  call.run_in_workspace();
  EXPECT_THAT(steps_without_products(),
              ElementsAre("find_ranges", "select_candidate", "advance_checks", HasSubstr("split_"),
                          "find_rounding_errors", "check_f32_limbs_3", "list_open_masks", "recompute_f32"));
}

// Makes the call a correctly rounded product of FP64 operands with alpha and beta.
void make_exact_in_fp64(Call& call, const std::vector<double>& numbers, std::vector<double>& c,
                        const double (&scalars)[2]) {
  kintsugi_problem& problem = call.problem;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = KINTSUGI_F64;
  call.options.accuracy = "exact";
  call.operands.a = call.operands.b = numbers.data();
  call.operands.c = c.data();
  call.operands.alpha = scalars;
  call.operands.beta = scalars + 1;
}

// Products of FP64 are scaled by norms, which are found with the ranges. Up to 24 moduli are recombined by
// sums of digits if C is written without alpha and beta.
TEST_F(Steps, ExactProductsOfFp64AreScaledByNorms) {
  const Stream stream;
  for (const double beta : {0.0, 0.5}) {
    Call call(700, 800, 600, stream);
    const std::vector<double> numbers(800 * 600, 1);
    std::vector<double> c(700 * 800);
    const double scalars[] = {1, beta};
    make_exact_in_fp64(call, numbers, c, scalars);
    call.run_in_workspace();
    const char* few = beta == 0 ? "check_f64_digits" : "check_f64_limbs_3";
    const char* many = beta == 0 ? "check_f64_digits" : "check_f64_limbs_3";
    EXPECT_THAT(
        steps_without_products(),
        ElementsAre("find_scaling_norms", "select_candidate", "clear_bytes", "sample_open_elements",
                    "advance_checks", HasSubstr("split_"), "find_rounding_errors", few, "advance_checks",
                    HasSubstr("split_"), "find_rounding_errors", many, "list_open_masks", "recompute_f64"));
  }
}

// Open elements of a large block are first summed by bands, if rows of A or columns of B are adjacent in
// memory.
TEST_F(Steps, OpenElementsOfAdjacentVectorsAreSummedByBands) {
  const Stream stream;
  for (const auto& [op_a, op_b] :
       {std::pair(KINTSUGI_OP_N, KINTSUGI_OP_N), std::pair(KINTSUGI_OP_T, KINTSUGI_OP_N),
        std::pair(KINTSUGI_OP_T, KINTSUGI_OP_T)}) {
    Call call(1500, 1400, 500, stream);
    kintsugi_problem& problem = call.problem;
    problem.op_a = op_a;
    problem.op_b = op_b;
    if (op_a == KINTSUGI_OP_T) problem.lda = 500;
    if (op_b == KINTSUGI_OP_T) problem.ldb = 1400;
    const std::vector<double> numbers(1500 * 500, 1);
    std::vector<double> c(1500 * 1400);
    const double scalars[] = {1, 0};
    make_exact_in_fp64(call, numbers, c, scalars);
    call.run_in_workspace();
    const std::vector<std::string> names = steps_without_products();
    const auto bands = std::count(names.begin(), names.end(), "recompute_adjacent_vectors_f64");
    const bool none_is_adjacent = op_a == KINTSUGI_OP_T && op_b == KINTSUGI_OP_N;
    EXPECT_EQ(bands, none_is_adjacent ? 0 : 1);
    const auto list = std::find(names.begin(), names.end(), "list_open_masks");
    ASSERT_NE(list, names.end());
    EXPECT_EQ(*(list - 1) == "recompute_adjacent_vectors_f64", !none_is_adjacent) << *(list - 1);
  }
}

// A sample of elements selects the first candidate; after each candidate except the last, the device decides
// whether another one computes the block.
TEST_F(Steps, LongExactProductsHaveSeveralCheckedCandidates) {
  const Stream stream;
  for (const auto& [k, candidates] : {std::pair(500, 2), std::pair(4096, 4)}) {
    Call call(1500, 1400, k, stream);
    call.options.accuracy = "exact";
    call.run_in_workspace();
    std::vector<std::string> expected{"find_ranges", "select_candidate", "clear_bytes",
                                      "sample_open_elements", "advance_checks"};
    for (int c = 0; c < candidates; ++c) {
      // The widest one computes the block in parts, so that it takes little more memory than the first.
      for (int part = 0; part < (c == 3 ? 4 : 1); ++part) {
        expected.emplace_back("find_rounding_errors");
        expected.emplace_back(c == 3 ? "check_f32_limbs_6" : "check_f32_limbs_3");
      }
      if (c + 1 < candidates) expected.emplace_back("advance_checks");
    }
    expected.emplace_back("list_open_masks");
    expected.emplace_back("recompute_f32");
    std::vector<std::string> names = steps_without_products();
    std::erase_if(names, [](const std::string& name) { return name.starts_with("split_"); });
    EXPECT_EQ(names, expected) << k;
  }
}

// Blocks of C are computed by all candidates one after the other, and each is finished before the next one.
TEST_F(Steps, EveryBlockHasItsOwnCandidates) {
  const Stream stream;
  Call call(1500, 1400, 4096, stream);
  call.options.accuracy = "exact";
  call.make_plan();
  std::size_t unlimited = 0;
  ASSERT_EQ(kintsugi_plan_workspace_size(call.plan, &unlimited), KINTSUGI_SUCCESS);
  call.options.workspace_limit = static_cast<std::int64_t>(unlimited - 1);
  call.run_in_workspace();
  std::vector<std::string> names = steps_without_products();
  std::erase_if(names, [](const std::string& name) { return name.starts_with("split_"); });
  std::vector<std::string> expected{"find_ranges", "select_candidate", "clear_bytes", "sample_open_elements"};
  for (int block = 0; block < 2; ++block) {
    expected.emplace_back("advance_checks");
    for (int c = 0; c < 4; ++c) {
      for (int part = 0; part < (c == 3 ? 4 : 1); ++part) {
        expected.emplace_back("find_rounding_errors");
        expected.emplace_back(c == 3 ? "check_f32_limbs_6" : "check_f32_limbs_3");
      }
      if (c < 3) expected.emplace_back("advance_checks");
    }
    expected.emplace_back("list_open_masks");
    expected.emplace_back("recompute_f32");
  }
  EXPECT_EQ(names, expected);
}

// The steps first find norms and select; then they queue each candidate that norms may accept, last the
// checked one.
TEST_F(Steps, CandidatesByNormsComeBeforeTheCheckedOne) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.accuracy = "1e-6";
  call.run_in_workspace();
  const auto candidate = [](const char* recombination) {
    return std::vector<testing::Matcher<std::string>>{HasSubstr("split_"),
                                                      HasSubstr("multiply_int8_residues"), recombination};
  };
  std::vector<testing::Matcher<std::string>> expected{"find_ranges", "find_norms",
                                                      "select_candidate_by_norms"};
  const auto add = [&](const auto& steps) { expected.insert(expected.end(), steps.begin(), steps.end()); };
  for (int c = 0; c < 3; ++c) add(candidate("recombine_f32_limbs_2"));
  // The magnitudes of B and of A are split by launches of their own, and multiplied before the residues.
  add(std::vector<testing::Matcher<std::string>>{
      "advance_checks", HasSubstr("split_"), HasSubstr("split_"), HasSubstr("split_"), "find_rounding_errors",
      HasSubstr("multiply_int8_integers"), HasSubstr("multiply_int8_residues"), "check_f32_limbs_3",
      "list_open_masks", "recompute_f32"});
  EXPECT_THAT(work(), testing::ElementsAreArray(expected));
}

// One kernel finds ranges and norms of both complex operands.
TEST_F(Steps, NormsOfComplexOperandsTakeOneLaunch) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  kintsugi_problem& problem = call.problem;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = KINTSUGI_C64;
  const std::vector<double> numbers(2 * 100 * 40, 1);
  std::vector<double> c(2 * 40 * 30);
  const double scalars[] = {1, 0, 0, 0};
  call.options.accuracy = "fp64";
  call.options.policy = "emulate";
  call.operands.a = call.operands.b = numbers.data();
  call.operands.c = c.data();
  call.operands.alpha = scalars;
  call.operands.beta = scalars + 2;
  call.run_in_workspace();
  EXPECT_THAT(work(), ElementsAre("find_complex_norms", "select_candidate_by_norms", "split_c64_tiles",
                                  "split_c64_tiles", HasSubstr("multiply_int8_residues"),
                                  "recombine_c64_digits", HasSubstr("multiply_c64_dmma_")));
}

// A later candidate is rarely selected, so its recombination takes wider blocks of C: half as many thread
// blocks exit early.
TEST_F(Steps, RecombinationsOfLaterCandidatesHaveFewThreadBlocks) {
  constexpr std::int64_t side = 4096;
  const core::DeviceSelection selection;
  core::DeviceTile tile;
  tile.c.type = core::ElementType::f64;
  tile.c.rows = tile.c.columns = tile.c.column_stride = tile.rows = tile.columns = side;
  tile.c.row_stride = 1;
  const core::Accumulators sums{.rows = side, .columns = side, .groups = 15, .type = core::SumType::residue};
  tile.condition = {&selection, 0, false};
  core::cuda::recombine_residues({}, sums, {15}, tile);
  tile.condition = {&selection, 1, true};
  core::cuda::recombine_residues({}, sums, {15}, tile);
  EXPECT_THAT(events_with("cuLaunchKernel"), ElementsAre(HasSubstr(" recombine_f64_digits 2048x1x1 "),
                                                         HasSubstr(" recombine_f64_digits 1024x1x1 ")));
}

// If products cannot be skipped, the checked candidate is the only one.
TEST_F(Steps, OlderDevicesCheckAllElements) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  const GenericDevices older("8.0");
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.accuracy = "1e-6";
  call.run_in_workspace();
  EXPECT_THAT(steps_without_products(),
              ElementsAre("find_ranges", "select_candidate", "advance_checks", HasSubstr("split_"),
                          HasSubstr("split_"), HasSubstr("split_"), "find_rounding_errors",
                          "check_f32_limbs_3", "list_open_masks", "recompute_f32"));
}

// The product of magnitudes comes before the other products.
TEST_F(Steps, MagnitudesAreMultipliedBeforeTheResidues) {
  const Stream stream;
  Call checked(40, 30, 100, stream);
  checked.options.accuracy = "1e-6";
  checked.run_in_workspace();
  auto names = work();
  names.erase(names.begin(), std::find(names.begin(), names.end(), "find_rounding_errors"));
  const auto index_of = [&](const std::string& name) {
    return std::find_if(names.begin(), names.end(),
                        [&](const std::string& n) { return n.find(name) != std::string::npos; }) -
           names.begin();
  };
  EXPECT_LT(index_of("multiply_int8_integers"), index_of("multiply_int8_residues"));
  EXPECT_LT(index_of("multiply_int8_residues"), index_of("check_f32_limbs_3"));
  EXPECT_EQ(names.back(), "recompute_f32");
  EXPECT_EQ(events_with("cuLaunchKernel multiply_int8_integers").size(), 1U);
}

// Open elements of all tiles of a block are recomputed in one launch.
TEST_F(Steps, OpenElementsOfABlockAreRecomputedInOneLaunch) {
  const Stream stream;
  Call call(9000, 32, 64, stream);
  call.options.accuracy = "exact";
  call.run_in_workspace();
  std::vector<std::string> names = steps_without_products();
  std::erase_if(names, [](const std::string& name) { return name.starts_with("split_"); });
  EXPECT_EQ(names, (std::vector<std::string>{"find_ranges", "select_candidate", "advance_checks",
                                             "find_rounding_errors", "check_f32_limbs_3", "check_f32_limbs_3",
                                             "check_f32_limbs_3", "list_open_masks", "recompute_f32"}));
}

TEST_F(Steps, SuperaccumulatorHasOneLaunchForEachBatchItem) {
  const Stream stream;
  Call call(8, 6, 4, stream);
  call.options.scheme = "superaccumulator";
  call.problem.batch_count = 3;
  call.problem.stride_c = 48;
  call.run_in_workspace();
  EXPECT_EQ(events_with("cuLaunchKernel recompute_f32").size(), 3U);
  EXPECT_THAT(events_with("cublasGemm"), IsEmpty());
}

TEST_F(Steps, CheckedContractsCanBeCaptured) {
  const Stream stream;
  for (const char* accuracy : {"exact", "1e-6"}) {
    Call call(40, 30, 100, stream);
    call.options.accuracy = accuracy;
    call.make_plan();
    core::cuda::Graph graph = nullptr;
    ASSERT_EQ(core::cuda::driver().stream_begin_capture(stream.get(), 0), 0);
    EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
    ASSERT_EQ(core::cuda::driver().stream_end_capture(stream.get(), &graph), 0);
    core::cuda::driver().graph_destroy(graph);
    expect_no_waiting_in_capture();
  }
}

}  // namespace
}  // namespace kintsugi::test

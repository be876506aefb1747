// Tests the tiles of FP64 products by residues over the fakes: their order beside later candidates, and their
// shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fakes/device_call.hpp"

namespace kintsugi::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Steps of an FP64 product under `emulate` of m x n x k elements.
class TilesOfProducts : public OverFakes {
 protected:
  std::vector<std::string> work_of(std::int64_t m, std::int64_t n, std::int64_t k, double alpha = 1,
                                   double beta = 0) {
    const Stream stream;
    Call call(m, n, k, stream, /*is_executed=*/false);
    kintsugi_problem& problem = call.problem;
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = KINTSUGI_F64;
    const double scalars[] = {alpha, beta};
    double element = 0;  // in place of all matrices, since nothing is computed
    call.options.accuracy = "fp64";
    call.options.policy = "emulate";
    call.operands.a = call.operands.b = call.operands.c = &element;
    call.operands.alpha = scalars;
    call.operands.beta = scalars + 1;
    call.run_in_workspace();
    return work();
  }
};

// Kernels of later candidates exit while products of the first one run, whose last recombination therefore
// follows them. The other tiles are recombined before the next products overwrite their sums.
TEST_F(TilesOfProducts, LaterCandidatesPrecedeTheLastRecombinationOfTheFirst) {
  EXPECT_THAT(
      work_of(9000, 4096, 2048),
      ElementsAre("clear_bytes", HasSubstr("_columns"), "select_candidate_by_norms", "multiply_int8_residues",
                  "recombine_f64_digits", "multiply_int8_residues",  // 15 moduli
                  HasSubstr("_streaming"), "multiply_int8_residues", "recombine_f64_wide_digits",
                  "multiply_int8_residues", "recombine_f64_wide_digits",  // 16 and more
                  HasSubstr("multiply_f64_dmma_"), "recombine_f64_digits"));
  for (const std::string& event : events_with("cuLaunchKernel recombine_f64_digits"))
    EXPECT_THAT(event, HasSubstr(" overlaps"));
}

// Candidates after the first share their kernels, whatever their number. With alpha or beta of other
// magnitudes than 0 and 1 each candidate has a recombination.
TEST_F(TilesOfProducts, LaterCandidatesShareOneLaunchPerStep) {
  const auto launches = [&](std::int64_t n, double beta, const std::string& kernel) {
    const std::vector<std::string> work = work_of(n, n, n, 1, beta);
    return std::ranges::count_if(work, [&](const std::string& name) { return name.starts_with(kernel); });
  };
  for (const std::int64_t n : {2048, 4096}) {
    EXPECT_EQ(launches(n, 0, "split_"), 2) << n;
    EXPECT_EQ(launches(n, 0, "multiply_int8_residues"), 2) << n;
    EXPECT_EQ(launches(n, 0, "recombine_f64_wide_digits"), 1) << n;
    EXPECT_EQ(launches(n, -1, "recombine_f64_wide_digits"), 1) << n;
  }
  EXPECT_EQ(launches(2048, 0, "select_candidate_by_norms"), 1) << "no more candidates than a report counts";
  EXPECT_EQ(launches(4096, 0, "select_candidate_by_norms"), 1);
  EXPECT_EQ(launches(1536, 0, "split_"), 1) << "only the first candidate is faster than native";
  EXPECT_EQ(launches(1536, 0, "multiply_int8_residues"), 1);
  EXPECT_EQ(launches(4096, 0.5, "recombine_f64_wide_digits"), 0);
  EXPECT_EQ(launches(4096, 0.5, "recombine_f64_digits"), 2) << "15 and 16 moduli";
  EXPECT_EQ(launches(4096, 0.5, "recombine_f64_limbs_3"), 4) << "17 to 20 moduli";
}

// Cards for graphics run the kernels of mma.sync, each candidate its own, and FP64 by the SIMT kernel where
// Hopper has DMMA, at any size.
TEST_F(TilesOfProducts, OnCardsForGraphicsTheWidestCandidatePrecedesTheSimtKernel) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  const auto expect_candidates = [&](std::int64_t n) {
    const std::vector<std::string> work = work_of(n, n, n);
    EXPECT_EQ(std::ranges::count(work, "multiply_int8_mma_residues"), 3) << n;
    EXPECT_EQ(std::ranges::count(work, "multiply_f64_simt_64"), 1) << n;
    EXPECT_THAT(events_with("cublas"), testing::IsEmpty()) << n;
    EXPECT_THAT(events_with("exact"), testing::IsEmpty()) << n;
  };
  {
    const FakeVariable capability("FAKE_CUDA_CAPABILITY", "8.9");
    const FakeVariable name("FAKE_CUDA_NAME", "NVIDIA GeForce RTX 4090");
    for (const std::int64_t n : {512, 2048}) expect_candidates(n);
  }
  const FakeVariable forced("KINTSUGI_ARCH", "sm86");  // by which Hopper runs the same
  expect_candidates(512);
}

// A tile has 4096 x 8192 elements of C, twice as many if sums are short, in any shape.
TEST_F(TilesOfProducts, NarrowTilesAreLongerAndThoseOfShortSumsLarger) {
  const auto tiles_of = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return std::ranges::count(work_of(m, n, k), "recombine_f64_digits");
  };
  EXPECT_EQ(tiles_of(8192, 4096, 2048), 1);
  EXPECT_EQ(tiles_of(8193, 4096, 2048), 2);
  EXPECT_EQ(tiles_of(8192, 4097, 2048), 2);
  EXPECT_EQ(tiles_of(131072, 256, 2048), 1);
  EXPECT_EQ(tiles_of(131073, 256, 2048), 2);
  EXPECT_EQ(tiles_of(256, 131072, 2048), 1);
  EXPECT_EQ(tiles_of(256, 131073, 2048), 2);
  EXPECT_EQ(tiles_of(16384, 4096, 1024), 1);
  EXPECT_EQ(tiles_of(16385, 4096, 1024), 2);
}

}  // namespace
}  // namespace kintsugi::test

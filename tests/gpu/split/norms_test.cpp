// Compares norms of the device with the same sums on the host, and tests which candidates they prove.
#include "arith/residue/norm_proof.hpp"
#include "engines/cuda/arch/family.hpp"

#include <algorithm>
#include <cmath>

#include "engines/cuda/select/selected_moduli.hpp"
#include "gpu/split/norm_cases.hpp"
#include "gpu/split/split_cases.hpp"
#include "split/ranges.hpp"

namespace kintsugi::test {
namespace {

template <class T>
class NormsOf : public testing::Test {};
TYPED_TEST_SUITE(NormsOf, EveryType);

template <class T>
struct DrawnOperand {
  DrawnOperand(Random& random, std::int64_t longest)
      : operand(random.integer(1, 60), random.integer(1, longest),
                layouts[static_cast<std::size_t>(random.integer(0, 2))], 0, random.bits()),
        device(operand, rule_of_norms(), 0), norms(device.ranges.host().size()), ranges(norms.host().size()) {
    find_ranges(operand.view(), rule_of_norms(), ranges, 1);
    find_depths(operand.view(), ranges);
  }

  DeviceSide side() const { return {device.matrix, 0, device.ranges.data(), 1, norms.data()}; }

  Operand<T> operand;
  DeviceOperand<T> device;
  DeviceArray<VectorNorm> norms;
  std::vector<VectorRange> ranges;
};

// `lengths` has the largest lengths of A's and B's vectors for each round.
template <class T>
void expect_norms_of_host(const std::vector<std::array<std::int64_t, 2>>& lengths) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  for (std::size_t round = 0; round < lengths.size() && !testing::Test::HasFailure(); ++round) {
    const DrawnOperand<T> a(random, lengths[round][0]);
    const DrawnOperand<T> b(random, lengths[round][1]);
    core::cuda::find_norms({}, a.side(), b.side(), {});
    for (const auto* drawn : {&a, &b}) {
      const std::string text = fmt::format("{}, seed {}, round {}", drawn->operand.text(), seed, round);
      expect_same_ranges(drawn->device.ranges.host(), drawn->ranges, text, false);
      const std::vector<VectorNorm> wanted = norms_on_host(drawn->operand.view(), drawn->ranges);
      expect_same_norms(drawn->norms.host().data(), wanted, text);
    }
  }
}

TYPED_TEST(NormsOf, EqualTheHostsInSmallCases) {
  std::vector<std::array<std::int64_t, 2>> lengths(25, {200, 200});
  lengths.insert(lengths.end(), 5, {5000, 200});
  // Thread blocks find the norms of one, two, four or eight rows of complex elements at once.
  lengths.insert(lengths.end(), 5, {600, 1200});
  lengths.insert(lengths.end(), 5, {2300, 4700});
  expect_norms_of_host<TypeParam>(lengths);
}

// The device adds up the norms of parts of long vectors.
TYPED_TEST(NormsOf, LongVectorsHaveTheHostsNorms) {
  expect_norms_of_host<TypeParam>({{20000, 20000}, {20000, 200}, {200, 20000}, {40000, 9000}});
}

// Compares a split by norms with one whose ranges and norms were found before. If the proof is ruled out,
// slices may be missing.
void expect_split_by_norms(const NormedOperand& by_norms, const NormedOperand& known, bool ruled_out,
                           const std::string& text) {
  expect_same_ranges(by_norms.device.ranges.host(), known.device.ranges.host(), text);
  ASSERT_EQ(bytes_of(by_norms.norms), bytes_of(known.norms)) << text;
  const std::vector<std::byte> got = by_norms.device.slices.host();
  const std::vector<std::byte> wanted = known.device.slices.host();
  if (!ruled_out) {
    ASSERT_EQ(got, wanted) << text;
    return;
  }
  // Each thread block stops when it learns that the proof is ruled out, even in the middle of a vector.
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(got[i] == wanted[i] || got[i] == std::byte{DeviceArray<std::byte>::poison})
        << text << ", byte " << i;
  }
}

void split_in_steps(const NormedOperand& operand) {
  DeviceSplit split = operand.split();
  core::cuda::find_norms({}, split.side, {}, {});
  split.ranges_known = true;
  core::cuda::split({}, {&split, 1}, {});
}

// Selects one of two candidates, of which the first needs the proof by norms.
void select_by_norms(const std::array<DeviceSplit, 2>& splits, double coefficient,
                     DeviceSelection* selection) {
  const SplitRule& rule = *splits[0].rule;
  DeviceCandidates candidates{{accepts_all, accepts_all}, 2};
  candidates.acceptances[0].norm_bits = rule.sum_bits;
  candidates.acceptances[0].norm_top_exponent = rule.top_exponent;
  candidates.coefficient = coefficient;
  core::cuda::select({}, splits[0].side, splits[1].side, {}, candidates, selection, {});
}

// Splits A and B by norms, in one call or in two. Returns whether an operand rules the proof out.
bool expect_both_split_by_norms(const Operand<double>& host_a, const Operand<double>& host_b,
                                const SplitRule& rule, bool in_one_call, const std::string& text) {
  constexpr double coefficient = 1;
  const NormedOperand a(host_a, rule), b(host_b, rule), known_a(host_a, rule), known_b(host_b, rule);
  split_in_steps(known_a);
  split_in_steps(known_b);
  const std::array splits{a.split(), b.split()};
  const DeviceArray<DeviceSelection> selection(1);
  if (!core::cuda::finds_norms(splits[0]) || !core::cuda::finds_norms(splits[1])) {
    ADD_FAILURE() << "no kernel finds norms while it splits: " << text;
    return false;
  }
  const bool b_rules_out = rules_proof_out(known_b, coefficient);
  const bool any_rules_out = b_rules_out || rules_proof_out(known_a, coefficient);
  if (in_one_call) {
    core::cuda::split_by_norms({}, splits, {}, coefficient, selection.data());
  } else {
    for (const DeviceSplit& operand_split : splits)
      core::cuda::split_by_norms({}, {&operand_split, 1}, {}, coefficient, selection.data());
  }
  EXPECT_EQ(selection.host()[0].ruled_out != 0, in_one_call ? any_rules_out : b_rules_out) << text;
  expect_split_by_norms(a, known_a, any_rules_out, text);
  expect_split_by_norms(b, known_b, any_rules_out, text);
  if (!any_rules_out) return false;
  select_by_norms(splits, coefficient, selection.data());
  EXPECT_NE(selection.host()[0].candidate, 0) << "slices that may be missing are multiplied: " << text;
  return true;
}

// Draws operands of at most so many vectors, at most `longest` long. Returns in how many rounds the proof was
// ruled out.
int expect_splits_by_norms(std::int64_t vectors, std::int64_t longest, int rounds) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  int ruled_out = 0;
  for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    const std::int64_t length = random.integer(1, longest);
    const SplitRule rule = rule_by_norms(round % 2 == 0 ? 15 : 9, length);
    const Operand<double> a = draw_operand(random, vectors, length, round % 3 != 0);
    const Operand<double> b = draw_operand(random, vectors, length, round % 3 != 0);
    const std::string text =
        fmt::format("{} and {}, {} moduli, seed {}, round {}", a.text(), b.text(), rule.slices, seed, round);
    ruled_out += expect_both_split_by_norms(a, b, rule, round % 2 == 0, text) ? 1 : 0;
  }
  return ruled_out;
}

// Every third round keeps vectors of any magnitudes: of so many, one almost always rules the proof out.
TEST(SplitsByNorms, EqualSplitsWithKnownNormsInSmallCases) {
  const int ruled_out = expect_splits_by_norms(200, 300, 40);
  EXPECT_GT(ruled_out, 6);
  EXPECT_LT(ruled_out, 27);
}
TEST(SplitsByNorms, LongVectorsEqualSplitsWithKnownNorms) {
  expect_splits_by_norms(9, 5000, 12);
  expect_splits_by_norms(9, 12000, 12);
}

// The vectors are too long for a cluster or a thread block to hold.
TEST(SplitsByNorms, VectorsInPartsEqualSplitsWithKnownNorms) {
  expect_splits_by_norms(17, 30000, 8);
  expect_splits_by_norms(5, 100000, 6);
}

TEST(SplitsByNorms, AreSkippedIfAlphaIsZeroInSmallCases) {
  Program program = find_scheme("ozaki2:moduli=15:scale=norm")->program;
  schemes::fit_ozaki2(program, OperandType::f64, 40);
  const Operand<double> host(30, 40, Layout::along_k, 0, fresh_seed());
  const NormedOperand operand(host, program.split_a);
  const std::vector<std::byte> norms = bytes_of(operand.norms);
  const std::vector<std::byte> slices = operand.device.slices.host();
  const DeviceArray<double> alpha(std::vector<double>{0.0});
  const DeviceArray<DeviceSelection> selection(1);
  const DeviceSplit split = operand.split();
  core::cuda::split_by_norms({}, {&split, 1}, {.device_alpha = alpha.data()}, INFINITY, selection.data());
  EXPECT_EQ(bytes_of(operand.norms), norms);
  EXPECT_EQ(operand.device.slices.host(), slices);
}

constexpr int max_candidates = NormCandidates::max_candidates;
using Extremes = NormExtremes<max_candidates>;

bool counts(const VectorRange& range) { return range.finite() && (range.flags & VectorRange::all_zero) == 0; }

// `candidates` are DeviceCandidates or NormCandidates.
template <class Candidates>
Extremes extremes_of(const std::vector<VectorRange>& ranges, const std::vector<VectorNorm>& norms,
                     const NormTerms& terms, const Candidates& candidates) {
  Extremes extremes;
  for (std::size_t v = 0; v < ranges.size(); ++v) {
    if (!counts(ranges[v])) continue;
    std::int32_t tops[max_candidates] = {};
    for (int r = 0; r < candidates.count; ++r)
      tops[r] = norm_top(candidates.acceptances[r].norm_top_exponent, candidates.acceptances[r].norm_bits,
                         norms[v].bits);
    extremes.add(norms[v], tops, terms, candidates.coefficient);
  }
  return extremes;
}

constexpr std::int64_t norm_length = 1000;  // of the vectors that have drawn norms

// All vectors have different norms, so that a thread, warp or round that is missed shows.
std::vector<VectorNorm> draw_norms(Random& random, std::size_t vectors, std::int64_t unevenness) {
  std::vector<VectorNorm> norms(vectors);
  for (VectorNorm& norm : norms) {
    const auto share = [&](std::int64_t max) { return static_cast<double>(random.integer(0, max)) / 1024; };
    norm.bits = static_cast<std::int32_t>(random.integer(30, 41));
    norm.mean = 2000 + share(1024 * 1000);
    norm.mean_exponent = std::log2(norm.mean);
    norm.elements = static_cast<std::int32_t>(norm_length - random.integer(0, unevenness * 10));
    norm.depth = norm.elements * (4 + share(1024 * unevenness));
  }
  return norms;
}

// Ranges and norms of a random number of vectors, on the host and on the device.
struct DrawnNorms {
  DrawnNorms(Random& random, int round)
      : host_ranges(draw_ranges(random, round)),
        host_norms(draw_norms(random, host_ranges.size(), random.integer(0, round % 4 * 3))),
        ranges(host_ranges), norms(host_norms) {}

  static std::vector<VectorRange> draw_ranges(Random& random, int round) {
    const std::int64_t max_vectors = round % 4 == 0 ? 5 : round < 90 ? 700 : 20000;
    std::vector<VectorRange> drawn(static_cast<std::size_t>(random.integer(1, max_vectors)));
    for (VectorRange& range : drawn) {
      range.flags = random.integer(0, 9) == 0 ? VectorRange::all_zero : 0U;
      if (random.integer(0, 999) == 0) range.flags = VectorRange::has_nan;
      range.largest = range.raised = 0;
      range.smallest = -static_cast<std::int32_t>(random.integer(0, round % 3 == 0 ? 70 : 50));
    }
    return drawn;
  }
  DeviceSide side() const {
    const DeviceMatrix matrix{.rows = static_cast<std::int64_t>(host_ranges.size()), .columns = norm_length};
    return {matrix, 0, ranges.data(), 1, norms.data()};
  }

  std::int64_t least_elements() const {
    std::int64_t least = norm_length;
    for (std::size_t v = 0; v < host_norms.size(); ++v) {
      if (counts(host_ranges[v])) least = std::min<std::int64_t>(least, host_norms[v].elements);
    }
    return least;
  }

  std::vector<VectorRange> host_ranges;
  std::vector<VectorNorm> host_norms;
  DeviceArray<VectorRange> ranges;
  DeviceArray<VectorNorm> norms;
};

// Three candidates that need a proof by norms, and one that accepts a dynamic range of 60 binades.
DeviceCandidates candidates_by_norms() {
  DeviceCandidates candidates{{accepts_all, accepts_all, accepts_all, {60}}, 4};
  const std::int32_t bits[] = {115, 119, 123, 0};
  for (int r = 0; r < 4; ++r) {
    candidates.acceptances[r].norm_bits = bits[r];
    candidates.acceptances[r].norm_top_exponent = 40 + r;
  }
  candidates.coefficient = 0x1p-48;
  return candidates;
}

TEST(Selection, TakesTheFirstCandidateThatNormsProve) {
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  const DeviceCandidates candidates = candidates_by_norms();
  std::array<int, 5> taken{};
  for (int round = 0; round < 100; ++round) {
    const DrawnNorms a(random, round);
    const DrawnNorms b(random, round);
    const DeviceArray<DeviceSelection> selection(1);
    core::cuda::select({}, a.side(), b.side(), {}, candidates, selection.data(), {});
    const NormTerms terms = NormTerms::of(norm_length, a.least_elements(), b.least_elements());
    const Extremes extremes_a = extremes_of(a.host_ranges, a.host_norms, terms, candidates);
    const Extremes extremes_b = extremes_of(b.host_ranges, b.host_norms, terms, candidates);
    const std::int32_t range =
        std::max(summarize(a.host_ranges).dynamic_range, summarize(b.host_ranges).dynamic_range);
    std::int32_t candidate = 0;
    while (candidate < 3 && !proves(extremes_a, extremes_b, candidate, terms, candidates.coefficient))
      ++candidate;
    if (candidate == 3 && range > 60) candidate = DeviceSelection::none;
    ASSERT_EQ(selection.host()[0].candidate, candidate) << "seed " << seed << ", round " << round;
    ++taken[static_cast<std::size_t>(candidate == DeviceSelection::none ? 4 : candidate)];
  }
  for (const int times : taken) EXPECT_GT(times, 0) << "seed " << seed;
}

// More candidates by norms than a DeviceReport counts, which a candidate without a test follows. The report
// counts all of them.
TEST(Selection, TakesTheFirstOfManyCandidatesThatNormsProve) {
  if (!core::cuda::current_family().has_clusters) GTEST_SKIP() << "the device has no shared kernels";
  const std::uint64_t seed = fresh_seed();
  Random random(seed);
  NormCandidates candidates{.coefficient = 0x1p-48};
  const DeviceArray<LongDeviceReport> report(std::vector<LongDeviceReport>(1));
  std::array<std::int64_t, LongDeviceReport::max_candidates> taken{};
  for (int round = 0; round < 200; ++round) {
    candidates.count = static_cast<int>(random.integer(3, max_candidates));
    for (int r = 0; r < candidates.count; ++r) {
      candidates.acceptances[r] = accepts_all;
      candidates.acceptances[r].norm_bits = 113 + 3 * r;
      candidates.acceptances[r].norm_top_exponent = 40 + r;
    }
    const DrawnNorms a(random, round);
    const DrawnNorms b(random, round);
    const DeviceArray<DeviceSelection> selection(1);
    core::cuda::select_by_norms({}, a.side(), b.side(), {}, candidates, selection.data(),
                                {&report.data()->report, /*begins=*/false});
    const NormTerms terms = NormTerms::of(norm_length, a.least_elements(), b.least_elements());
    const Extremes extremes_a = extremes_of(a.host_ranges, a.host_norms, terms, candidates);
    const Extremes extremes_b = extremes_of(b.host_ranges, b.host_norms, terms, candidates);
    std::int32_t candidate = 0;
    while (candidate < candidates.count &&
           !proves(extremes_a, extremes_b, candidate, terms, candidates.coefficient))
      ++candidate;
    ASSERT_EQ(selection.host()[0].candidate, candidate) << "seed " << seed << ", round " << round;
    ++taken[static_cast<std::size_t>(candidate)];
  }
  const LongDeviceReport found = report.host()[0];
  for (std::size_t c = 0; c < taken.size(); ++c) {
    EXPECT_GT(taken[c], 0) << "candidate " << c << ", seed " << seed;
    EXPECT_EQ(found.items(c), taken[c]) << "candidate " << c;
  }
}

}  // namespace
}  // namespace kintsugi::test

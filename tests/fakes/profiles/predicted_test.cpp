// Tests profiles that are predicted from published numbers against the shipped ones, which were measured.
// Every device is predicted blind: no cost of its own profile is used, only shares of published rates that
// another device reaches. lab/results/log/2026-11-30-predicted-profiles.md has the figures.
#include <algorithm>
#include <numeric>
#include <random>

#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/le_gemm_model.hpp"
#include "engines/cuda/arch/predicted.hpp"
#include "engines/cuda/gemm/multi_term_gemm.hpp"
#include "engines/cuda/gemm/times.hpp"
#include "fakes/device_plan.hpp"
#include "fakes/profiles/profile_in_force.hpp"
#include "planner/plan.hpp"
#include "planner/problem.hpp"

namespace kintsugi::test {
namespace {

using namespace core;
using cuda::Card;
using cuda::Costs;
using testing::HasSubstr;

struct Pair {
  const char* device;
  const char* reference;
};
constexpr Pair pairs[] = {{"NVIDIA H200", "NVIDIA H100 80GB HBM3"}, {"NVIDIA H100 80GB HBM3", "NVIDIA H200"}};

// Costs of a device of the table, by its published numbers.
Costs predicted(const char* device, const char* reference) {
  for (const Card& card : cuda::all_cards()) {
    if (card.traits.name == device) return cuda::predicted_costs(card, shipped(reference));
  }
  throw std::runtime_error(std::string("no card ") + device);
}

Problem random_problem(std::mt19937_64& random) {
  std::uniform_real_distribution<double> exponent(6, 13.5);
  const auto length = [&] { return static_cast<std::int64_t>(std::exp2(exponent(random))) / 8 * 8; };
  Problem problem{.m = length(), .n = length(), .k = length(), .memory = MemorySpace::device};
  problem.lda = problem.ldc = problem.m;
  problem.ldb = problem.k;
  return problem;
}

Plan emulating_plan(const Problem& problem) {
  SettingLayer call;
  call.set(find_setting("policy"), "auto", "the test");
  call.set(find_setting("engine"), "cuda", "the test");
  return make_emulating_plan(problem, Settings(call, {}, {}, {}));
}

DeviceShape shape_of(const Problem& problem, const Program& program) {
  return {.schedule = program.schedule,
          .format = program.format().id,
          .type = element_type(problem),
          .m = problem.m,
          .n = problem.n,
          .k = problem.k,
          .items = 1,
          .prepared_a = false,
          .prepared_b = false,
          .is_aligned = true};
}

std::vector<cuda::MultiTermVariant> variants_of(const DeviceShape& shape, const Format& format,
                                                const Costs& costs) {
  DeviceFusedProduct product;
  product.schedule = &shape.schedule;
  for (Slices* slices : {&product.a, &product.b}) {
    slices->format = &format;
    slices->count = shape.schedule.slices_a;
    slices->k = shape.k;
  }
  product.tile.rows = shape.m;
  product.tile.columns = shape.n;
  return cuda::multi_term_variants(product, costs.multi_term);
}

double microseconds(const cuda::MultiTermVariant& variant) {
  return std::visit([](const auto& given) { return given.microseconds; }, variant);
}

std::size_t fastest(const std::vector<cuda::MultiTermVariant>& variants) {
  return static_cast<std::size_t>(std::ranges::min_element(variants, {}, microseconds) - variants.begin());
}

// Values and their median, largest and mean.
struct Sample {
  std::vector<double> values;

  double median() const {
    std::vector<double> sorted = values;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
  double largest() const { return *std::ranges::max_element(values); }
  double mean() const {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }
  std::string text() const {
    return fmt::format("median {:.1f} %, mean {:.1f} %, largest {:.1f} %", 100 * median(), 100 * mean(),
                       100 * largest());
  }
};

// ---------------------------------------------------------------- selection of tiles

// LE-GEMM's tile of a thread block, and what it leaves open: whether segments of k are computed in parallel.
struct LeGemmTile {
  cuda::le_gemm::Tile tile;
  bool is_divided;
};

LeGemmTile le_gemm_tile(const cuda::MultiTermKernels& kernels, const cuda::MultiTermVariant& variant) {
  if (const auto* of_cluster = std::get_if<cuda::ClusterTileVariant>(&variant))
    return {{cuda::term_tile_rows / cuda::gemm_cluster_size, kernels.tiles[of_cluster->tile].columns,
             cuda::term_block, cuda::term_threads},
            false};
  const auto& small = std::get<cuda::SmallTileVariant>(variant);
  cuda::le_gemm::Tile tile{cuda::small_tile_rows, kernels.small_tiles[small.tile].columns, cuda::term_block,
                           cuda::small_tile_threads};
  if (small.swapped) std::swap(tile.rows, tile.columns);
  return {tile, small.segments > 1};
}

std::size_t chosen_by_le_gemm(const DeviceShape& shape, const cuda::MultiTermKernels& kernels,
                              const std::vector<cuda::MultiTermVariant>& variants, double weight) {
  const cuda::le_gemm::Device hopper{.units = 132,
                                     .wavefront = 32,
                                     .unit_threads = 2048,
                                     .unit_registers = 65536,
                                     .thread_registers = 255,
                                     .shared_bytes = 227 << 10,
                                     .fragment_depth = 16};
  std::size_t best = 0;
  double best_value = -1;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const LeGemmTile candidate = le_gemm_tile(kernels, variants[i]);
    if (candidate.is_divided && best_value >= 0) continue;
    const double value = cuda::le_gemm::value(shape.m, shape.n, candidate.tile, hopper, weight);
    if (value > best_value) {
      best = i;
      best_value = value;
    }
  }
  return best;
}

// Shapes of FP32 products with the structure of their first candidate.
std::vector<Problem> sixty_shapes(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Problem> problems(60);
  for (Problem& problem : problems) problem = random_problem(random);
  return problems;
}

class PredictedProfiles : public DevicePlan {
 protected:
  void expect_fp64(std::int64_t n, kintsugi_type type, bool is_emulated) {
    const auto moduli = [](int count) { return fmt::format("ozaki2:moduli={}:scale=norm", count); };
    PlannedCall call(n, n, n, stream_);
    kintsugi_problem& problem = call.problem;
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = type;
    const json plan = planned(call);
    EXPECT_EQ(schemes(plan),
              is_emulated ? Names({moduli(15), moduli(17), moduli(31), "native"}) : Names{"native"})
        << n;
    EXPECT_EQ(plan.at("words").dump().find("times as long as the first one") != std::string::npos,
              is_emulated);
  }

  // Losses of time by tiles that `choose(shape, kernels, variants)` selects, by the shipped costs.
  template <class Choose>
  static Sample losses_of_tiles(const std::vector<Problem>& problems, const Costs& measured,
                                const Choose& choose) {
    Sample losses;
    for (const Problem& problem : problems) {
      const Plan plan = emulating_plan(problem);
      const Program& program = plan.candidates.front().program;
      const DeviceShape shape = shape_of(problem, program);
      const auto& structures = cuda::family_of(9, 0).multi_term;
      const auto kernels = std::ranges::find_if(structures, [&](const cuda::MultiTermKernels& found) {
        return std::ranges::equal(found.terms, shape.schedule.terms);
      });
      const auto variants = variants_of(shape, program.format(), measured);
      const std::size_t chosen = choose(shape, program.format(), *kernels, variants);
      losses.values.push_back(microseconds(variants[chosen]) / microseconds(variants[fastest(variants)]) - 1);
    }
    return losses;
  }

  static Sample losses_by_le_gemm(std::uint64_t seed, const Costs& measured,
                                  double weight = cuda::le_gemm::parallelism_weight) {
    return losses_of_tiles(
        sixty_shapes(seed), measured,
        [&](const DeviceShape& shape, const Format&, const cuda::MultiTermKernels& kernels,
            const auto& variants) { return chosen_by_le_gemm(shape, kernels, variants, weight); });
  }
  static Sample losses_by_costs(std::uint64_t seed, const Costs& measured, const Costs& costs) {
    return losses_of_tiles(sixty_shapes(seed), measured,
                           [&](const DeviceShape& shape, const Format& format, const cuda::MultiTermKernels&,
                               const auto&) { return fastest(variants_of(shape, format, costs)); });
  }

  // Loss of time of the choices that `auto` makes by predicted costs, against those by the measured costs.
  // Native, or an emulation by a tile.
  static double loss_of(const Problem& problem, const Costs& measured, const Costs& costs, double max_ratio) {
    const Plan plan = emulating_plan(problem);
    const Candidate& candidate = plan.prepared_candidate();
    const DeviceShape shape = shape_of(problem, candidate.program);
    const DeviceTimes truth = cuda::expected_emulation_times(shape, measured);
    const DeviceTimes expected = cuda::expected_emulation_times(shape, costs);
    const double measured_ratio = candidate.acceptance.by_norms() ? 0.82 : 0.95;
    const double time = truth.emulated < measured_ratio * truth.native ? truth.emulated : truth.native;
    if (expected.emulated >= std::min(max_ratio, measured_ratio) * expected.native)
      return truth.native / time - 1;
    double tile_loss = 0;
    if (shape.type == ElementType::f32) {
      const auto variants = variants_of(shape, candidate.program.format(), measured);
      const std::size_t chosen = fastest(variants_of(shape, candidate.program.format(), costs));
      tile_loss = microseconds(variants[chosen]) - microseconds(variants[fastest(variants)]);
    }
    return (truth.emulated + tile_loss) / time - 1;
  }
  static Sample losses_of_auto(const Costs& measured, const Costs& costs, double max_ratio) {
    std::mt19937_64 random(31);
    Sample losses;
    for (int i = 0; i < 100; ++i) {
      Problem problem = random_problem(random);
      problem.type = i % 5 < 3 ? OperandType::f32 : OperandType::f64;
      problem.complex = i % 10 == 2 || i % 10 == 3;
      losses.values.push_back(loss_of(problem, measured, costs, max_ratio));
    }
    return losses;
  }
};

TEST_F(PredictedProfiles, TheWeightOfLeGemmsModelIsTheBestOneForTheH200) {
  const Costs measured = costs_of_h200();
  double best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int step = 1; step < 20; ++step) {
    const double loss = losses_by_le_gemm(1, measured, 0.05 * step).mean();
    if (loss < least) {
      least = loss;
      best = 0.05 * step;
    }
  }
  EXPECT_NEAR(best, cuda::le_gemm::parallelism_weight, 0.01);
}

TEST_F(PredictedProfiles, SelectTilesNearlyAsWellAsMeasuredOnes) {
  for (const auto& [device, reference] : pairs) {
    const Costs& measured = shipped(device).costs;
    const Sample le_gemm = losses_by_le_gemm(2, measured);
    const Sample ours = losses_by_costs(2, measured, predicted(device, reference));
    fmt::print("{}: tiles by LE-GEMM's model: {}\n", device, le_gemm.text());
    fmt::print("{}: tiles by predicted costs: {}\n", device, ours.text());
    EXPECT_LE(ours.median(), 0.05) << device;
    EXPECT_LE(ours.largest(), 0.15) << device;
  }
}

// A device whose matrix unit has no more than twice the rate of FP32 gains nothing by three terms.
TEST_F(PredictedProfiles, KeepFp32NativeWhereTheMatrixUnitIsSlow) {
  Card geforce = cuda::card_of(shipped("NVIDIA H200").device);
  const auto ratio = [&] {
    const Problem problem{.m = 8192,
                          .n = 8192,
                          .k = 8192,
                          .lda = 8192,
                          .ldb = 8192,
                          .ldc = 8192,
                          .memory = MemorySpace::device};
    const Plan plan = emulating_plan(problem);
    const DeviceTimes times =
        cuda::expected_emulation_times(shape_of(problem, plan.prepared_candidate().program),
                                       cuda::predicted_costs(geforce, shipped("NVIDIA H100 80GB HBM3")));
    return times.emulated / times.native;
  };
  EXPECT_LT(ratio(), 1 / 1.3);
  geforce.rates.fp16 = geforce.rates.bf16 = 2 * geforce.rates.fp32;
  EXPECT_GT(ratio(), 1 / 1.3);
}

// `auto` on devices of which none of the family was measured. FP64 is emulated where native takes tens of
// times as long; there the widest candidate precedes native, and the plan says how long native takes.
TEST_F(PredictedProfiles, DecideOnDevicesOfOtherFamilies) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  struct Device {
    const char* name;
    const char* capability;
    bool emulates_fp32;
    bool has_few_fp64_units;
  };
  for (const Device& device : {Device{"NVIDIA A100-SXM4-80GB", "8.0", true, false},
                               Device{"NVIDIA GeForce RTX 3090", "8.6", false, true},
                               Device{"NVIDIA GeForce RTX 4090", "8.9", false, true},
                               Device{"NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0", true, true},
                               Device{"NVIDIA Unknown", "12.0", false, true}}) {
    const FakeVariable capability("FAKE_CUDA_CAPABILITY", device.capability);
    const FakeVariable name("FAKE_CUDA_NAME", device.name);
    PlannedCall call(8192, 8192, 8192, stream_);
    const json plan = planned(call);
    EXPECT_EQ(schemes(plan).front() != "native", device.emulates_fp32) << device.name;
    EXPECT_THAT(plan.at("words").dump(), HasSubstr("expected times not measured")) << device.name;
    PlannedCall small(256, 256, 256, stream_);
    EXPECT_EQ(schemes(planned(small)), Names{"native"}) << device.name;
    for (const int n : {1024, 8192}) {
      expect_fp64(n, KINTSUGI_F64, device.has_few_fp64_units);
      expect_fp64(n, KINTSUGI_C64, device.has_few_fp64_units);
    }
    expect_fp64(64, KINTSUGI_F64, false);
  }
}

TEST_F(PredictedProfiles, LoseLittleAgainstMeasuredOnes) {
  for (const auto& [device, reference] : pairs) {
    const Costs& measured = shipped(device).costs;
    const Costs costs = predicted(device, reference);
    const Sample with_caution = losses_of_auto(measured, costs, 1 / 1.3);
    const Sample without = losses_of_auto(measured, costs, 1);
    fmt::print("{}: auto, emulating from 1.3 times native: {}\n", device, with_caution.text());
    fmt::print("{}: auto, by the limits of measured profiles: {}\n", device, without.text());
    EXPECT_LE(with_caution.mean(), 0.08) << device;
    // With its name hidden the device is one of its compute capability.
    cuda::DeviceTraits nameless = shipped(device).device;
    nameless.name.clear();
    const Sample hidden =
        losses_of_auto(measured, cuda::predicted_costs(cuda::card_of(nameless), shipped(reference)), 1 / 1.3);
    fmt::print("{}: auto, name hidden: {}\n", device, hidden.text());
    EXPECT_LE(hidden.mean(), 0.08) << device;
    EXPECT_EQ(losses_of_auto(measured, measured, 1).largest(), 0);
  }
}

}  // namespace
}  // namespace kintsugi::test

// Not a test: measures the design of fused products of bytes (engines/cpu/byte_products.cpp) as the paper on
// H2SGEMM does (sections 3.3 and 4.2), for lab/results/log: when sums are reduced, when operands are
// converted, and the sizes of tiles.
//   build/tests/panel_rate [m = n = k] [threads] [FILE.json]
// Variants take turns; each has the shortest time of several rounds, for one thread in processor time, so
// that a busy machine counts less. With AMX and one thread, only rounds count in which the unit was fast
// before and after, if there are any. The first variant comes again at the end: so far times scatter.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/memory.hpp"
#include "engines/cpu/byte_panels.hpp"
#include "engines/cpu/products.hpp"
#include "engines/registry.hpp"
#include "execute/execute.hpp"
#include "planner/plan.hpp"
#include "planner/steps.hpp"
#include "recombine/recombine.hpp"
#include "split/ranges.hpp"
#include "split/split.hpp"
#include "tests/support/processor_time.hpp"
#include "tools/measure/generators/generators.hpp"

namespace kintsugi::core {
namespace {

using Json = nlohmann::ordered_json;

constexpr int rounds = 9;

double seconds_of(const std::function<void()>& work, int threads) {
  if (threads == 1) {
    const double start = processor_seconds();
    work();
    return processor_seconds() - start;
  }
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// One way to compute the product, and its shortest times.
struct Variant {
  std::string question;  // which variants are compared
  std::string name;
  std::function<void()> run;
  PanelStudy sizes{};  // all zero: not by panels
  double fast = INFINITY;
  double slow = INFINITY;
  int fast_rounds = 0;

  double seconds() const { return std::isfinite(fast) ? fast : slow; }
};

void time_in_turns(std::vector<Variant>& variants, int threads) {
  const auto is_fast = [&] { return threads > 1 || measure_amx_is_fast().value_or(true); };
  for (int round = 0; round < rounds; ++round) {
    for (Variant& variant : variants) {
      const bool was_fast = is_fast();
      const double seconds = seconds_of(variant.run, threads);
      const bool fast = was_fast && is_fast();
      double& least = fast ? variant.fast : variant.slow;
      least = std::min(least, seconds);
      variant.fast_rounds += fast ? 1 : 0;
    }
  }
}

template <class T>
class Study {
 public:
  Study(std::int64_t n, int threads, const char* scheme)
      : n_(n), threads_(threads), plan_(plan_of(scheme)), program_(plan_.candidates.front().program),
        problem_(fused_problem(plan_, plan_.candidates.front(), program_)), a_(matrix(measure::Side::a)),
        b_(matrix(measure::Side::b)), c_(a_.size()), rows_(static_cast<std::size_t>(n)),
        columns_(rows_.size()) {
    find_ranges(view_a(), problem_.split_a, rows_, threads_);
    find_ranges(view_b(), problem_.split_b, columns_, threads_);
  }

  std::vector<Variant> variants() {
    const PanelStudy chosen = panel_sizes(problem_, threads_, {});
    std::vector<Variant> all;
    const auto add = [&](const char* question, const std::string& name, const PanelStudy& study) {
      all.push_back({question, name, by_panels(study), panel_sizes(problem_, threads_, study)});
    };
    add("sums", "buffered, reduced between the next products", {});
    add("sums", "reduced at once", {.reduces_at_once = true});
    add("conversion", "tile by tile of the left operand",
        {.left_block = chosen.left_tile, .right_block = n_});
    add("conversion", "blocks of both operands, as shipped", {});
    add("conversion", "both operands first", {.left_block = n_, .right_block = n_});
    all.push_back({"conversion", "steps apart, int8 slices and sums in memory", [this] { run_steps(); }});
    for (const std::int64_t depth : {256, 512, 1024}) {
      for (const std::int64_t left : {64, 128, 192, 256, 384, 512, 768, 1024})
        add("sizes", fmt::format("left tile {}, depth {}", left, depth), {.depth = depth, .left_tile = left});
    }
    for (const std::int64_t right : {128, 256, 512, 1024, 2048})
      add("right tile", fmt::format("right tile {}", right), {.right_tile = right});
    add("scatter", "the first variant again", {});
    return all;
  }

  // Fails if the variants differ in a bit.
  void require_same_bits(const std::vector<Variant>& all) {
    std::vector<T> first;
    for (const Variant& variant : all) {
      std::fill(c_.begin(), c_.end(), std::nan(""));
      variant.run();
      if (first.empty()) first = c_;
      if (std::memcmp(first.data(), c_.data(), c_.size() * sizeof(T)) != 0) {
        fmt::print("{} has other bits than {}\n", variant.name, all.front().name);
        std::exit(1);
      }
    }
  }

 private:
  Plan plan_of(const char* scheme) const {
    SettingLayer call;
    const char* const where = "the study";
    call.set(find_setting("engine"), "cpu", where);
    call.set(find_setting("scheme"), scheme, where);
    call.set(find_setting("threads"), std::to_string(threads_), where);
    const Problem problem{
        .m = n_, .n = n_, .k = n_, .lda = n_, .ldb = n_, .ldc = n_, .type = type_of_elements};
    return make_plan(problem, Settings(call, {}, {}, {}), {});
  }
  std::vector<T> matrix(measure::Side side) const {
    std::vector<T> values(static_cast<std::size_t>(n_ * n_));
    measure::fill(measure::parse_distribution("uniform"), side, 3,
                  MatrixView<T>{values.data(), n_, n_, 1, n_});
    return values;
  }
  // The vectors are rows of A and columns of B.
  MatrixView<const T> view_a() const { return {a_.data(), n_, n_, 1, n_}; }
  MatrixView<const T> view_b() const { return {b_.data(), n_, n_, n_, 1}; }
  MatrixView<T> view_c() { return {c_.data(), n_, n_, 1, n_}; }

  std::function<void()> by_panels(const PanelStudy& study) {
    const std::size_t bytes = panel_scratch_bytes(problem_, threads_, study);
    if (scratch_.bytes() < bytes) scratch_ = HostBuffer(Allocator{}, bytes);
    return [this, study] {
      multiply_panels(FusedProduct<T>{.problem = problem_,
                                      .a = view_a(),
                                      .b = view_b(),
                                      .rows = rows_,
                                      .columns = columns_,
                                      .c = view_c(),
                                      .alpha = 1,
                                      .beta = 0,
                                      .scratch = static_cast<std::byte*>(scratch_.pointer()),
                                      .threads = threads_},
                      *int8_choice().kernels->panels, study);
    };
  }

  // The steps that the fused kernel replaces.
  void run_steps() {
    const Engine& engine = *find_engine("cpu");
    const Slices slices_a = take(program_.split_a, slice_memory_a_);
    const Slices slices_b = take(program_.split_b, slice_memory_b_);
    split_operand(view_a(), program_.split_a, rows_, slices_a, threads_);
    split_operand(view_b(), program_.split_b, columns_, slices_b, threads_);
    Accumulators sums =
        make_accumulators(program_.sum_type(engine.reduces_sums_modulo()), n_, n_, program_.schedule.sums());
    sums.data = memory_of(sums_memory_, sums.bytes());
    std::byte* const scratch = memory_of(
        step_scratch_, engine.host()->scratch_bytes(program_.schedule, FormatId::int8, n_, threads_));
    engine.host()->multiply(
        {&program_.schedule, slices_a, slices_b, sums, Accumulator::int32, scratch, threads_});
    if (program_.recombination == Recombination::residues)
      return recombine_residues(sums, program_.residue_system(), rows_, columns_, T(1), T(0), view_c(),
                                threads_);
    std::array<int, max_groups> exponents{};
    for (int g = 0; g < program_.schedule.sums(); ++g) exponents[g] = program_.schedule.sum_exponent(g);
    recombine_weighted(sums, exponents, rows_, columns_, T(1), T(0), view_c(), threads_);
  }
  Slices take(const SplitRule& rule, HostBuffer& memory) const {
    Slices slices = make_slices(int8, SliceStorage::packed, rule.slices, n_, n_);
    slices.data = memory_of(memory, slices.bytes());
    return slices;
  }
  static std::byte* memory_of(HostBuffer& memory, std::size_t bytes) {
    if (memory.bytes() < bytes) memory = HostBuffer(Allocator{}, bytes);
    return static_cast<std::byte*>(memory.pointer());
  }

  static constexpr OperandType type_of_elements =
      std::is_same_v<T, float> ? OperandType::f32 : OperandType::f64;

  std::int64_t n_;
  int threads_;
  Plan plan_;
  Program program_;
  FusedProblem problem_;
  std::vector<T> a_, b_, c_;
  std::vector<VectorRange> rows_, columns_;
  HostBuffer scratch_, slice_memory_a_, slice_memory_b_, sums_memory_, step_scratch_;
};

std::string tile_text(const PanelStudy& sizes) {
  if (sizes.depth == 0) return "-";
  return fmt::format("{} x {} x {}", sizes.left_tile, sizes.right_tile, sizes.depth);
}

template <class T>
Json measure_study(std::int64_t n, int threads, const char* scheme) {
  Study<T> study(n, threads, scheme);
  std::vector<Variant> all = study.variants();
  study.require_same_bits(all);
  time_in_turns(all, threads);
  const double shipped = all.front().seconds();
  fmt::print("\n{} n = {}, {} thread{}\n\n", scheme, n, threads, threads == 1 ? "" : "s");
  fmt::print("| question | variant | tile (left x right x depth) | GFLOP/s | of shipped | fast rounds |\n");
  fmt::print("|---|---|---|---|---|---|\n");
  Json rows = Json::array();
  for (const Variant& variant : all) {
    const double rate = 2e-9 * std::pow(static_cast<double>(n), 3) / variant.seconds();
    fmt::print("| {} | {} | {} | {:.1f} | {:.2f} | {} |\n", variant.question, variant.name,
               tile_text(variant.sizes), rate, shipped / variant.seconds(), variant.fast_rounds);
    rows.push_back({{"question", variant.question},
                    {"variant", variant.name},
                    {"left_tile", variant.sizes.left_tile},
                    {"right_tile", variant.sizes.right_tile},
                    {"depth", variant.sizes.depth},
                    {"left_block", variant.sizes.left_block},
                    {"right_block", variant.sizes.right_block},
                    {"seconds", variant.seconds()},
                    {"gflop_per_s", rate},
                    {"fast_rounds", variant.fast_rounds}});
  }
  return {{"scheme", scheme}, {"n", n}, {"threads", threads}, {"rounds", rounds}, {"rows", rows}};
}

}  // namespace
}  // namespace kintsugi::core

int main(int count, char** words) {
  using namespace kintsugi::core;
  if (int8_choice().kernels->panels == nullptr) {
    fmt::print("this CPU has no fused products of bytes\n");
    return 1;
  }
  const std::int64_t n = count > 1 ? std::atol(words[1]) : 2048;
  const int threads = count > 2 ? std::atoi(words[2]) : 1;
  fmt::print("{}\n", find_engine("cpu")->details());
  Json document{{"format", "kintsugi.panel_rate"},
                {"engine", find_engine("cpu")->details()},
                {"studies", Json::array()}};
  document["studies"].push_back(measure_study<double>(n, threads, "ozaki2:moduli=15"));
  document["studies"].push_back(measure_study<float>(n, threads, "int8x6"));
  if (count > 3) std::ofstream(words[3]) << document.dump(1) << "\n";
}

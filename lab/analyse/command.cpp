// kintsugi-lab analyse: enumerates, simulates and measures the arithmetic of a paper.
#include <memory>

#include "lab/analyse/mixpert.hpp"
#include "lab/commands.hpp"
#include "tools/program.hpp"

namespace kintsugi::tools {

namespace {

Json errors_json(const lab::SimulatedErrors& errors) {
  return {{"mean", number(errors.mean)}, {"largest", number(errors.largest)}};
}

Json analysis_json(const AnalyseRequest& request, const MixpertAnalysis& analysis) {
  Json result = document("analysis");
  result["subject"] = "mixpert";
  result["samples"] = request.samples;
  result["tiles"] = request.tiles;
  result["seed"] = request.seed;
  result["products"] = {{"expectation", number(analysis.enumerated.expectation)},
                        {"worst", number(analysis.enumerated.worst)},
                        {"worst_nearest", number(analysis.enumerated.worst_nearest)},
                        {"simulated_nearest", errors_json(analysis.nearest)},
                        {"simulated_towards_zero", errors_json(analysis.towards_zero)}};
  result["ranges"] = Json::array();
  for (const lab::RangeErrors& row : analysis.ranges) {
    result["ranges"].push_back({{"binades", row.binades},
                                {"delta", number(row.delta)},
                                {"failing", number(row.failing)},
                                {"beyond_32", number(row.beyond_32)},
                                {"segments", number(row.segments)},
                                {"componentwise", number(row.componentwise)},
                                {"native", number(row.native)}});
  }
  result["pairs"] = Json::array();
  for (const PairError& row : analysis.pairs)
    result["pairs"].push_back(
        {{"shift", row.shift}, {"operand", number(row.operand)}, {"pair", number(row.pair)}});
  result["overheads"] = Json::array();
  for (const Overhead& row : analysis.overheads) {
    result["overheads"].push_back({{"size", row.size},
                                   {"seconds", number(row.total)},
                                   {"packing", number(row.packing / row.total)},
                                   {"conversion", number(row.conversion / row.total)}});
  }
  return result;
}

void print_products(const MixpertAnalysis& analysis) {
  fmt::print("Relative error of a product of two numbers, level IV (Eqs. 5 and 6)\n\n");
  Table table({"", "mean", "largest"});
  table.add({"enumerated, the paper's assumptions", fmt::format("{:.3e}", analysis.enumerated.expectation),
             fmt::format("{:.3e}", analysis.enumerated.worst)});
  table.add({"the tie that they leave out", "", fmt::format("{:.3e}", analysis.enumerated.worst_nearest)});
  table.add({"simulated, rounded to nearest", fmt::format("{:.3e}", analysis.nearest.mean),
             fmt::format("{:.3e}", analysis.nearest.largest)});
  table.add({"simulated, rounded towards zero", fmt::format("{:.3e}", analysis.towards_zero.mean),
             fmt::format("{:.3e}", analysis.towards_zero.largest)});
  fmt::print("{}\n", table.text());
}

void print_ranges(const MixpertAnalysis& analysis) {
  fmt::print(
      "Tiles of 16 x 32 and 32 x 8 by the range of their elements (Eq. 9, k = 32), by segments alone\n\n");
  Table table(
      {"binades", "Eq. 9 in u", "fail Eq. 9", "beyond 32:1", "error", "largest by |A||B|", "native FP32"});
  for (const lab::RangeErrors& row : analysis.ranges) {
    table.add({fmt::format("{}", row.binades), fmt::format("{:.2f}", row.delta),
               fmt::format("{:.0f} %", 100 * row.failing), fmt::format("{:.0f} %", 100 * row.beyond_32),
               fmt::format("{:.2e}", row.segments), fmt::format("{:.2e}", row.componentwise),
               fmt::format("{:.2e}", row.native)});
  }
  fmt::print("{}\n", table.text());
}

void print_pairs(const MixpertAnalysis& analysis) {
  fmt::print("Frobenius error of mixpert-4 where B is 2^-s times as large as A, k = 512\n\n");
  Table table({"s", "exponent=operand", "exponent=pair"});
  for (const PairError& row : analysis.pairs)
    table.add(
        {fmt::format("{}", row.shift), fmt::format("{:.2e}", row.operand), fmt::format("{:.2e}", row.pair)});
  fmt::print("{}\n", table.text());
}

void print_overheads(const MixpertAnalysis& analysis) {
  if (analysis.overheads.empty()) return;
  fmt::print("Time of mixpert-4 on the engine cpu, one thread\n\n");
  Table table({"n", "seconds", "packing", "INT32 to FP32"});
  for (const Overhead& row : analysis.overheads) {
    table.add({fmt::format("{}", row.size), fmt::format("{:.4g}", row.total),
               fmt::format("{:.1f} %", 100 * row.packing / row.total),
               fmt::format("{:.1f} %", 100 * row.conversion / row.total)});
  }
  fmt::print("{}\n", table.text());
}

void run_analyse(const AnalyseRequest& request) {
  require_settings();
  const MixpertAnalysis analysis = analyse_mixpert(request);
  if (request.json) return print(analysis_json(request, analysis));
  print_products(analysis);
  print_ranges(analysis);
  print_pairs(analysis);
  print_overheads(analysis);
}

constexpr const char* mixpert_footer =
    "Example:\n"
    "  kintsugi-lab analyse mixpert --samples 100000 --sizes 256,512\n"
    "\n"
    "Products: Eqs. 5 and 6 of the paper, by enumeration and by simulation. Ranges: Eq. 9 and the rule\n"
    "of 32:1, compared with measured errors. Pairs: errors with one exponent for both tiles, and with\n"
    "one for each. Overhead: packing is the time that prepared operands save; INT32 to FP32 is 8/7 of\n"
    "the time that tiles of 256 save.";

}  // namespace

void add_analyse(CLI::App& program, Action& action) {
  auto request = std::make_shared<AnalyseRequest>();
  CLI::App* command =
      program.add_subcommand("analyse", "Enumerate, simulate and measure the arithmetic of a paper");
  command->footer("Example:\n  kintsugi-lab analyse mixpert --samples 100000 --sizes 256,512");
  command->require_subcommand(1);
  CLI::App* mixpert =
      command->add_subcommand("mixpert", "int8 segments with one exponent per tile: errors and overhead");
  mixpert->footer(mixpert_footer);
  mixpert->add_option("--samples", request->samples, "Random products of two numbers")
      ->check(whole_number(1))
      ->capture_default_str();
  mixpert->add_option("--tiles", request->tiles, "Random products of two tiles for each range")
      ->check(whole_number(1))
      ->capture_default_str();
  mixpert->add_option("--seed", request->seed, "The same seed gives the same errors")
      ->check(whole_number(0))
      ->capture_default_str();
  mixpert
      ->add_option("--sizes", request->sizes,
                   "Sizes n of square products that are timed, separated by commas")
      ->delimiter(',')
      ->check(whole_number(1, 16384))
      ->capture_default_str();
  mixpert->add_flag("--json", request->json, "Print the results as JSON");
  mixpert->callback([request, &action] { action = [request] { run_analyse(*request); }; });
}

}  // namespace kintsugi::tools

// mixpert's figures of speed on a device: Table 1, Figs. 2, 11 and 12a, section 3.3.1, and tiles that fail.
#include <algorithm>

#include "lab/reproduce/device_speed.hpp"

namespace kintsugi::tools {

namespace {

// A scheme with its name in the claims' series.
struct NamedScheme {
  const char* name;
  const char* scheme;
};
constexpr NamedScheme depths[] = {{"exponents every 32", "mixpert-4"},
                                  {"exponents every 128", "mixpert-4:tile=128"}};
constexpr const char* ape = "bf16x6";
constexpr const char* cutlass = "tf32x3";
constexpr const char* quantensor = "quantensor:slices=2";
constexpr const char* quantensor_high = "quantensor:slices=3";
constexpr std::int64_t goal_size = 8192;
constexpr std::int64_t paper_size = 24576;  // the paper's largest
const std::vector<std::int64_t> repeated_sizes{1024, 2048, 4096, goal_size};

double largest_of(const Evidence& evidence, const std::string& scheme, const char* member) {
  return largest(by_size(evidence, scheme, member));
}

// ---------------------------------------------------------------- Figs. 2 and 12a, Table 1

Measured peaks(const Evidence& evidence) {
  Measured measured;
  for (const auto& [name, scheme] :
       {NamedScheme{"cuBLAS", "native"}, NamedScheme{"tf32x3", cutlass}, NamedScheme{"bf16x6", ape}})
    measured.push_back({name, {1e-12 * largest_of(evidence, scheme, "rate")}});
  return measured;
}

Measured largest_ratios(const Evidence& evidence, const std::vector<NamedScheme>& schemes) {
  Measured measured;
  for (const auto& [name, scheme] : schemes)
    measured.push_back({name, {largest_of(evidence, scheme, "ratio")}});
  return measured;
}

// Returns a member of the rows of one size for both depths.
Measured at_size(const Evidence& evidence, std::int64_t n, const char* member, double unit) {
  Measured measured;
  for (const auto& [name, scheme] : depths)
    measured.push_back({name, {unit * speed_value(evidence, {.scheme = scheme, .n = n}, member)}});
  return measured;
}

Measured sweep(const Evidence& evidence) {
  Measured measured;
  for (const auto& [name, scheme] : depths) {
    const std::vector<double> speeds = by_size(evidence, scheme, "ratio");
    measured.push_back({fmt::format("{}, mean", name), {mean(speeds)}});
    measured.push_back({fmt::format("{}, largest", name), {largest(speeds)}});
  }
  for (const char* scheme : {cutlass, ape})
    measured.push_back({scheme, {largest_of(evidence, scheme, "ratio")}});
  return measured;
}

Measured mean_errors(const Evidence& evidence) {
  Measured measured;
  for (const auto& [name, scheme] : depths)
    measured.push_back({name, {mean(by_size(evidence, scheme, "frobenius_relative"))}});
  return measured;
}

Measured errors_over_native(const Evidence& evidence) {
  const std::vector<double> native = by_size(evidence, "native", "frobenius_relative");
  Measured measured;
  for (const auto& [name, scheme] : depths) {
    std::vector<double> values = by_size(evidence, scheme, "frobenius_relative");
    for (std::size_t i = 0; i < values.size(); ++i) values[i] /= native.at(i);
    measured.push_back({name, values});
  }
  return measured;
}

// Rates of dense products that NVIDIA's data sheet gives for the SXM boards of H100 and H200, a second.
constexpr std::pair<const char*, double> data_sheet_rates[] = {
    {"fp16", 989.4e12}, {"bf16", 989.4e12}, {"tf32", 494.7e12}, {"int8", 1978.9e12}};

Measured single_units(const Evidence& evidence) {
  Measured measured;
  for (const auto& [unit, rate] : data_sheet_rates)
    measured.push_back({unit, {speed_value(evidence, {.scheme = unit, .prepared = "unit"}, "rate") / rate}});
  return measured;
}

// The ceilings are rows too, so that claims read them.
Json speed_document(bool quick) {
  std::vector<std::int64_t> sizes = repeated_sizes;
  sizes.insert(sizes.end(), {16384, paper_size});
  Json result = device_speed_document(
      {{.schemes = {cutlass, ape, quantensor, quantensor_high, depths[0].scheme, depths[1].scheme},
        .sizes = sizes,
        .with_native = true,
        .measures_ceilings = true}},
      quick);
  for (const auto& [unit, rate] : data_sheet_rates)
    result["rows"].push_back({{"scheme", unit},
                              {"n", 0},
                              {"distribution", "uniform"},
                              {"prepared", "unit"},
                              {"rate", result.at("ceilings").at(unit).at("rate")}});
  result["samples"] = result.at("rows").size();
  return result;
}

std::vector<Claim> speed_claims() {
  return {{"mixpert-table1", peaks},
          {"mixpert-fig2-speed",
           [](const Evidence& evidence) {
             return largest_ratios(evidence, {{"tf32x3", cutlass}, {"bf16x6", ape}});
           }},
          {"mixpert-quantensor-speed",
           [](const Evidence& evidence) {
             return largest_ratios(evidence, {{"2 slices", quantensor}, {"3 slices", quantensor_high}});
           }},
          {"mixpert-square-speed",
           [](const Evidence& evidence) { return at_size(evidence, paper_size, "ratio", 1); }},
          {"mixpert-rtx3090", sweep},
          {"own-mixpert-units", single_units},
          {"own-mixpert-largest",
           [](const Evidence& evidence) { return at_size(evidence, paper_size, "ratio", 1); }},
          {"own-mixpert-rate",
           [](const Evidence& evidence) { return at_size(evidence, goal_size, "rate", 1e-12); }},
          {"own-mixpert-sgemm",
           [](const Evidence& evidence) { return at_size(evidence, goal_size, "ratio", 1); }},
          {"own-mixpert-error", mean_errors},
          {"own-mixpert-sgemm-error", errors_over_native}};
}

PaperFigure speed_figure() {
  return {.name = "mixpert-speed",
          .paper = "mixpert",
          .place = "Table 1 and Fig. 2 (speed), section 2.2; section 4.2; Fig. 12a, section 4.6",
          .subject = "speed and error of emulations on square matrices on a device",
          .conditions =
              "squares of n = 1024 to 24576 in device memory, uniform on [-1, 1], with the split; medians of "
              "three rounds, one above 8192; errors of 4096 elements; bf16x6 has APE's structure, tf32x3, "
              "three products of cuBLAS, CUTLASS's; rates of single units are those of wgmma alone over the "
              "data sheet's",
          .claims = speed_claims(),
          .analysis = {.format = "device-speed",
                       .make_document = speed_document,
                       .draw =
                           [](const Json& document) {
                             return draw_by_size(document, "Emulations of SGEMM on a device", "ratio",
                                                 "speed over cuBLAS SGEMM");
                           },
                       .needs_device = true}};
}

// ---------------------------------------------------------------- section 3.3.1

struct Level {
  const char* name;
  const char* number;
  double products;
};
constexpr Level first_level{"level I", "1", 4};
constexpr Level other_levels[] = {{"level II", "2", 6}, {"level III", "3", 6}, {"level IV", "4", 8}};

std::string level_scheme(const Level& level, bool deep) {
  return fmt::format("mixpert-{}{}", level.number, deep ? ":tile=128" : "");
}

Json levels_document(bool quick) {
  std::vector<std::string> schemes;
  for (const bool deep : {false, true}) {
    for (const char* name : {"mixpert-1", "mixpert-2", "mixpert-3", "mixpert-4", "mixpert-full"})
      schemes.push_back(fmt::format("{}{}", name, deep ? ":tile=128" : ""));
  }
  std::vector<SquareProducts> runs;
  for (const char* prepared : {"none", "a", "b"})
    runs.push_back({.schemes = schemes, .sizes = {goal_size}, .prepared = prepared});
  return device_speed_document(runs, quick);
}

Measured six_products(const Evidence& evidence) {
  const std::int64_t n = timed_sizes(evidence, "mixpert-4").back();
  Measured measured;
  for (const bool deep : {false, true}) {
    const double eight = seconds_without_splits(evidence, level_scheme(other_levels[2], deep), n);
    for (const Level& level : {other_levels[0], other_levels[1]})
      measured.push_back({fmt::format("{}, every {}", level.name, deep ? 128 : 32),
                          {eight / seconds_without_splits(evidence, level_scheme(level, deep), n)}});
  }
  return measured;
}

// Returns the time over level I's, as a multiple of the ratio of the counts of products.
Measured times_over_counts(const Evidence& evidence) {
  const std::int64_t n = timed_sizes(evidence, "mixpert-4").back();
  const auto whole = [&](const Level& level) {
    return seconds_of(evidence, {.scheme = level_scheme(level, true), .n = n});
  };
  const auto alone = [&](const Level& level) {
    return seconds_without_splits(evidence, level_scheme(level, true), n);
  };
  Measured measured;
  for (const Level& level : other_levels) {
    const double counts = level.products / first_level.products;
    measured.push_back(
        {fmt::format("{}, whole calls", level.name), {whole(level) / whole(first_level) / counts}});
    measured.push_back(
        {fmt::format("{}, operands prepared", level.name), {alone(level) / alone(first_level) / counts}});
  }
  return measured;
}

PaperFigure levels_figure() {
  return {.name = "mixpert-level-speed",
          .paper = "mixpert",
          .place = "section 3.3.1",
          .subject = "times of MixPert's levels on a device",
          .conditions =
              "n = 8192 in device memory, uniform on [-1, 1], medians of three rounds; the time with "
              "both operands prepared is that with A prepared and that with B prepared less that with "
              "none",
          .claims = {{"own-mixpert-levels", six_products}, {"own-mixpert-level-counts", times_over_counts}},
          .analysis = {.format = "device-speed",
                       .make_document = levels_document,
                       .draw =
                           [](const Json& document) {
                             return draw_by_size(document, "Levels of MixPert on a device", "seconds",
                                                 "seconds");
                           },
                       .needs_device = true}};
}

// ---------------------------------------------------------------- Fig. 11

Json breakdown_document(bool quick) {
  std::vector<std::int64_t> sizes = repeated_sizes;
  sizes.push_back(16384);
  std::vector<SquareProducts> runs;
  for (const char* prepared : {"none", "a", "b"})
    runs.push_back({.schemes = {ape, cutlass, depths[0].scheme, depths[1].scheme},
                    .sizes = sizes,
                    .prepared = prepared});
  return device_speed_document(runs, quick);
}

// Returns the share of the split in a scheme's time, by size.
std::vector<double> split_shares(const Evidence& evidence, const std::string& scheme) {
  std::vector<double> shares;
  for (const std::int64_t n : timed_sizes(evidence, scheme))
    shares.push_back(1 - seconds_without_splits(evidence, scheme, n) /
                             seconds_of(evidence, {.scheme = scheme, .n = n}));
  return shares;
}

// Returns the share of packing and conversions, by size. A kernel converts every 32 inner indices or every
// 128, a quarter as often: the difference of their times, operands prepared, is three quarters of the
// conversions every 32.
std::vector<double> overhead_shares(const Evidence& evidence, const NamedScheme& depth) {
  const double conversions = depth.scheme == depths[0].scheme ? 4.0 / 3 : 1.0 / 3;
  std::vector<double> shares = split_shares(evidence, depth.scheme);
  std::size_t i = 0;
  for (const std::int64_t n : timed_sizes(evidence, depth.scheme)) {
    const double difference = seconds_without_splits(evidence, depths[0].scheme, n) -
                              seconds_without_splits(evidence, depths[1].scheme, n);
    shares[i++] += conversions * difference / seconds_of(evidence, {.scheme = depth.scheme, .n = n});
  }
  return shares;
}

Measured overheads(const Evidence& evidence) {
  Measured measured;
  for (const NamedScheme& depth : depths) {
    const std::vector<double> shares = overhead_shares(evidence, depth);
    measured.push_back({fmt::format("{}, mean", depth.name), {mean(shares)}});
    measured.push_back({fmt::format("{}, largest n", depth.name), {shares.back()}});
  }
  for (const char* scheme : {ape, cutlass})
    measured.push_back({scheme, {mean(split_shares(evidence, scheme))}});
  return measured;
}

Measured packing(const Evidence& evidence) {
  Measured measured;
  for (const auto& [name, scheme] : depths) {
    const double alone = seconds_without_splits(evidence, scheme, goal_size);
    measured.push_back({name, {1 - alone / seconds_of(evidence, {.scheme = scheme, .n = goal_size})}});
  }
  return measured;
}

PaperFigure breakdown_figure() {
  return {.name = "mixpert-breakdown",
          .paper = "mixpert",
          .place = "Fig. 11, section 4.5",
          .subject = "shares of packing and of conversions in times on a device",
          .conditions =
              "squares of n = 1024 to 16384 in device memory, uniform on [-1, 1]; packing is what "
              "prepared operands save, A's and B's added; conversions follow from the times of both "
              "depths of a tile, one of which converts a quarter as often",
          .claims = {{"own-mixpert-overhead", overheads}, {"own-mixpert-packing", packing}},
          .analysis = {.format = "device-speed",
                       .make_document = breakdown_document,
                       .draw =
                           [](const Json& document) {
                             return draw_by_size(document, "Times with the split on a device", "seconds",
                                                 "seconds");
                           },
                       .needs_device = true}};
}

// ---------------------------------------------------------------- section 3.3.3

// Shares of tiles of 16 x 32 that have an outlier: 1 % of tiles of each depth.
constexpr NamedScheme outliers[] = {{"mixpert-4", "tile-outlier:0.01"},
                                    {"mixpert-4:tile=128", "tile-outlier:0.0025"}};

Json outliers_document(bool quick) {
  std::vector<SquareProducts> runs;
  for (const auto& [scheme, distribution] : outliers) {
    runs.push_back({.schemes = {scheme}, .sizes = {goal_size}, .with_native = true});
    runs.push_back(
        {.schemes = {scheme}, .sizes = {goal_size}, .distribution = distribution, .with_native = true});
  }
  return device_speed_document(runs, quick);
}

Measured outlier_times(const Evidence& evidence) {
  Measured measured;
  for (std::size_t i = 0; i < std::size(outliers); ++i) {
    const auto& [scheme, distribution] = outliers[i];
    const std::int64_t n = timed_sizes(evidence, scheme).back();
    measured.push_back({depths[i].name,
                        {seconds_of(evidence, {.scheme = scheme, .n = n, .distribution = distribution}) /
                         seconds_of(evidence, {.scheme = scheme, .n = n})}});
  }
  return measured;
}

PaperFigure outliers_figure() {
  return {.name = "mixpert-outliers",
          .paper = "mixpert",
          .place = "section 3.3.3",
          .subject = "times of MixPert with tiles that fail Eq. 9 on a device",
          .conditions =
              "n = 8192 in device memory, uniform on [-1, 1], and with an element of 2^20 in 1 % of "
              "all tiles of both operands; results are within the bound of the scheme, which bench "
              "checks",
          .claims = {{"own-mixpert-outliers", outlier_times}},
          .analysis = {.format = "device-speed",
                       .make_document = outliers_document,
                       .draw =
                           [](const Json& document) {
                             return draw_by_size(document, "Tiles that fail Eq. 9", "ratio",
                                                 "speed over cuBLAS SGEMM");
                           },
                       .needs_device = true}};
}

}  // namespace

std::vector<PaperFigure> mixpert_speed_figures() {
  return {speed_figure(), levels_figure(), breakdown_figure(), outliers_figure()};
}

}  // namespace kintsugi::tools

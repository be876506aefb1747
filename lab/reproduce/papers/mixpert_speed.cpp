// mixpert's figures of speed on a device: Table 1, Figs. 2, 11 and 12a, section 3.3.1, and tiles that fail.
#include <algorithm>
#include <set>

#include "lab/reproduce/figures.hpp"
#include "tools/bench/run.hpp"

namespace kintsugi::tools {

namespace {

// ------------------------------------------------- rows of square products

// Products that are timed in one run, round by round.
struct SquareProducts {
  std::vector<std::string> schemes;
  std::vector<std::int64_t> sizes;  // m = n = k
  std::string prepared = "none";    // operand that is split before timing: a, b or none
  std::string distribution = "uniform";
  bool with_native = false;        // times cuBLAS's product too, so that rows have a ratio to it
  bool measures_ceilings = false;  // measures the rates of the single units first
};

constexpr std::int64_t largest_repeated_size = 8192;  // larger products are timed once

Json row_of(const Json& timed, const std::string& prepared) {
  const Json& ratios = timed.at("ratios");
  return {{"n", timed.at("problem").at("n")},
          {"scheme", timed.at("name")},
          {"distribution", timed.at("distribution")},
          {"prepared", prepared},
          {"seconds", timed.at("time").at("median")},
          {"rate", timed.at("rate")},
          {"ratio", ratios.contains("native") ? ratios.at("native") : Json()},
          {"frobenius_relative", timed.at("check").at("frobenius_relative")},
          {"clock_mhz", timed.at("clock_mhz")}};
}

// Adds the rows of one size, and the ceilings if they are measured.
void add_size(Json& result, const SquareProducts& products, std::int64_t n, bool measures_ceilings) {
  BenchRequest request;
  request.candidates = products.schemes;
  request.baselines = products.with_native ? std::vector<std::string>{"native"} : std::vector<std::string>{};
  request.shapes = {std::to_string(n)};
  request.prepare = products.prepared;
  request.distribution = products.distribution;
  request.memory = "device";
  request.repeat = n > largest_repeated_size ? 1 : 3;
  request.no_ceilings = !measures_ceilings;
  Bench bench = make_bench(request);
  bench.hashes_results = false;
  const Json timed = run_bench(bench, "");
  result["device"] = timed.at("device");
  if (measures_ceilings) result["ceilings"] = timed.at("ceilings");
  for (const Json& row : timed.at("rows")) result["rows"].push_back(row_of(row, products.prepared));
}

// Returns a document of lab/schema/device-speed.schema.json: the rows of all runs, and the ceilings of the
// run that measures them. With `quick` sizes are 256 and 512 where there are several, else 256. Fails if
// there is no device.
Json device_speed_document(const std::vector<SquareProducts>& runs, bool quick) {
  Json result = document("device-speed");
  result["samples"] = 0;
  result["device"] = nullptr;
  result["ceilings"] = nullptr;
  result["rows"] = Json::array();
  for (const SquareProducts& products : runs) {
    std::vector<std::int64_t> sizes = products.sizes;
    if (quick)
      sizes = sizes.size() > 1 ? std::vector<std::int64_t>{256, 512} : std::vector<std::int64_t>{256};
    for (const std::int64_t n : sizes)
      add_size(result, products, n, products.measures_ceilings && n == sizes.front());
  }
  result["samples"] = result.at("rows").size();
  return result;
}

// Returns the document of runs with no operand prepared, with A and with B.
Json prepared_document(const std::vector<std::string>& schemes, const std::vector<std::int64_t>& sizes,
                       bool quick) {
  std::vector<SquareProducts> runs;
  for (const char* prepared : {"none", "a", "b"})
    runs.push_back({.schemes = schemes, .sizes = sizes, .prepared = prepared});
  return device_speed_document(runs, quick);
}

struct SpeedKey {
  std::string scheme;
  std::int64_t n = 0;
  std::string prepared = "none";
  std::string distribution = "uniform";
};

bool has_key(const Json& row, const SpeedKey& key) {
  return row.value("scheme", "") == key.scheme && row.value("n", std::int64_t{0}) == key.n &&
         row.value("prepared", "") == key.prepared && row.value("distribution", "") == key.distribution;
}

// Returns a member of the row; fails if there is no such row.
double speed_value(const Evidence& evidence, const SpeedKey& key, const char* member) {
  for (const Json& row : evidence.rows()) {
    if (has_key(row, key)) return read_number(row.at(member));
  }
  throw NoSuchRow(fmt::format("no row has {} at n = {}, {}, prepared {}", key.scheme, key.n, key.distribution,
                              key.prepared));
}

double seconds_of(const Evidence& evidence, const SpeedKey& key) {
  return speed_value(evidence, key, "seconds");
}

// Returns the sizes that a scheme was timed at with no operand prepared, ascending; fails if there is none.
std::vector<std::int64_t> timed_sizes(const Evidence& evidence, const std::string& scheme) {
  std::set<std::int64_t> sizes;
  for (const Json& row : evidence.rows()) {
    const std::int64_t n = row.value("n", std::int64_t{0});
    if (has_key(row, {.scheme = scheme, .n = n})) sizes.insert(n);
  }
  if (sizes.empty()) throw NoSuchRow("no row has " + scheme);
  return {sizes.begin(), sizes.end()};
}

// Returns value(n) for those sizes.
std::vector<double> by_size(const Evidence& evidence, const std::string& scheme,
                            const std::function<double(std::int64_t n)>& value) {
  std::vector<double> values;
  for (const std::int64_t n : timed_sizes(evidence, scheme)) values.push_back(value(n));
  return values;
}

// Returns a member of the rows of those sizes.
std::vector<double> by_size(const Evidence& evidence, const std::string& scheme, const char* member) {
  return by_size(evidence, scheme,
                 [&](std::int64_t n) { return speed_value(evidence, {.scheme = scheme, .n = n}, member); });
}

// Returns the time without both splits: each operand's split is what preparing it alone saves.
double seconds_without_splits(const Evidence& evidence, const std::string& scheme, std::int64_t n) {
  return seconds_of(evidence, {.scheme = scheme, .n = n, .prepared = "a"}) +
         seconds_of(evidence, {.scheme = scheme, .n = n, .prepared = "b"}) -
         seconds_of(evidence, {.scheme = scheme, .n = n});
}

// Returns a chart of a member of the rows with no operand prepared against n, a line for each scheme.
std::vector<Figure> draw_by_size(const Json& document, const std::string& title, const char* member,
                                 const std::string& label) {
  Chart chart{.title = title, .x_label = "n, m = n = k", .y_label = label, .log_y = false};
  for (const Json& row : document.at("rows")) {
    if (row.at("prepared") != "none" || row.at(member).is_null()) continue;
    const std::string scheme = cell(row, "scheme") + ", " + cell(row, "distribution");
    auto series = std::find_if(chart.series.begin(), chart.series.end(),
                               [&](const Series& known) { return known.label == scheme; });
    if (series == chart.series.end()) {
      const int index = static_cast<int>(chart.series.size());
      chart.series.push_back({.label = scheme, .colour = index, .style = index, .points = {}});
      series = chart.series.end() - 1;
    }
    series->points.emplace_back(row.at("n").get<double>(), read_number(row.at(member)));
  }
  if (chart.series.empty()) return {};
  return {{title, {{.chart = chart, .name = member}}}};
}

// Returns the figure with its analysis; a chart shows a member of its rows.
PaperFigure speed_figure(PaperFigure figure, const std::function<Json(bool quick)>& make_document,
                         const std::string& title, const char* member) {
  figure.analysis = {.format = "device-speed",
                     .make_document = make_document,
                     .draw =
                         [=](const Json& document) {
                           return draw_by_size(
                               document, title, member,
                               member == std::string("ratio") ? "speed over cuBLAS SGEMM" : "seconds");
                         },
                     .needs_device = true};
  return figure;
}

// ---------------------------------------------------------------- schemes

// A scheme with its name in the claims' series.
struct NamedScheme {
  const char* name;
  const char* scheme;
};
const std::vector<NamedScheme> depths{{"exponents every 32", "mixpert-4"},
                                      {"exponents every 128", "mixpert-4:tile=128"}};
constexpr const char* ape = "bf16x6";
constexpr const char* cutlass = "tf32x3";
constexpr const char* quantensor = "quantensor:slices=2";
constexpr const char* quantensor_high = "quantensor:slices=3";
constexpr std::int64_t goal_size = 8192;
constexpr std::int64_t paper_size = 24576;  // the paper's largest
const std::vector<std::int64_t> repeated_sizes{1024, 2048, 4096, goal_size};

double largest_of(const Evidence& evidence, const std::string& scheme, const char* member) {
  const std::vector<double> values = by_size(evidence, scheme, member);
  return *std::max_element(values.begin(), values.end());
}

// ---------------------------------------------------------------- Figs. 2 and 12a, Table 1

using SchemeValues = std::function<std::vector<double>(const Evidence& evidence, const char* scheme)>;

// Returns a claim's function with a series for each scheme.
std::function<Measured(const Evidence&)> by_scheme(const std::vector<NamedScheme>& schemes,
                                                   const SchemeValues& values) {
  return [=](const Evidence& evidence) {
    return series_of(
        [&](const NamedScheme& named) {
          return SeriesValues{named.name, values(evidence, named.scheme)};
        },
        schemes);
  };
}

// Returns a member of the row of one size.
SchemeValues at_size(std::int64_t n, const char* member, double unit) {
  return [=](const Evidence& evidence, const char* scheme) {
    return std::vector{unit * speed_value(evidence, {.scheme = scheme, .n = n}, member)};
  };
}

Measured sweep(const Evidence& evidence) {
  Measured measured;
  for (const auto& [name, scheme] : depths) {
    measured.push_back({fmt::format("{}, mean", name), {mean(by_size(evidence, scheme, "ratio"))}});
    measured.push_back({fmt::format("{}, largest", name), {largest_of(evidence, scheme, "ratio")}});
  }
  for (const char* scheme : {cutlass, ape})
    measured.push_back({scheme, {largest_of(evidence, scheme, "ratio")}});
  return measured;
}

std::vector<double> mean_error(const Evidence& evidence, const char* scheme) {
  return {mean(by_size(evidence, scheme, "frobenius_relative"))};
}

std::vector<double> errors_over_native(const Evidence& evidence, const char* scheme) {
  const std::vector<double> native = by_size(evidence, "native", "frobenius_relative");
  std::vector<double> values = by_size(evidence, scheme, "frobenius_relative");
  for (std::size_t i = 0; i < values.size(); ++i) values[i] /= native.at(i);
  return values;
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
  return {{"mixpert-square-speed", by_scheme(depths, at_size(paper_size, "ratio", 1))},
          {"mixpert-rtx3090", sweep},
          {"own-mixpert-units", single_units},
          {"own-mixpert-largest", by_scheme(depths, at_size(paper_size, "ratio", 1))},
          {"own-mixpert-rate", by_scheme(depths, at_size(goal_size, "rate", 1e-12))},
          {"own-mixpert-sgemm", by_scheme(depths, at_size(goal_size, "ratio", 1))},
          {"own-mixpert-error", by_scheme(depths, mean_error)},
          {"own-mixpert-sgemm-error", by_scheme(depths, errors_over_native)}};
}

PaperFigure emulations_figure() {
  return speed_figure(
      {.name = "mixpert-speed",
       .paper = "mixpert",
       .place = "Table 1 and Fig. 2 (speed), section 2.2; section 4.2; Fig. 12a, section 4.6",
       .subject = "speed and error of emulations on square matrices on a device",
       .conditions =
           "squares of n = 1024 to 24576 in device memory, uniform on [-1, 1], with the split; medians of "
           "three rounds, one above 8192; errors of 4096 elements; bf16x6 has APE's structure, tf32x3, "
           "three products of cuBLAS, CUTLASS's; rates of single units are those of wgmma alone over the "
           "data sheet's",
       .claims = speed_claims()},
      speed_document, "Emulations of SGEMM on a device", "ratio");
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
  return prepared_document(schemes, {goal_size}, quick);
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
  return speed_figure(
      {.name = "mixpert-level-speed",
       .paper = "mixpert",
       .place = "section 3.3.1",
       .subject = "times of MixPert's levels on a device",
       .conditions = "n = 8192 in device memory, uniform on [-1, 1], medians of three rounds; the time with "
                     "both operands prepared is that with A prepared and that with B prepared less that with "
                     "none",
       .claims = {{"own-mixpert-levels", six_products}, {"own-mixpert-level-counts", times_over_counts}}},
      levels_document, "Levels of MixPert on a device", "seconds");
}

// ---------------------------------------------------------------- Fig. 11

Json breakdown_document(bool quick) {
  std::vector<std::int64_t> sizes = repeated_sizes;
  sizes.push_back(16384);
  return prepared_document({ape, cutlass, depths[0].scheme, depths[1].scheme}, sizes, quick);
}

// Returns the share of the split in a scheme's time.
double split_share(const Evidence& evidence, const std::string& scheme, std::int64_t n) {
  return 1 - seconds_without_splits(evidence, scheme, n) / seconds_of(evidence, {.scheme = scheme, .n = n});
}

// Returns the share of packing and conversions, by size. A kernel converts every 32 inner indices or every
// 128, a quarter as often: the difference of their times, operands prepared, is three quarters of the
// conversions every 32.
std::vector<double> overhead_shares(const Evidence& evidence, const NamedScheme& depth) {
  const double conversions = depth.scheme == depths[0].scheme ? 4.0 / 3 : 1.0 / 3;
  return by_size(evidence, depth.scheme, [&](std::int64_t n) {
    const double difference = seconds_without_splits(evidence, depths[0].scheme, n) -
                              seconds_without_splits(evidence, depths[1].scheme, n);
    return split_share(evidence, depth.scheme, n) +
           conversions * difference / seconds_of(evidence, {.scheme = depth.scheme, .n = n});
  });
}

Measured overheads(const Evidence& evidence) {
  Measured measured;
  for (const NamedScheme& depth : depths) {
    const std::vector<double> shares = overhead_shares(evidence, depth);
    measured.push_back({fmt::format("{}, mean", depth.name), {mean(shares)}});
    measured.push_back({fmt::format("{}, largest n", depth.name), {shares.back()}});
  }
  for (const char* scheme : {ape, cutlass}) {
    const auto share = [&](std::int64_t n) { return split_share(evidence, scheme, n); };
    measured.push_back({scheme, {mean(by_size(evidence, scheme, share))}});
  }
  return measured;
}

Measured mean_overheads(const Evidence& evidence) {
  return series_of(
      [&](const NamedScheme& depth) {
        return SeriesValues{depth.name, {mean(overhead_shares(evidence, depth))}};
      },
      depths);
}

std::vector<double> packing(const Evidence& evidence, const char* scheme) {
  return {split_share(evidence, scheme, goal_size)};
}

PaperFigure breakdown_figure() {
  return speed_figure(
      {.name = "mixpert-breakdown",
       .paper = "mixpert",
       .place = "Fig. 11, section 4.5",
       .subject = "shares of packing and of conversions in times on a device",
       .conditions = "squares of n = 1024 to 16384 in device memory, uniform on [-1, 1]; packing is what "
                     "prepared operands save, A's and B's added; conversions follow from the times of both "
                     "depths of a tile, one of which converts a quarter as often",
       .claims = {{"mixpert-overhead", mean_overheads},
                  {"own-mixpert-overhead", overheads},
                  {"own-mixpert-packing", by_scheme(depths, packing)}}},
      breakdown_document, "Times with the split on a device", "seconds");
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
  return speed_figure(
      {.name = "mixpert-outliers",
       .paper = "mixpert",
       .place = "section 3.3.3",
       .subject = "times of MixPert with tiles that fail Eq. 9 on a device",
       .conditions = "n = 8192 in device memory, uniform on [-1, 1], and with an element of 2^20 in 1 % of "
                     "all tiles of both operands; results are within the bound of the scheme, which bench "
                     "checks",
       .claims = {{"own-mixpert-outliers", outlier_times}}},
      outliers_document, "Tiles that fail Eq. 9", "ratio");
}

}  // namespace

std::vector<PaperFigure> mixpert_speed_figures() {
  return {emulations_figure(), levels_figure(), breakdown_figure(), outliers_figure()};
}

}  // namespace kintsugi::tools

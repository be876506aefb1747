// fp16-emulation-study: errors of every method against its speed, and which methods no other one beats in
// both.
#include <algorithm>
#include <map>

#include "lab/predict/model.hpp"
#include "lab/reproduce/product_errors.hpp"
#include "tools/bench/run.hpp"
#include "tools/measure/machine/device.hpp"

namespace kintsugi::tools {

namespace {

using predict::Terms;
using predict::Unit;

constexpr double pareto_size = 8192;  // n of the speeds
constexpr const char* pareto_chip = "NVIDIA A100-SXM4-40GB";
constexpr const char* error_quantity = "mean relative error";
constexpr const char* speed_quantity = "TFLOP/s";
constexpr const char* front_quantity = "on the front";
constexpr const char* timed_source = "kintsugi bench";

// A scheme, the line of the picture that it is on, and its products.
struct ParetoMethod {
  std::string scheme;
  std::string line;
  Terms terms;
};

// Returns slices of fp16 by the study's best rule: residuals scaled, sums outside every 16 inner indices.
ParetoMethod split_terms(int slices, int products) {
  return {fmt::format("split-n:a={0}:b={0}:terms={1}:scale=11:block=16", slices, products),
          fmt::format("split-n, {} slices, scaled, outside", slices),
          {Unit::fp16, static_cast<double>(products), static_cast<double>(slices)}};
}

ParetoMethod named(const std::string& scheme, const Terms& terms) { return {scheme, scheme, terms}; }

const std::vector<ParetoMethod>& pareto_methods() {
  static const std::vector<ParetoMethod> all = [] {
    const Terms four{Unit::fp16, 4, 2};
    const Terms three{Unit::fp16, 3, 2};
    std::vector<ParetoMethod> methods{named("fp16", {Unit::fp16, 1, 1}),
                                      named("markidis", four),
                                      named("egemm", four),
                                      {"split-n:scale=0:block=0", "split-n, unscaled, inside", four},
                                      {"split-n:scale=0:block=16", "split-n, unscaled, outside", four},
                                      {"split-n:scale=11:block=0", "split-n, scaled, inside", four},
                                      named("ootomo", three),
                                      named("legemm", three),
                                      named("h2sgemm", three),
                                      named("fp16x3", three),
                                      named("fp16x3-wide", three),
                                      named("tf32x3", {Unit::tf32, 3, 2}),
                                      named("bf16x6", {Unit::bf16, 6, 3}),
                                      named("bf16x9", {Unit::bf16, 9, 3})};
    for (const auto& [slices, most] : {std::pair{2, 4}, {3, 9}, {4, 16}})
      for (int products = slices; products <= most; ++products)
        methods.push_back(split_terms(slices, products));
    return methods;
  }();
  return all;
}

std::vector<std::string> pareto_schemes() {
  std::vector<std::string> schemes;
  for (const ParetoMethod& method : pareto_methods()) schemes.push_back(method.scheme);
  return schemes;
}

// Adds the errors on the A100's model, averaged over the seeds.
void add_errors(Json& result, bool quick) {
  std::vector<std::string> schemes = pareto_schemes();
  schemes.emplace_back("native");
  const Json measured = product_errors_analysis("", {{.schemes = schemes,
                                                      .methods = {{"", "reference", "a100"}},
                                                      .distributions = {"type1", "type2", "type3", "type4"},
                                                      .shapes = {{64, 64, 1024}},
                                                      .seeds = {1, 2, 3, 4, 5}}})
                            .make_document(quick);
  result["samples"] = measured.at("samples");
  result["seed"] = measured.at("seed");
  std::map<std::pair<std::string, std::string>, std::vector<double>> errors;
  for (const Json& row : measured.at("rows"))
    errors[{cell(row, "distribution"), cell(row, "scheme")}].push_back(
        row.at("errors").at("mean_relative_long_double").get<double>());
  for (const auto& [key, values] : errors)
    result["rows"].push_back({{"quantity", error_quantity},
                              {"value", mean(values)},
                              {"distribution", key.first},
                              {"scheme", key.second},
                              {"k", measured.at("rows").front().at("problem").at("k")}});
}

void add_speed(Json& rows, const std::string& device, const std::string& source, const std::string& scheme,
               double n, double speed) {
  rows.push_back({{"quantity", speed_quantity},
                  {"value", speed},
                  {"device", device},
                  {"source", source},
                  {"scheme", scheme},
                  {"k", static_cast<std::int64_t>(n)}});
}

void add_predicted(Json& rows) {
  const predict::Chip& chip = predict::chip(pareto_chip);
  const std::string source = "predicted for an A100: " + chip.source;
  for (const ParetoMethod& method : pareto_methods())
    add_speed(rows, pareto_chip, source, method.scheme, pareto_size,
              *predict::speed(method.terms, chip, pareto_size));
  add_speed(rows, pareto_chip, source, "native", pareto_size,
            *predict::speed(predict::Method::native_fp32, chip, pareto_size));
}

// Times all methods where their products run: on a device, or small ones on the CPU.
void add_timed(Json& rows, bool on_device, std::int64_t n) {
  BenchRequest request;
  request.candidates = pareto_schemes();
  request.baselines = {"native"};
  request.shapes = {std::to_string(n)};
  request.memory = on_device ? "device" : "host";
  request.repeat = 3;
  request.no_ceilings = on_device;
  Bench bench = make_bench(request);
  bench.hashes_results = false;
  const Json timed = run_bench(bench, "");
  const std::string device =
      on_device ? cell(timed.at("device"), "name") : cell(timed.at("machine"), "processor");
  const auto size = static_cast<double>(n);
  for (const Json& row : timed.at("rows"))
    add_speed(rows, device, timed_source, cell(row, "name"), size,
              2e-12 * size * size * size / row.at("time").at("median").get<double>());
}

// Returns the value of the rows of a quantity, by their scheme.
std::map<std::string, double> by_scheme(const Json& rows, const char* quantity, const char* member,
                                        const std::string& value) {
  std::map<std::string, double> values;
  for (const Json& row : rows)
    if (row.at("quantity") == quantity && row.value(member, "") == value)
      values[cell(row, "scheme")] = read_number(row.at("value"));
  return values;
}

// Returns each value of the member in the quantity's rows, in their order.
std::vector<std::string> values_of(const Json& rows, const char* quantity, const char* member) {
  std::vector<std::string> values;
  for (const Json& row : rows)
    if (row.at("quantity") == quantity && !contains(values, cell(row, member)))
      values.push_back(cell(row, member));
  return values;
}

// Adds a row for each method that is more accurate than every method that is as quick or quicker.
void add_fronts(Json& rows) {
  const Json measured = rows;
  for (const std::string& source : values_of(measured, speed_quantity, "source")) {
    const auto speeds = by_scheme(measured, speed_quantity, "source", source);
    for (const std::string& type : values_of(measured, error_quantity, "distribution")) {
      const auto errors = by_scheme(measured, error_quantity, "distribution", type);
      for (const auto& [scheme, speed] : speeds) {
        const double error = errors.at(scheme);
        const bool is_beaten = std::any_of(speeds.begin(), speeds.end(), [&](const auto& other) {
          const double of_other = errors.at(other.first);
          return other.second >= speed && of_other <= error && (other.second > speed || of_other < error);
        });
        if (!is_beaten)
          rows.push_back({{"quantity", front_quantity},
                          {"value", 1},
                          {"source", source},
                          {"distribution", type},
                          {"scheme", scheme}});
      }
    }
  }
}

Json pareto_document(bool quick) {
  Json result = analysis_document("quantities", 1, 0);
  add_errors(result, quick);
  add_predicted(result["rows"]);
  const bool on_device = measure::device_missing_reason().empty();
  constexpr std::int64_t quick_size = 64;
  if (on_device || quick)
    add_timed(result["rows"], on_device, quick ? quick_size : static_cast<std::int64_t>(pareto_size));
  add_fronts(result["rows"]);
  return result;
}

// Returns the picture of one source of speeds and type: a line for each family of methods, and the front.
Chart pareto_chart(const Json& rows, const std::string& source, const std::string& type) {
  const auto speeds = by_scheme(rows, speed_quantity, "source", source);
  const auto errors = by_scheme(rows, error_quantity, "distribution", type);
  Chart chart{.title = fmt::format("{}, speeds {}", type, source),
              .x_label = "TFLOP/s",
              .y_label = "mean relative error, R summed in 80-bit long double",
              .ticks_at_points = false};
  const auto add = [&](const std::string& label, int colour, int style, const std::string& scheme) {
    series_in(chart, {.label = label, .colour = colour, .style = style, .points = {}})
        .points.emplace_back(speeds.at(scheme), errors.at(scheme));
  };
  std::vector<std::string> lines;
  for (const ParetoMethod& method : pareto_methods()) {
    if (!contains(lines, method.line)) lines.push_back(method.line);
    const auto index = static_cast<int>(std::find(lines.begin(), lines.end(), method.line) - lines.begin());
    add(method.line, index, index, method.scheme);
  }
  add("native FP32", colour_of_text, 0, "native");
  Series front{"no method is quicker and more accurate", colour_of_text, 2, {}};
  for (const Json& row : rows)
    if (row.at("quantity") == front_quantity && row.at("source") == source && row.at("distribution") == type)
      front.points.emplace_back(speeds.at(cell(row, "scheme")), errors.at(cell(row, "scheme")));
  chart.limits.push_back(std::move(front));
  for (auto* list : {&chart.series, &chart.limits})
    for (Series& series : *list) std::sort(series.points.begin(), series.points.end());
  return chart;
}

// Returns, for each type, the error of ootomo over the least one of a method that is predicted to be as
// quick or quicker; 1: none beats it.
Measured ootomo_over_best(const Evidence& evidence) {
  const std::string ootomo = "ootomo";
  const Json rows = evidence.rows();
  const auto speeds = by_scheme(rows, speed_quantity, "device", pareto_chip);
  Measured measured;
  for (const std::string& type : values_of(rows, error_quantity, "distribution")) {
    const auto errors = by_scheme(rows, error_quantity, "distribution", type);
    double least = errors.at(ootomo);
    for (const auto& [scheme, speed] : speeds)
      if (speed >= speeds.at(ootomo)) least = std::min(least, errors.at(scheme));
    measured.push_back({type, {errors.at(ootomo) / least}});
  }
  return measured;
}

std::vector<Figure> draw_pareto(const Json& document) {
  const Json& rows = document.at("rows");
  Figure figure{"Errors against speeds", {}};
  for (const std::string& source : values_of(rows, speed_quantity, "source"))
    for (const std::string& type : values_of(rows, error_quantity, "distribution"))
      figure.pictures.push_back(
          {.chart = pareto_chart(rows, source, type),
           .name = fmt::format("{}-{}", type, source == timed_source ? "measured" : "predicted")});
  return {figure};
}

}  // namespace

PaperFigure study_pareto_figure() {
  return {
      .name = "study-pareto",
      .paper = "fp16-emulation-study",
      .place = "Results, conclusion (no figure is printed)",
      .subject = "error against speed of all methods, types 1 to 4",
      .conditions =
          "errors: the A100's model, 64 x 64 elements, k = 1024, five seeds, random signs; speeds: n = 8192 on "
          "an A100 as kintsugi-lab predict has them, by the number of products and the bytes of slices, and "
          "measured ones where there is a device; the study has no measure of trade-offs; markidis truncates, egemm rounds to nearest, split-n scaled or not, inside or outside, has four "
          "products",
      .claims = {{"study-trade", ootomo_over_best}},
      .analysis = {.format = "quantities", .make_document = pareto_document, .draw = draw_pareto}};
}

}  // namespace kintsugi::tools

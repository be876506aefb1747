// kintsugi-lab predict: speeds that published rates predict for the papers' chips, beside what papers print.
#include <algorithm>
#include <cmath>
#include <memory>

#include "lab/commands.hpp"
#include "lab/predict/model.hpp"
#include "tools/report/charts.hpp"
#include "tools/report/pictures.hpp"

namespace kintsugi::tools {

namespace {

struct PredictRequest {
  double n = 8192;
  std::string picture;
  bool json = false;
};

std::string speed_text(const std::optional<double>& speed) {
  return speed ? fmt::format("{:.3g}", *speed) : "-";
}

std::string percent_text(double error) { return fmt::format("{:+.1f} %", 100 * error); }

// Returns the predictions of all headlines that the model can make, over what is printed.
std::vector<double> headline_ratios(double n) {
  std::vector<double> ratios;
  for (const predict::Headline& headline : predict::headlines()) {
    if (const auto value = predict::prediction(headline, n)) ratios.push_back(*value / headline.printed);
  }
  return ratios;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The factor by which a prediction and a printed figure differ, to either side.
std::vector<double> headline_factors(double n) {
  std::vector<double> factors = headline_ratios(n);
  for (double& factor : factors) factor = std::max(factor, 1 / factor);
  return factors;
}

std::string errors_text(double n) {
  Table table({"device", "method", "by the other's shares", "by its own", "error"});
  const auto errors = predict::model_errors(n);
  for (const auto& error : errors)
    table.add({error.device, predict::name_of(error.method), fmt::format("{:.3g}", error.predicted),
               fmt::format("{:.3g}", error.measured), percent_text(error.error())});
  const auto factors = headline_factors(n);
  return fmt::format(
      "Errors of the model, TFLOP/s at n = {:.0f}: at most {:.1f} % on the two devices that were measured, which "
      "differ in memory alone. From what papers print of other chips and other kernels it differs by a factor of "
      "{:.2f} (median), at most {:.2f}.\n\n{}\n",
      n, 100 * predict::largest_error(errors), median(factors),
      *std::max_element(factors.begin(), factors.end()), table.text());
}

std::string chips_text(double n) {
  std::vector<std::string> head{"chip"};
  for (const predict::Method method : predict::methods) head.emplace_back(predict::name_of(method));
  head.emplace_back("published rates");
  Table table(head);
  for (const predict::Chip& chip : predict::chips()) {
    std::vector<std::string> cells{chip.name};
    for (const predict::Method method : predict::methods)
      cells.push_back(speed_text(predict::speed(method, chip, n)));
    cells.push_back(chip.source);
    table.add(cells);
  }
  return fmt::format(
      "TFLOP/s at n = {:.0f}, by the shares of published rates that our kernels reach on an {}:\n\n{}\n", n,
      predict::measured_devices[0], table.text());
}

std::string headlines_text(double n) {
  Table table({"paper", "place", "chip", "figure", "printed", "predicted", "over printed"});
  for (const predict::Headline& headline : predict::headlines()) {
    const auto value = predict::prediction(headline, n);
    table.add({headline.paper, headline.place, headline.chip, headline.what,
               fmt::format("{:.3g}", headline.printed), speed_text(value),
               value ? fmt::format("{:.2f}", *value / headline.printed) : "-"});
  }
  return "What papers print, TFLOP/s or ratios:\n\n" + table.text();
}

Json document_of(double n) {
  Json result = document("predictions");
  result["n"] = n;
  result["largest_error"] = predict::largest_error(predict::model_errors(n));
  result["errors"] = Json::array();
  for (const auto& error : predict::model_errors(n))
    result["errors"].push_back({{"device", error.device},
                                {"method", predict::name_of(error.method)},
                                {"predicted", error.predicted},
                                {"measured", error.measured}});
  const auto number_or_null = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  result["chips"] = Json::array();
  for (const predict::Chip& chip : predict::chips()) {
    Json speeds = Json::object();
    for (const predict::Method method : predict::methods)
      speeds[predict::name_of(method)] = number_or_null(predict::speed(method, chip, n));
    result["chips"].push_back({{"name", chip.name}, {"source", chip.source}, {"speeds", speeds}});
  }
  result["headlines"] = Json::array();
  for (const predict::Headline& headline : predict::headlines())
    result["headlines"].push_back({{"paper", headline.paper},
                                   {"place", headline.place},
                                   {"chip", headline.chip},
                                   {"figure", headline.what},
                                   {"printed", headline.printed},
                                   {"predicted", number_or_null(predict::prediction(headline, n))}});
  return result;
}

// Returns predictions against what is printed, a line for each paper.
Chart chart_of(double n) {
  Chart chart{.title = "Speeds that published rates predict, and what papers print",
              .x_label = "printed (TFLOP/s or ratio)",
              .y_label = "predicted",
              .ticks_at_points = false};
  for (const predict::Headline& headline : predict::headlines()) {
    const auto value = predict::prediction(headline, n);
    if (!value) continue;
    const auto same_paper = std::find_if(chart.series.begin(), chart.series.end(), [&](const Series& series) {
      return series.label == headline.paper;
    });
    const int colour = static_cast<int>(chart.series.size());
    Series& series = same_paper != chart.series.end()
                         ? *same_paper
                         : chart.series.emplace_back(Series{headline.paper, colour, 0, {}});
    series.points.emplace_back(headline.printed, *value);
  }
  for (Series& series : chart.series) std::sort(series.points.begin(), series.points.end());
  chart.limits.push_back({"as printed", 0, 2, {{0.5, 0.5}, {100, 100}}});
  return chart;
}

void run_predict(const PredictRequest& request) {
  require_settings();
  if (!request.picture.empty()) write_text(request.picture, draw(chart_of(request.n), chart_style()));
  if (request.json) return print(document_of(request.n));
  fmt::print("{}{}{}", errors_text(request.n), chips_text(request.n), headlines_text(request.n));
}

}  // namespace

void add_predict(CLI::App& program, Action& action) {
  auto request = std::make_shared<PredictRequest>();
  CLI::App* command =
      program.add_subcommand("predict", "Predict speeds on the papers' chips from published rates");
  command->footer(
      "Example:\n"
      "  kintsugi-lab predict --n 8192 -o predicted.svg");
  command->add_option("--n", request->n, "Rows, columns and inner indices [8192]")
      ->check(CLI::PositiveNumber);
  command->add_option("-o,--output", request->picture, "SVG file for the predictions beside printed figures");
  command->add_flag("--json", request->json, "Print the predictions as JSON");
  command->callback([request, &action] { action = [request] { run_predict(*request); }; });
}

}  // namespace kintsugi::tools

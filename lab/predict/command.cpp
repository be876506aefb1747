// kintsugi-lab predict: speeds that published rates predict for the papers' chips, beside what papers print.
#include <algorithm>
#include <cmath>
#include <filesystem>
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
  std::string markdown;
  bool json = false;
};

std::string speed_text(const std::optional<double>& speed) {
  return speed ? fmt::format("{:.3g}", *speed) : "-";
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Factors by which predictions and printed figures differ, to either side.
std::vector<double> headline_factors(double n) {
  std::vector<double> factors;
  for (const predict::Headline& headline : predict::headlines()) {
    const auto value = predict::prediction(headline, n);
    if (value) factors.push_back(std::max(*value / headline.printed, headline.printed / *value));
  }
  return factors;
}

// A paragraph with a table below it.
struct Part {
  std::string title;
  std::string words;
  std::vector<std::vector<std::string>> rows;  // the first has the heads
};

Part errors_part(double n) {
  const auto errors = predict::model_errors(n);
  const auto factors = headline_factors(n);
  Part part{
      .title = "Errors of the model",
      .words = fmt::format(
          "At most {:.1f} % on the two devices that were measured, which differ in memory alone: each by the other's "
          "shares and by its own, TFLOP/s at n = {:.0f}. From what papers print of other chips and of their own "
          "kernels the predictions differ by a factor of {:.2f} (median), at most {:.2f}.",
          100 * predict::largest_error(errors), n, median(factors),
          *std::max_element(factors.begin(), factors.end())),
      .rows = {{"device", "products", "by the other's shares", "by its own", "error"}}};
  for (const auto& error : errors)
    part.rows.push_back({error.device, predict::name_of(error.method), fmt::format("{:.3g}", error.predicted),
                         fmt::format("{:.3g}", error.measured),
                         fmt::format("{:+.1f} %", 100 * error.error())});
  return part;
}

Part chips_part(double n) {
  Part part{.title = "Chips",
            .words = fmt::format(
                "TFLOP/s of 2 n^3 operations at n = {:.0f}: published rates, times the shares that our "
                "kernels reach on an {}, over the number of products, and the bytes of splits, sums "
                "and C. \"8 int8\" is without MixPert's conversions, \"66 fp16\" DGEMM-TC's DP mode.",
                n, predict::measured_devices[0]),
            .rows = {{"chip"}}};
  for (const predict::Method method : predict::methods) part.rows[0].emplace_back(predict::name_of(method));
  part.rows[0].emplace_back("published rates");
  for (const predict::Chip& chip : predict::chips()) {
    std::vector<std::string> cells{chip.name};
    for (const predict::Method method : predict::methods)
      cells.push_back(speed_text(predict::speed(method, chip, n)));
    cells.push_back(chip.source);
    part.rows.push_back(cells);
  }
  return part;
}

Part headlines_part(double n) {
  Part part{.title = "What papers print",
            .words = "TFLOP/s, or ratios.",
            .rows = {{"paper", "place", "chip", "figure", "printed", "predicted", "over printed"}}};
  for (const predict::Headline& headline : predict::headlines()) {
    const auto value = predict::prediction(headline, n);
    part.rows.push_back({headline.paper, headline.place, headline.chip, headline.what,
                         fmt::format("{:.3g}", headline.printed), speed_text(value),
                         value ? fmt::format("{:.2f}", *value / headline.printed) : "-"});
  }
  return part;
}

std::vector<Part> parts_of(double n) { return {errors_part(n), chips_part(n), headlines_part(n)}; }

std::string text_of(const Part& part) {
  Table table(part.rows.front());
  for (std::size_t i = 1; i < part.rows.size(); ++i) table.add(part.rows[i]);
  return fmt::format("{}: {}\n\n{}\n", part.title, part.words, table.text());
}

std::string markdown_of(const std::vector<Part>& parts, const std::string& picture) {
  std::string text =
      "# Speeds that published rates predict\n\nMade by `kintsugi-lab predict`; not to be edited by hand.\n";
  if (!picture.empty())
    text += fmt::format("\n![Predicted speeds over printed ones]({})\n",
                        std::filesystem::path(picture).filename().string());
  for (const Part& part : parts) {
    text += fmt::format("\n## {}\n\n{}\n\n", part.title, wrapped(part.words, 120, 0));
    for (std::size_t i = 0; i < part.rows.size(); ++i) {
      text += fmt::format("| {} |\n", fmt::join(part.rows[i], " | "));
      if (i > 0) continue;
      for (std::size_t column = 0; column < part.rows[i].size(); ++column) text += "|---";
      text += "|\n";
    }
  }
  return text;
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
  const std::vector<Part> parts = parts_of(request.n);
  if (!request.markdown.empty()) write_text(request.markdown, markdown_of(parts, request.picture));
  if (request.json) return print(document_of(request.n));
  for (const Part& part : parts) fmt::print("{}", text_of(part));
}

}  // namespace

void add_predict(CLI::App& program, Action& action) {
  auto request = std::make_shared<PredictRequest>();
  CLI::App* command =
      program.add_subcommand("predict", "Predict speeds on the papers' chips from published rates");
  command->footer(
      "Example:\n"
      "  kintsugi-lab predict -o lab/results/predictions.svg --markdown lab/results/predictions.md");
  command->add_option("--n", request->n, "Rows, columns and inner indices [8192]")
      ->check(CLI::PositiveNumber);
  command->add_option("-o,--output", request->picture, "SVG file for the predictions beside printed figures");
  command->add_option("--markdown", request->markdown, "File for the tables as Markdown");
  command->add_flag("--json", request->json, "Print the predictions as JSON");
  command->callback([request, &action] { action = [request] { run_predict(*request); }; });
}

}  // namespace kintsugi::tools

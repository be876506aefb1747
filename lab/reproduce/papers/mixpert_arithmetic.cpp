// mixpert sections 3.2, 3.3 and 4.5: single products and tiles by enumeration and simulation, and the engine
// cpu's times.
#include "lab/analyse/mixpert.hpp"
#include "lab/reproduce/exponent_lines.hpp"

namespace kintsugi::tools {

namespace {

constexpr std::uint64_t seed = 1;
// Widest range of exponents, in binades, with which no tile has elements further apart than 32:1, the paper's
// rule.
constexpr int max_binades_within_32 = 4;

Json value_row(const char* quantity, double value) {
  return {{"quantity", quantity}, {"value", number(value)}};
}

void add_products(Json& rows, std::int64_t samples) {
  const lab::EnumeratedErrors errors = lab::enumerate_segment_products();
  const lab::NinthProduct ninth = lab::simulate_ninth_product(samples, seed);
  rows.push_back(value_row("expectation", errors.expectation));
  rows.push_back(value_row("worst", errors.worst));
  rows.push_back(value_row("worst with the tie", errors.worst_nearest));
  rows.push_back(value_row("split", lab::largest_segment_error()));
  rows.push_back(value_row("eight over nine", ninth.eight / ninth.nine));
}

void add_ranges(Json& rows, bool quick) {
  for (const int binades : {0, 2, max_binades_within_32, 6, 8, 10, 12, 16, 20, 24}) {
    const std::int64_t tiles = quick ? 5 : 200;
    const lab::RangeErrors errors = lab::measure_tile_ranges(binades, tiles, seed);
    rows.push_back({{"exponent", binades},
                    {"delta", number(errors.delta)},
                    {"failing", errors.failing},
                    {"beyond_32", errors.beyond_32},
                    {"level_4", errors.segments},
                    {"native", errors.native}});
  }
}

void add_times(Json& rows, bool quick) {
  const std::vector<std::int64_t> sizes =
      quick ? std::vector<std::int64_t>{64, 96} : std::vector<std::int64_t>{256, 512, 1024};
  double overhead_share = 0;  // mean over sizes
  for (const std::int64_t size : sizes) {
    const Overhead overhead = measure_overhead(size);
    overhead_share +=
        (overhead.packing + overhead.conversion) / overhead.total / static_cast<double>(sizes.size());
    rows.push_back({{"quantity", "time"},
                    {"size", size},
                    {"seconds", overhead.total},
                    {"packing", overhead.packing / overhead.total},
                    {"conversion", overhead.conversion / overhead.total}});
  }
  rows.push_back(value_row("overhead", overhead_share));
  const double level_4 = prepared_seconds("mixpert-4", sizes.back());
  rows.push_back(value_row("level IV over II", level_4 / prepared_seconds("mixpert-2", sizes.back())));
  rows.push_back(value_row("level IV over III", level_4 / prepared_seconds("mixpert-3", sizes.back())));
}

Json make_document(bool quick) {
  const std::int64_t samples = quick ? 1 << 14 : 1 << 22;
  Json result = document("mixpert-arithmetic");
  result["samples"] = samples;
  result["seed"] = seed;
  result["rows"] = Json::array();
  add_products(result["rows"], samples);
  add_ranges(result["rows"], quick);
  add_times(result["rows"], quick);
  return result;
}

std::vector<Figure> draw_document(const Json& document) {
  Chart chart{.title = "Products of tiles of 16 x 32 and 32 x 8 by the range of their elements",
              .x_label = "binades of exponents",
              .y_label = "relative Frobenius error",
              .log_x = false};
  const auto of = [](const char* name) {
    return [name](const Json& row) { return row.value(name, Json()); };
  };
  chart.series.push_back(exponent_line("level IV by segments alone", {.colour = 0}, document, of("level_4")));
  chart.series.push_back(exponent_line("native FP32", {.colour = 1}, document, of("native")));
  return {{"Tiles of wide ranges", {{.chart = chart, .name = "ranges"}}}};
}

double value_of(const Evidence& evidence, const std::string& quantity) {
  for (const Json& row : evidence.rows()) {
    if (row.value("quantity", "") == quantity) return read_number(row.at("value"));
  }
  throw NoSuchRow("no row has " + quantity);
}

// Returns series of one value each, from pairs {name of the series, quantity of the row}.
std::function<Measured(const Evidence&)> values(std::vector<std::pair<std::string, std::string>> pairs) {
  return [pairs = std::move(pairs)](const Evidence& evidence) {
    Measured measured;
    for (const auto& [series, quantity] : pairs) measured.push_back({series, {value_of(evidence, quantity)}});
    return measured;
  };
}

// Returns level IV's error over native FP32's for the widest range within 32:1.
Measured narrow_over_native(const Evidence& evidence) {
  for (const Json& row : evidence.rows()) {
    if (row.value("exponent", -1) == max_binades_within_32)
      return {{"level IV, k = 32", {row.at("level_4").get<double>() / row.at("native").get<double>()}}};
  }
  throw NoSuchRow("no row has that range");
}

}  // namespace

PaperFigure mixpert_arithmetic_figure() {
  PaperFigure figure{
      .name = "mixpert-arithmetic",
      .paper = "mixpert",
      .place = "Eqs. 2, 5, 6 and 9, sections 3.2 and 3.3; section 3.3.1; Fig. 11, section 4.5",
      .subject = "products of segments and of tiles, and what packing and conversions take",
      .conditions =
          "Eq. 6 enumerated; 2^22 random products of two numbers; 200 products of tiles of "
          "each range, by level IV's segments whether Eq. 9 fails or not; times of the engine "
          "cpu, one thread: packing is what prepared operands save, conversions are 8/7 of "
          "what tiles of 256 save",
      .analysis = {.format = "mixpert-arithmetic", .make_document = make_document, .draw = draw_document}};
  figure.claims = {
      {"mixpert-split", values({{"to nearest", "split"}})},
      {"mixpert-expectation", values({{"enumerated", "expectation"}})},
      {"mixpert-worst", values({{"without the tie", "worst"}, {"with the tie", "worst with the tie"}}),
       "Rounded to nearest, half a unit of the last segment is lost in a tie, which the paper leaves out."},
      {"mixpert-last-terms", values({{"eight over nine", "eight over nine"}})},
      {"mixpert-range", narrow_over_native,
       "21 bits lose eight times as much as FP32's 24, and 32 products do not hide it: level IV is as "
       "accurate as native FP32 only where k is larger."},
      {"mixpert-levels", values({{"level II", "level IV over II"}, {"level III", "level IV over III"}})},
      {"mixpert-overhead", values({{"engine cpu", "overhead"}})}};
  return figure;
}

}  // namespace kintsugi::tools

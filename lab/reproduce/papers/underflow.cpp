// h2sgemm Fig. 2: Eqs. 3-5 compared with a simulation, and the bits that two fp16 slices keep.
#include "lab/numerics/underflow.hpp"

#include <cmath>

#include "lab/reproduce/exponent_lines.hpp"
#include "tools/measure/retained_bits.hpp"

namespace kintsugi::tools {

namespace {

constexpr int lowest_exponent = -26;
constexpr int highest_exponent = 27;
// Offset exponents from first_normal to last_normal give a normal high slice, as the equations assume.
constexpr int first_normal = -14;
constexpr int last_normal = 14;
// Some numbers with the offset exponent 15 round to an infinite high slice; with larger exponents all numbers
// do.
constexpr int last_finite = 15;
constexpr std::uint64_t seed = 1;

measure::SplitDescription split_with(int sb) { return {"fp16", 2, "nearest-even", "nearest-even", sb}; }

Json bits_document(int exponent, int sb, std::int64_t samples) {
  const auto bits = lab::retained_at_exponent(split_with(sb), exponent, samples, seed);
  return {{"sb", sb}, {"fewest", bits.fewest}, {"mean", bits.mean}};
}

Json underflow_document(int exponent, std::int64_t samples) {
  if (exponent > last_finite) return nullptr;
  const auto shares = lab::simulate_underflow(exponent, 0, samples, seed);
  return {{"equation_underflow", lab::underflow_probability(exponent)},
          {"equation_underflow_or_gradual", lab::underflow_or_gradual_probability(exponent)},
          {"simulated_underflow", shares.underflow},
          {"simulated_underflow_or_gradual", shares.underflow_or_gradual},
          {"lost", shares.lost},
          {"zero_residual", shares.zero_residual},
          {"overflowed", shares.overflowed}};
}

Json make_document(bool quick) {
  const std::int64_t samples = quick ? 1 << 12 : 1 << 18;
  Json result = document("underflow");
  result["samples"] = samples;
  result["seed"] = seed;
  result["rows"] = Json::array();
  for (int exponent = lowest_exponent; exponent <= highest_exponent; ++exponent) {
    Json retained = Json::array();
    for (const int sb : {0, 11, 12}) retained.push_back(bits_document(exponent, sb, samples));
    result["rows"].push_back({{"exponent", exponent},
                              {"underflow", underflow_document(exponent, samples)},
                              {"retained", retained}});
  }
  return result;
}

// Returns a chart against the offset exponent, without lines, both axes linear.
Chart exponent_chart(const std::string& title, const std::string& y_label) {
  Chart chart;
  chart.title = title;
  chart.x_label = "offset exponent";
  chart.y_label = y_label;
  chart.log_x = false;
  chart.log_y = false;
  return chart;
}

Figure probability_figure(const Json& document) {
  const auto member = [](const char* name) {
    return [name](const Json& row) -> Json {
      return row.at("underflow").is_null() ? Json() : row.at("underflow").at(name);
    };
  };
  Chart chart = exponent_chart("Underflow of the unscaled low slice", "share of fp32 numbers");
  chart.series = {exponent_line("Eq. 5, underflow or gradual", {.colour = 0}, document,
                                member("equation_underflow_or_gradual")),
                  exponent_line("simulated, underflow or gradual", {.colour = 0, .dashes = 1}, document,
                                member("simulated_underflow_or_gradual")),
                  exponent_line("Eq. 5, underflow", {.colour = 1}, document, member("equation_underflow")),
                  exponent_line("simulated, underflow", {.colour = 1, .dashes = 1}, document,
                                member("simulated_underflow")),
                  exponent_line("simulated, the whole residual is lost", {.colour = 2, .dashes = 2}, document,
                                member("lost"))};
  return {"Underflow and gradual underflow", {{.chart = chart, .name = "probability"}}};
}

Figure bits_figure(const Json& document) {
  Chart chart = exponent_chart("Bits that two fp16 slices keep", "significant bits of fp32's 24");
  for (std::size_t i = 0; i < document.at("rows").front().at("retained").size(); ++i) {
    const Json& first = document.at("rows").front().at("retained").at(i);
    for (const char* name : {"fewest", "mean"}) {
      chart.series.push_back(
          exponent_line(fmt::format("sb = {}, {}", cell(first, "sb"), name),
                        {.colour = static_cast<int>(i), .dashes = std::string(name) == "mean" ? 1 : 0},
                        document, [i, name](const Json& row) { return row.at("retained").at(i).at(name); }));
    }
  }
  return {"Retained bits", {{.chart = chart, .name = "bits"}}};
}

std::vector<Figure> draw_document(const Json& document) {
  return {probability_figure(document), bits_figure(document)};
}

const Json& at_exponent(const Evidence& evidence, int exponent) {
  return evidence.rows().at(static_cast<std::size_t>(exponent - lowest_exponent));
}

double share(const Evidence& evidence, int exponent, const char* name) {
  return at_exponent(evidence, exponent).at("underflow").at(name).get<double>();
}

const Json& bits_at(const Evidence& evidence, int exponent, int sb) {
  for (const Json& bits : at_exponent(evidence, exponent).at("retained")) {
    if (bits.at("sb") == sb) return bits;
  }
  throw std::logic_error(fmt::format("no bits of sb = {}", sb));
}

int fewest_bits(const Evidence& evidence, int exponent, int sb) {
  return bits_at(evidence, exponent, sb).at("fewest").get<int>();
}

std::vector<double> shares(const Evidence& evidence, int first, int last, const char* name) {
  std::vector<double> values;
  for (int exponent = first; exponent <= last; ++exponent) values.push_back(share(evidence, exponent, name));
  return values;
}

struct ExponentRange {
  int first;
  int last;
  int sb;  // exponent of the low slice's scale
};

std::vector<double> fewest_over(const Evidence& evidence, const ExponentRange& range) {
  std::vector<double> values;
  for (int exponent = range.first; exponent <= range.last; ++exponent)
    values.push_back(fewest_bits(evidence, exponent, range.sb));
  return values;
}

// Returns the largest difference between an equation and the simulation where the high slice is normal.
double difference(const Evidence& evidence, const std::string& name) {
  double largest = 0;
  for (int exponent = first_normal; exponent <= last_normal; ++exponent)
    largest = std::max(largest, std::fabs(share(evidence, exponent, ("equation_" + name).c_str()) -
                                          share(evidence, exponent, ("simulated_" + name).c_str())));
  return largest;
}

// Returns the smallest exponent such that all numbers from this exponent up to exponent 0 keep 23 of 24 bits.
int lower_end(const Evidence& evidence, int sb) {
  int first = 0;
  while (first > lowest_exponent && fewest_bits(evidence, first - 1, sb) >= 23) --first;
  return first;
}

Measured equations_hold(const Evidence& evidence) {
  return {{"underflow", {difference(evidence, "underflow")}},
          {"underflow or gradual underflow", {difference(evidence, "underflow_or_gradual")}}};
}

Measured gradual_at_0(const Evidence& evidence) {
  return {{"offset 0", shares(evidence, 0, 0, "simulated_underflow_or_gradual")}};
}

// Returns both readings of "only below -10", which leaves open whether -10 itself must be free of underflow.
Measured significant_underflow(const Evidence& evidence) {
  Measured measured;
  for (const int least : {-9, -10}) {
    // Names of series are those of the registry. "none from -9 up" is the reading that no underflow occurs
    // from offset -9 on.
    const std::string reading = fmt::format(", none from {} up", least);
    measured.push_back({fmt::format("offsets {} to 14", least),
                        shares(evidence, least, last_normal, "simulated_underflow")});
    measured.push_back({"offsets -12 and -11" + reading, shares(evidence, -12, -11, "simulated_underflow")});
    measured.push_back({"offset -13" + reading, shares(evidence, -13, -13, "simulated_underflow")});
  }
  return measured;
}

Measured rule_one(const Evidence& evidence) {
  return {{"offsets -2 to 14", fewest_over(evidence, {.first = -2, .last = last_normal, .sb = 0})},
          {"offset -3", fewest_over(evidence, {.first = -3, .last = -3, .sb = 0})},
          {"offset -13", fewest_over(evidence, {.first = -13, .last = -13, .sb = 0})}};
}

// Returns by how many exponents the scale 2^12 extends the window.
Measured shifted_by_twelve(const Evidence& evidence) {
  return {{"sb = 12", {static_cast<double>(lower_end(evidence, 0) - lower_end(evidence, 12))}}};
}

Measured large_exponents(const Evidence& evidence) {
  return {{"offsets 16 to 27", fewest_over(evidence, {.first = 16, .last = highest_exponent, .sb = 12})}};
}

Measured full_range_of_twelve(const Evidence& evidence) {
  return {
      {"offsets -14 to 14", fewest_over(evidence, {.first = first_normal, .last = last_normal, .sb = 12})},
      {"offset 15", fewest_over(evidence, {.first = last_finite, .last = last_finite, .sb = 12})}};
}

}  // namespace

PaperFigure h2sgemm_underflow_figure() {
  PaperFigure figure{
      .name = "h2sgemm-fig2",
      .paper = "h2sgemm",
      .place = "Fig. 2, sections 3.1.2 and 3.1.3",
      .subject = "underflow of the low slice, and the bits that are kept",
      .conditions = "2^18 random fp32 numbers of every exponent; high and low slice rounded to nearest even",
      .analysis = {.format = "underflow", .make_document = make_document, .draw = draw_document}};
  figure.claims = {
      {"h2sgemm-eqs-3-5", equations_hold},
      {"h2sgemm-gradual", gradual_at_0},
      {"h2sgemm-underflow", significant_underflow},
      {"h2sgemm-rule-1", rule_one},
      {"h2sgemm-shift", shifted_by_twelve},
      {"h2sgemm-large", large_exponents,
       "sb scales the low slice alone (Eq. 7). The high slice of a number of 2^16 and more is infinite "
       "in fp16, whatever sb is; only a scale on the operand itself would bring it into range."},
      {"h2sgemm-rule-2", full_range_of_twelve,
       "A residual of a number of exponent 15 reaches 2^4, and times 2^12 that is fp16's infinity, "
       "2^16; Eq. 6 forgets the tie and its neighbours. Numbers from 65520 up have an infinite high "
       "slice besides."}};
  return figure;
}

}  // namespace kintsugi::tools

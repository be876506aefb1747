// h2sgemm Fig. 2: Eqs. 3-5 beside a simulation, and the bits that two fp16 slices keep.
#include "lab/underflow.hpp"

#include <cmath>

#include "lab/retained_bits.hpp"
#include "reproduce/analysis.hpp"

namespace kintsugi::tools {

namespace {

constexpr int lowest_exponent = -26;
constexpr int highest_exponent = 27;
constexpr int last_of_equations = 15;  // from 16 on the high slice is infinite
constexpr std::uint64_t seed = 1;

lab::SplitDescription split_with(int sb) { return {"fp16", 2, "nearest-even", "nearest-even", sb}; }

Json bits_document(int exponent, int sb, std::int64_t samples) {
  const auto bits = lab::retained_at_exponent(split_with(sb), exponent, samples, seed);
  return {{"sb", sb}, {"fewest", bits.fewest}, {"mean", bits.mean}};
}

Json underflow_document(int exponent, std::int64_t samples) {
  if (exponent > last_of_equations) return nullptr;
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

Figure probability_figure(const Json& document) {
  const auto member = [](const char* name) {
    return [name](const Json& row) -> Json {
      return row.at("underflow").is_null() ? Json() : row.at("underflow").at(name);
    };
  };
  Chart chart{
      "Underflow of the unscaled low slice", "offset exponent", "share of fp32 numbers", false, {}, {}};
  chart.log_y = false;
  chart.series = {
      exponent_line("Eq. 5, underflow or gradual", 0, 0, document, member("equation_underflow_or_gradual")),
      exponent_line("simulated, underflow or gradual", 0, 1, document,
                    member("simulated_underflow_or_gradual")),
      exponent_line("Eq. 5, underflow", 1, 0, document, member("equation_underflow")),
      exponent_line("simulated, underflow", 1, 1, document, member("simulated_underflow")),
      exponent_line("simulated, the whole residual is lost", 2, 2, document, member("lost"))};
  return {"Underflow and gradual underflow", {{chart, "probability", "", -1}}};
}

Figure bits_figure(const Json& document) {
  Chart chart{
      "Bits that two fp16 slices keep", "offset exponent", "significant bits of fp32's 24", false, {}, {}};
  chart.log_y = false;
  for (std::size_t i = 0; i < document.at("rows").front().at("retained").size(); ++i) {
    const Json& first = document.at("rows").front().at("retained").at(i);
    const auto colour = static_cast<int>(i);
    for (const char* name : {"fewest", "mean"}) {
      chart.series.push_back(exponent_line(
          fmt::format("sb = {}, {}", cell(first, "sb"), name), colour, std::string(name) == "mean" ? 1 : 0,
          document, [i, name](const Json& row) { return row.at("retained").at(i).at(name); }));
    }
  }
  return {"Retained bits", {{chart, "bits", "", -1}}};
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

double mean_bits(const Evidence& evidence, int exponent, int sb) {
  return bits_at(evidence, exponent, sb).at("mean").get<double>();
}

// The exponents, one after the other, whose numbers keep `bits` or more.
std::pair<int, int> exponents_keeping(const Evidence& evidence, int bits, int sb) {
  int first = 0;
  int last = 0;
  while (first > lowest_exponent && fewest_bits(evidence, first - 1, sb) >= bits) --first;
  while (last < highest_exponent && fewest_bits(evidence, last + 1, sb) >= bits) ++last;
  return {first, last};
}

Answer equations_hold(const Evidence& evidence) {
  double largest = 0;
  for (int exponent = -14; exponent < last_of_equations; ++exponent) {
    for (const char* name : {"underflow", "underflow_or_gradual"}) {
      const double equation = share(evidence, exponent, (std::string("equation_") + name).c_str());
      const double simulated = share(evidence, exponent, (std::string("simulated_") + name).c_str());
      largest = std::max(largest, std::fabs(equation - simulated));
    }
  }
  // Five standard deviations of a share of 2^18 samples.
  return agrees_if(largest < 5 * 0.5 / 512,
                   fmt::format("largest difference {:.1g}, exponents -14 to 14", largest),
                   "the simulation is outside of five standard deviations");
}

Answer first_underflow(const Evidence& evidence) {
  const double gradual = share(evidence, 0, "simulated_underflow_or_gradual");
  return agrees_if(gradual > 0.1, fmt::format("{:.1f} %", 100 * gradual), "it is no more than 10 %");
}

Answer significant_underflow(const Evidence& evidence) {
  const double before = share(evidence, -10, "simulated_underflow");
  const double later = share(evidence, -13, "simulated_underflow");
  return agrees_if(before < 0.2 && later > 0.9,
                   fmt::format("{:.1f} % at -10, {:.1f} % at -13", 100 * before, 100 * later),
                   "the rise lies elsewhere");
}

Answer underflow_is_loss(const Evidence& evidence) {
  const double equation = share(evidence, -12, "equation_underflow");
  const double lost = share(evidence, -12, "lost");
  return agrees_if(
      std::fabs(equation - lost) < 0.01,
      fmt::format("at -12 Eq. 5 counts {:.1f} %, {:.1f} % are lost", 100 * equation, 100 * lost),
      "Eq. 4 counts every residual below 2^-24. Rounding to nearest makes the smallest subnormal of those "
      "above 2^-25, so they keep a bit; and a residual that is 0 loses nothing.");
}

Answer rule_one(const Evidence& evidence) {
  const int at_edge = fewest_bits(evidence, -2, 0);
  const int below = fewest_bits(evidence, -3, 0);
  const int far = fewest_bits(evidence, -13, 0);
  return agrees_if(at_edge >= 22 && below < 22 && far <= 12,
                   fmt::format("at least {} bits at -2, {} at -3, {} at -13", at_edge, below, far),
                   "The paper counts the bits of the low slice that stand in full. Its last one is rounded "
                   "to nearest, so that the error is half of it: a number of exponent -3 still keeps 22 "
                   "bits, one of -4 does not. The collapse below 2^-12 is as stated");
}

Answer shifted_by_twelve(const Evidence& evidence) {
  const auto plain = exponents_keeping(evidence, 22, 0);
  const auto scaled = exponents_keeping(evidence, 22, 12);
  return agrees_if(plain.first - scaled.first == 12,
                   fmt::format("22 bits from {} to {} with sb = 0, from {} to {} with sb = 12", plain.first,
                               plain.second, scaled.first, scaled.second),
                   "the window's lower end moves by another number");
}

Answer large_exponents(const Evidence& evidence) {
  const int bits = fewest_bits(evidence, 16, 12);
  return agrees_if(
      bits >= 11, fmt::format("{} bits at 16 with sb = 12", bits),
      "sb scales the low slice alone (Eq. 7). The high slice of a number of 2^16 and more is infinite in "
      "fp16, whatever sb is; only a scale on the operand itself would bring it into range.");
}

Answer full_range_of_twelve(const Evidence& evidence) {
  const int with_twelve = fewest_bits(evidence, 15, 12);
  return agrees_if(
      with_twelve >= 22,
      fmt::format("at 15 {} bits of some numbers; {:.3f} on average, {:.3f} with sb = 11; at 14 at least {}",
                  with_twelve, mean_bits(evidence, 15, 12), mean_bits(evidence, 15, 11),
                  fewest_bits(evidence, 14, 12)),
      "A residual of a number of exponent 15 reaches 2^4, and times 2^12 that is fp16's infinity, 2^16; Eq. "
      "6 forgets the tie and its neighbours. It is rare, as the averages with sb = 12 and 11 show; both also "
      "lose the numbers from 65520 up, whose high slice is infinite.");
}

}  // namespace

PaperFigure h2sgemm_underflow_figure() {
  PaperFigure figure{"h2sgemm-fig2",
                     "h2sgemm",
                     "Fig. 2, sections 3.1.2 and 3.1.3",
                     "underflow of the low slice, and the bits that are kept",
                     "2^18 random fp32 numbers of every exponent; high and low slice rounded to nearest even",
                     {},
                     {},
                     {},
                     {make_document, draw_document}};
  figure.claims = {
      {"Eqs. 3 to 5 give the shares of numbers whose low slice underflows", "Eqs. 3-5", equations_hold},
      {"Without subnormals, more than 10 % of the low slices are lost at offset exponent 0", "> 10 %",
       first_underflow},
      {"With subnormals, underflow matters only below -10 and comes near 100 % below -12", "-10; -12",
       significant_underflow},
      {"Where Eq. 4 says underflow, the low slice is lost", "Eq. 4", underflow_is_loss},
      {"Rule 1: below 2^-2 fewer than 22 bits are kept without a scale, below 2^-12 the split fails",
       "2^-2; 2^-12", rule_one},
      {"sb = 12 moves the curve of kept bits by 12 exponents", "12", shifted_by_twelve},
      {"sb = 12 makes numbers of exponents 15 to 27 representable", "[15, 27] becomes [3, 15]",
       large_exponents},
      {"sb = 12 is safe over all of fp16's exponents, -14 to 15 (Rule 2, Eq. 6)", "-14 to 15",
       full_range_of_twelve}};
  return figure;
}

}  // namespace kintsugi::tools

// h2sgemm Table 1, column "precision loss": the bits that splits of FP32 into two fp16 slices keep.
#include <algorithm>

#include "lab/numerics/underflow.hpp"
#include "lab/reproduce/exponent_lines.hpp"

namespace kintsugi::tools {

namespace {

constexpr int lowest_exponent = -14;
constexpr int highest_exponent = 15;
// Exponents inside the window of every split below: no residual is subnormal, no slice infinite.
constexpr int window_lowest = -1;
constexpr int window_highest = 14;
constexpr int fp32_bits = 24;
constexpr std::uint64_t seed = 1;

struct NamedSplit {
  const char* name;
  measure::SplitDescription split;
};

const NamedSplit splits[] = {
    {"towards zero, unscaled", {"fp16", 2, "towards-zero", "towards-zero", 0}},
    {"nearest, unscaled", {"fp16", 2, "nearest-even", "nearest-even", 0}},
    {"nearest, 2^11", {"fp16", 2, "nearest-even", "nearest-even", 11}},
    {"nearest, 2^12", {"fp16", 2, "nearest-even", "nearest-even", 12}},
    {"bit-cut and towards zero, 2^10", {"fp16", 2, "bit-cut", "towards-zero", 10}},
};
// Index in `splits`, named by a paper that uses the split.
enum Work : std::uint8_t { markidis, egemm, ootomo, h2sgemm, legemm };

Json split_row(const NamedSplit& named, int exponent, std::int64_t samples) {
  const auto bits = lab::retained_at_exponent(named.split, exponent, samples, seed);
  return {{"split", named.name},
          {"fewest", bits.fewest},
          {"fewest_places", bits.fewest_places},
          {"mean", bits.mean}};
}

Json make_document(bool quick) {
  const std::int64_t samples = quick ? 1 << 12 : 1 << 18;
  Json result = document("retained-bits");
  result["samples"] = samples;
  result["seed"] = seed;
  result["rows"] = Json::array();
  for (int exponent = lowest_exponent; exponent <= highest_exponent; ++exponent) {
    Json retained = Json::array();
    for (const NamedSplit& named : splits) retained.push_back(split_row(named, exponent, samples));
    result["rows"].push_back({{"exponent", exponent}, {"retained", retained}});
  }
  return result;
}

std::vector<Figure> draw_document(const Json& document) {
  Chart chart{.title = "Fewest bits that two fp16 slices keep",
              .x_label = "offset exponent",
              .y_label = "significant bits of fp32's 24",
              .log_x = false,
              .log_y = false};
  for (std::size_t i = 0; i < std::size(splits); ++i) {
    const auto fewest = [i](const Json& row) { return row.at("retained").at(i).at("fewest"); };
    chart.series.push_back(exponent_line(splits[i].name, {.colour = static_cast<int>(i)}, document, fewest));
  }
  return {{"Bits of the splits of Table 1", {{.chart = chart, .name = "bits"}}}};
}

// Retained bits of the numbers inside the window. The error decides the number of bits, and a cut decides the
// number of places. The figure's conditions define both numbers.
struct Kept {
  int fewest = fp32_bits;
  int fewest_places = fp32_bits;
  double mean = 0;
};

Kept kept_by(const Evidence& evidence, Work work) {
  Kept kept;
  for (int exponent = window_lowest; exponent <= window_highest; ++exponent) {
    const Json& row = evidence.rows().at(static_cast<std::size_t>(exponent - lowest_exponent));
    const Json& bits = row.at("retained").at(work);
    if (!bits.contains("fewest_places")) throw NoSuchRow("no row has fewest_places: run the figure again");
    kept.fewest = std::min(kept.fewest, bits.at("fewest").get<int>());
    kept.fewest_places = std::min(kept.fewest_places, bits.at("fewest_places").get<int>());
    kept.mean += bits.at("mean").get<double>() / (window_highest - window_lowest + 1);
  }
  return kept;
}

std::vector<double> lost_bits(const Evidence& evidence, Work work) {
  return {static_cast<double>(fp32_bits - kept_by(evidence, work).fewest)};
}

// Returns one series: the bits that a split loses.
std::function<Measured(const Evidence&)> loss_of(const std::string& series, Work work) {
  return [=](const Evidence& evidence) { return Measured{{series, lost_bits(evidence, work)}}; };
}

// Returns the bits lost by cutting both slices, counted in two ways, since h2sgemm does not give its own.
Measured losses_of_cutting(const Evidence& evidence, const std::string& series) {
  const double places = fp32_bits - kept_by(evidence, markidis).fewest_places;
  return {{series + ", by error", lost_bits(evidence, markidis)}, {series + ", by places", {places}}};
}

Measured losses_of_markidis(const Evidence& evidence) {
  return losses_of_cutting(evidence, "both slices cut");
}

Measured losses_of_feng(const Evidence& evidence) {
  Measured measured = losses_of_cutting(evidence, "towards zero");
  measured.push_back({"to nearest", lost_bits(evidence, egemm)});
  return measured;
}

Measured losses_to_nearest(const Evidence& evidence) {
  return {{"nearest, unscaled", lost_bits(evidence, egemm)},
          {"nearest, residual times 2^12", lost_bits(evidence, h2sgemm)}};
}

Measured gain_of_cutting(const Evidence& evidence) {
  const Kept cut = kept_by(evidence, legemm);
  const Kept rounded = kept_by(evidence, ootomo);
  return {{"worst number, by error", {static_cast<double>(cut.fewest - rounded.fewest)}},
          {"worst number, by places", {static_cast<double>(cut.fewest_places - rounded.fewest_places)}},
          {"on the average", {cut.mean - rounded.mean}}};
}

// Returns both readings: mixpert's text rounds the high slice, and its figure cuts it.
Measured bits_of_halves(const Evidence& evidence) {
  Measured measured;
  for (const auto& [name, work] : {std::pair{"to nearest", egemm}, std::pair{"both slices cut", markidis}}) {
    const Kept kept = kept_by(evidence, work);
    measured.push_back({std::string(name) + ", by error", {static_cast<double>(kept.fewest)}});
    measured.push_back({std::string(name) + ", by places", {static_cast<double>(kept.fewest_places)}});
  }
  return measured;
}

}  // namespace

PaperFigure h2sgemm_table_figure() {
  PaperFigure figure{
      .name = "h2sgemm-table1",
      .paper = "h2sgemm",
      .place = "Table 1 (precision loss), section 2; le-gemm section 4.1",
      .subject = "bits that the splits into two fp16 slices keep",
      .conditions =
          "2^18 random fp32 numbers of every exponent; claims are judged on exponents -1 to "
          "14, inside every split's window; a split keeps p bits where its error is at most "
          "2^-p of the number, as rounding to p bits to nearest, and p places where it is "
          "below 2^(1-p), as a cut; fp32 has 24",
      .analysis = {.format = "retained-bits", .make_document = make_document, .draw = draw_document}};
  figure.claims = {
      {"h2sgemm-loss-markidis", losses_of_markidis,
       "A cut errs by up to a unit of its last place, twice as much as rounding: 22 places are left, "
       "which is as close as 21 bits to nearest."},
      {"h2sgemm-loss-feng", losses_of_feng,
       "Table 1 gives truncation, section 2 a rounding closer to nearest. Cut, the worst number loses 3 "
       "bits by its error and 2 places; to nearest the residual's sign holds one bit more."},
      {"h2sgemm-loss-ootomo", loss_of("nearest, residual times 2^11", ootomo)},
      {"h2sgemm-loss-ma", loss_of("nearest, unscaled", egemm)},
      {"h2sgemm-loss-own", loss_of("nearest, residual times 2^12", h2sgemm)},
      {"h2sgemm-22-bits", losses_to_nearest},
      {"le-gemm-bit-cut", gain_of_cutting,
       "What a cut leaves is up to twice as large as what rounding leaves, and the residual, truncated "
       "too, has no more bits for it. Rounding up the high slice costs nothing: the residual gets the "
       "other sign."},
      {"mixpert-fig1", bits_of_halves,
       "Each slice has an implicit bit, and the residual a sign: two slices hold 23 bits of 24."}};
  return figure;
}

}  // namespace kintsugi::tools

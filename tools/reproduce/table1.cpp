// h2sgemm Table 1, its column of precision loss: the bits that the splits of FP32 into two fp16 slices keep.
#include <algorithm>

#include "lab/retained_bits.hpp"
#include "reproduce/analysis.hpp"

namespace kintsugi::tools {

namespace {

constexpr int lowest_exponent = -14;
constexpr int highest_exponent = 15;
// Inside the window of every split below: no residual is subnormal, no slice infinite.
constexpr int window_lowest = -1;
constexpr int window_highest = 14;
constexpr int fp32_bits = 24;
constexpr std::uint64_t seed = 1;

struct NamedSplit {
  const char* name;
  lab::SplitDescription split;
};

const NamedSplit splits[] = {
    {"towards zero, unscaled", {"fp16", 2, "towards-zero", "towards-zero", 0}},
    {"nearest, unscaled", {"fp16", 2, "nearest-even", "nearest-even", 0}},
    {"nearest, 2^11", {"fp16", 2, "nearest-even", "nearest-even", 11}},
    {"nearest, 2^12", {"fp16", 2, "nearest-even", "nearest-even", 12}},
    {"bit-cut and towards zero, 2^10", {"fp16", 2, "bit-cut", "towards-zero", 10}},
};
enum Work : std::uint8_t { markidis, egemm, ootomo, h2sgemm, legemm };  // of the splits, in their order

Json split_row(const NamedSplit& named, int exponent, std::int64_t samples) {
  const auto bits = lab::retained_at_exponent(named.split, exponent, samples, seed);
  return {{"split", named.name}, {"fewest", bits.fewest}, {"mean", bits.mean}};
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
  Chart chart{"Fewest bits that two fp16 slices keep",
              "offset exponent",
              "significant bits of fp32's 24",
              false,
              {},
              {}};
  chart.log_y = false;
  for (std::size_t i = 0; i < std::size(splits); ++i) {
    const auto fewest = [i](const Json& row) { return row.at("retained").at(i).at("fewest"); };
    chart.series.push_back(exponent_line(splits[i].name, static_cast<int>(i), 0, document, fewest));
  }
  return {{"Bits of the splits of Table 1", {{chart, "bits", "", -1}}}};
}

// Over the numbers inside the window.
struct Kept {
  int fewest = fp32_bits;
  double mean = 0;
};

Kept kept_by(const Evidence& evidence, Work work) {
  Kept kept;
  for (int exponent = window_lowest; exponent <= window_highest; ++exponent) {
    const Json& row = evidence.rows().at(static_cast<std::size_t>(exponent - lowest_exponent));
    const Json& bits = row.at("retained").at(work);
    kept.fewest = std::min(kept.fewest, bits.at("fewest").get<int>());
    kept.mean += bits.at("mean").get<double>() / (window_highest - window_lowest + 1);
  }
  return kept;
}

std::string kept_text(const Kept& kept) {
  return fmt::format("at least {} bits of {}, {:.2f} on average", kept.fewest, fp32_bits, kept.mean);
}

// A cut after p bits errs by one unit of the last of them, twice as much as rounding: it is as close as p - 1 bits
// to nearest. The table counts places, so that a truncating split has one more than we count.
Answer truncating_loss(const Evidence& evidence) {
  const Kept kept = kept_by(evidence, markidis);
  const int places = kept.fewest + 1;
  return agrees_if(fp32_bits - places == 2,
                   fmt::format("{} places, {} fewer; since they are cut, as close as rounding to {} ({})",
                               places, fp32_bits - places, kept.fewest, kept_text(kept)),
                   "the cut leaves another number of places");
}

Answer worst_of_feng(const Evidence& evidence) {
  const Kept cut = kept_by(evidence, markidis);
  return agrees_if(cut.fewest == 21,
                   fmt::format("{} if both slices are truncated, as Table 1 says", kept_text(cut)),
                   "the worst number keeps another number of bits");
}

Answer feng_to_nearest(const Evidence& evidence) {
  const Kept kept = kept_by(evidence, egemm);
  return agrees_if(fp32_bits - kept.fewest == 2, kept_text(kept),
                   "Table 1 gives truncation, section 2 a rounding closer to nearest, and both cannot lose "
                   "two bits: rounded to nearest, the residual's sign holds one bit more. So the loss is "
                   "that of truncation; scheme egemm here rounds to nearest and loses one bit.");
}

Answer one_bit(const Evidence& evidence, Work work) {
  const Kept kept = kept_by(evidence, work);
  return agrees_if(fp32_bits - kept.fewest == 1, kept_text(kept), "it loses another number of bits");
}

Answer work_of_ma(const Evidence& evidence) {
  return undecidable(kept_text(kept_by(evidence, egemm)) + " with nearest rounding alone",
                     "Of its decomposition the paper says no more than that it is optimised and rounds to "
                     "nearest; that alone gives the loss stated.");
}

Answer at_least_22(const Evidence& evidence) {
  const Kept kept = kept_by(evidence, h2sgemm);
  return agrees_if(kept.fewest >= 22, kept_text(kept), "a number keeps fewer");
}

Answer cut_keeps_more(const Evidence& evidence) {
  const Kept cut = kept_by(evidence, legemm);
  const Kept nearest = kept_by(evidence, ootomo);
  return agrees_if(
      cut.fewest > nearest.fewest,
      fmt::format("{}; rounded to nearest {}", kept_text(cut), kept_text(nearest)),
      "What a cut leaves is up to twice as large as what rounding leaves, and the residual, truncated too, "
      "has no more bits for it. Rounding up the high slice costs nothing: the residual gets the other sign.");
}

}  // namespace

PaperFigure h2sgemm_table_figure() {
  PaperFigure figure{"h2sgemm-table1",
                     "h2sgemm",
                     "Table 1 (precision loss), section 2; le-gemm section 4.1",
                     "bits that the splits into two fp16 slices keep",
                     "2^18 random fp32 numbers of every exponent; claims are judged on exponents -1 to 14, "
                     "inside every split's window; a split keeps p bits where its error is at most 2^-p of "
                     "the number, as rounding to p bits to nearest; fp32 has 24",
                     {},
                     {},
                     {},
                     {make_document, draw_document}};
  figure.claims = {
      {"Markidis's split, truncating, loses 2 bits", "2 bits", truncating_loss},
      {"Feng's split, truncating, keeps about 21 bits in the worst case", "2 bits; about 21", worst_of_feng},
      {"Feng's split loses 2 bits although its rounding is closer to nearest (section 2)", "2 bits",
       feng_to_nearest},
      {"Ootomo's split, nearest with amplification, loses 1 bit", "1 bit",
       [](const Evidence& evidence) { return one_bit(evidence, ootomo); }},
      {"Ma's split, nearest and optimised, loses 1 bit", "1 bit", work_of_ma},
      {"H2SGEMM's split, nearest with sb = 12, loses about 1 bit", "about 1 bit",
       [](const Evidence& evidence) { return one_bit(evidence, h2sgemm); }},
      {"Two slices to nearest keep at least 22 bits (section 3.1.1)", "22", at_least_22},
      {"Cutting the high slice preserves more of a number than rounding it (le-gemm section 4.1)", "more",
       cut_keeps_more}};
  return figure;
}

}  // namespace kintsugi::tools

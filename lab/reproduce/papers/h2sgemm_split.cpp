// h2sgemm Table 1, column "precision loss", and Fig. 2: the bits that splits of FP32 into two fp16 slices
// keep, and Eqs. 3-5 on underflow compared with a simulation.
#include <algorithm>
#include <cmath>

#include "lab/numerics/underflow.hpp"
#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

constexpr std::uint64_t seed = 1;

// Returns the document of a figure with a row for every exponent. row(exponent, samples) makes its members.
Json document_by_exponent(const char* format, int lowest, int highest, bool quick,
                          const std::function<Json(int exponent, std::int64_t samples)>& row) {
  const std::int64_t samples = quick ? 1 << 12 : 1 << 18;
  Json result = analysis_document(format, samples, seed);
  for (int exponent = lowest; exponent <= highest; ++exponent)
    result["rows"].push_back(row(exponent, samples));
  return result;
}

Chart exponent_chart(const std::string& title, const std::string& y_label) {
  return {.title = title, .x_label = "offset exponent", .y_label = y_label, .log_x = false, .log_y = false};
}

// Returns a line of a member of the i-th split's bits.
Series line_of_bits(Series line, const Json& document, std::size_t i, const char* member) {
  return line_of(std::move(line), document, "exponent",
                 [=](const Json& row) { return row.at("retained").at(i).at(member); });
}

// ---------------------------------------------------------------- Table 1

constexpr int lowest_of_table = -14;
constexpr int highest_of_table = 15;
// Exponents inside the window of every split below: no residual is subnormal, no slice infinite.
constexpr int window_lowest = -1;
constexpr int window_highest = 14;
constexpr int fp32_bits = 24;

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
    {"three of bf16, nearest", {"bf16", 3, "nearest-even", "nearest-even", 0}},
};
// Index in `splits`, named by a paper that uses the split.
enum Work : std::uint8_t { markidis, egemm, ootomo, h2sgemm, legemm, ape };

Json table_row(int exponent, std::int64_t samples) {
  Json retained = Json::array();
  for (const auto& [name, split] : splits) {
    const auto bits = lab::retained_at_exponent(split, exponent, samples, seed);
    retained.push_back({{"split", name},
                        {"fewest", bits.fewest},
                        {"fewest_places", bits.fewest_places},
                        {"mean", bits.mean}});
  }
  return {{"exponent", exponent}, {"retained", retained}};
}

std::vector<Figure> draw_table(const Json& document) {
  Chart chart = exponent_chart("Fewest bits that slices keep", "significant bits of fp32's 24");
  for (std::size_t i = 0; i < std::size(splits); ++i)
    chart.series.push_back(line_of_bits({splits[i].name, static_cast<int>(i), 0, {}}, document, i, "fewest"));
  return {{"Bits of the splits of Table 1", {{.chart = chart, .name = "bits"}}}};
}

// Retained bits of the numbers inside the window. The error decides the number of bits, and a cut decides the
// number of places. The figure's conditions define both numbers.
struct Kept {
  double fewest = fp32_bits;
  double fewest_places = fp32_bits;
  double mean = 0;
};

Kept kept_by(const Evidence& evidence, Work work) {
  Kept kept;
  for (int exponent = window_lowest; exponent <= window_highest; ++exponent) {
    const Json& row = evidence.rows().at(static_cast<std::size_t>(exponent - lowest_of_table));
    if (row.at("retained").size() <= work) throw NoSuchRow("no row has this split: run the figure again");
    const Json& bits = row.at("retained").at(work);
    if (!bits.contains("fewest_places")) throw NoSuchRow("no row has fewest_places: run the figure again");
    kept.fewest = std::min(kept.fewest, bits.at("fewest").get<double>());
    kept.fewest_places = std::min(kept.fewest_places, bits.at("fewest_places").get<double>());
    kept.mean += bits.at("mean").get<double>() / (window_highest - window_lowest + 1);
  }
  return kept;
}

using Losses = std::vector<std::pair<const char*, Work>>;

// Returns a series of the bits that each split loses.
Measured losses_of(const Evidence& evidence, const Losses& works) {
  return series_of(
      [&](const auto& named) {
        return SeriesValues{named.first, {fp32_bits - kept_by(evidence, named.second).fewest}};
      },
      works);
}

// Returns a claim's function for the losses of these splits.
auto loss_of(Losses works) {
  return [works = std::move(works)](const Evidence& evidence) { return losses_of(evidence, works); };
}

// Returns the bits lost by cutting both slices, counted in two ways, since h2sgemm does not give its own.
Measured losses_of_cutting(const Evidence& evidence, const std::string& series) {
  const Kept kept = kept_by(evidence, markidis);
  return {{series + ", by error", {fp32_bits - kept.fewest}},
          {series + ", by places", {fp32_bits - kept.fewest_places}}};
}

// Returns the bits that the best pair of fp16 numbers loses of 2^23 + 2^12 + 1, a number of 24 bits. The high
// slice is a multiple of 2^13 and the low one has 11 bits, so that no other high slice comes nearer.
double loss_of_best_pair() {
  constexpr double number = 0x1p23 + 0x1p12 + 1;
  constexpr double grid = 0x1p13;
  double least = number;
  for (const double high : {0x1p23, 0x1p23 + grid}) {
    const double rest = number - high;
    const double unit = std::ldexp(1.0, std::ilogb(rest) - 10);
    least = std::min(least, std::fabs(rest - unit * std::nearbyint(rest / unit)));
  }
  return fp32_bits - std::floor(std::log2(number / least));
}

Measured losses_of_ma(const Evidence& evidence) {
  return joined(losses_of(evidence, {{"nearest, unscaled", egemm}}),
                {{"best pair of fp16 numbers", {loss_of_best_pair()}}});
}

Measured losses_of_markidis(const Evidence& evidence) {
  return losses_of_cutting(evidence, "both slices cut");
}

Measured losses_of_feng(const Evidence& evidence) {
  return joined(losses_of_cutting(evidence, "towards zero"), losses_of(evidence, {{"to nearest", egemm}}));
}

Measured gain_of_cutting(const Evidence& evidence) {
  const Kept cut = kept_by(evidence, legemm);
  const Kept rounded = kept_by(evidence, ootomo);
  return {{"worst number, by error", {cut.fewest - rounded.fewest}},
          {"worst number, by places", {cut.fewest_places - rounded.fewest_places}},
          {"on the average", {cut.mean - rounded.mean}}};
}

// Returns both readings: mixpert's text rounds the high slice, and its figure cuts it.
Measured bits_of_halves(const Evidence& evidence) {
  const Kept nearest = kept_by(evidence, egemm);
  const Kept cut = kept_by(evidence, markidis);
  return {{"to nearest, by error", {nearest.fewest}},
          {"to nearest, by places", {nearest.fewest_places}},
          {"both slices cut, by error", {cut.fewest}},
          {"both slices cut, by places", {cut.fewest_places}}};
}

PaperFigure table_figure() {
  return {
      .name = "h2sgemm-table1",
      .paper = "h2sgemm",
      .place = "Table 1 (precision loss), section 2; le-gemm section 4.1",
      .subject = "bits that the splits into two fp16 or three bf16 slices keep",
      .conditions =
          "2^18 random fp32 numbers of every exponent; claims are judged on exponents -1 to "
          "14, inside every split's window; a split keeps p bits where its error is at most "
          "2^-p of the number, as rounding to p bits to nearest, and p places where it is "
          "below 2^(1-p), as a cut; fp32 has 24",
      .claims =
          {{"h2sgemm-loss-markidis", losses_of_markidis,
            "A cut errs by up to a unit of its last place, twice as much as rounding: 22 places are left, "
            "which is as close as 21 bits to nearest."},
           {"h2sgemm-loss-feng", losses_of_feng,
            "Table 1 gives truncation, section 2 a rounding closer to nearest. Cut, the worst number "
            "loses 3 bits by its error and 2 places; to nearest the residual's sign holds one bit more."},
           {"h2sgemm-loss-ootomo", loss_of({{"nearest, residual times 2^11", ootomo}})},
           {"h2sgemm-loss-ma", losses_of_ma},
           {"h2sgemm-loss-own", loss_of({{"nearest, residual times 2^12", h2sgemm}})},
           {"h2sgemm-22-bits",
            loss_of({{"nearest, unscaled", egemm}, {"nearest, residual times 2^12", h2sgemm}})},
           {"le-gemm-bit-cut", gain_of_cutting,
            "What a cut leaves is up to twice as large as what rounding leaves, and the residual, "
            "truncated too, has no more bits for it. Rounding up the high slice costs nothing: the "
            "residual gets the other sign."},
           {"mixpert-fig1", bits_of_halves,
            "Each slice has an implicit bit, and the residual a sign: two slices hold 23 bits of 24."},
           {"mixpert-ape-split", loss_of({{"to nearest", ape}})}},
      .analysis = {.format = "retained-bits",
                   .make_document =
                       [](bool quick) {
                         return document_by_exponent("retained-bits", lowest_of_table, highest_of_table,
                                                     quick, table_row);
                       },
                   .draw = draw_table}};
}

// ----------------------------------------------------------------- Fig. 2

constexpr int lowest_exponent = -26;
constexpr int highest_exponent = 27;
// Offset exponents from first_normal to last_normal give a normal high slice, as the equations assume.
constexpr int first_normal = -14;
constexpr int last_normal = 14;
// Some numbers with the offset exponent 15 round to an infinite high slice; with larger exponents all numbers
// do.
constexpr int last_finite = 15;
constexpr int scales[] = {0, 11, 12, 13};  // sb, the exponent of the low slice's scale

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

Json underflow_row(int exponent, std::int64_t samples) {
  Json retained = Json::array();
  for (const int sb : scales) {
    const auto bits =
        lab::retained_at_exponent({"fp16", 2, "nearest-even", "nearest-even", sb}, exponent, samples, seed);
    retained.push_back({{"sb", sb}, {"fewest", bits.fewest}, {"mean", bits.mean}});
  }
  return {
      {"exponent", exponent}, {"underflow", underflow_document(exponent, samples)}, {"retained", retained}};
}

std::vector<Figure> draw_underflow(const Json& document) {
  const auto line = [&](const char* label, int colour, int style, const char* member) {
    return line_of({label, colour, style, {}}, document, "exponent", [=](const Json& row) -> Json {
      return row.at("underflow").is_null() ? Json() : row.at("underflow").at(member);
    });
  };
  Chart probabilities = exponent_chart("Underflow of the unscaled low slice", "share of fp32 numbers");
  probabilities.series = {line("Eq. 5, underflow or gradual", 0, 0, "equation_underflow_or_gradual"),
                          line("simulated, underflow or gradual", 0, 1, "simulated_underflow_or_gradual"),
                          line("Eq. 5, underflow", 1, 0, "equation_underflow"),
                          line("simulated, underflow", 1, 1, "simulated_underflow"),
                          line("simulated, the whole residual is lost", 2, 2, "lost")};
  Chart bits = exponent_chart("Bits that two fp16 slices keep", "significant bits of fp32's 24");
  for (std::size_t i = 0; i < std::size(scales); ++i) {
    const int colour = static_cast<int>(i);
    bits.series.push_back(
        line_of_bits({fmt::format("sb = {}, fewest", scales[i]), colour, 0, {}}, document, i, "fewest"));
    bits.series.push_back(
        line_of_bits({fmt::format("sb = {}, mean", scales[i]), colour, 1, {}}, document, i, "mean"));
  }
  return {{"Underflow and gradual underflow", {{.chart = probabilities, .name = "probability"}}},
          {"Retained bits", {{.chart = bits, .name = "bits"}}}};
}

const Json& at_exponent(const Evidence& evidence, int exponent) {
  return evidence.rows().at(static_cast<std::size_t>(exponent - lowest_exponent));
}

double share(const Evidence& evidence, int exponent, const std::string& name) {
  return at_exponent(evidence, exponent).at("underflow").at(name).get<double>();
}

int fewest_bits(const Evidence& evidence, int exponent, int sb) {
  for (const Json& bits : at_exponent(evidence, exponent).at("retained")) {
    if (bits.at("sb") == sb) return bits.at("fewest").get<int>();
  }
  throw std::logic_error(fmt::format("no bits of sb = {}", sb));
}

// A series with a value for every exponent of a range.
struct ExponentRange {
  std::string series;
  int first;
  int last;
};

// Returns a claim's function: value(evidence, exponent) over these ranges.
template <class Value>
auto over_ranges(const std::vector<ExponentRange>& ranges, const Value& value) {
  return [=](const Evidence& evidence) {
    const auto values = [&](const ExponentRange& range) {
      SeriesValues series{range.series, {}};
      for (int exponent = range.first; exponent <= range.last; ++exponent)
        series.values.push_back(value(evidence, exponent));
      return series;
    };
    return series_of(values, ranges);
  };
}

auto shares_over(const std::vector<ExponentRange>& ranges, const char* name) {
  return over_ranges(ranges,
                     [=](const Evidence& evidence, int exponent) { return share(evidence, exponent, name); });
}

auto fewest_over(const std::vector<ExponentRange>& ranges, int sb) {
  return over_ranges(
      ranges, [=](const Evidence& evidence, int exponent) { return fewest_bits(evidence, exponent, sb); });
}

// Returns the largest difference between an equation and the simulation where the high slice is normal.
double difference(const Evidence& evidence, const std::string& name) {
  double largest = 0;
  for (int exponent = first_normal; exponent <= last_normal; ++exponent)
    largest = std::max(largest, std::fabs(share(evidence, exponent, "equation_" + name) -
                                          share(evidence, exponent, "simulated_" + name)));
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

// Both readings of "only below -10", which leaves open whether -10 itself must be free of underflow. "none
// from -9 up" is the reading that no underflow occurs from offset -9 on.
const std::vector<ExponentRange> ranges_of_underflow{{"offsets -9 to 14", -9, last_normal},
                                                     {"offsets -12 and -11, none from -9 up", -12, -11},
                                                     {"offset -13, none from -9 up", -13, -13},
                                                     {"offsets -10 to 14", -10, last_normal},
                                                     {"offsets -12 and -11, none from -10 up", -12, -11},
                                                     {"offset -13, none from -10 up", -13, -13}};

// Returns by how many exponents the scale 2^12 extends the window.
Measured shifted_by_twelve(const Evidence& evidence) {
  return {{"sb = 12", {static_cast<double>(lower_end(evidence, 0) - lower_end(evidence, 12))}}};
}

Measured kept_by_thirteen(const Evidence& evidence) {
  const auto bits = [&](int sb) {
    return SeriesValues{fmt::format("sb = {}, offset {}", sb, last_normal),
                        {static_cast<double>(fewest_bits(evidence, last_normal, sb))}};
  };
  return {bits(13), bits(12)};
}

PaperFigure underflow_figure() {
  return {
      .name = "h2sgemm-fig2",
      .paper = "h2sgemm",
      .place = "Fig. 2, sections 3.1.2 and 3.1.3",
      .subject = "underflow of the low slice, and the bits that are kept",
      .conditions = "2^18 random fp32 numbers of every exponent; high and low slice rounded to nearest even",
      .claims =
          {{"h2sgemm-eqs-3-5", equations_hold},
           {"h2sgemm-gradual", shares_over({{"offset 0", 0, 0}}, "simulated_underflow_or_gradual")},
           {"h2sgemm-underflow", shares_over(ranges_of_underflow, "simulated_underflow")},
           {"h2sgemm-rule-1",
            fewest_over(
                {{"offsets -2 to 14", -2, last_normal}, {"offset -3", -3, -3}, {"offset -13", -13, -13}}, 0)},
           {"h2sgemm-shift", shifted_by_twelve},
           {"h2sgemm-scale-13", kept_by_thirteen},
           {"h2sgemm-large", fewest_over({{"offsets 16 to 27", 16, highest_exponent}}, 12),
            "sb scales the low slice alone (Eq. 7). The high slice of a number of 2^16 and more is "
            "infinite in fp16, whatever sb is; only a scale on the operand itself would bring it into "
            "range."},
           {"h2sgemm-rule-2",
            fewest_over(
                {{"offsets -14 to 14", first_normal, last_normal}, {"offset 15", last_finite, last_finite}},
                12),
            "A residual of a number of exponent 15 reaches 2^4, and times 2^12 that is fp16's infinity, "
            "2^16; Eq. 6 forgets the tie and its neighbours. Numbers from 65520 up have an infinite "
            "high slice besides."}},
      .analysis = {.format = "underflow",
                   .make_document =
                       [](bool quick) {
                         return document_by_exponent("underflow", lowest_exponent, highest_exponent, quick,
                                                     underflow_row);
                       },
                   .draw = draw_underflow}};
}

}  // namespace

std::vector<PaperFigure> h2sgemm_split_figures() { return {table_figure(), underflow_figure()}; }

}  // namespace kintsugi::tools

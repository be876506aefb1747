// mixpert Figs. 2 and 9, errors on square matrices, and sections 3.2, 3.3 and 4.5, single products and tiles
// by enumeration and simulation, and the engine cpu's times.
#include "lab/analyse/mixpert.hpp"
#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* frobenius = "frobenius_relative";
const SchemeOnEngine native{"native", "reference", ""};  // stands for cuBLAS

struct Operands {
  std::string name;
  std::string distribution;
};
const std::vector<Operands> all_operands{{"[-1, 1]", "uniform"}, {"[0, 1]", "uniform01"}};

struct NamedScheme {
  std::string name;
  std::string scheme;
};

SchemeOnEngine on_a100(const std::string& scheme) { return {scheme, "reference", "a100"}; }
SchemeOnEngine on_int32(const std::string& scheme) { return {scheme, "reference", "int32"}; }

// Returns the values of errors_in(filter) for each kind of operands.
Measured by_operands(const std::vector<Operands>& operands,
                     const std::function<std::vector<double>(const Filter&)>& errors_in) {
  return series_of(
      [&](const Operands& some) {
        return SeriesValues{some.name, errors_in(in_distribution(some.distribution))};
      },
      operands);
}

// Returns the values of errors_of(scheme, filter) for each kind of operands and each scheme.
Measured by_operands_and_schemes(
    const std::vector<NamedScheme>& schemes,
    const std::function<std::vector<double>(const std::string& scheme, const Filter&)>& errors_of) {
  const auto values = [&](const Operands& operands, const NamedScheme& named) {
    return SeriesValues{fmt::format("{}, {}", operands.name, named.name),
                        errors_of(named.scheme, in_distribution(operands.distribution))};
  };
  return series_of(values, all_operands, schemes);
}

// Returns a sweep over 64 x 64 elements of squares.
PaperSweep square_sweep(const std::string& name, const std::vector<std::string>& schemes,
                        const std::vector<std::string>& accumulators,
                        const std::vector<std::string>& distributions,
                        const std::vector<std::string>& lengths) {
  return {.name = name,
          .lists = {{"schemes", schemes},
                    {"accumulators", accumulators},
                    {"distributions", distributions},
                    {"m", {"64"}},
                    {"n", {"64"}},
                    {"k", lengths}}};
}

// ----------------------------------------------------------------- Fig. 2

// Pairs of schemes that differ only in where partial sums are added.
const std::vector<NamedScheme> ape{{"sums outside", "bf16x6"},
                                   {"sums inside", "split-n:format=bf16:a=3:b=3:terms=6:scale=0:block=0"}};
const std::vector<NamedScheme> cutlass{
    {"sums outside", "split-n:format=tf32:a=2:b=2:terms=3:scale=0:block=16"}, {"sums inside", "tf32x3"}};

Measured errors_of_ape(const Evidence& evidence) {
  return by_operands_and_schemes(ape, [&](const std::string& scheme, const Filter& filter) {
    return evidence.errors(on_a100(scheme), frobenius, filter);
  });
}

// Returns a series for each size.
Measured errors_by_size(const Evidence& evidence) {
  const std::set<double> lengths = evidence.lengths(everywhere());
  Measured measured;
  for (const SeriesValues& series : errors_of_ape(evidence)) {
    std::size_t i = 0;  // the values of a series are ordered by k
    for (const double k : lengths)
      measured.push_back({fmt::format("{}, k = {}", series.name, k), {series.values.at(i++)}});
  }
  return measured;
}

// CUTLASS adds outside, by its source (lab/docs/papers.md, tf32x3).
Measured cutlass_over_native(const Evidence& evidence) {
  return by_operands_and_schemes({cutlass.front()}, [&](const std::string& scheme, const Filter& filter) {
    return evidence.ratios(on_a100(scheme), native, frobenius, filter);
  });
}

// Returns QuanTensor's errors, averaged over k.
Measured errors_of_quantensor(const Evidence& evidence, int slices) {
  const SchemeOnEngine method = on_int32(fmt::format("quantensor:slices={}", slices));
  std::vector<Operands> with_normal = all_operands;
  with_normal.push_back({"normal", "normal"});
  return by_operands(with_normal, [&](const Filter& filter) {
    return std::vector{mean(evidence.errors(method, frobenius, filter))};
  });
}

PaperFigure emulations_figure() {
  const std::vector<std::string> lengths{"512", "1024", "2048", "4096", "8192"};
  return {
      .name = "mixpert-fig2",
      .paper = "mixpert",
      .place = "Fig. 2 (errors), section 2.2; section 4.3",
      .subject = "Frobenius error of emulations on square matrices",
      .conditions =
          "64 x 64 elements of squares of m = n = k; the paper does not say what its matrices hold, nor "
          "where sums are added: uniform on [-1, 1] and [0, 1], for QuanTensor normal deviates too, "
          "inside the unit over all of k and outside of it; the A100's model, int8 products exact; "
          "native fp32 adds one after the other and stands for cuBLAS",
      .sweeps = {square_sweep("",
                              {"bf16", "bf16x3", "bf16x6", ape[1].scheme, "tf32", "tf32x3", cutlass[0].scheme,
                               "quantensor:slices=1", "quantensor:slices=2", "quantensor:slices=3", "int8x6",
                               "native"},
                              {"a100", "int32"}, {"uniform", "uniform01"}, lengths),
                 square_sweep("normal", {"quantensor:slices=2", "quantensor:slices=3", "native"}, {"int32"},
                              {"normal"}, lengths)},
      .drawn = {.dimensions = {"k"}, .measures = {frobenius}},
      .claims = {
          {"mixpert-ape", errors_by_size},
          {"mixpert-ape-cause", errors_of_ape,
           "Six products of three bf16 slices hold FP32's accuracy where their sums leave the unit. What "
           "errs is the accumulator, which truncates, if all of k is left in it."},
          {"mixpert-cutlass", cutlass_over_native},
          {"mixpert-quantensor", [](const Evidence& evidence) { return errors_of_quantensor(evidence, 2); }},
          {"mixpert-quantensor-high",
           [](const Evidence& evidence) { return errors_of_quantensor(evidence, 3); }}}};
}

// ----------------------------------------------------------------- Fig. 9

const std::vector<std::string> large_lengths{"8192", "16384", "24576", "32768"};
constexpr double min_k_as_native = 1024;  // k from which on level IV errs no more than native FP32

Measured over_native(const Evidence& evidence, const std::string& scheme, double min_k) {
  return by_operands(all_operands, [&](const Filter& filter) {
    return evidence.ratios(on_int32(scheme), native, frobenius, both(filter, from_k(min_k)));
  });
}

const Filter of_first_seed = where("seed", 1);
const Filter of_second_seed = where("seed", 2);

Measured average_of_cutlass(const Evidence& evidence) {
  return by_operands(all_operands, [&](const Filter& filter) {
    return std::vector{mean(evidence.errors(on_a100(cutlass.front().scheme), frobenius, filter))};
  });
}

Measured average_of_cublas(const Evidence& evidence) {
  return by_operands(all_operands, [&](const Filter& filter) {
    return std::vector{mean(evidence.errors(native, frobenius, both(filter, of_second_seed)))};
  });
}

Measured average_of_ape(const Evidence& evidence) {
  return by_operands_and_schemes(ape, [&](const std::string& scheme, const Filter& filter) {
    return std::vector{mean(evidence.errors(on_a100(scheme), frobenius, filter))};
  });
}

// Returns level IV's errors, averaged over k, for both readings of a tile's exponents (sections 3.3.1 and
// 3.3.2), and the same over those of CUTLASS and of native FP32.
Measured averages(const Evidence& evidence) {
  const std::vector<NamedScheme> readings{{"an exponent for each operand", "mixpert-4"},
                                          {"an exponent for both", "mixpert-4:exponent=pair"}};
  const auto average = [&](const SchemeOnEngine& method, const Filter& filter) {
    return mean(evidence.errors(method, frobenius, both(filter, of_first_seed)));
  };
  const Measured errors =
      by_operands_and_schemes(readings, [&](const std::string& scheme, const Filter& filter) {
        return std::vector{average(on_int32(scheme), filter)};
      });
  Measured ratios = by_operands_and_schemes(readings, [&](const std::string& scheme, const Filter& filter) {
    const double error = average(on_int32(scheme), filter);
    return std::vector{error / average(on_a100(cutlass.front().scheme), filter),
                       error / average(native, filter)};
  });
  for (SeriesValues& series : ratios) series.name += ", over CUTLASS and cuBLAS";
  return joined(errors, ratios);
}

PaperFigure cutlass_figure() {
  PaperSweep second_seed = square_sweep("ape", {ape[0].scheme, ape[1].scheme, "native"}, {"a100"},
                                        {"uniform", "uniform01"}, large_lengths);
  second_seed.lists["seeds"] = {"2"};
  return {
      .name = "mixpert-average-cutlass",
      .paper = "mixpert",
      .place = "Fig. 9, section 4.3",
      .subject = "Frobenius error of CUTLASS, APE, cuBLAS and MixPert on large squares",
      .conditions =
          "64 x 64 elements of squares of m = n = k = 8192 to 32768; three tf32 products, sums outside "
          "every 16, on the A100's model; level IV; native fp32 adds one after the other and stands for cuBLAS; "
          "six bf16 products, and native fp32 for cuBLAS's own average, of a second seed",
      .sweeps = {square_sweep("", {cutlass.front().scheme}, {"a100"}, {"uniform", "uniform01"},
                              large_lengths),
                 square_sweep("mixpert", {"mixpert-4", "mixpert-4:exponent=pair", "native"}, {"int32"},
                              {"uniform", "uniform01"}, large_lengths),
                 second_seed},
      .drawn = {.dimensions = {"k"}, .measures = {frobenius}},
      .claims = {{"mixpert-average-cutlass", average_of_cutlass},
                 {"mixpert-average-cublas", average_of_cublas},
                 {"mixpert-average-ape", average_of_ape,
                  "Where sums stay inside, truncation grows with k; outside the unit it does not."},
                 {"mixpert-average", averages}}};
}

PaperFigure levels_figure() {
  return {
      .name = "mixpert-fig9",
      .paper = "mixpert",
      .place = "Fig. 9, section 4.3; section 3.2.4",
      .subject = "Frobenius error of MixPert's levels on square matrices",
      .conditions =
          "64 x 64 elements of squares of m = n = k, uniform on [-1, 1] and [0, 1], one exponent for each "
          "operand's tile; native fp32 adds one after the other and stands for cuBLAS",
      .sweeps = {square_sweep("",
                              {"mixpert-1", "mixpert-2", "mixpert-3", "mixpert-4", "mixpert-4:tile=128",
                               "mixpert-4:exponent=pair", "mixpert-full", "native"},
                              {"int32"}, {"uniform", "uniform01"},
                              {"512", "1024", "2048", "4096", "8192", "16384"})},
      .drawn = {.dimensions = {"k"}, .measures = {frobenius}},
      .claims = {{"mixpert-accumulation",
                  [](const Evidence& evidence) { return over_native(evidence, "mixpert-full", 0); }},
                 {"own-mixpert-native", [](const Evidence& evidence) {
                    return over_native(evidence, "mixpert-4", min_k_as_native);
                  }}}};
}

// --------------------------------------------- sections 3.2, 3.3 and 4.5

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
    const lab::RangeErrors errors = lab::measure_tile_ranges(binades, quick ? 5 : 200, seed);
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
  Json result = analysis_document("mixpert-arithmetic", samples, seed);
  add_products(result["rows"], samples);
  add_ranges(result["rows"], quick);
  add_times(result["rows"], quick);
  return result;
}

std::vector<Figure> draw_document(const Json& document) {
  const auto line = [&](const char* label, int colour, const char* member) {
    return line_of({label, colour, 0, {}}, document, "exponent",
                   [=](const Json& row) { return row.value(member, Json()); });
  };
  const Chart chart{
      .title = "Products of tiles of 16 x 32 and 32 x 8 by the range of their elements",
      .x_label = "binades of exponents",
      .y_label = "relative Frobenius error",
      .log_x = false,
      .series = {line("level IV by segments alone", 0, "level_4"), line("native FP32", 1, "native")}};
  return {{"Tiles of wide ranges", {{.chart = chart, .name = "ranges"}}}};
}

// Returns the only row whose member has the value.
Json row_with(const Evidence& evidence, const std::string& member, const Json& value) {
  const std::vector<Json> rows = evidence.rows_where(where(member, value));
  if (rows.empty()) throw NoSuchRow(fmt::format("no row has {} {}", member, value.dump()));
  return rows.front();
}

// Returns series of one value each, from pairs {name of the series, quantity of the row}.
std::function<Measured(const Evidence&)> values(std::vector<std::pair<std::string, std::string>> pairs) {
  return [pairs = std::move(pairs)](const Evidence& evidence) {
    return series_of(
        [&](const auto& pair) {
          return SeriesValues{pair.first,
                              {read_number(row_with(evidence, "quantity", pair.second).at("value"))}};
        },
        pairs);
  };
}

// Returns level IV's error over native FP32's for the widest range within 32:1.
Measured narrow_over_native(const Evidence& evidence) {
  const Json row = row_with(evidence, "exponent", max_binades_within_32);
  return {{"level IV, k = 32", {row.at("level_4").get<double>() / row.at("native").get<double>()}}};
}

PaperFigure arithmetic_figure() {
  return {
      .name = "mixpert-arithmetic",
      .paper = "mixpert",
      .place = "Eqs. 2, 5, 6 and 9, sections 3.2 and 3.3; section 3.3.1; Fig. 11, section 4.5",
      .subject = "products of segments and of tiles, and what packing and conversions take",
      .conditions =
          "Eq. 6 enumerated; 2^22 random products of two numbers; 200 products of tiles of "
          "each range, by level IV's segments whether Eq. 9 fails or not; times of the engine "
          "cpu, one thread: packing is what prepared operands save, conversions are 8/7 of "
          "what tiles of 256 save",
      .claims =
          {{"mixpert-split", values({{"to nearest", "split"}})},
           {"mixpert-expectation", values({{"enumerated", "expectation"}})},
           {"mixpert-worst", values({{"discarded values of the text", "worst"}})},
           {"mixpert-last-terms", values({{"eight over nine", "eight over nine"}})},
           {"mixpert-range", narrow_over_native,
            "21 bits lose eight times as much as FP32's 24, and 32 products do not hide it: level IV is as "
            "accurate as native FP32 only where k is larger."}},
      .analysis = {.format = "mixpert-arithmetic", .make_document = make_document, .draw = draw_document}};
}

}  // namespace

std::vector<PaperFigure> mixpert_figures() {
  std::vector<PaperFigure> figures{emulations_figure(), cutlass_figure(), levels_figure(),
                                   arithmetic_figure(), mixpert_programs_figure()};
  for (PaperFigure& figure : mixpert_large_figures()) figures.push_back(std::move(figure));
  return figures;
}

}  // namespace kintsugi::tools

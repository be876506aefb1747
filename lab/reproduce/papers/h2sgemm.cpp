// h2sgemm Figs. 8 and 9: errors against the offset exponent and against the sizes; the last term; the bits of
// Ootomo's scheme (section 2).
#include <algorithm>
#include <functional>
#include <numeric>

#include "lab/accuracy/case.hpp"
#include "lab/numerics/ascend.hpp"
#include "lab/reproduce/product_errors.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* frobenius = "frobenius_relative";

// The term-wise order; sb is the exponent of the low slice's scale.
const std::string term_0 = "h2sgemm:sb=0";
const std::string term_6 = "h2sgemm:sb=6";
const std::string term_12 = "h2sgemm:sb=12";
const std::string native = "native";
const std::string fp16 = "fp16";

// Kinds of sums. All sums round to nearest, as the paper's NPU does. (Kintsugi has no model of the NPU.) The
// paper's SGEMM is OpenBLAS's on another processor, so its sums may differ from the NPU's. The recorded rows
// of the engine cpu were made when it multiplied slices by OpenBLAS, up to commit 571b385. Since then it has
// the sequential sums of the reference engine (CHANGELOG, Bits).
struct Sums {
  std::string name;
  std::string engine;
  std::string sgemm;  // engine of the SGEMM whose errors are the divisor
};
const std::vector<Sums> kinds_of_sums{{"sequential sums", "reference", "reference"},
                                      {"OpenBLAS's sums", "cpu", "cpu"}};
// The kinds of sums for errors that are divided by SGEMM's errors. The schemes' sums and SGEMM's sums may
// come from different engines.
const std::vector<Sums> sums_over_sgemm{
    kinds_of_sums[0], kinds_of_sums[1], {"sequential sums over OpenBLAS's SGEMM", "reference", "cpu"}};

SchemeOnEngine method_of(const Sums& sums, const std::string& scheme) {
  return scheme == native ? SchemeOnEngine{native, sums.sgemm, ""}
                          : SchemeOnEngine{scheme, sums.engine, "fp32"};
}

// A way to add the element-wise order's partial sums outside the unit: the number of inner indices of a
// partial sum, and the type of the addition. The paper gives neither.
struct OutsideSums {
  std::string name;
  std::string (*scheme)(int sb);
  Filter rows;
};

// The element-wise order.
std::string element_wise(int sb) { return fmt::format("h2sgemm-element:sb={}", sb); }
std::string outside_every_64(int sb) { return fmt::format("split-n:a=2:b=2:terms=3:scale={}:block=64", sb); }

// Last commit in which the accumulator fp32 added partial sums outside the unit in FP32, as Algorithm 1 does.
// Since then it adds them in FP64 (CHANGELOG, Bits).
constexpr const char* last_with_fp32_outside = "663a57e2e5d6";

bool is_element_wise_fp32(const Json& row) {
  return cell(row, "scheme").starts_with("h2sgemm-element") && cell(row, "accumulator") == "fp32";
}
bool is_of_last_with_fp32(const Json& row) { return cell(row, "commit") == last_with_fp32_outside; }
// Filters for rows of the element-wise order on the accumulator fp32. These rows pass if their partial sums
// were added outside in FP32 (or FP64). All other rows pass.
bool with_fp32_outside(const Json& row) { return !is_element_wise_fp32(row) || is_of_last_with_fp32(row); }
bool with_fp64_outside(const Json& row) { return !is_element_wise_fp32(row) || !is_of_last_with_fp32(row); }

const OutsideSums fp32_every_16{"FP32 sums outside every 16", element_wise, with_fp32_outside};
const OutsideSums fp64_every_16{"FP64 sums outside every 16", element_wise, with_fp64_outside};
const OutsideSums fp64_every_64{"FP64 sums outside every 64", outside_every_64, with_fp64_outside};
const std::vector<OutsideSums> ways_outside{fp32_every_16, fp64_every_16, fp64_every_64};

// Inputs of Fig. 8 (a) and (b).
struct Inputs {
  std::string name;
  std::string distribution;
};
const std::vector<Inputs> all_inputs{{"symmetric", "offset"}, {"non-negative", "offset-nonnegative"}};

// Explanations of claims that do not agree.
constexpr const char* alike_sums =
    "The sum of hi hi makes nearly all of the error, and it is added as SGEMM is: the two differ by a few "
    "hundredths, to either side. Adding the small terms first does not change that.";
constexpr const char* order_of_sums =
    "With sequential sums the term-wise order adds all of k in the unit, one product after the other, and "
    "the element-wise order leaves it every 16 and adds outside: far fewer roundings at the size of the "
    "whole sum. OpenBLAS adds k in partial sums, and there the term-wise order gains.";

// ----------------------------------------------------------------- Fig. 8

// Pairs of schemes; errors of the first are divided by errors of the second.
using SchemePairs = std::vector<std::pair<std::string, std::string>>;
// Returns the pairs that a claim compares, with the element-wise scheme of a way to add partial sums outside.
using PairsFor = SchemePairs (*)(const OutsideSums& way);

std::vector<double> pair_ratios(const Evidence& evidence, const SchemePairs& schemes, const Sums& sums,
                                const Filter& filter) {
  std::vector<double> values;
  for (const auto& [dividend, divisor] : schemes) {
    const auto found = evidence.ratios(method_of(sums, dividend), method_of(sums, divisor), frobenius,
                                       both(of_sweeps(), filter));
    values.insert(values.end(), found.begin(), found.end());
  }
  return values;
}

Filter at_offsets(const Inputs& inputs, double min, double max) {
  return with_parameter(inputs.distribution, min, max);
}

// Returns a series for each kind of sums, way to add partial sums outside, and inputs, over all offset
// exponents from `min` to `max`.
std::function<Measured(const Evidence&)> by_way(PairsFor schemes, const std::vector<Sums>& kinds, double min,
                                                double max) {
  return [=](const Evidence& evidence) {
    const auto ratios = [&](const Sums& sums, const OutsideSums& way, const Inputs& inputs) {
      return SeriesValues{
          fmt::format("{}, {}, {}", inputs.name, sums.name, way.name),
          pair_ratios(evidence, schemes(way), sums, both(way.rows, at_offsets(inputs, min, max)))};
    };
    return series_of(ratios, kinds, ways_outside, all_inputs);
  };
}

// Returns a series for each kind of sums, offset exponent and inputs. Partial sums of the element-wise order
// are added outside in FP32, every 16 inner indices.
std::function<Measured(const Evidence&)> by_offset(PairsFor schemes, const std::vector<Sums>& kinds,
                                                   const std::vector<int>& offsets) {
  return [=](const Evidence& evidence) {
    const auto ratios = [&](const Sums& sums, int offset, const Inputs& inputs) {
      return SeriesValues{fmt::format("{}, {}, offset {}", inputs.name, sums.name, offset),
                          pair_ratios(evidence, schemes(fp32_every_16), sums,
                                      both(fp32_every_16.rows, at_offsets(inputs, offset, offset)))};
    };
    return series_of(ratios, kinds, offsets, all_inputs);
  };
}

// Returns the errors of all other schemes over those of fp16, a series for each kind of sums and inputs.
Measured over_fp16(const Evidence& evidence) {
  const auto ratios = [&](const Sums& sums, const Inputs& inputs) {
    const Filter range = at_offsets(inputs, -20, 0);
    auto values =
        pair_ratios(evidence, {{term_0, fp16}, {term_6, fp16}, {term_12, fp16}, {native, fp16}}, sums, range);
    for (const OutsideSums& way : ways_outside) {
      const auto more =
          pair_ratios(evidence, {{way.scheme(0), fp16}, {way.scheme(6), fp16}, {way.scheme(12), fp16}}, sums,
                      both(way.rows, range));
      values.insert(values.end(), more.begin(), more.end());
    }
    return SeriesValues{inputs.name + ", " + sums.name, values};
  };
  return series_of(ratios, sums_over_sgemm, all_inputs);
}

// Returns HGEMM's errors for several choices of the smallest offset exponent. Results rounded to FP16 exist
// for sequential sums only.
Measured half_precision(const Evidence& evidence) {
  const auto errors = [&](const Sums& sums, const std::string& output, const Filter& rows) {
    return series_of(
        [&](int min, const Inputs& inputs) {
          return SeriesValues{
              fmt::format("{}, {}, {} results, offsets from {}", inputs.name, sums.name, output, min),
              evidence.errors(method_of(sums, fp16), frobenius, both(rows, at_offsets(inputs, min, 0)))};
        },
        std::vector{-20, -12, -8}, all_inputs);
  };
  Measured measured;
  for (const Sums& sums : kinds_of_sums) measured = joined(measured, errors(sums, "FP32", of_sweeps()));
  return joined(measured, errors(kinds_of_sums.front(), "FP16", where("output", "fp16")));
}

// Returns the term-wise order's errors over the element-wise order's, on the H200's model.
Measured orders_on_h200(const Evidence& evidence) {
  const auto ratios = [&](const Inputs& inputs) {
    return SeriesValues{
        inputs.name, evidence.ratios({term_12, "reference", "h200"}, {element_wise(12), "reference", "h200"},
                                     frobenius, at_offsets(inputs, -12, 0))};
  };
  return series_of(ratios, all_inputs);
}

// Returns the errors of both orders over SGEMM's for inputs whose high slices are subnormal.
Measured below_window(const Evidence& evidence) {
  const auto ratios = [&](const Sums& sums, const Inputs& inputs) {
    return SeriesValues{inputs.name + ", " + sums.name,
                        pair_ratios(evidence, {{term_12, native}, {element_wise(12), native}}, sums,
                                    both(fp32_every_16.rows, at_offsets(inputs, -20, -16)))};
  };
  return series_of(ratios, kinds_of_sums, all_inputs);
}

// Returns the distributions of all inputs at these offset exponents.
std::vector<std::string> distributions_at(const std::vector<int>& offsets) {
  std::vector<std::string> distributions;
  for (const Inputs& inputs : all_inputs) {
    for (const int offset : offsets)
      distributions.push_back(fmt::format("{}:{}", inputs.distribution, offset));
  }
  return distributions;
}
const std::vector<std::string> fig8_distributions = distributions_at({-20, -16, -12, -10, -8, -6, -4, -2, 0});

PaperSweep fig8_sweep(const std::string& name, const std::vector<std::string>& schemes) {
  return {.name = name,
          .lists = {{"schemes", schemes},
                    {"engines", {"reference", "cpu"}},
                    {"accumulators", {"fp32"}},
                    {"distributions", fig8_distributions},
                    {"shapes", {"64x64x2816"}}}};
}

PaperSweep fig8_tensor_cores() {
  return {.name = "h200",
          .lists = {{"schemes", {term_12, element_wise(12), native}},
                    {"engines", {"reference"}},
                    {"accumulators", {"h200"}},
                    {"distributions", distributions_at({-12, -8, -4, 0})},
                    {"shapes", {"64x64x2816"}}}};
}

SchemePairs term_over_element(const OutsideSums& way) { return {{term_0, way.scheme(0)}}; }
SchemePairs term_over_element_12(const OutsideSums& way) { return {{term_12, way.scheme(12)}}; }
SchemePairs unscaled_over_sgemm(const OutsideSums& way) {
  return {{term_0, native}, {way.scheme(0), native}};
}
SchemePairs unscaled_over_scaled(const OutsideSums& way) {
  return {{term_0, term_12}, {way.scheme(0), way.scheme(12)}};
}
SchemePairs six_over_twelve(const OutsideSums& way) {
  return {{term_6, term_12}, {way.scheme(6), way.scheme(12)}};
}
SchemePairs element_over_sgemm(const OutsideSums& way) { return {{way.scheme(12), native}}; }
SchemePairs term_over_sgemm(const OutsideSums&) { return {{term_12, native}}; }

std::vector<Claim> fig8_claims() {
  return {{"h2sgemm-fig8-hgemm", half_precision,
           "Elements of one sign cancel nothing, so that the same product errs by 6e-6 before its result "
           "is rounded to FP16; below -14 fp16's own numbers have fewer bits."},
          {"h2sgemm-fig8-largest", over_fp16},
          {"h2sgemm-fig8-alike", by_way(term_over_element, kinds_of_sums, -20, 0), order_of_sums},
          {"h2sgemm-fig8-near-0", by_way(term_over_element, kinds_of_sums, -2, 0), order_of_sums},
          {"h2sgemm-fig8-unscaled", by_way(unscaled_over_sgemm, sums_over_sgemm, -20, 0),
           "Near offset exponent 0 the low slices hold nearly all their bits without a scale "
           "(h2sgemm-fig2), and sb = 0 errs there as sb = 12 does."},
          {"h2sgemm-fig8-gain", by_offset(unscaled_over_scaled, kinds_of_sums, {-12, -10, -8}),
           "The gain grows by a factor of four with two exponents and passes through 10 to 100."},
          {"h2sgemm-fig8-six", by_offset(six_over_twelve, kinds_of_sums, {-16, -12, -10})},
          {"h2sgemm-fig8-element", by_way(element_over_sgemm, sums_over_sgemm, -12, 0), order_of_sums},
          {"h2sgemm-fig8-term", by_offset(term_over_sgemm, sums_over_sgemm, {-12, -10, -8}), alike_sums},
          {"h2sgemm-fig8-order", by_way(term_over_element_12, kinds_of_sums, -12, 0), order_of_sums},
          {"own-order-h200", orders_on_h200,
           "A tensor core truncates. Term by term, all of k is summed in it, and the truncations add up "
           "with one sign; element by element, sums leave it every 16 and are added outside to nearest."},
          {"own-below-window", below_window,
           "Below 2^-14 the high slice is subnormal, and the scaled low one holds less than what it lost."}};
}

PaperFigure fig8() {
  return {.name = "h2sgemm-fig8",
          .paper = "h2sgemm",
          .place = "Fig. 8, section 4.1",
          .subject = "error against the offset exponent",
          .conditions =
              "sequential FP32 sums (engine reference) and OpenBLAS's (engine cpu) for the paper's "
              "NPU, of which there is no model, SGEMM's being of the same kind; element by element "
              "sums leave the unit every 16 and are added in FP32, rows of commit 663a57e, or in "
              "FP64, or leave it every 64; the H200 model beside them; 64 x 64 elements at k = 64 "
              "x 44",
          // The sweep "places" is that of a program that adds partial sums outside in FP64, as all do since
          // commit 663a57e.
          .sweeps = {fig8_sweep("", {fp16, term_0, term_6, term_12, element_wise(0), element_wise(6),
                                     element_wise(12), native}),
                     fig8_sweep("places", {element_wise(0), element_wise(6), element_wise(12),
                                           outside_every_64(0), outside_every_64(6), outside_every_64(12)}),
                     fig8_tensor_cores()},
          .drawn = {.dimensions = {"parameter of the distribution"}, .measures = {frobenius}},
          .claims = fig8_claims(),
          .analysis = product_errors_analysis("half-results", {{.schemes = {fp16},
                                                                .methods = {{"", "reference", "fp32"}},
                                                                .distributions = fig8_distributions,
                                                                .shapes = {{64, 64, 2816}},
                                                                .seeds = {1},
                                                                .fp16_output = true}})};
}

// ----------------------------------------------------------------- Fig. 9

struct Sizes {
  std::string name;
  Filter filter;
};

// True if C is square.
bool is_square(const Json& row) {
  const Json& problem = row.at("problem");
  return problem.at("m") == problem.at("n");
}

// Returns a filter for the rows of Fig. 9 (b), which have m = 176 and n = 32, up to a largest k.
Filter with_k_to(double max_k) {
  return [max_k](const Json& row) {
    const Json& problem = row.at("problem");
    return problem.at("n") == 32 && !is_square(row) && problem.at("k").get<double>() <= max_k;
  };
}

// Sizes of Fig. 9 (b) and (c); the paper's text does not give the largest ones.
const std::vector<Sizes> growing_sizes{{"k to 2816", with_k_to(2816)},
                                       {"k to 11264", with_k_to(11264)},
                                       {"all sizes to 512", [](const Json& row) {
                                          return is_square(row) &&
                                                 row.at("problem").at("m") == row.at("problem").at("k");
                                        }}};

Filter at_offset_0(const Inputs& inputs, const Filter& filter) {
  return both(in_distribution(inputs.distribution + ":0"), filter);
}

// Returns the errors of Fig. 9 (a): m = n at the same k.
Measured errors_by_edge(const Evidence& evidence) {
  const Filter same_k = both(fp32_every_16.rows, both(is_square, at_k(2816)));
  const std::vector<std::pair<std::string, std::string>> schemes{
      {"term-wise", term_12}, {"element-wise", element_wise(12)}, {"SGEMM", native}};
  const auto errors = [&](const auto& scheme, const Sums& sums, const Inputs& inputs) {
    return SeriesValues{
        fmt::format("{}, {}, {}", scheme.first, inputs.name, sums.name),
        evidence.errors(method_of(sums, scheme.second), frobenius, at_offset_0(inputs, same_k))};
  };
  return series_of(errors, schemes, kinds_of_sums, all_inputs);
}

// Returns the error at the largest size over that at the smallest.
double growth(const Evidence& evidence, const SchemeOnEngine& method, const Filter& filter) {
  const auto errors = evidence.errors(method, frobenius, filter);
  return errors.back() / errors.front();
}

using SizeValue = double (*)(const Evidence& evidence, const Sums& sums, const Filter& filter);

// Returns a series for each set of growing sizes, kind of sums, and inputs.
std::function<Measured(const Evidence&)> by_growing_sizes(SizeValue value) {
  return [=](const Evidence& evidence) {
    const auto values = [&](const Sizes& sizes, const Sums& sums, const Inputs& inputs) {
      return SeriesValues{fmt::format("{}, {}, {}", sizes.name, inputs.name, sums.name),
                          {value(evidence, sums, at_offset_0(inputs, sizes.filter))}};
    };
    return series_of(values, growing_sizes, sums_over_sgemm, all_inputs);
  };
}

double growth_over_sgemm(const Evidence& evidence, const Sums& sums, const Filter& filter) {
  return growth(evidence, method_of(sums, term_12), filter) /
         growth(evidence, method_of(sums, native), filter);
}

double last_over_sgemm(const Evidence& evidence, const Sums& sums, const Filter& filter) {
  return evidence.ratios(method_of(sums, term_12), method_of(sums, native), frobenius, filter).back();
}

Measured growth_over_element(const Evidence& evidence) {
  const auto ratio = [&](const Sizes& sizes, const Sums& sums, const OutsideSums& way, const Inputs& inputs) {
    const Filter filter = both(way.rows, at_offset_0(inputs, sizes.filter));
    return SeriesValues{fmt::format("{}, {}, {}, {}", sizes.name, inputs.name, sums.name, way.name),
                        {growth(evidence, method_of(sums, term_12), filter) /
                         growth(evidence, method_of(sums, way.scheme(12)), filter)}};
  };
  return series_of(ratio, growing_sizes, kinds_of_sums, std::vector{fp32_every_16, fp64_every_64},
                   all_inputs);
}

PaperSweep fig9_sweep(const std::string& name, const std::vector<std::string>& schemes) {
  return {.name = name,
          .lists = {{"schemes", schemes},
                    {"engines", {"reference", "cpu"}},
                    {"accumulators", {"fp32"}},
                    {"distributions", distributions_at({0})},
                    {"shapes",
                     {"32x32x2816", "64x64x2816", "128x128x2816", "256x256x2816", "176x32x64", "176x32x256",
                      "176x32x704", "176x32x2816", "176x32x11264", "64x64x64", "128x128x128", "256x256x256",
                      "512x512x512"}}}};
}

PaperFigure fig9() {
  return {
      .name = "h2sgemm-fig9",
      .paper = "h2sgemm",
      .place = "Fig. 9, section 4.1",
      .subject = "error against the sizes",
      .conditions =
          "offset exponent 0; (a) m = n at k = 64 x 44, (b) k at m = 176, n = 32, (c) m = n = k; sizes up to "
          "what two cores allow; sums as in Fig. 8",
      .sweeps = {fig9_sweep("", {term_0, term_12, element_wise(12), native}),
                 fig9_sweep("places", {element_wise(12), outside_every_64(12)})},
      .drawn = {.dimensions = {"k", "m = n", "m = n = k"}, .measures = {frobenius}, .min_values = 4},
      .claims = {{"h2sgemm-fig9-stable", errors_by_edge},
                 {"h2sgemm-fig9-growth-element", growth_over_element, order_of_sums},
                 {"h2sgemm-fig9-growth-sgemm", by_growing_sizes(growth_over_sgemm), alike_sums},
                 {"h2sgemm-fig9-lower", by_growing_sizes(last_over_sgemm), alike_sums}}};
}

// ---------------------------------------------------------------- the last term

// All of k is summed inside the unit.
std::string split_with(int terms) { return fmt::format("split-n:a=2:b=2:terms={}:scale=12:block=0", terms); }

const std::vector<int> offsets_of_terms{-12, -8, -4, 0};

std::string outside_quantity(int terms, const std::string& distribution) {
  return fmt::format("Frobenius error, {} terms, FP32 sums outside, {}", terms, distribution);
}

struct Halves {
  std::vector<float> high;
  std::vector<float> low;  // times 2^12
};

Halves halves_of(const std::vector<float>& elements) {
  Halves halves;
  for (const float x : elements) {
    halves.high.push_back(lab::ascend::to_half(x));
    halves.low.push_back(lab::ascend::to_half((x - halves.high.back()) * 0x1p12F));
  }
  return halves;
}

// Returns C by Fig. 7(a): products of 16 inner indices are summed one after another in FP32, then each term
// is added to C in FP32, small ones first.
std::vector<float> element_wise_in_fp32(const Shape& shape, const std::vector<float>& a_elements,
                                        const std::vector<float>& b_elements, int terms) {
  constexpr std::int64_t inside = 16;
  const Halves a = halves_of(a_elements), b = halves_of(b_elements);
  std::vector<float> c;
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      float sum = 0;
      for (std::int64_t p = 0; p < shape.k; p += inside) {
        const auto inner = [&](const std::vector<float>& x, const std::vector<float>& y) {
          float products = 0;
          for (std::int64_t q = p; q < std::min(p + inside, shape.k); ++q)
            products +=
                x[static_cast<std::size_t>(i * shape.k + q)] * y[static_cast<std::size_t>(q * shape.n + j)];
          return products;
        };
        if (terms == 4) sum += 0x1p-24F * inner(a.low, b.low);
        sum += 0x1p-12F * inner(a.low, b.high);
        sum += 0x1p-12F * inner(a.high, b.low);
        sum += inner(a.high, b.high);
      }
      c.push_back(sum);
    }
  }
  return c;
}

Json outside_document(bool quick) {
  constexpr std::uint64_t seed = 1;
  const Shape shape = quick ? Shape{16, 16, 64} : Shape{64, 64, 2816};
  Json result = analysis_document("quantities", shape.m, seed);
  for (const std::string& distribution : distributions_at(offsets_of_terms)) {
    const auto a = random_elements<float>(distribution, measure::Side::a, seed, shape.m, shape.k);
    const auto b = random_elements<float>(distribution, measure::Side::b, seed, shape.k, shape.n);
    ComparedCase<float> compared(shape, a, b, shape.m * shape.n);
    for (const int terms : {3, 4}) {
      TimedProduct<float> product;
      product.c = element_wise_in_fp32(shape, a, b, terms);
      compared.compare(product, nullptr);
      result["rows"].push_back({{"quantity", outside_quantity(terms, distribution)},
                                {"value", product.errors.at(frobenius)},
                                {"source", "computed"},
                                {"k", shape.k}});
    }
  }
  return result;
}

Measured without_last_term(const Evidence& evidence) {
  const auto inside = [&](const Inputs& inputs) {
    return SeriesValues{
        inputs.name + ", sums inside",
        evidence.ratios({split_with(3), "reference", "fp32"}, {split_with(4), "reference", "fp32"}, frobenius,
                        at_offsets(inputs, -12, 0))};
  };
  const auto outside = [&](const Inputs& inputs) {
    SeriesValues series{inputs.name + ", FP32 sums outside", {}};
    for (const int offset : offsets_of_terms) {
      const auto error = [&](int terms) {
        const auto rows = evidence.rows_where(
            where("quantity", outside_quantity(terms, fmt::format("{}:{}", inputs.distribution, offset))));
        if (rows.empty()) throw NoSuchRow("no row with FP32 sums outside");
        return read_number(rows.front().at("value"));
      };
      series.values.push_back(error(3) / error(4));
    }
    return series;
  };
  return joined(series_of(inside, all_inputs), series_of(outside, all_inputs));
}

PaperFigure last_term() {
  return {.name = "h2sgemm-fig8-terms",
          .paper = "h2sgemm",
          .place = "Eq. 7, section 3.2",
          .subject = "error without the product of both low slices",
          .conditions =
              "Fig. 8's inputs at offset exponents -12 to 0, 64 x 64 elements at k = 64 x 44; sequential "
              "FP32 sums over all of k, or over 16 inner indices and then outside in FP32, where section 3.2 "
              "has intermediate results; every product has an accumulator of its own",
          .sweeps = {{.name = "",
                      .lists = {{"schemes", {split_with(3), split_with(4)}},
                                {"engines", {"reference"}},
                                {"accumulators", {"fp32"}},
                                {"distributions", distributions_at(offsets_of_terms)},
                                {"shapes", {"64x64x2816"}}}}},
          .drawn = {.dimensions = {"parameter of the distribution"}, .measures = {frobenius}},
          .claims = {{"h2sgemm-last-term", without_last_term}},
          .analysis = {.format = "quantities", .make_document = outside_document, .name = "outside"}};
}

// ---------------------------------------------------------------- smaller offset exponents

const std::vector<int> smaller_offsets{-4, -8, -12};
const std::vector<std::string> offset_shapes{"176x32x64", "176x32x704",  "176x32x2816",
                                             "64x64x64",  "128x128x128", "256x256x256"};
const std::vector<Filter> growing{with_k_to(2816), growing_sizes.back().filter};

// Returns the growth of the errors of a scheme at an offset exponent over that at 0, for each way in which
// sizes grow.
Measured growth_at_offsets(const Evidence& evidence) {
  const std::vector<std::pair<std::string, std::string>> schemes{
      {"term-wise", term_12}, {"element-wise", element_wise(12)}, {"SGEMM", native}};
  const auto ratios = [&](const auto& scheme, const Inputs& inputs, int offset) {
    SeriesValues series{fmt::format("{}, {}, offset {}", scheme.first, inputs.name, offset), {}};
    for (const Filter& sizes : growing) {
      const auto at = [&](int exponent) {
        return growth(evidence, method_of(kinds_of_sums.front(), scheme.second),
                      both(sizes, at_offsets(inputs, exponent, exponent)));
      };
      series.values.push_back(at(offset) / at(0));
    }
    return series;
  };
  return series_of(ratios, schemes, all_inputs, smaller_offsets);
}

PaperFigure fig9_at_offsets() {
  std::vector<int> offsets{0};
  offsets.insert(offsets.end(), smaller_offsets.begin(), smaller_offsets.end());
  return {.name = "h2sgemm-fig9-offsets",
          .paper = "h2sgemm",
          .place = "section 4.1, after Fig. 9",
          .subject = "error against the sizes at smaller offset exponents",
          .conditions =
              "offset exponents 0 to -12; (b) k to 2816 at m = 176, n = 32, (c) m = n = k to 256; "
              "sequential FP32 sums",
          .sweeps = {{.name = "",
                      .lists = {{"schemes", {term_12, element_wise(12), native}},
                                {"engines", {"reference"}},
                                {"accumulators", {"fp32"}},
                                {"distributions", distributions_at(offsets)},
                                {"shapes", offset_shapes}}}},
          .drawn = {.dimensions = {"k", "m = n = k"}, .measures = {frobenius}},
          .claims = {{"h2sgemm-fig9-others", growth_at_offsets}}};
}

// ---------------------------------------------------------------- section 2: Ootomo's bits

const std::vector<std::pair<std::string, std::string>> exact_inputs{{"[-1, 1]", "uniform"},
                                                                    {"[0, 1]", "uniform01"}};
// Products whose bits are compared: native ones, by engine, or the exact product, rounded once.
const std::vector<std::pair<std::string, std::string>> whose_bits{
    {"sequential sums", "reference"}, {"OpenBLAS's sums", "cpu"}, {"correctly rounded", ""}};

// Returns the share of elements of Ootomo's product that have the same bits.
double equal_bits(const std::string& distribution, const Shape& shape, const std::string& engine) {
  constexpr std::uint64_t seed = 1;
  ComparedCase<float> compared(
      shape, random_elements<float>(distribution, measure::Side::a, seed, shape.m, shape.k),
      random_elements<float>(distribution, measure::Side::b, seed, shape.k, shape.n), shape.m * shape.n);
  TimedProduct<float> product = compared.multiply({Type::float32, "ootomo", "reference", "a100"});
  if (engine.empty()) {
    compared.compare(product, nullptr);
    return read_number(product.errors.at("correctly_rounded_fraction"));
  }
  const TimedProduct<float> other = compared.multiply({Type::float32, "native", engine, ""});
  const auto equal =
      std::inner_product(product.c.begin(), product.c.end(), other.c.begin(), std::ptrdiff_t{0},
                         std::plus<>(), [](float x, float y) { return x == y ? 1 : 0; });
  return static_cast<double>(equal) / static_cast<double>(product.c.size());
}

Json bits_document(bool quick) {
  const Shape shape = quick ? Shape{16, 16, 256} : Shape{64, 64, 1024};
  Json result = analysis_document("quantities", shape.m, 1);
  for (const auto& [inputs, distribution] : exact_inputs) {
    for (const auto& [name, engine] : whose_bits)
      result["rows"].push_back({{"quantity", "share of elements with the bits of " + name},
                                {"value", equal_bits(distribution, shape, engine)},
                                {"scheme", "ootomo"},
                                {"distribution", distribution},
                                {"k", shape.k},
                                {"seed", 1}});
  }
  return result;
}

Measured same_bits(const Evidence& evidence) {
  using Pair = std::pair<std::string, std::string>;
  const auto share = [&](const Pair& whose, const Pair& inputs) {
    const auto rows =
        evidence.rows_where(both(where("quantity", "share of elements with the bits of " + whose.first),
                                 in_distribution(inputs.second)));
    if (rows.empty()) throw NoSuchRow("no share of " + whose.first);
    return SeriesValues{inputs.first + ", " + whose.first, {rows.front().at("value").get<double>()}};
  };
  return series_of(share, whose_bits, exact_inputs);
}

PaperFigure bits_of_ootomo() {
  return {.name = "h2sgemm-exact",
          .paper = "h2sgemm",
          .place = "section 2, Table 1, on the work of Ootomo and Yokota",
          .subject = "elements of Ootomo's scheme that have the bits of an FP32 product",
          .conditions = "64 x 64 elements, k = 1024, the A100's model, sums outside every 16",
          .claims =
              {{"h2sgemm-ootomo-exact", same_bits,
                "Two FP32 products that add in another order differ in their last bits, and the scheme keeps "
                "23 bits of 24 (h2sgemm-table1)."}},
          .analysis = {.format = "quantities", .make_document = bits_document}};
}

}  // namespace

std::vector<PaperFigure> h2sgemm_figures() {
  return {fig8(), fig9(), last_term(), fig9_at_offsets(), bits_of_ootomo()};
}

}  // namespace kintsugi::tools

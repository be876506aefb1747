// h2sgemm Figs. 8 and 9: errors against the offset exponent and against the sizes; the last term; the bits of
// Ootomo's scheme (section 2).
#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "lab/accuracy/case.hpp"
#include "lab/numerics/ascend.hpp"
#include "lab/numerics/npu_sums.hpp"
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

// The library's element-wise order, which adds partial sums outside the unit in FP64.
std::string library_element_wise(int sb) { return fmt::format("h2sgemm-element:sb={}", sb); }

// Orders in which the paper's NPU may add. All round to nearest.
struct Sums {
  std::string name;
  lab::npu::Order order;
};
const std::vector<Sums> npu_sums{{"sequential sums", lab::npu::Order::sequential},
                                 {"16 at once", lab::npu::Order::sixteen_at_once},
                                 {"blocks of 64", lab::npu::Order::blocks_of_64}};

// Inner indices after which sums of the element-wise order leave the unit, to be added in FP32.
struct Way {
  std::string name;
  std::int64_t every;
};
const std::vector<Way> ways_outside{{"outside every 16", 16}, {"outside every 64", 64}};

// Methods of documents of npu_document(): the engine is the name of the sums.
using MethodOf = std::function<SchemeOnEngine(const Sums&, const Way&)>;

MethodOf term_wise(int sb) {
  return [sb](const Sums& sums, const Way&) {
    return SchemeOnEngine{fmt::format("term-wise:sb={}", sb), sums.name, "fp32"};
  };
}
MethodOf element_wise(int sb) {
  return [sb](const Sums& sums, const Way& way) {
    return SchemeOnEngine{fmt::format("element-wise:sb={}:every={}", sb, way.every), sums.name, "fp32"};
  };
}
SchemeOnEngine hgemm(const Sums& sums, const Way&) { return {fp16, sums.name, "fp32"}; }
// The paper's SGEMM is OpenBLAS's, on another CPU (section 4).
SchemeOnEngine sgemm(const Sums&, const Way&) { return {native, "cpu", ""}; }

// Inputs of Fig. 8 (a) and (b).
struct Inputs {
  std::string name;
  std::string distribution;
};
const std::vector<Inputs> all_inputs{{"symmetric", "offset"}, {"non-negative", "offset-nonnegative"}};

// Explanations of claims that do not agree.
constexpr const char* order_of_sums =
    "One product after the other, the term-wise order has far more roundings at the size of the whole sum than "
    "the element-wise one, which adds outside; 16 at once it has as few.";
constexpr const char* order_beside_sgemm =
    "The sum of hi hi makes nearly all of the error, so that the order of the cube's sums decides; OpenBLAS "
    "adds k in blocks.";

// ------------------------------------------------------------- the NPU's sums

// Products whose errors a document has: both orders with these exponents of the scale, by every kind of sums.
struct NpuProducts {
  std::vector<std::string> distributions;
  std::vector<Shape> shapes;
  std::vector<int> exponents;
  bool with_hgemm = false;
};

// Adds rows of the products of one case.
void add_npu_rows(Json& rows, const NpuProducts& products, const std::string& distribution,
                  const Shape& shape) {
  const auto a = random_elements<float>(distribution, measure::Side::a, sample_seed, shape.m, shape.k);
  const auto b = random_elements<float>(distribution, measure::Side::b, sample_seed, shape.k, shape.n);
  ComparedCase<float> compared(shape, a, b, 4096);
  TimedProduct<float> openblas = compared.multiply({Type::float32, native, "cpu", ""});
  const auto add = [&](const SchemeOnEngine& method, const char* output, TimedProduct<float>& product) {
    compared.compare(product, nullptr);
    rows.push_back({{"problem", {{"m", shape.m}, {"n", shape.n}, {"k", shape.k}, {"type", "fp32"}}},
                    {"distribution", distribution},
                    {"seed", sample_seed},
                    {"scheme", method.scheme},
                    {"engine", method.engine},
                    {"accumulator", method.accumulator.empty() ? Json() : Json(method.accumulator)},
                    {"native", "cpu"},
                    {"output", output},
                    {"errors", product.errors},
                    {"shares", Json::array()}});
  };
  const auto add_elements = [&](const SchemeOnEngine& method, const char* output, std::vector<float> c) {
    TimedProduct<float> product;
    product.c = std::move(c);
    add(method, output, product);
  };
  add(sgemm(npu_sums.front(), ways_outside.front()), "fp32", openblas);
  for (const int sb : products.exponents) {
    const lab::npu::SplitProduct split({shape.m, shape.n, shape.k, a, b}, sb);
    for (const Sums& sums : npu_sums) {
      add_elements(term_wise(sb)(sums, {}), "fp32", split.term_wise(sums.order));
      for (const Way& way : ways_outside)
        add_elements(element_wise(sb)(sums, way), "fp32", split.element_wise(sums.order, way.every));
      if (!products.with_hgemm || sb != products.exponents.front()) continue;
      std::vector<float> c = split.high_alone(sums.order);
      add_elements(hgemm(sums, {}), "fp32", c);
      std::transform(c.begin(), c.end(), c.begin(), lab::ascend::to_half);
      add_elements(hgemm(sums, {}), "fp16", c);
    }
  }
}

Analysis npu_analysis(const NpuProducts& products) {
  return {.format = "product-errors",
          .make_document =
              [=](bool quick) {
                Json result =
                    analysis_document("product-errors", quick ? 32 : products.shapes.front().m, sample_seed);
                std::set<std::string> done;  // --quick makes some shapes equal
                for (const std::string& distribution : products.distributions) {
                  for (Shape shape : products.shapes) {
                    if (quick)
                      shape = {std::min<std::int64_t>(shape.m, 32), std::min<std::int64_t>(shape.n, 32),
                               std::min<std::int64_t>(shape.k, 256)};
                    if (done.insert(distribution + " " + shape_text(shape)).second)
                      add_npu_rows(result["rows"], products, distribution, shape);
                  }
                }
                return result;
              },
          .name = "sums"};
}

// Rows of such documents with FP32 results.
Filter in_fp32(const Filter& filter) { return both(where("output", "fp32"), filter); }

// ----------------------------------------------------------------- Fig. 8

// Pairs of methods; errors of the first are divided by errors of the second.
using Pairs = std::vector<std::pair<MethodOf, MethodOf>>;

std::vector<double> pair_ratios(const Evidence& evidence, const Pairs& pairs, const Sums& sums,
                                const Way& way, const Filter& filter) {
  std::vector<double> values;
  for (const auto& [dividend, divisor] : pairs) {
    const auto found = evidence.ratios(dividend(sums, way), divisor(sums, way), frobenius, in_fp32(filter));
    values.insert(values.end(), found.begin(), found.end());
  }
  return values;
}

Filter at_offsets(const Inputs& inputs, double min, double max) {
  return with_parameter(inputs.distribution, min, max);
}

// Returns a series for each kind of sums, way to add partial sums outside, and inputs, over all offset
// exponents from `min` to `max`.
std::function<Measured(const Evidence&)> by_way(const Pairs& pairs, double min, double max) {
  return [=](const Evidence& evidence) {
    const auto ratios = [&](const Sums& sums, const Way& way, const Inputs& inputs) {
      return SeriesValues{fmt::format("{}, {}, {}", inputs.name, sums.name, way.name),
                          pair_ratios(evidence, pairs, sums, way, at_offsets(inputs, min, max))};
    };
    return series_of(ratios, npu_sums, ways_outside, all_inputs);
  };
}

// The same for each offset exponent.
std::function<Measured(const Evidence&)> by_way_and_offset(const Pairs& pairs,
                                                           const std::vector<int>& offsets) {
  return [=](const Evidence& evidence) {
    const auto ratios = [&](const Sums& sums, const Way& way, int offset, const Inputs& inputs) {
      return SeriesValues{fmt::format("{}, {}, {}, offset {}", inputs.name, sums.name, way.name, offset),
                          pair_ratios(evidence, pairs, sums, way, at_offsets(inputs, offset, offset))};
    };
    return series_of(ratios, npu_sums, ways_outside, offsets, all_inputs);
  };
}

// Returns the term-wise order's errors over SGEMM's, a series for each kind of sums, offset exponent and
// inputs.
Measured term_over_sgemm(const Evidence& evidence) {
  const auto ratios = [&](const Sums& sums, int offset, const Inputs& inputs) {
    return SeriesValues{fmt::format("{}, {}, offset {}", inputs.name, sums.name, offset),
                        pair_ratios(evidence, {{term_wise(12), sgemm}}, sums, ways_outside.front(),
                                    at_offsets(inputs, offset, offset))};
  };
  return series_of(ratios, npu_sums, std::vector{-12, -10, -8}, all_inputs);
}

// Returns the errors of all other schemes over those of fp16, a series for each kind of sums and inputs.
Measured over_fp16(const Evidence& evidence) {
  const auto ratios = [&](const Sums& sums, const Inputs& inputs) {
    const Filter range = at_offsets(inputs, -20, 0);
    SeriesValues series{inputs.name + ", " + sums.name, {}};
    const auto add = [&](const Pairs& pairs, const Way& way) {
      const auto more = pair_ratios(evidence, pairs, sums, way, range);
      series.values.insert(series.values.end(), more.begin(), more.end());
    };
    add({{term_wise(0), hgemm}, {term_wise(6), hgemm}, {term_wise(12), hgemm}, {sgemm, hgemm}},
        ways_outside.front());
    for (const Way& way : ways_outside)
      add({{element_wise(0), hgemm}, {element_wise(6), hgemm}, {element_wise(12), hgemm}}, way);
    return series;
  };
  return series_of(ratios, npu_sums, all_inputs);
}

// Returns HGEMM's errors for several choices of the smallest offset exponent.
Measured half_precision(const Evidence& evidence) {
  const auto errors = [&](const Sums& sums, const std::string& output, int min, const Inputs& inputs) {
    const std::string name = output == "fp16" ? "FP16" : "FP32";
    return SeriesValues{fmt::format("{}, {}, {} results, offsets from {}", inputs.name, sums.name, name, min),
                        evidence.errors(hgemm(sums, {}), frobenius,
                                        both(where("output", output), at_offsets(inputs, min, 0)))};
  };
  return series_of(errors, npu_sums, std::vector<std::string>{"fp32", "fp16"}, std::vector{-20, -12, -8},
                   all_inputs);
}

// Returns the term-wise order's errors over the element-wise order's, on the H200's model.
Measured orders_on_h200(const Evidence& evidence) {
  const auto ratios = [&](const Inputs& inputs) {
    return SeriesValues{inputs.name, evidence.ratios({term_12, "reference", "h200"},
                                                     {library_element_wise(12), "reference", "h200"},
                                                     frobenius, at_offsets(inputs, -12, 0))};
  };
  return series_of(ratios, all_inputs);
}

// Returns the errors of both orders over SGEMM's for inputs whose high slices are subnormal.
Measured below_window(const Evidence& evidence) {
  const auto ratios = [&](const Sums& sums, const Inputs& inputs) {
    return SeriesValues{inputs.name + ", " + sums.name,
                        pair_ratios(evidence, {{term_wise(12), sgemm}, {element_wise(12), sgemm}}, sums,
                                    ways_outside.front(), at_offsets(inputs, -20, -16))};
  };
  return series_of(ratios, npu_sums, all_inputs);
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

// Sweeps of the library's schemes, for the pictures.
PaperSweep library_sweep(const std::string& name, const std::vector<std::string>& schemes,
                         const std::string& accumulator, const std::vector<std::string>& distributions,
                         const std::vector<std::string>& shapes) {
  return {.name = name,
          .lists = {{"schemes", schemes},
                    {"engines", {"reference"}},
                    {"accumulators", {accumulator}},
                    {"distributions", distributions},
                    {"shapes", shapes}}};
}

std::vector<Claim> fig8_claims() {
  const Pairs unscaled{{term_wise(0), element_wise(0)}}, scaled{{term_wise(12), element_wise(12)}};
  return {{"h2sgemm-fig8-hgemm", half_precision,
           "Elements of one sign cancel nothing, so that the same product errs by 6e-6 before its result "
           "is rounded to FP16; below -14 fp16's own numbers have fewer bits."},
          {"h2sgemm-fig8-largest", over_fp16},
          {"h2sgemm-fig8-alike", by_way(unscaled, -20, 0), order_of_sums},
          {"h2sgemm-fig8-near-0", by_way(unscaled, -2, 0), order_of_sums},
          {"h2sgemm-fig8-unscaled", by_way({{term_wise(0), sgemm}, {element_wise(0), sgemm}}, -20, 0),
           "Near offset exponent 0 the low slices hold nearly all their bits without a scale "
           "(h2sgemm-fig2), and sb = 0 errs there as sb = 12 does."},
          {"h2sgemm-fig8-gain",
           by_way_and_offset({{term_wise(0), term_wise(12)}, {element_wise(0), element_wise(12)}},
                             {-12, -10, -8}),
           "The gain grows by a factor of four with two exponents and passes through 10 to 100."},
          {"h2sgemm-fig8-six",
           by_way_and_offset({{term_wise(6), term_wise(12)}, {element_wise(6), element_wise(12)}},
                             {-16, -12, -10})},
          {"h2sgemm-fig8-element", by_way({{element_wise(12), sgemm}}, -12, 0), order_beside_sgemm},
          {"h2sgemm-fig8-term", term_over_sgemm, order_beside_sgemm},
          {"h2sgemm-fig8-order", by_way(scaled, -12, 0), order_of_sums},
          {"own-order-h200", orders_on_h200,
           "A tensor core truncates. Term by term, all of k is summed in it, and the truncations add up "
           "with one sign; element by element, sums leave it every 16 and are added outside to nearest."},
          {"own-below-window", below_window,
           "Below 2^-14 the high slice is subnormal, and the scaled low one holds less than what it lost."}};
}

PaperFigure fig8() {
  return {
      .name = "h2sgemm-fig8",
      .paper = "h2sgemm",
      .place = "Fig. 8, section 4.1",
      .subject = "error against the offset exponent",
      .conditions =
          "64 x 64 elements at k = 64 x 44; three orders in which the paper's NPU may add, of which there is "
          "no model; element by element sums leave the unit every 16 or 64 and are added in FP32; "
          "SGEMM is OpenBLAS's; pictures: the library's schemes with sequential sums, which adds outside in "
          "FP64, and the H200's model",
      .sweeps = {library_sweep("",
                               {fp16, term_0, term_6, term_12, library_element_wise(0),
                                library_element_wise(6), library_element_wise(12), native},
                               "fp32", fig8_distributions, {"64x64x2816"}),
                 library_sweep("h200", {term_12, library_element_wise(12), native}, "h200",
                               distributions_at({-12, -8, -4, 0}), {"64x64x2816"})},
      .drawn = {.dimensions = {"parameter of the distribution"}, .measures = {frobenius}},
      .claims = fig8_claims(),
      .analysis = npu_analysis({.distributions = fig8_distributions,
                                .shapes = {{64, 64, 2816}},
                                .exponents = {0, 6, 12},
                                .with_hgemm = true})};
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
// Sizes of Fig. 9 (a): m = n at the same k.
const Filter edges = both(is_square, at_k(2816));

Filter at_offset(const Inputs& inputs, int offset, const Filter& filter) {
  return in_fp32(both(in_distribution(fmt::format("{}:{}", inputs.distribution, offset)), filter));
}

// Returns the errors of Fig. 9 (a).
Measured errors_by_edge(const Evidence& evidence) {
  const auto errors = [&](const char* name, const MethodOf& method, const Sums& sums, const Way& way,
                          const Inputs& inputs, const std::string& suffix) {
    return SeriesValues{fmt::format("{}, {}, {}{}", name, inputs.name, sums.name, suffix),
                        evidence.errors(method(sums, way), frobenius, at_offset(inputs, 0, edges))};
  };
  const Way& any = ways_outside.front();
  Measured measured = series_of(
      [&](const Sums& sums, const Inputs& inputs) {
        return errors("term-wise", term_wise(12), sums, any, inputs, "");
      },
      npu_sums, all_inputs);
  measured = joined(measured, series_of(
                                  [&](const Sums& sums, const Way& way, const Inputs& inputs) {
                                    return errors("element-wise", element_wise(12), sums, way, inputs,
                                                  ", " + way.name);
                                  },
                                  npu_sums, ways_outside, all_inputs));
  return joined(measured,
                series_of([&](const Sums& sums,
                              const Inputs& inputs) { return errors("SGEMM", sgemm, sums, any, inputs, ""); },
                          npu_sums, all_inputs));
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
                          {value(evidence, sums, at_offset(inputs, 0, sizes.filter))}};
    };
    return series_of(values, growing_sizes, npu_sums, all_inputs);
  };
}

double growth_over_sgemm(const Evidence& evidence, const Sums& sums, const Filter& filter) {
  const Way& any = ways_outside.front();
  return growth(evidence, term_wise(12)(sums, any), filter) / growth(evidence, sgemm(sums, any), filter);
}

double last_over_sgemm(const Evidence& evidence, const Sums& sums, const Filter& filter) {
  const Way& any = ways_outside.front();
  return evidence.ratios(term_wise(12)(sums, any), sgemm(sums, any), frobenius, filter).back();
}

Measured growth_over_element(const Evidence& evidence) {
  const auto ratio = [&](const Sizes& sizes, const Sums& sums, const Way& way, const Inputs& inputs) {
    const Filter filter = at_offset(inputs, 0, sizes.filter);
    return SeriesValues{fmt::format("{}, {}, {}, {}", sizes.name, inputs.name, sums.name, way.name),
                        {growth(evidence, term_wise(12)(sums, way), filter) /
                         growth(evidence, element_wise(12)(sums, way), filter)}};
  };
  return series_of(ratio, growing_sizes, npu_sums, ways_outside, all_inputs);
}

std::vector<Shape> shapes_of(const std::vector<std::string>& texts) {
  std::vector<Shape> shapes;
  for (const std::string& text : texts) shapes.push_back(parse_shape(text));
  return shapes;
}

const std::vector<std::string> fig9_shapes{
    "32x32x2816",  "64x64x2816",   "128x128x2816", "256x256x2816", "176x32x64",   "176x32x256", "176x32x704",
    "176x32x2816", "176x32x11264", "64x64x64",     "128x128x128",  "256x256x256", "512x512x512"};

PaperFigure fig9() {
  return {
      .name = "h2sgemm-fig9",
      .paper = "h2sgemm",
      .place = "Fig. 9, section 4.1",
      .subject = "error against the sizes",
      .conditions =
          "offset exponent 0; (a) m = n at k = 64 x 44, (b) k at m = 176, n = 32, (c) m = n = k; sizes up to "
          "what two cores allow; sums as in Fig. 8",
      .sweeps = {library_sweep("", {term_0, term_12, library_element_wise(12), native}, "fp32",
                               distributions_at({0}), fig9_shapes)},
      .drawn = {.dimensions = {"k", "m = n", "m = n = k"}, .measures = {frobenius}, .min_values = 4},
      .claims = {{"h2sgemm-fig9-stable", errors_by_edge},
                 {"h2sgemm-fig9-growth-element", growth_over_element, order_of_sums},
                 {"h2sgemm-fig9-growth-sgemm", by_growing_sizes(growth_over_sgemm), order_beside_sgemm},
                 {"h2sgemm-fig9-lower", by_growing_sizes(last_over_sgemm), order_beside_sgemm}},
      .analysis = npu_analysis(
          {.distributions = distributions_at({0}), .shapes = shapes_of(fig9_shapes), .exponents = {12}})};
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
const std::vector<std::string> offset_shapes{"176x32x64",   "176x32x704",  "176x32x2816", "64x64x64",
                                             "128x128x128", "256x256x256", "32x32x2816",  "64x64x2816"};
const std::vector<Filter> growing{edges, with_k_to(2816), growing_sizes.back().filter};

// Returns the growth of the errors of a scheme at an offset exponent over that at 0, for each way in which
// sizes grow.
Measured growth_at_offsets(const Evidence& evidence) {
  const auto ratios = [&](const std::string& name, const SchemeOnEngine& method, const Inputs& inputs,
                          int offset) {
    SeriesValues series{fmt::format("{}, offset {}", name, offset), {}};
    for (const Filter& sizes : growing)
      series.values.push_back(growth(evidence, method, at_offset(inputs, offset, sizes)) /
                              growth(evidence, method, at_offset(inputs, 0, sizes)));
    return series;
  };
  const Way& any = ways_outside.front();
  Measured measured = series_of(
      [&](const Sums& sums, const Inputs& inputs, int offset) {
        return ratios(fmt::format("term-wise, {}, {}", inputs.name, sums.name), term_wise(12)(sums, any),
                      inputs, offset);
      },
      npu_sums, all_inputs, smaller_offsets);
  measured = joined(
      measured, series_of(
                    [&](const Sums& sums, const Way& way, const Inputs& inputs, int offset) {
                      return ratios(fmt::format("element-wise, {}, {}, {}", inputs.name, sums.name, way.name),
                                    element_wise(12)(sums, way), inputs, offset);
                    },
                    npu_sums, ways_outside, all_inputs, smaller_offsets));
  return joined(measured, series_of(
                              [&](const Inputs& inputs, int offset) {
                                return ratios("SGEMM, " + inputs.name, sgemm(npu_sums.front(), any), inputs,
                                              offset);
                              },
                              all_inputs, smaller_offsets));
}

PaperFigure fig9_at_offsets() {
  std::vector<int> offsets{0};
  offsets.insert(offsets.end(), smaller_offsets.begin(), smaller_offsets.end());
  return {
      .name = "h2sgemm-fig9-offsets",
      .paper = "h2sgemm",
      .place = "section 4.1, after Fig. 9",
      .subject = "error against the sizes at smaller offset exponents",
      .conditions =
          "offset exponents 0 to -12; (a) m = n to 64 at k = 2816, (b) k to 2816 at m = 176, n = 32, (c) m = "
          "n = k to 256; sums as in Fig. 8",
      .sweeps = {library_sweep("", {term_12, library_element_wise(12), native}, "fp32",
                               distributions_at(offsets), offset_shapes)},
      .drawn = {.dimensions = {"k", "m = n = k"}, .measures = {frobenius}},
      .claims = {{"h2sgemm-fig9-others", growth_at_offsets}},
      .analysis = npu_analysis({.distributions = distributions_at(offsets),
                                .shapes = shapes_of(offset_shapes),
                                .exponents = {12}})};
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

// h2sgemm Fig. 9: errors against the sizes.
#include "lab/reproduce/papers/h2sgemm.hpp"

namespace kintsugi::tools {

using namespace h2sgemm;

namespace {

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
  const Filter same_k = both(fp32_every_16.rows, [](const Json& row) {
    return is_square(row) && row.at("problem").at("k") == 2816;
  });
  Measured measured;
  for (const auto& [name, scheme] :
       {std::pair{"term-wise", term_12}, std::pair{"element-wise", element_wise(12)},
        std::pair{"SGEMM", native}}) {
    for (const Sums& sums : kinds_of_sums) {
      for (const Inputs& inputs : all_inputs)
        measured.push_back(
            {fmt::format("{}, {}, {}", name, inputs.name, sums.name),
             evidence.errors(method_of(sums, scheme), frobenius, at_offset_0(inputs, same_k))});
    }
  }
  return measured;
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
    Measured measured;
    for (const Sizes& sizes : growing_sizes) {
      for (const Sums& sums : sums_over_sgemm) {
        for (const Inputs& inputs : all_inputs)
          measured.push_back({fmt::format("{}, {}, {}", sizes.name, inputs.name, sums.name),
                              {value(evidence, sums, at_offset_0(inputs, sizes.filter))}});
      }
    }
    return measured;
  };
}

double growth_over_sgemm(const Evidence& evidence, const Sums& sums, const Filter& filter) {
  return growth(evidence, method_of(sums, term_12), filter) /
         growth(evidence, method_of(sums, native), filter);
}

double last_over_sgemm(const Evidence& evidence, const Sums& sums, const Filter& filter) {
  return ratios(evidence.pairs(method_of(sums, term_12), method_of(sums, native), frobenius, filter)).back();
}

Measured growth_over_element(const Evidence& evidence) {
  Measured measured;
  for (const Sizes& sizes : growing_sizes) {
    for (const Sums& sums : kinds_of_sums) {
      for (const OutsideSums& way : {fp32_every_16, fp64_every_64}) {
        for (const Inputs& inputs : all_inputs) {
          const Filter filter = both(way.rows, at_offset_0(inputs, sizes.filter));
          measured.push_back({fmt::format("{}, {}, {}, {}", sizes.name, inputs.name, sums.name, way.name),
                              {growth(evidence, method_of(sums, term_12), filter) /
                               growth(evidence, method_of(sums, way.scheme(12)), filter)}});
        }
      }
    }
  }
  return measured;
}

PaperSweep fig9_sweep(const std::string& name, const std::vector<std::string>& schemes) {
  return {.name = name,
          .lists = {{"schemes", schemes},
                    {"engines", {"reference", "cpu"}},
                    {"accumulators", {"fp32"}},
                    {"distributions", {"offset:0", "offset-nonnegative:0"}},
                    {"shapes",
                     {"32x32x2816", "64x64x2816", "128x128x2816", "256x256x2816", "176x32x64", "176x32x256",
                      "176x32x704", "176x32x2816", "176x32x11264", "64x64x64", "128x128x128", "256x256x256",
                      "512x512x512"}}}};
}

}  // namespace

PaperFigure h2sgemm_sizes_figure() {
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

}  // namespace kintsugi::tools

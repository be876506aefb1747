// mixpert Fig. 9 for square matrices: errors of mixpert's levels.
#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* frobenius = "frobenius_relative";
const SchemeOnEngine native{"native", "reference", ""};
constexpr double min_k_as_native = 1024;  // k from which on level IV errs no more than native FP32

struct Operands {
  const char* name;
  const char* distribution;
};
constexpr Operands all_operands[] = {{"[-1, 1]", "uniform"}, {"[0, 1]", "uniform01"}};

SchemeOnEngine on_reference(const std::string& scheme) { return {scheme, "reference", "int32"}; }

// Returns level IV's errors, averaged over k, for both depths of a tile.
Measured averages(const Evidence& evidence) {
  Measured measured;
  for (const Operands& operands : all_operands) {
    for (const auto& [name, scheme] : {std::pair{"exponents every 32", "mixpert-4"},
                                       std::pair{"exponents every 128", "mixpert-4:tile=128"}})
      measured.push_back(
          {fmt::format("{}, {}", operands.name, name),
           {mean(evidence.errors(on_reference(scheme), frobenius, in_distribution(operands.distribution)))}});
  }
  return measured;
}

Measured over_native(const Evidence& evidence, const std::string& scheme, double min_k) {
  Measured measured;
  for (const Operands& operands : all_operands) {
    const Filter filter = both(in_distribution(operands.distribution), from_k(min_k));
    measured.push_back(
        {operands.name, ratios(evidence.pairs(on_reference(scheme), native, frobenius, filter))});
  }
  return measured;
}

}  // namespace

PaperFigure mixpert_levels_figure() {
  return {
      .name = "mixpert-fig9",
      .paper = "mixpert",
      .place = "Fig. 9, section 4.3; section 3.2.4",
      .subject = "Frobenius error of MixPert's levels on square matrices",
      .conditions =
          "64 x 64 elements of squares of m = n = k, uniform on [-1, 1] and [0, 1], one exponent for each "
          "operand's tile; native fp32 adds one after the other and stands for cuBLAS",
      .sweeps = {{.name = "",
                  .lists = {{"schemes",
                             {"mixpert-1", "mixpert-2", "mixpert-3", "mixpert-4", "mixpert-4:tile=128",
                              "mixpert-4:exponent=pair", "mixpert-full", "native"}},
                            {"accumulators", {"int32"}},
                            {"distributions", {"uniform", "uniform01"}},
                            {"m", {"64"}},
                            {"n", {"64"}},
                            {"k", {"512", "1024", "2048", "4096", "8192", "16384"}}}}},
      .drawn = {.dimensions = {"k"}, .measures = {frobenius}},
      .claims = {{"mixpert-average", averages},
                 {"mixpert-accumulation",
                  [](const Evidence& evidence) { return over_native(evidence, "mixpert-full", 0); }},
                 {"own-mixpert-native", [](const Evidence& evidence) {
                    return over_native(evidence, "mixpert-4", min_k_as_native);
                  }}}};
}

}  // namespace kintsugi::tools

// mixpert Fig. 2: errors of other emulations on square matrices.
#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

namespace {

constexpr const char* frobenius = "frobenius_relative";
const SchemeOnEngine cublas{"native", "reference", ""};

struct Operands {
  std::string name;
  std::string distribution;
};
const std::vector<Operands> all_operands{{"[-1, 1]", "uniform"}, {"[0, 1]", "uniform01"}};

SchemeOnEngine on_a100(const std::string& scheme) { return {scheme, "reference", "a100"}; }
SchemeOnEngine on_int32(const std::string& scheme) { return {scheme, "reference", "int32"}; }

// Two schemes that differ only in where partial sums are added: outside the unit, or all of k inside it.
struct SchemePair {
  std::string outside;
  std::string inside;
};
const SchemePair ape{"bf16x6", "split-n:format=bf16:a=3:b=3:terms=6:scale=0:block=0"};
const SchemePair cutlass{"split-n:format=tf32:a=2:b=2:terms=3:scale=0:block=16", "tf32x3"};

using Values = std::function<std::vector<double>(const std::string& scheme, const Filter& filter)>;

// Returns a series for each kind of operands and each scheme of the pair.
Measured by_operands_and_schemes(const SchemePair& pair, const Values& values) {
  Measured measured;
  for (const Operands& operands : all_operands) {
    for (const auto& [place, scheme] :
         {std::pair{"sums outside", pair.outside}, std::pair{"sums inside", pair.inside}})
      measured.push_back(
          {operands.name + ", " + place, values(scheme, in_distribution(operands.distribution))});
  }
  return measured;
}

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

Measured cutlass_over_native(const Evidence& evidence) {
  return by_operands_and_schemes(cutlass, [&](const std::string& scheme, const Filter& filter) {
    return ratios(evidence.pairs(on_a100(scheme), cublas, frobenius, filter));
  });
}

// Returns the errors at our largest size.
Measured last_errors(const Evidence& evidence, const SchemePair& pair) {
  return by_operands_and_schemes(pair, [&](const std::string& scheme, const Filter& filter) {
    return std::vector<double>{evidence.errors(on_a100(scheme), frobenius, filter).back()};
  });
}

Measured last_native_errors(const Evidence& evidence) {
  Measured measured;
  for (const Operands& operands : all_operands)
    measured.push_back(
        {operands.name, {evidence.errors(cublas, frobenius, in_distribution(operands.distribution)).back()}});
  return measured;
}

// Returns QuanTensor's errors, averaged over k.
Measured errors_of_quantensor(const Evidence& evidence, int slices) {
  Measured measured;
  std::vector<Operands> with_normal = all_operands;
  with_normal.push_back({"normal", "normal"});
  for (const Operands& operands : with_normal)
    measured.push_back({operands.name,
                        {mean(evidence.errors(on_int32(fmt::format("quantensor:slices={}", slices)),
                                              frobenius, in_distribution(operands.distribution)))}});
  return measured;
}

std::vector<Claim> claims() {
  return {
      {"mixpert-ape", errors_by_size},
      {"mixpert-ape-cause", errors_of_ape,
       "Six products of three bf16 slices hold FP32's accuracy where their sums leave the unit. What "
       "errs is the accumulator, which truncates, if all of k is left in it."},
      {"mixpert-cutlass", cutlass_over_native},
      {"mixpert-quantensor", [](const Evidence& evidence) { return errors_of_quantensor(evidence, 2); }},
      {"mixpert-quantensor-high", [](const Evidence& evidence) { return errors_of_quantensor(evidence, 3); }},
      {"mixpert-average-cublas", last_native_errors},
      {"mixpert-average-cutlass", [](const Evidence& evidence) { return last_errors(evidence, cutlass); }},
      {"mixpert-average-ape", [](const Evidence& evidence) { return last_errors(evidence, ape); }}};
}

}  // namespace

std::vector<PaperFigure> mixpert_figures() {
  const std::vector<std::string> lengths{"512", "1024", "2048", "4096", "8192"};
  return {{.name = "mixpert-fig2",
           .paper = "mixpert",
           .place = "Fig. 2 (errors), section 2.2; section 4.3",
           .subject = "Frobenius error of emulations on square matrices",
           .conditions =
               "64 x 64 elements of squares of m = n = k; the paper does not say what its matrices hold, nor "
               "where sums are added: uniform on [-1, 1] and [0, 1], for QuanTensor normal deviates too, "
               "inside the unit over all of k and outside of it; the A100's model, int8 products exact; "
               "native fp32 adds one after the other and stands for cuBLAS",
           .sweeps = {{.name = "",
                       .lists = {{"schemes",
                                  {"bf16", "bf16x3", "bf16x6", ape.inside, "tf32", "tf32x3", cutlass.outside,
                                   "quantensor:slices=1", "quantensor:slices=2", "quantensor:slices=3",
                                   "int8x6", "native"}},
                                 {"accumulators", {"a100", "int32"}},
                                 {"distributions", {"uniform", "uniform01"}},
                                 {"m", {"64"}},
                                 {"n", {"64"}},
                                 {"k", lengths}}},
                      {.name = "normal",
                       .lists = {{"schemes", {"quantensor:slices=2", "quantensor:slices=3", "native"}},
                                 {"accumulators", {"int32"}},
                                 {"distributions", {"normal"}},
                                 {"m", {"64"}},
                                 {"n", {"64"}},
                                 {"k", lengths}}}},
           .drawn = {.dimensions = {"k"}, .measures = {frobenius}},
           .claims = claims()},
          mixpert_levels_figure(),
          mixpert_arithmetic_figure(),
          mixpert_programs_figure()};
}

}  // namespace kintsugi::tools

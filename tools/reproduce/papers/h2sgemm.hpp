// Definitions for h2sgemm's Figs. 8 and 9: schemes, kinds of sums, places where partial sums are added
// outside the unit, inputs.
#pragma once

#include <string>
#include <vector>

#include "reproduce/figures.hpp"

namespace kintsugi::tools::h2sgemm {

inline constexpr const char* frobenius = "frobenius_relative";

inline const std::string term_0 = "h2sgemm:sb=0";
inline const std::string term_6 = "h2sgemm:sb=6";
inline const std::string term_12 = "h2sgemm:sb=12";
inline const std::string native = "native";
inline const std::string fp16 = "fp16";

// Kinds of sums. All round to nearest, like the paper's NPU, of which Kintsugi has no model. The paper's
// SGEMM is OpenBLAS's on another processor, so its sums may differ from those of the NPU. The engine cpu
// multiplied slices by OpenBLAS up to commit 571b385, which made the recorded rows; since then it has the
// sequential sums of the reference engine (CHANGELOG, Bits).
struct Sums {
  std::string name;
  std::string engine;
  std::string sgemm;  // engine of the SGEMM with which errors are compared
};
inline const std::vector<Sums> kinds_of_sums{{"sequential sums", "reference", "reference"},
                                             {"OpenBLAS's sums", "cpu", "cpu"}};
inline const std::vector<Sums> sums_beside_sgemm{
    kinds_of_sums[0], kinds_of_sums[1], {"sequential sums over OpenBLAS's SGEMM", "reference", "cpu"}};

inline SchemeOnEngine method_of(const Sums& sums, const std::string& scheme) {
  return scheme == native ? SchemeOnEngine{native, sums.sgemm, ""}
                          : SchemeOnEngine{scheme, sums.engine, "fp32"};
}

// Last commit in which the accumulator fp32 added partial sums outside the unit in FP32, as Algorithm 1 does;
// since then it adds them in FP64 (CHANGELOG, Bits).
inline constexpr const char* last_with_fp32_outside = "663a57e2e5d6";

// Interval and type in which the element-wise order's partial sums are added outside the unit. The paper
// does not say it.
struct OutsideSums {
  std::string name;
  std::string (*scheme)(int sb);
  Filter rows;
};

inline std::string element_wise(int sb) { return fmt::format("h2sgemm-element:sb={}", sb); }
inline std::string outside_every_64(int sb) {
  return fmt::format("split-n:a=2:b=2:terms=3:scale={}:block=64", sb);
}

inline Filter of_element_rows(bool fp32_outside) {
  return [=](const Json& row) {
    return !cell(row, "scheme").starts_with("h2sgemm-element") || cell(row, "accumulator") != "fp32" ||
           (cell(row, "commit") == last_with_fp32_outside) == fp32_outside;
  };
}

inline const OutsideSums fp32_every_16{"FP32 sums outside every 16", element_wise, of_element_rows(true)};
inline const OutsideSums fp64_every_16{"FP64 sums outside every 16", element_wise, of_element_rows(false)};
inline const OutsideSums fp64_every_64{"FP64 sums outside every 64", outside_every_64,
                                       of_element_rows(false)};
inline const std::vector<OutsideSums> places{fp32_every_16, fp64_every_16, fp64_every_64};

// Inputs of Fig. 8 (a) and (b).
struct Inputs {
  std::string name;
  std::string distribution;
};
inline const std::vector<Inputs> all_inputs{{"symmetric", "offset"}, {"non-negative", "offset-nonnegative"}};

inline constexpr const char* alike_sums =
    "The sum of hi hi makes nearly all of the error, and it is added as SGEMM is: the two differ by a few "
    "hundredths, to either side. Adding the small terms first does not change that.";
inline constexpr const char* order_of_sums =
    "With sequential sums the term-wise order adds all of k in the unit, one product after the other, and "
    "the element-wise order leaves it every 16 and adds outside: far fewer roundings at the size of the "
    "whole sum. OpenBLAS adds k in partial sums, and there the term-wise order gains.";

}  // namespace kintsugi::tools::h2sgemm

namespace kintsugi::tools {

// Fig. 9, in h2sgemm_sizes.cpp.
PaperFigure h2sgemm_sizes_figure();

}  // namespace kintsugi::tools

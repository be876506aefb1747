// Definitions for h2sgemm's Figs. 8 and 9: schemes, kinds of sums, ways to add partial sums outside the unit,
// inputs.
#pragma once

#include <string>
#include <vector>

#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools::h2sgemm {

inline constexpr const char* frobenius = "frobenius_relative";

// The term-wise order; sb is the exponent of the low slice's scale.
inline const std::string term_0 = "h2sgemm:sb=0";
inline const std::string term_6 = "h2sgemm:sb=6";
inline const std::string term_12 = "h2sgemm:sb=12";
inline const std::string native = "native";
inline const std::string fp16 = "fp16";

// Kinds of sums. All sums round to nearest, as the paper's NPU does. (Kintsugi has no model of the NPU.) The
// paper's SGEMM is OpenBLAS's on another processor, so its sums may differ from the NPU's. The recorded rows
// of the engine cpu were made when it multiplied slices by OpenBLAS, up to commit 571b385. Since then it has
// the sequential sums of the reference engine (CHANGELOG, Bits).
struct Sums {
  std::string name;
  std::string engine;
  std::string sgemm;  // engine of the SGEMM whose errors are the divisor
};
inline const std::vector<Sums> kinds_of_sums{{"sequential sums", "reference", "reference"},
                                             {"OpenBLAS's sums", "cpu", "cpu"}};
// The kinds of sums for errors that are divided by SGEMM's errors. The schemes' sums and SGEMM's sums may
// come from different engines.
inline const std::vector<Sums> sums_over_sgemm{
    kinds_of_sums[0], kinds_of_sums[1], {"sequential sums over OpenBLAS's SGEMM", "reference", "cpu"}};

inline SchemeOnEngine method_of(const Sums& sums, const std::string& scheme) {
  return scheme == native ? SchemeOnEngine{native, sums.sgemm, ""}
                          : SchemeOnEngine{scheme, sums.engine, "fp32"};
}

// Last commit in which the accumulator fp32 added partial sums outside the unit in FP32, as Algorithm 1 does.
// Since then it adds them in FP64 (CHANGELOG, Bits).
inline constexpr const char* last_with_fp32_outside = "663a57e2e5d6";

// A way to add the element-wise order's partial sums outside the unit: the number of inner indices of a
// partial sum, and the type of the addition. The paper gives neither.
struct OutsideSums {
  std::string name;
  std::string (*scheme)(int sb);
  Filter rows;
};

// The element-wise order.
inline std::string element_wise(int sb) { return fmt::format("h2sgemm-element:sb={}", sb); }
inline std::string outside_every_64(int sb) {
  return fmt::format("split-n:a=2:b=2:terms=3:scale={}:block=64", sb);
}

inline bool is_element_wise_fp32(const Json& row) {
  return cell(row, "scheme").starts_with("h2sgemm-element") && cell(row, "accumulator") == "fp32";
}
inline bool is_of_last_with_fp32(const Json& row) { return cell(row, "commit") == last_with_fp32_outside; }
// Filters for rows of the element-wise order on the accumulator fp32. These rows pass if their partial sums
// were added outside in FP32 (or FP64). All other rows pass.
inline bool with_fp32_outside(const Json& row) {
  return !is_element_wise_fp32(row) || is_of_last_with_fp32(row);
}
inline bool with_fp64_outside(const Json& row) {
  return !is_element_wise_fp32(row) || !is_of_last_with_fp32(row);
}

inline const OutsideSums fp32_every_16{"FP32 sums outside every 16", element_wise, with_fp32_outside};
inline const OutsideSums fp64_every_16{"FP64 sums outside every 16", element_wise, with_fp64_outside};
inline const OutsideSums fp64_every_64{"FP64 sums outside every 64", outside_every_64, with_fp64_outside};
inline const std::vector<OutsideSums> ways_outside{fp32_every_16, fp64_every_16, fp64_every_64};

// Inputs of Fig. 8 (a) and (b).
struct Inputs {
  std::string name;
  std::string distribution;
};
inline const std::vector<Inputs> all_inputs{{"symmetric", "offset"}, {"non-negative", "offset-nonnegative"}};

// Explanations of claims that do not agree.
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

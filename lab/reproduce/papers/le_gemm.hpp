// Schemes, data, accumulators and native products that le-gemm's figures share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/reproduce/product_errors.hpp"

namespace kintsugi::tools::le_gemm {

inline constexpr const char* max_error = "le_gemm_max_error";
inline constexpr const char* mred = "le_gemm_mred";
// Ootomo's split and products, all of k summed in the unit.
inline const std::string ootomo_inside = "split-n:a=2:b=2:terms=3:scale=11:block=0";
inline const std::vector<std::string> schemes{"fp16",        "markidis", "ootomo",
                                              ootomo_inside, "legemm",   "native"};

// The A800's tensor cores are those of the A100. Kintsugi has no model of the MI210's matrix cores.
inline constexpr const char* a800 = "a100";
inline constexpr const char* sequential = "fp32";

inline const std::string tested_distribution = "uniform";      // all comparisons of the paper (section 5)
inline const std::string positive_distribution = "uniform01";  // ours
inline const std::string language_distribution = "language-model";  // language models' data (section 5.5)

inline SchemeOnEngine on_reference(const char* accumulator, const std::string& scheme) {
  return {scheme, "reference", accumulator};
}

// Order of the sums of the CPU's native FP32 product, which the paper does not give. Rows of sweeps compare
// with sequential sums.
struct CpuSums {
  std::string name;
  std::string engine;
  Filter rows;
};
inline const std::vector<CpuSums> cpu_sums{{"sequential CPU sums", "reference", of_sweeps()},
                                           {"OpenBLAS's CPU sums", "cpu", against_native("cpu")}};

// Errors of all schemes on the A800 against the native product of an engine.
inline ProductErrors on_the_a800(const std::vector<Shape>& shapes, const std::vector<std::uint64_t>& seeds,
                                 const std::string& engine) {
  ProductErrors study;
  study.schemes = {"fp16", "markidis", "ootomo", ootomo_inside, "legemm"};
  study.methods = {on_reference(a800, "")};
  study.distributions = {tested_distribution};
  study.shapes = shapes;
  study.seeds = seeds;
  study.native = engine;
  study.max_elements = 262144;
  return study;
}

// Labels of Ootomo's scheme with partial sums added outside the unit, and with all of k summed inside it.
inline const std::string outside_label = "sums outside";
inline const std::string inside_label = "sums inside";

// Explanation of why le-gemm and Ootomo's scheme differ.
inline constexpr const char* escapes_truncation =
    "Sums that leave the unit are added in fp32 to nearest and escape the truncation that le-gemm's "
    "accumulators over all of k suffer. Where Ootomo's sums stay inside the two differ less, but le-gemm's "
    "slices, cut instead of rounded, hold 21 bits for 23 (h2sgemm-table1).";

// Figs. 12 and 13.
PaperFigure histogram_figure();
// Fig. 18.
PaperFigure trade_figure();

}  // namespace kintsugi::tools::le_gemm

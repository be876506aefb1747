// le-gemm Fig. 18: errors of cuBLAS's FP16 mode, LE-GEMM and cuBLAS's FP64 mode.
#include "lab/reproduce/papers/le_gemm.hpp"

namespace kintsugi::tools::le_gemm {

namespace {

constexpr const char* mean_relative = "mean_relative";

Filter of_type(const std::string& type) {
  return [type](const Json& row) { return row.at("problem").at("type") == type; };
}

// Returns the errors of FAST_16F over LE-GEMM's, and LE-GEMM's over those of 64F, by k. Operands of type
// fp64 are not those of type fp32, which changes the errors by far less than their ratios.
Measured ratios_of_neighbours(const Evidence& evidence) {
  const SchemeOnEngine fast_16f = on_reference(a800, "fp16");
  const SchemeOnEngine legemm = on_reference(a800, "legemm");
  const SchemeOnEngine native{"native", "reference", ""};
  Measured measured{{"FAST_16F over LE-GEMM", {}}, {"LE-GEMM over 64F", {}}};
  for (const double k : evidence.lengths(everywhere())) {
    const auto error = [&](const SchemeOnEngine& method, const char* type) {
      return mean(evidence.errors(method, mean_relative, both(at_k(k), of_type(type))));
    };
    measured[0].values.push_back(error(fast_16f, "fp32") / error(legemm, "fp32"));
    measured[1].values.push_back(error(legemm, "fp32") / error(native, "fp64"));
  }
  return measured;
}

}  // namespace

PaperFigure trade_figure() {
  return {"le-gemm-fig18",
          "le-gemm",
          "Fig. 18, section 5.7",
          "errors of cuBLAS's FP16 and FP64 modes beside LE-GEMM",
          "64 x 64 elements of squares of m = n = k on [-1, 1], three seeds; the A100's model stands for the "
          "A800, fp16 for CUBLAS_COMPUTE_32F_FAST_16F, sequential FP64 sums for CUBLAS_COMPUTE_64F",
          {{"",
            {{"schemes", {"fp16", "legemm", "native"}},
             {"accumulators", {a800}},
             {"types", {"fp32", "fp64"}},
             {"distributions", {tested_distribution}},
             {"m", {"64"}},
             {"n", {"64"}},
             {"k", {"256", "512", "1024", "2048", "4096", "8192"}},
             {"seeds", {"1", "2", "3"}}}}},
          {{"k"}, {mean_relative}},
          {{"le-gemm-trade-error", ratios_of_neighbours}}};
}

}  // namespace kintsugi::tools::le_gemm

// Speeds of large square products that published rates predict: a ceiling (the chip's published rate), the
// number of products, what share of the rate our kernels reach on a measured device, and the bytes of splits,
// sums and C.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kintsugi::tools::predict {

// Published numbers of a chip: TFLOP/s or TOP/s, 0 where it has no such unit, and GB/s.
struct Chip {
  std::string name;
  double fp32;
  double fp64;          // of the SIMT units
  double fp64_fastest;  // of the SIMT or matrix units
  double fp16;
  double bf16;
  double tf32;
  double int8;
  double memory;
  std::string source;
};

// The chips of the papers, and those that the laboratory adds.
const std::vector<Chip>& chips();
const Chip& chip(const std::string& name);

enum class Method {
  native_fp32,
  native_fp64,
  fp16x3,     // three products of two fp16 slices
  fp16x4,     // four, as EGEMM-TC
  tf32x3,     // CUTLASS
  bf16x6,     // APE
  int8x8,     // MixPert's products, without its conversions
  ozaki_66,   // DGEMM-TC: 66 products of 11 fp16 slices, each added in FP64
  ozaki2_15,  // 15 int8 products by residues
};
inline constexpr Method methods[] = {Method::native_fp32, Method::native_fp64, Method::fp16x3,
                                     Method::fp16x4,      Method::tf32x3,      Method::bf16x6,
                                     Method::int8x8,      Method::ozaki_66,    Method::ozaki2_15};
const char* name_of(Method method);

// Products of slices of FP32 operands on one matrix unit. Sums that are added outside of it cost nothing:
// additions in FP32 take no longer than the products where every sum is 16 long.
enum class Unit { fp16, bf16, tf32 };
struct Terms {
  Unit unit;
  double products;
  double slices;  // of each operand
};

// The devices whose profiles were measured, by whose shares the others are predicted.
inline constexpr const char* measured_devices[] = {"NVIDIA H200", "NVIDIA H100 80GB HBM3"};

// TFLOP/s of 2 n^3 operations by the shares of a measured device; none where the chip has no unit for it.
std::optional<double> speed(Method method, const Chip& chip, double n,
                            const std::string& reference = measured_devices[0]);
std::optional<double> speed(const Terms& terms, const Chip& chip, double n,
                            const std::string& reference = measured_devices[0]);

// A method whose own kernels were measured on both devices. The error is that of a speed on `device` by the
// shares of the other device; `measured` is by its own shares, those of its profile.
struct ModelError {
  std::string device;
  Method method;
  double predicted;
  double measured;

  double error() const { return predicted / measured - 1; }
};
std::vector<ModelError> model_errors(double n);
double largest_error(const std::vector<ModelError>& errors);

// A figure that a paper prints, beside its prediction.
struct Headline {
  const char* paper;
  const char* place;
  const char* chip;
  const char* what;
  double printed;
  Method method;
  std::optional<Method> over;  // set: a ratio of speeds
};
const std::vector<Headline>& headlines();
std::optional<double> prediction(const Headline& headline, double n);

}  // namespace kintsugi::tools::predict

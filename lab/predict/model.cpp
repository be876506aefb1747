#include "lab/predict/model.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tools/support.hpp"

// Texts of the library's profiles (a null pointer ends them) and of its table of cards, made by
// src/CMakeLists.txt.
namespace kintsugi::core::cuda {
extern const char* const shipped_profile_texts[];
extern const char* const cards_text;
}  // namespace kintsugi::core::cuda

namespace kintsugi::tools::predict {

namespace {

constexpr double fma_per_microsecond = 5e5;  // multiplications with an addition of one TFLOP/s

// ---------------------------------------------------------------- chips

const Json& card_of(const std::string& name) {
  static const Json table = Json::parse(core::cuda::cards_text);
  for (const Json& card : table.at("cards")) {
    for (const Json& other : card.at("names")) {
      if (other == name) return card;
    }
  }
  throw std::logic_error("there is no card " + name);
}

Chip of_library(const std::string& name) {
  const Json& card = card_of(name);
  const auto rate = [&](const char* unit) { return card.at("tflops").value(unit, 0.0); };
  return {name,
          rate("fp32"),
          rate("fp64"),
          std::max(rate("fp64"), rate("fp64_matrix")),
          rate("fp16"),
          rate("bf16"),
          rate("tf32"),
          rate("int8"),
          card.at("memory_gb_per_s").get<double>(),
          card.at("source").get<std::string>()};
}

// ---------------------------------------------------------------- shares

const Json& profile_of(const std::string& device) {
  static const std::vector<Json> profiles = [] {
    std::vector<Json> all;
    for (const char* const* text = core::cuda::shipped_profile_texts; *text != nullptr; ++text)
      all.push_back(Json::parse(*text));
    return all;
  }();
  for (const Json& profile : profiles) {
    if (profile.at("device").at("name") == device) return profile;
  }
  throw std::logic_error("there is no profile of " + device);
}

// Shares of published rates that a measured device reaches.
struct Shares {
  double native_fp32;
  double native_fp64;
  double fp16x3;
  double bf16x6;
  double int8;
  double copies;
};

Shares shares_of(const std::string& device) {
  const Json& costs = profile_of(device).at("costs");
  const auto cost = [&](const std::string& name) { return costs.at(name).get<double>(); };
  const Chip chip = of_library(device);
  const double sms = card_of(device).at("sm_count").get<double>();
  // Time of a k-block of `rows` x `columns` elements on `units` SMs at the published rate over the measured.
  const auto of_block = [&](const std::string& name, double terms, double rows, double columns, double depth,
                            double units, double rate) {
    const double ideal = terms * rows * columns * depth / (units * rate * fma_per_microsecond / sms);
    return ideal / cost(name + ".block");
  };
  const auto of_native = [&](const char* name, double rate) {
    return cost(name) / (2 * rate * fma_per_microsecond);
  };
  constexpr double bytes_per_microsecond = 1e3;  // of one GB/s
  return {.native_fp32 = of_native("native.f32.vendor_rate", chip.fp32),
          .native_fp64 = of_native("native.f64.vendor_rate", chip.fp64_fastest),
          .fp16x3 = of_block("multi_term.fp16x3.256x192", 3, 256, 192, 64, 2, chip.fp16),
          .bf16x6 = of_block("multi_term.bf16x6.256x128", 6, 256, 128, 64, 2, chip.bf16),
          .int8 = of_block("int8_tile", 1, 192, 256, 128, 2, chip.int8),
          .copies = cost("call.copy_rate") / (chip.memory * bytes_per_microsecond)};
}

// ---------------------------------------------------------------- work

// Products of n x n x n on one unit, and bytes of n x n elements that no product hides.
struct Work {
  double rate;  // published
  double share;
  double products;
  double bytes;
  double fp64_operations = 0;  // of n x n elements
};

constexpr double fp32_bytes = 4;
constexpr double fp64_bytes = 8;
constexpr double half_bytes = 2;

// Bytes of splits of A and B into slices, and of C.
double split_bytes(double element, double slices, double slice) {
  return 2 * (element + slices * slice) + element;
}

Work work_of(const Terms& terms, const Chip& chip, const Shares& shares) {
  const double slice = terms.unit == Unit::tf32 ? fp32_bytes : half_bytes;
  const double bytes = split_bytes(fp32_bytes, terms.slices, slice);
  switch (terms.unit) {
    case Unit::fp16: return {chip.fp16, shares.fp16x3, terms.products, bytes};
    case Unit::bf16: return {chip.bf16, shares.bf16x6, terms.products, bytes};
    // No kernel of ours: slices of twice the size at half the rate, so that the share is that of fp16.
    case Unit::tf32: return {chip.tf32, shares.fp16x3, terms.products, bytes};
  }
  throw std::logic_error("there is no such unit");
}

Work work_of(Method method, const Chip& chip, const Shares& shares) {
  constexpr double int8_bytes = 1;
  switch (method) {
    case Method::native_fp32: return {chip.fp32, shares.native_fp32, 1, 0};
    case Method::native_fp64: return {chip.fp64_fastest, shares.native_fp64, 1, 0};
    case Method::fp16x3: return work_of(Terms{Unit::fp16, 3, 2}, chip, shares);
    case Method::fp16x4: return work_of(Terms{Unit::fp16, 4, 2}, chip, shares);
    case Method::tf32x3: return work_of(Terms{Unit::tf32, 3, 2}, chip, shares);
    case Method::bf16x6: return work_of(Terms{Unit::bf16, 6, 3}, chip, shares);
    case Method::int8x8: return {chip.int8, shares.int8, 8, split_bytes(fp32_bytes, 3, int8_bytes)};
    case Method::ozaki_66: {
      constexpr double products = 66;
      constexpr double slices = 11;
      // Every product is written and read in FP32 and added to a sum in memory in FP64. A slice takes
      // some ten operations of every element in FP64.
      constexpr double sum = 2 * fp32_bytes + 2 * fp64_bytes;
      return {chip.fp16, shares.fp16x3, products,
              split_bytes(fp64_bytes, slices, half_bytes) + products * sum, 2 * slices * 10};
    }
    case Method::ozaki2_15: {
      constexpr double products = 15;
      // Residues of both operands are written and read, and those of C.
      constexpr double residues = 2 * 2 * products + 2 * products;
      // Instructions of an element in FP64: src/engines/cuda/arch/predicted.cpp counts them.
      constexpr double operand = 10;
      constexpr double result = 14;
      return {chip.int8, shares.int8, products, 3 * fp64_bytes + residues, 2 * operand + result};
    }
  }
  throw std::logic_error("there is no such method");
}

double microseconds(const Work& work, const Chip& chip, const Shares& shares, double n) {
  constexpr double bytes_per_microsecond = 1e3;
  const double products = work.products * n * n * n / (work.rate * fma_per_microsecond * work.share);
  const double memory = work.bytes * n * n / (chip.memory * bytes_per_microsecond * shares.copies);
  const double fp64 =
      work.fp64_operations == 0 ? 0 : work.fp64_operations * n * n / (chip.fp64 * fma_per_microsecond);
  return products + std::max(memory, fp64);
}

template <class Products>
std::optional<double> speed_of(const Products& products, const Chip& chip, double n,
                               const std::string& reference) {
  const Shares shares = shares_of(reference);
  const Work work = work_of(products, chip, shares);
  if (work.rate == 0 || (work.fp64_operations > 0 && chip.fp64 == 0)) return std::nullopt;
  return 2e-6 * n * n * n / microseconds(work, chip, shares, n);
}

}  // namespace

const std::vector<Chip>& chips() {
  static const std::vector<Chip> all = [] {
    std::vector<Chip> found;
    for (const char* name :
         {"TITAN RTX", "Tesla V100-SXM2-16GB", "Tesla T4", "NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB",
          "NVIDIA A800-SXM4-80GB", "NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 4080",
          "NVIDIA GeForce RTX 4090", "NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA B200"})
      found.push_back(of_library(name));
    // The library has no card of other vendors' chips.
    found.push_back({"AMD Instinct MI210", 22.6, 22.6, 45.3, 181, 181, 0, 181, 1638,
                     "AMD Instinct MI210 Accelerator (data sheet)"});
    found.push_back({"Ascend 910A", 0, 0, 0, 256, 0, 0, 512, 1200, "h2sgemm, sections 2 and 4"});
    return found;
  }();
  return all;
}

const Chip& chip(const std::string& name) {
  const auto found =
      std::find_if(chips().begin(), chips().end(), [&](const Chip& chip) { return chip.name == name; });
  if (found == chips().end()) throw std::logic_error("there is no chip " + name);
  return *found;
}

const char* name_of(Method method) {
  switch (method) {
    case Method::native_fp32: return "native FP32";
    case Method::native_fp64: return "native FP64";
    case Method::fp16x3: return "3 fp16";
    case Method::fp16x4: return "4 fp16";
    case Method::tf32x3: return "3 tf32";
    case Method::bf16x6: return "6 bf16";
    case Method::int8x8: return "8 int8";
    case Method::ozaki_66: return "66 fp16, FP64";
    case Method::ozaki2_15: return "15 int8, FP64";
  }
  throw std::logic_error("there is no such method");
}

std::optional<double> speed(Method method, const Chip& chip, double n, const std::string& reference) {
  return speed_of(method, chip, n, reference);
}

std::optional<double> speed(const Terms& terms, const Chip& chip, double n, const std::string& reference) {
  return speed_of(terms, chip, n, reference);
}

std::vector<ModelError> model_errors(double n) {
  std::vector<ModelError> errors;
  for (const char* device : measured_devices) {
    const char* other = device == measured_devices[0] ? measured_devices[1] : measured_devices[0];
    for (const Method method :
         {Method::native_fp32, Method::native_fp64, Method::fp16x3, Method::bf16x6, Method::ozaki2_15})
      errors.push_back(
          {device, method, *speed(method, chip(device), n, other), *speed(method, chip(device), n, device)});
  }
  return errors;
}

double largest_error(const std::vector<ModelError>& errors) {
  double largest = 0;
  for (const ModelError& error : errors) largest = std::max(largest, std::fabs(error.error()));
  return largest;
}

const std::vector<Headline>& headlines() {
  constexpr const char* a100 = "NVIDIA A100-SXM4-40GB";
  constexpr const char* a100_pcie = "NVIDIA A100-PCIE-40GB";
  constexpr const char* rtx_3090 = "NVIDIA GeForce RTX 3090";
  using enum Method;
  static const std::vector<Headline> all{
      {"dgemm-tc", "section 5.2", "TITAN RTX", "cublasDgemm", 0.539, native_fp64, {}},
      {"dgemm-tc", "section 5.2", "TITAN RTX", "DP mode", 0.980, ozaki_66, {}},
      {"dgemm-tc", "Table 1", "Tesla V100-SXM2-16GB", "cublasDgemm (PCIe card)", 6.761, native_fp64, {}},
      {"dgemm-tc", "Table 1", "Tesla V100-SXM2-16GB", "DP mode (PCIe card)", 1.064, ozaki_66, {}},
      {"h2sgemm", "section 4.2", "Ascend 910A", "H2SGEMM", 65.3, fp16x3, {}},
      {"h2sgemm", "section 2", a100, "Ootomo", 51, fp16x3, {}},
      {"h2sgemm", "section 2", a100, "Ootomo, TF32", 33, tf32x3, {}},
      {"h2sgemm", "section 2", a100, "Ma", 64.15, fp16x3, {}},
      {"h2sgemm", "section 2", "Tesla T4", "EGEMM-TC over cuBLAS", 3.13, fp16x4, native_fp32},
      {"le-gemm", "Table 6", "NVIDIA A800-SXM4-80GB", "LE-GEMM over cuBLAS", 1.37, fp16x3, native_fp32},
      {"le-gemm", "Table 6", "AMD Instinct MI210", "LE-GEMM over rocBLAS", 1.31, fp16x3, native_fp32},
      {"mixpert", "Table 1", a100_pcie, "cuBLAS", 17.7, native_fp32, {}},
      {"mixpert", "Table 1", a100_pcie, "CUTLASS", 32.0, tf32x3, {}},
      {"mixpert", "Table 1", a100_pcie, "APE", 35.6, bf16x6, {}},
      {"mixpert", "section 4.2", a100_pcie, "MixPert over cuBLAS", 2.71, int8x8, native_fp32},
      {"mixpert", "Table 1", rtx_3090, "cuBLAS", 21.7, native_fp32, {}},
      {"mixpert", "Table 1", rtx_3090, "CUTLASS", 13.1, tf32x3, {}},
      {"mixpert", "Table 1", rtx_3090, "APE", 12.3, bf16x6, {}},
      {"mixpert", "section 4.6", rtx_3090, "MixPert over cuBLAS", 1.30, int8x8, native_fp32},
      {"fp16-emulation-study", "Results", a100, "three terms over cuBLAS", 4, fp16x3, native_fp32},
  };
  return all;
}

std::optional<double> prediction(const Headline& headline, double n) {
  const Chip& of = chip(headline.chip);
  const auto value = speed(headline.method, of, n);
  if (!headline.over || !value) return value;
  const auto divisor = speed(*headline.over, of, n);
  return divisor ? std::optional(*value / *divisor) : std::nullopt;
}

}  // namespace kintsugi::tools::predict

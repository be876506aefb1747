// The engine cuda: NVIDIA GPUs. The library's kernels compute splits, recombinations, SIMT products and
// products of 52-bit words; for some families of GPUs also products of some schemes. cuBLAS computes all
// other products of slices, and native products.
#include <algorithm>
#include <array>

#include "base/cuda/cuda_driver.hpp"
#include "base/status.hpp"
#include "base/threads.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/common/run_time_compiler.hpp"
#include "engines/cuda/cublas.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/gemm/direct_gemm.hpp"
#include "engines/cuda/gemm/int52_gemm.hpp"
#include "engines/cuda/gemm/int8_gemm.hpp"
#include "engines/cuda/gemm/multi_term_gemm.hpp"
#include "engines/cuda/gemm/term_sums.hpp"
#include "engines/cuda/gemm/times.hpp"
#include "engines/cuda/gemm/weighted_tile_gemm.hpp"
#include "engines/cuda/steps.hpp"
#include "engines/engine.hpp"

namespace kintsugi::core {

namespace {

using namespace cuda;

// Reason why the engine cannot use a device; empty if it can. There is no device code for compute
// capabilities below 8.0 (cmake/DeviceChoice.cmake).
std::string device_reason(Device device) {
  constexpr int min_compute_capability = 8;
  const int major = device_attribute(compute_capability_major, device);
  const DeviceBuild build = engine_build();
  const bool is_old = major < min_compute_capability;
  const bool runs =
      !build.why_missing.empty() || build.runs_on(major, device_attribute(compute_capability_minor, device));
  if (!is_old && runs) return {};  // every call ends here, so the driver is not asked for a name before
  const std::string name = text_of_device(number_of(device));
  if (is_old) return fmt::format("{}: {}.0 or newer is needed", name, min_compute_capability);
  return fmt::format(
      "{}: this library has device code only for sm {}; build it with -DKINTSUGI_DEVICE_CODE=on for all GPUs",
      name, fmt::join(build.architectures, ", "));
}

std::string device_code_text() {
  const std::span<const int> architectures = engine_build().architectures;
  if (engine_images().empty()) return "kernels of the engine";
  return fmt::format("{} fat binaries, for sm {} and PTX of {}", engine_images().size(),
                     fmt::join(architectures, ", "), architectures.front());
}

// Description of the kernels of a family for which no profile is in force.
std::string kernels_text(const Family& family) {
  const char* origin = is_family_forced() ? ", which KINTSUGI_ARCH names"
                       : family.was_run   ? ""
                                          : ", which were never run on a GPU of this compute capability";
  return fmt::format("those of the family {}{}; without a profile the policy auto is native", family.name,
                     origin);
}

// Requirements of the engine, with the reasons why they are not met. Requirements that need a missing driver
// or device are left out.
std::vector<Requirement> find_requirements() {
  std::vector<Requirement> found{{"device code", device_code_text(), kernels_missing_reason()}};
  if (!driver().complete) {
    found.push_back({"NVIDIA driver", "libcuda.so.1", driver().reason});
    return found;
  }
  found.push_back({"NVIDIA driver", "for CUDA " + driver().version_text(), ""});
  if (!driver().reason.empty()) {
    found.push_back({"GPU", "a device that the driver offers", driver().reason});
    return found;
  }
  for (int i = 0; i < driver().devices; ++i)
    found.push_back({"GPU", text_of_device(i), device_reason(device_at(i))});
  found.push_back({"cuBLAS", cublas().file, cublas().reason});
  const std::string no_compiler = no_compiler_reason();
  found.push_back({"NVRTC",
                   no_compiler.empty()
                       ? run_time_compiler().file + " for kernels of named schemes"
                       : "none, so that cuBLAS multiplies the terms of some named schemes: " + no_compiler,
                   ""});
  if (const ProfileInForce* in_force = profile_in_force(); in_force != nullptr) {
    found.push_back(
        {"profile", in_force->text + (in_force->advice.empty() ? "" : "; " + in_force->advice), ""});
  } else {
    found.push_back({"kernels", kernels_text(current_family()), ""});
  }
  return found;
}

// Reason why the engine runs on no device at all; empty if there is no such reason.
std::string find_common_reason() {
  for (const std::string& reason : {kernels_missing_reason(), driver().reason}) {
    if (!reason.empty()) return reason;
  }
  return cublas().reason;
}

class CudaEngine final : public Engine {
 public:
  std::string_view name() const override { return "cuda"; }
  std::string_view summary() const override {
    return "NVIDIA GPUs: splits, recombinations and, for families with such kernels, products of slices; "
           "other and native products by cuBLAS";
  }
  std::int64_t largest_size() const override { return std::int64_t{1} << 40; }

  std::string unavailable_reason() const override {
    static constinit MadeOnce common_reason(find_common_reason);
    if (const std::string& found = common_reason.get(); !found.empty()) return found;
    if (!driver().reason.empty()) return driver().reason;  // the driver was lost in a fork
    return device_reason(device_in_use());
  }
  std::vector<Requirement> requirements() const override { return find_requirements(); }
  std::string details() const override {
    const ProfileInForce* in_force = profile_in_force();
    return fmt::format("{}; driver for CUDA {}; {}{}", describe_device(device_in_use()).text(),
                       driver().version_text(), cublas().file,
                       in_force == nullptr || in_force->is_measured() ? "" : "; expected times not measured");
  }

  std::span<const Accumulator> accumulators(FormatId format) const override {
    static constexpr std::array doubles{Accumulator::fp64};
    static constexpr std::array bytes{Accumulator::int32};
    static constexpr std::array words{Accumulator::int128};
    switch (format) {
      case FormatId::fp16:
      case FormatId::bf16:
      case FormatId::tf32: return current_family().available_fp16_bf16_accumulators();
      case FormatId::fp64: return doubles;
      case FormatId::int52: return words;
      case FormatId::int8: return bytes;
      default: return {};
    }
  }
  SliceStorage slice_storage(FormatId) const override { return SliceStorage::packed; }
  double relative_rate(FormatId format) const override {
    return format == FormatId::int52 ? current_family().int52_rate : 1;
  }
  bool reduces_sums_modulo() const override { return true; }
  std::span<const FusedKernel> fused_kernels() const override { return fused_kernels_; }

 private:
  static constexpr std::array fused_steps_{StepKind::multiply, StepKind::recombine};
  static bool takes(const FusedProblem& problem) {
    return problem.weighted && fuses(problem.schedule, problem.format(), problem.accumulator, problem.type);
  }
  static constexpr std::array converting_steps_{StepKind::split, StepKind::multiply, StepKind::recombine};
  static constexpr std::array fused_kernels_{
      FusedKernel{.name = "direct_gemm",
                  .steps = converting_steps_,
                  .takes =
                      [](const FusedProblem& p) {
                        return p.schedule.is_direct && !p.is_double_double &&
                               fuses(p.schedule, p.format(), p.accumulator, p.type);
                      },
                  .choose = choose_direct_gemm,
                  .device_scratch_bytes = direct_scratch_bytes,
                  .launch = launch_direct_gemm},
      FusedKernel{.name = "multi_term_gemm",
                  .steps = fused_steps_,
                  .takes = [](const FusedProblem& p) { return p.schedule.tiles.depth == 0 && takes(p); },
                  .choose = choose_multi_term_gemm,
                  .device_scratch_bytes = multi_term_scratch_bytes,
                  .counters = multi_term_counters,
                  .launch = launch_multi_term_gemm},
      FusedKernel{.name = "weighted_tile_gemm",
                  .steps = fused_steps_,
                  .takes = [](const FusedProblem& p) { return p.schedule.tiles.depth > 0 && takes(p); },
                  .choose = [](const DeviceShape&) { return FusedVariant{}; },
                  .device_scratch_bytes = weighted_tile_scratch_bytes,
                  .launch = launch_weighted_tile_gemm}};
};

}  // namespace

const Engine& cuda_engine() {
  static const CudaEngine engine;
  return engine;
}

}  // namespace kintsugi::core

namespace kintsugi::core::cuda {

std::size_t product_scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t rows,
                                  std::int64_t columns) {
  if (format == FormatId::int52 || has_int8_gemm(schedule, format)) return 0;
  return cublas_scratch_bytes(schedule, format, rows, columns);
}

bool fuses(const Schedule& schedule, FormatId format, Accumulator accumulator, ElementType type) {
  if (schedule.tiles.depth > 0) return has_weighted_tile_gemm(schedule, format, type);
  if (schedule.is_direct)
    return accumulator == current_family().available_fp16_bf16_accumulators().front() &&
           has_direct_gemm(schedule, format, type);
  return accumulator == current_family().available_fp16_bf16_accumulators().front() &&
         has_multi_term_gemm(schedule, format, type);
}

bool compiles(const Schedule& schedule, FormatId format, Accumulator accumulator) {
  return is_tensor_core(accumulator) && has_term_sums(schedule, format);
}

void prepare_multiply(const Schedule& schedule, FormatId format, Accumulator accumulator,
                      std::span<const std::int64_t> rows, std::span<const std::int64_t> columns) {
  if (!compiles(schedule, format, accumulator)) return;
  for (const std::int64_t r : rows) {
    for (const std::int64_t c : columns) {
      if (r > 0 && c > 0) prepare_terms(schedule, format, r, c);
    }
  }
}

bool skips(const Schedule& schedule, FormatId format) { return has_int8_gemm(schedule, format); }

std::optional<DeviceTimes> expected_times(const DeviceShape& shape) {
  ensure_context();
  const ProfileInForce* in_force = profile_in_force();
  if (in_force == nullptr || !current_family().has_gemm_kernels()) return std::nullopt;
  // No costs say how long cuBLAS takes for products of slices.
  const bool has_kernel = has_int8_gemm(shape.schedule, shape.format) ||
                          has_multi_term_gemm(shape.schedule, shape.format, shape.type) ||
                          has_direct_gemm(shape.schedule, shape.format, shape.type) ||
                          has_weighted_tile_gemm(shape.schedule, shape.format, shape.type);
  if (!has_kernel) return std::nullopt;
  // Other devices' times of these kernels say too little: conversions and products hardly overlap.
  if (shape.schedule.is_direct && !in_force->is_measured()) return std::nullopt;
  return expected_emulation_times(shape, in_force->profile.costs);
}

DeviceThresholds thresholds() {
  constexpr double max_time_ratio_if_not_measured = 1 / 1.3;
  DeviceThresholds thresholds = current_family().thresholds;
  const ProfileInForce* in_force = profile_in_force();
  if (in_force == nullptr || in_force->is_measured()) return thresholds;
  for (double* ratio : {&thresholds.max_time_ratio, &thresholds.max_time_ratio_by_few})
    *ratio = std::min(*ratio, max_time_ratio_if_not_measured);
  return thresholds;
}

bool has_few_fp64_units() {
  if (is_family_forced()) return current_family().has_few_fp64_units;
  const ProfileInForce* in_force = profile_in_force();
  return in_force != nullptr && in_force->has_few_fp64_units;
}

bool has_fast_native(ElementType type) {
  return current_family().available_dmma(type) != nullptr || has_few_fp64_units();
}

std::optional<double> expected_vendor_time(const NativeShape& shape) {
  const ProfileInForce* in_force = profile_in_force();
  if (in_force == nullptr || !current_family().has_gemm_kernels()) return std::nullopt;
  return vendor_time(shape, in_force->profile.costs);
}

void multiply(const Queue& queue, const Schedule& schedule, Accumulator accumulator, const Slices& a,
              const Slices& b, const Accumulators& sums, std::byte* scratch, const DeviceFit* fit,
              const DeviceCondition& condition) {
  if (a.format->id == FormatId::int52) return multiply_words(queue, schedule, a, b, sums);
  if (has_int8_gemm(schedule, a.format->id)) return int8_gemm(queue, schedule, a, b, sums, condition);
  if (is_tensor_core(accumulator)) return multiply_terms(queue, schedule, a, b, sums, fit);
  multiply_by_cublas(queue, schedule, a, b, sums, scratch, fit);
}

}  // namespace kintsugi::core::cuda

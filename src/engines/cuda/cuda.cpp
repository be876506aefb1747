// The engine cuda: NVIDIA GPUs. The library's kernels compute splits, recombinations, SIMT products and
// products of 52-bit words; on Hopper also products of some schemes. cuBLAS computes all other products of
// slices, and native products.
#include <algorithm>
#include <array>
#include <functional>

#include "base/cuda/cuda_driver.hpp"
#include "base/status.hpp"
#include "base/threads.hpp"
#include "engines/cuda/arch/architecture.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/common/contexts.hpp"
#include "engines/cuda/common/graph_memory.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/common/launch_graph.hpp"
#include "engines/cuda/common/memory_pool.hpp"
#include "engines/cuda/cublas.hpp"
#include "engines/cuda/cublas_products.hpp"
#include "engines/cuda/gemm/int52_gemm.hpp"
#include "engines/cuda/gemm/int8_gemm.hpp"
#include "engines/cuda/gemm/multi_term/multi_term_gemm.hpp"
#include "engines/cuda/gemm/simt/simt_gemm.hpp"
#include "engines/cuda/gemm/times.hpp"
#include "engines/cuda/gemm/weighted_tiles/weighted_tile_gemm.hpp"
#include "engines/cuda/ozaki1/ozaki1.hpp"
#include "engines/cuda/recombine/recombine.hpp"
#include "engines/cuda/select/select.hpp"
#include "engines/cuda/split/pack_tiles.hpp"
#include "engines/cuda/split/splits.hpp"
#include "engines/cuda/split/traversal.hpp"
#include "engines/device_engine.hpp"
#include "engines/device_moduli.hpp"
#include "engines/engine.hpp"

namespace kintsugi::core {

namespace {

using namespace cuda;

Address address(const void* pointer) { return reinterpret_cast<Address>(pointer); }

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
  const std::string name = contexts().describe(number_of(device));
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
    found.push_back({"GPU", contexts().describe(i), device_reason(device_at(i))});
  found.push_back({"cuBLAS", cublas().file, cublas().reason});
  if (const ProfileInForce* in_force = profile_in_force(); in_force != nullptr)
    found.push_back(
        {"profile", in_force->text + (in_force->advice.empty() ? "" : "; " + in_force->advice), ""});
  return found;
}

// Reason why the engine runs on no device at all; empty if there is no such reason.
std::string find_common_reason() {
  for (const std::string& reason : {kernels_missing_reason(), driver().reason}) {
    if (!reason.empty()) return reason;
  }
  return cublas().reason;
}

// Kernels of candidates with different numbers of moduli (engines/device_moduli.hpp).
class SharedKernels final : public DeviceSharedKernels {
 public:
  bool take(ElementType type, const SplitRule& least, const SplitRule& most) const override {
    return splits_selected(type, least, most) && recombines_selected(type, least, most);
  }
  bool split_at_once(std::int64_t length) const override {
    return round_up(length, Slices::k_multiple) > std::max(short_stride, least_streaming_stride - 1);
  }
  void select(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars,
              const NormCandidates& candidates, DeviceSelection* selection,
              const DeviceReporting& reporting) const override {
    select_by_norms(queue, selection_task(a, b, scalars, DeviceCandidates{}, selection, reporting),
                    std::max(a.items, b.items), candidates);
  }
  void split(const Queue& queue, std::span<const DeviceSplit> splits, std::span<const SplitRule> rules,
             const SelectedModuli& selected) const override {
    split_selected(queue, splits, rules, selected);
  }
  void multiply(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                const Accumulators& sums, const SelectedModuli& selected) const override {
    selected_int8_gemm(queue, schedule, a, b, sums, selected);
  }
  void recombine(const Queue& queue, const Accumulators& sums, const DeviceTile& tile,
                 const SelectedModuli& selected) const override {
    recombine_selected(queue, sums, tile, selected);
  }
};

class CudaEngine final : public Engine, public DeviceEngine {
 public:
  std::string_view name() const override { return "cuda"; }
  std::string_view summary() const override {
    return "NVIDIA GPUs: splits, recombinations and, on Hopper, most products of slices by own kernels; "
           "others and native products by cuBLAS";
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
    return fmt::format("{}; driver for CUDA {}; {}", describe_device(device_in_use()).text(),
                       driver().version_text(), cublas().file);
  }

  std::span<const Accumulator> accumulators(FormatId format) const override {
    static constexpr std::array floating{Accumulator::cublas};
    static constexpr std::array doubles{Accumulator::fp64};
    static constexpr std::array bytes{Accumulator::int32};
    static constexpr std::array words{Accumulator::int128};
    switch (format) {
      case FormatId::fp16:
      case FormatId::bf16: return current_architecture().available_fp16_bf16_accumulators();
      case FormatId::tf32: return floating;
      case FormatId::fp64: return doubles;
      case FormatId::int52: return words;
      case FormatId::int8: return bytes;
      default: return {};
    }
  }
  SliceStorage slice_storage(FormatId) const override { return SliceStorage::packed; }
  double relative_rate(FormatId format) const override {
    return format == FormatId::int52 ? current_architecture().int52_rate : 1;
  }
  std::size_t scratch_bytes(const Schedule&, FormatId, std::int64_t, int) const override { return 0; }
  bool reduces_sums_modulo() const override { return true; }
  const DeviceEngine* device() const override { return this; }
  const DeviceContexts* contexts() const override { return &cuda::contexts(); }

  std::int64_t tile() const override { return 4096; }
  std::int64_t preferred_block() const override { return 1024; }
  std::size_t scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t rows,
                            std::int64_t columns) const override {
    if (format == FormatId::int52 || has_int8_gemm(schedule, format)) return 0;
    return multiply_scratch_bytes(schedule, format, rows, columns);
  }
  std::size_t native_scratch_bytes() const override { return vendor_workspace_bytes; }
  bool fuses(const Schedule& schedule, FormatId format, Accumulator accumulator,
             ElementType type) const override {
    if (schedule.tiles.depth > 0) return has_weighted_tile_gemm(schedule, format, type);
    return accumulator == current_architecture().available_fp16_bf16_accumulators().front() &&
           has_multi_term_gemm(schedule, format, type);
  }
  std::size_t fused_scratch_bytes(const DeviceShape& shape) const override {
    return shape.schedule.tiles.depth > 0 ? weighted_tile_scratch_bytes(shape)
                                          : multi_term_scratch_bytes(shape);
  }
  DeviceCounters fused_counters(const DeviceShape& shape, std::byte* scratch) const override {
    return shape.schedule.tiles.depth > 0 ? DeviceCounters{} : multi_term_counters(shape, scratch);
  }
  DeviceThresholds thresholds() const override {
    constexpr double max_time_ratio_if_scaled = 1 / 1.3;
    DeviceThresholds thresholds = current_architecture().thresholds;
    const ProfileInForce* in_force = profile_in_force();
    if (in_force != nullptr && in_force->origin == ProfileOrigin::scaled)
      thresholds.max_time_ratio = std::min(thresholds.max_time_ratio, max_time_ratio_if_scaled);
    return thresholds;
  }
  bool has_native_on_tensor_cores(ElementType type) const override {
    return current_architecture().available_dmma(type) != nullptr;
  }
  std::optional<double> vendor_time(const NativeShape& shape) const override {
    const ProfileInForce* in_force = profile_in_force();
    if (in_force == nullptr || !current_architecture().has_gemm_kernels()) return std::nullopt;
    return cuda::vendor_time(shape, in_force->profile.costs);
  }
  std::optional<DeviceTimes> expected_times(const DeviceShape& shape) const override {
    ensure_context();
    const ProfileInForce* in_force = profile_in_force();
    if (in_force == nullptr || !current_architecture().has_gemm_kernels()) return std::nullopt;
    return expected_emulation_times(shape, in_force->profile.costs);
  }

  void prepare() const override {
    ensure_context();
    prepare_blas();
    prepare_pool();
  }
  std::byte* allocate(const Queue& queue, std::size_t bytes, std::size_t graph_limit) const override {
    ensure_context();
    Address result = 0;
    const CapturedStream captured = captured_stream(queue.stream);
    const Result status = captured.graph != nullptr
                              ? allocate_for_graph(&result, bytes, captured, graph_limit)
                              : allocate_in_stream(&result, bytes, queue.stream);
    if (status == error_out_of_memory) return nullptr;
    check(status, captured.graph != nullptr ? "memory for a captured graph" : "cuMemAllocAsync");
    return reinterpret_cast<std::byte*>(result);
  }
  // The driver's result is ignored: an earlier call has caused and reported the error.
  void deallocate(const Queue& queue, void* pointer) const noexcept override {
    if (deallocate_for_graph(address(pointer))) return;
    driver().memory_free_async(address(pointer), queue.stream);
  }
  void release_kept_memory() const noexcept override {
    release_graphs();
    release_graph_memory();
    trim_pools();
  }
  void launch_together(const Queue& queue, const std::function<void()>& steps) const override {
    LaunchRecording recording(queue);
    steps();
    recording.issue();
  }
  void copy_to_device(const Queue& queue, void* target, const void* host, std::size_t bytes) const override {
    LaunchRecording::issue_recorded();
    check(driver().copy_to_device_async(address(target), host, bytes, queue.stream), "cuMemcpyHtoDAsync");
  }
  void copy_to_host(const Queue& queue, void* host, const void* source, std::size_t bytes) const override {
    LaunchRecording::issue_recorded();
    check(driver().copy_to_host_async(host, address(source), bytes, queue.stream), "cuMemcpyDtoHAsync");
  }
  void copy_on_device(const Queue& queue, void* target, const void* source,
                      std::size_t bytes) const override {
    LaunchRecording::issue_recorded();
    check(driver().copy_on_device_async(address(target), address(source), bytes, queue.stream),
          "cuMemcpyDtoDAsync");
  }
  void clear(const Queue& queue, void* target, std::size_t bytes) const override {
    cuda::clear(queue, target, bytes);
  }
  void synchronize(const Queue& queue) const override {
    LaunchRecording::issue_recorded();
    check(driver().stream_synchronize(queue.stream), "cuStreamSynchronize");
  }
  void synchronize() const override {
    ensure_context();
    check(driver().context_synchronize(), "cuCtxSynchronize");
  }
  void synchronize_quietly() const noexcept override { driver().context_synchronize(); }

  void find_ranges(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                   const DeviceScalars& scalars) const override {
    cuda::find_ranges(queue, a, b, scalars);
  }
  void find_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                  const DeviceScalars& scalars) const override {
    cuda::find_norms(queue, a, b, scalars);
  }
  void find_scaling_norms(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                          const DeviceScalars& scalars) const override {
    cuda::find_scaling_norms(queue, a, b, scalars);
  }
  void summarize(const Queue& queue, const DeviceSide& side, MergedSummary* summaries) const override {
    cuda::summarize(queue, side, summaries);
  }
  void select(const Queue& queue, const DeviceSide& a, const DeviceSide& b, const DeviceScalars& scalars,
              const DeviceCandidates& candidates, DeviceSelection* selection,
              const DeviceReporting& reporting) const override {
    cuda::select(queue, selection_task(a, b, scalars, candidates, selection, reporting),
                 std::max(a.items, b.items));
  }
  void split(const Queue& queue, std::span<const DeviceSplit> splits,
             const DeviceCondition& condition) const override {
    cuda::split(queue, splits, condition);
  }
  bool finds_norms(const DeviceSplit& split) const override { return cuda::finds_norms(split); }
  void split_by_norms(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceScalars& scalars,
                      double coefficient, DeviceSelection* selection) const override {
    cuda::split_by_norms(queue, splits, scalars, coefficient, selection);
  }
  bool skips(const Schedule& schedule, FormatId format) const override {
    return has_int8_gemm(schedule, format);
  }
  void multiply(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                const Accumulators& sums, std::byte* scratch, const DeviceFit* fit,
                const DeviceCondition& condition) const override {
    if (a.format->id == FormatId::int52) return multiply_words(queue, schedule, a, b, sums);
    if (has_int8_gemm(schedule, a.format->id)) return int8_gemm(queue, schedule, a, b, sums, condition);
    cuda::multiply(queue, schedule, a, b, sums, scratch, fit);
  }
  void multiply_fused(const Queue& queue, const DeviceFusedProduct& product,
                      std::byte* scratch) const override {
    if (product.schedule->tiles.depth > 0) return weighted_tile_gemm(queue, product, scratch);
    cuda::multi_term_gemm(queue, product, scratch);
  }
  void count_tiles(const Queue& queue, const DeviceTileCount& count, DeviceReport* report) const override {
    cuda::count_tiles(queue, count, report);
  }
  void recombine_weighted(const Queue& queue, const Accumulators& sums, std::span<const int> exponents,
                          const DeviceTile& tile) const override {
    cuda::recombine_weighted(queue, sums, exponents, tile);
  }
  bool takes_complex_elements(const SplitRule& rule) const override {
    return cuda::splits_complex(rule) && cuda::recombines(rule.complex_basis);
  }
  bool takes_strassen(ElementType type, const SplitRule& rule) const override {
    return splits_for_strassen(type, rule) && recombines_strassen(type, rule);
  }
  int max_checked_moduli() const override { return cuda::max_checked_moduli(); }
  void recombine_residues(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                          const DeviceTile& tile) const override {
    cuda::recombine_residues(queue, sums, system, tile);
  }
  const DeviceOzaki1* ozaki1() const override { return &ozaki1_kernels(); }
  const DeviceSharedKernels* shared_kernels() const override {
    static const SharedKernels kernels;
    const Architecture& architecture = current_architecture();
    const bool has_kernels =
        architecture.int8 != nullptr && architecture.has_gemm_kernels() && architecture.has_clusters;
    return has_kernels ? &kernels : nullptr;
  }
  const DeviceTransfers* transfers() const override { return &cuda::transfers(); }
  void find_rounding_errors(const Queue& queue, const DeviceRoundingErrors& a, const DeviceRoundingErrors& b,
                            const DeviceCondition& condition) const override {
    cuda::find_rounding_errors(queue, a, b, condition);
  }
  void recombine_checked(const Queue& queue, const Accumulators& sums, const ResidueSystem& system,
                         const DeviceCheck& check, const DeviceTile& tile,
                         const DeviceOpenElements& open) const override {
    cuda::recombine_checked(queue, sums, system, check, tile, open);
  }
  void choose_checked(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                      const DeviceCheckedChain& chain, DeviceSelection* selection, DeviceCheckState* state,
                      DeviceReport* report) const override {
    cuda::choose_checked(queue, a, b, chain, selection, state, report);
  }
  void begin_checks(const Queue& queue, const DeviceSelection* selection,
                    DeviceCheckState* state) const override {
    cuda::begin_checks(queue, selection, state);
  }
  void advance_checks(const Queue& queue, const DeviceCheckedChain& chain, int index, std::int64_t elements,
                      DeviceCheckState* state) const override {
    cuda::advance_checks(queue, chain, index, elements, state);
  }
  void recompute(const Queue& queue, const DeviceTile& block, const DeviceOpenElements& open,
                 DeviceReport* report) const override {
    cuda::recompute(queue, block, open, report);
  }
  void multiply_exactly(const Queue& queue, const DeviceTile& tile) const override {
    cuda::multiply_exactly(queue, tile);
  }
  void multiply_unsliced(const Queue& queue, const DeviceTile& tile) const override {
    cuda::multiply_unsliced(queue, tile);
  }
  void select_or_multiply_unsliced(const Queue& queue, const DeviceTile& tile,
                                   const DeviceCandidates& candidates, DeviceSelection* selection,
                                   const DeviceReporting& reporting) const override {
    const SelectionTask task = selection_task(tile.a, tile.b, tile.scalars, candidates, selection, reporting);
    if (selects_and_multiplies(tile, task)) return cuda::select_or_multiply_unsliced(queue, tile, task);
    cuda::select(queue, task, tile.items);
    cuda::multiply_unsliced(queue, tile);
  }
  void scale(const Queue& queue, const DeviceMatrix& c, std::int64_t item, const DeviceScalars& scalars,
             const DeviceCondition& condition) const override {
    cuda::scale(queue, c, item, scalars, condition);
  }
  bool native(const Queue& queue, const DeviceBlasProduct& product, std::byte* scratch) const override {
    return cuda::native(queue, product, scratch);
  }

  // These functions multiply matrices in host memory. They are never called, because plans copy such matrices
  // to the device.
  void multiply(const Multiplication&) const override { refuse_host_memory(); }
  double native_double_double_time_ratio() const override { return 0; }  // no such products
  void native(const NativeProduct<float>&) const override { refuse_host_memory(); }
  void native(const NativeProduct<double>&) const override { refuse_host_memory(); }
  void native(const NativeProduct<std::complex<float>>&) const override { refuse_host_memory(); }
  void native(const NativeProduct<std::complex<double>>&) const override { refuse_host_memory(); }
  void native(const NativeProduct<DoubleDouble>&) const override { refuse_host_memory(); }

 private:
  [[noreturn]] static void refuse_host_memory() {
    fail(Status::internal, "engine cuda got matrices in the host's memory");
  }
};

}  // namespace

const Engine& cuda_engine() {
  static const CudaEngine engine;
  return engine;
}

}  // namespace kintsugi::core

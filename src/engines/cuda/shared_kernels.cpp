#include "engines/cuda/shared_kernels.hpp"

#include <algorithm>

#include "engines/cuda/arch/architecture.hpp"
#include "engines/cuda/gemm/int8/int8_gemm.hpp"
#include "engines/cuda/recombine/recombine.hpp"
#include "engines/cuda/select/select.hpp"
#include "engines/cuda/split/split_task.hpp"
#include "engines/cuda/split/splits.hpp"
#include "engines/cuda/split/streaming/streaming.hpp"

namespace kintsugi::core::cuda {

namespace {

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

}  // namespace

const DeviceSharedKernels* shared_kernels() {
  static const SharedKernels kernels;
  const Architecture& architecture = current_architecture();
  const bool has_kernels =
      architecture.int8 != nullptr && architecture.has_gemm_kernels() && architecture.has_clusters;
  return has_kernels ? &kernels : nullptr;
}

}  // namespace kintsugi::core::cuda

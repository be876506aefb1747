#include "execute/device/offload/pipeline.hpp"

#include "base/status.hpp"
#include "engines/device_transfers.hpp"
#include "execute/device/offload/on_device.hpp"
#include "planner/offload/offload.hpp"

namespace kintsugi::core {

namespace {

// Returns the bytes of device memory that a call may use.
std::size_t usable_bytes(const Plan& plan) {
  if (plan.request.offload_memory > 0) return plan.request.offload_memory;
  return plan.engine->device()->transfers()->free_memory() / 10 * 9;
}

// Returns the layout whose strips leave a quarter of the memory to workspaces.
OffloadLayout layout_for(const Plan& plan, const OffloadPart& part, std::size_t bytes) {
  const OffloadLayout layout = fit_layout(plan.problem, part, bytes / 4 * 3, may_cut_k(plan));
  if (layout.rows == 0)
    fail(Status::out_of_memory, "{} bytes of a device are too few for strips of 128 rows and columns", bytes);
  return layout;
}

}  // namespace

OffloadPipeline::OffloadPipeline(const Plan& plan, const Operands& operands, const OffloadPart& part,
                                 int device, const CopyThreads& threads)
    : plan_(plan), operands_(operands), part_(part), device_(device), threads_(threads) {}

OffloadPipeline::~OffloadPipeline() = default;

void OffloadPipeline::run() {
  const DeviceContexts& contexts = *plan_.engine->contexts();
  const ContextScope scope(contexts, plan_.engine->device()->transfers()->primary_context(device_));
  if (!scope.entered()) fail(Status::device_error, "the context of device {} is gone", device_);
  const std::size_t bytes = usable_bytes(plan_);
  const OffloadLayout layout = layout_for(plan_, part_, bytes);
  steps_ = offload_steps(plan_.problem, part_, layout);
  OnDevice on_device(plan_, operands_, layout, steps_, bytes, threads_);
  run_steps(on_device);
  on_device.add_to_report(report_);
  report_.offload->inner_parts = divide_up(plan_.problem.k, layout.inner);
}

void OffloadPipeline::run_steps(OnDevice& on_device) {
  on_device.begin_loads(steps_.front());
  on_device.begin_result_load(steps_.front());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const OffloadStep& step = steps_[i];
    const OffloadStep* next = i + 1 < steps_.size() ? &steps_[i + 1] : nullptr;
    on_device.finish_loads();
    const bool loads_early = next != nullptr && !OnDevice::overwrites(*next, step);
    if (loads_early) on_device.begin_loads(*next);
    if (step.multiplies()) on_device.multiply(step);
    if (step.multiplies() && step.is_last) on_device.store(step, results_.emplace_back());
    if (next == nullptr) break;
    if (!loads_early) on_device.begin_loads(*next);
    on_device.begin_result_load(*next);
  }
  for (CopyGroup& result : results_) on_device.wait_for(result);
}

std::vector<OffloadPart> OffloadPipeline::unwritten() const {
  if (steps_.empty()) return {part_};
  std::vector<OffloadPart> parts;
  auto result = results_.begin();
  for (const OffloadStep& step : steps_) {
    if (!step.multiplies() || !step.is_last) continue;
    if (result == results_.end()) {
      parts.push_back({step.rows, step.columns});
      continue;
    }
    if (result->is_copied.empty()) {  // The copy of the result was not started.
      parts.push_back({step.rows, step.columns});
      ++result;
      continue;
    }
    for (std::size_t piece = 0; piece < result->pieces.size(); ++piece) {
      if (!result->is_copied[piece])
        parts.push_back({result->pieces[piece].rows, result->pieces[piece].columns});
    }
    ++result;
  }
  return parts;
}

}  // namespace kintsugi::core

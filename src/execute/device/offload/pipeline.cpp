#include "execute/device/offload/pipeline.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include "base/status.hpp"
#include "base/stopwatch.hpp"
#include "engines/device_transfers.hpp"
#include "execute/device/offload/kept_operands.hpp"
#include "execute/device/offload/on_device.hpp"
#include "planner/offload.hpp"

namespace kintsugi::core {

namespace {

// Returns the bytes of device memory that a call may use.
std::size_t usable_bytes(const Plan& plan) {
  if (plan.request.offload_memory > 0) return plan.request.offload_memory;
  return plan.engine->device()->transfers()->free_memory() / 10 * 9;
}

// Returns the layout whose strips leave a quarter of the memory to workspaces. If the operands do not fit,
// kept operands of earlier calls are freed first.
OffloadLayout layout_for(const Plan& plan, const OffloadPart& part, std::size_t& bytes) {
  const auto fit = [&] { return fit_layout(plan.problem, part, bytes / 4 * 3, may_cut_k(plan)); };
  OffloadLayout layout = fit();
  if ((layout.strips_a != 1 || layout.strips_b != 1) && release_kept_operands()) {
    bytes = usable_bytes(plan);
    layout = fit();
  }
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
  std::size_t bytes = usable_bytes(plan_);
  const OffloadLayout layout = layout_for(plan_, part_, bytes);
  steps_ = offload_steps(plan_.problem, part_, layout);
  OffloadSeconds seconds;
  std::optional<OnDevice> on_device;
  {
    const Stopwatch watch(seconds.preparation);
    on_device.emplace(plan_, operands_, part_, layout, steps_, bytes, threads_);
  }
  run_steps(*on_device, seconds);
  {
    const Stopwatch watch(seconds.end);
    on_device->add_to_report(report_, seconds);
    on_device->keep_operands();
    on_device.reset();
  }
  report_.offload->inner_parts = divide_up(plan_.problem.k, layout.inner);
  report_.offload->seconds = seconds;
}

void OffloadPipeline::run_steps(OnDevice& on_device, OffloadSeconds& seconds) {
  std::size_t begun = 0;  // steps whose copies to the device were begun
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const OffloadStep& step = steps_[i];
    {
      const Stopwatch watch(seconds.load_waits);
      // The first step of a strip loads C only now: its memory is then free. begin_loads() begins the others.
      if (step.begins_strip) on_device.begin_result_load(step, i);
      begun = begin_loads(on_device, begun, i);
      on_device.finish_loads(i);
    }
    const Stopwatch watch(seconds.launches);
    on_device.multiply(step);
    if (step.is_last) on_device.store(step, results_.emplace_back());
  }
  const Stopwatch watch(seconds.result_waits);
  for (CopyGroup& result : results_) on_device.wait_for(result);
}

// Begins the copies for step `present`, and for later steps as long as no earlier step needs their strips any
// more. The threads then always have pieces to copy. Returns the number of steps whose copies have begun.
std::size_t OffloadPipeline::begin_loads(OnDevice& on_device, std::size_t begun, std::size_t present) {
  for (; begun < steps_.size(); ++begun) {
    const auto needs = [&](const OffloadStep& step) { return OnDevice::overwrites(steps_[begun], step); };
    const std::span before(steps_.begin() + static_cast<std::ptrdiff_t>(present), begun - present);
    if (std::ranges::any_of(before, needs)) break;
    on_device.begin_loads(steps_[begun], begun);
    if (!steps_[begun].begins_strip) on_device.begin_result_load(steps_[begun], begun);
  }
  return begun;
}

std::vector<OffloadPart> OffloadPipeline::unwritten() const {
  if (steps_.empty()) return {part_};
  std::vector<OffloadPart> parts;
  auto result = results_.begin();
  for (const OffloadStep& step : steps_) {
    if (!step.is_last) continue;
    if (result == results_.end()) {
      parts.push_back({step.rows, step.columns, step.items});
      continue;
    }
    if (result->is_copied.empty()) {  // its copy was not started
      parts.push_back({step.rows, step.columns, step.items});
      ++result;
      continue;
    }
    for (std::size_t piece = 0; piece < result->pieces.size(); ++piece) {
      const CopyPiece& copy = result->pieces[piece];
      if (!result->is_copied[piece]) parts.push_back({copy.rows, copy.columns, {copy.item, 1}});
    }
    ++result;
  }
  return parts;
}

}  // namespace kintsugi::core

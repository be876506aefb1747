#include "planner/offload/offload.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/status.hpp"
#include "engines/device_engine.hpp"
#include "engines/device_transfers.hpp"
#include "engines/registry.hpp"
#include "planner/candidates/strassen.hpp"
#include "planner/element_type.hpp"

namespace kintsugi::core {

namespace {

const Engine* find_offload_engine() {
  for (const Engine* engine : all_engines()) {
    if (engine->device() != nullptr && engine->device()->transfers() != nullptr) return engine;
  }
  return nullptr;
}

// Returns the reason why no device can multiply the host plan's problem; empty if there is none.
std::string obstacle(const Plan& host, const Engine* engine) {
  const Problem& problem = host.problem;
  if (!host.request.engine.empty()) return fmt::format("engine {} was named", host.request.engine);
  if (problem.type == OperandType::dd) return "devices do not multiply double-double operands";
  if (problem.prepared_a || problem.prepared_b) return "an operand was prepared on the host";
  if (std::min({problem.m, problem.n, problem.k, problem.batch_count}) == 0)
    return "there is nothing to multiply";
  if (host.request.is_reproducible()) return "a reproducible product is the host's";
  if (engine == nullptr) return "this library has no engine for devices";
  if (const std::string reason = engine->unavailable_reason(); !reason.empty())
    return fmt::format("engine {} cannot run here: {}", engine->name(), reason);
  return {};
}

// Returns the reason why the device's plan cannot replace the host's; empty if there is none. The device's
// plan must accept all operands: the host's plan fails before it writes C, and a device could not. A scheme
// must not be adapted to the ranges of whole operands, since a device has only a part of the operands at a
// time.
std::string obstacle_of_plan(const Plan& device) {
  if (!device.candidates.back().acceptance.any_range())
    return "no candidate of a device accepts all operands";
  for (const Candidate& candidate : device.candidates) {
    if (candidate.scheme != nullptr && candidate.scheme->adapt != nullptr)
      return fmt::format("scheme {} is adapted to whole operands on the host", candidate.scheme_name());
  }
  return {};
}

// Expected seconds of the call, if native products are computed. An emulation that the policy auto selects
// takes less time on either side.
struct OffloadTimes {
  double host = 0;
  double device = 0;  // 0: the device was never measured
};

OffloadTimes expected_offload_times(const Plan& host, const Plan& device) {
  // These constants are assumed, not measured, so that equal calls are always computed by the same engine:
  // the rate of a PCIe 4 slot in one direction, and the time of a call without copies and products.
  constexpr double copied_bytes_per_second = 20e9;
  constexpr double seconds_of_call = 500e-6;
  const Problem& problem = host.problem;
  const auto m = static_cast<double>(problem.m);
  const auto n = static_cast<double>(problem.n);
  const auto k = static_cast<double>(problem.k);
  const double parts = problem.complex ? 2 : 1;
  const double width = problem.type == OperandType::f64 ? 2 : 1;
  const double threads = host.threads;
  OffloadTimes times;
  const auto items = static_cast<double>(problem.batch_count);
  times.host = host.engine->product_seconds() * width * parts * parts * items * m * n * k / threads;
  const auto product = device.engine->device()->vendor_time(
      {element_type(problem), problem.m, problem.n, problem.k, problem.batch_count});
  if (!product) return times;
  const double bytes = static_cast<double>(problem.element_bytes()) * items * (m * k + k * n + m * n);
  times.device = seconds_of_call + std::max(1e-6 * *product, bytes / copied_bytes_per_second);
  return times;
}

// Returns the reason why the policy auto leaves the call on the host; empty if there is none.
std::string obstacle_of_time(const Plan& host, const Plan& device) {
  constexpr double max_time_ratio = 0.8;
  const OffloadTimes times = expected_offload_times(host, device);
  if (times.device == 0) return "the device was never measured: `kintsugi calibrate` makes its profile";
  if (times.device < max_time_ratio * times.host) return {};
  return fmt::format("the host is expected to take {:.3g} ms and the device {:.3g} ms", 1e3 * times.host,
                     1e3 * times.device);
}

// Makes the device's plan, or returns the reason why there is none. Offloaded products are limited by
// copies and by the memory that they may take, so they have no step of Strassen's algorithm.
std::string make_offloaded_plan(const Plan& host, const Engine& engine, Plan& device) {
  const DeviceEngine& memory = *engine.device();
  const ContextScope scope(*engine.contexts(), memory.transfers()->primary_context(0));
  if (!scope.entered()) return "the context of device 0 is gone";
  Problem problem = host.problem;
  problem.memory = MemorySpace::device;
  problem.batch_kind = BatchKind::strided;  // as strips have the items
  device = without_strassen(make_device_plan(problem, host.settings, engine));
  if (std::string reason = obstacle_of_plan(device); !reason.empty()) return reason;
  return host.request.offload == Offload::automatic ? obstacle_of_time(host, device) : "";
}

}  // namespace

Plan offloaded_if_chosen(Plan plan) {
  if (plan.request.offload == Offload::off || plan.problem.memory != MemorySpace::host) return plan;
  const Engine* engine = find_offload_engine();
  Plan device;
  std::string reason = obstacle(plan, engine);
  if (reason.empty()) {
    try {
      reason = make_offloaded_plan(plan, *engine, device);
    } catch (const Error& error) {  // the host computes what a device cannot
      reason = error.what();
    }
  }
  const std::string setting = plan.settings[SettingId::offload].value;
  if (!reason.empty()) {
    plan.offload_words = fmt::format("Offload {}, but the host multiplies: {}.", setting, reason);
    return plan;
  }
  device.problem = plan.problem;
  device.allocator = plan.allocator;
  device.workspace_bytes = 0;  // an offloaded call needs no host workspace
  device.offload_words =
      fmt::format("Offload {}: {} multiplies, and the host what it cannot.", setting, engine->name());
  device.host_plan = std::make_shared<const Plan>(std::move(plan));
  return device;
}

Plan plan_of_inner_indices(const Plan& plan, std::int64_t inner) {
  Problem problem = plan.problem;
  problem.memory = MemorySpace::device;
  problem.batch_kind = BatchKind::strided;
  problem.k = inner;
  return without_strassen(make_device_plan(problem, plan.settings, *plan.engine));
}

Plan plan_of_step(const Plan& plan, const Problem& problem, std::size_t workspace_limit) {
  Plan step = plan;
  step.problem = problem;
  step.allocator = {};  // the caller's allocator cannot be used: it returns host memory
  step.queue = {};
  step.host_plan = nullptr;
  step.blocking = fit_blocking(step, workspace_limit);
  step.workspace_bytes = workspace_bytes(step, step.blocking);
  return step;
}

bool may_cut_k(const Plan& plan) {
  // (k + 8) u |A||B| also bounds p sums of k / p products each and p roundings if k / p + p <= k.
  return !plan.request.accuracy || plan.request.accuracy->is_of_type();
}

}  // namespace kintsugi::core

#include "execute/device/caller.hpp"

#include "base/cuda/cuda_driver.hpp"
#include "base/status.hpp"
#include "engines/registry.hpp"
#include "execute/device/prepare.hpp"

namespace kintsugi::core {

namespace {

void check_prepared(const DeviceContexts& contexts, const Prepared* prepared, const char* name) {
  if (prepared == nullptr || contexts.reaches(prepared->device->context)) return;
  const int prepared_device = prepared->device->context.device;
  const int current = contexts.current().device;
  if (prepared_device != current) {
    fail(Status::invalid_argument, "{} lies on {}, and {} is current", name,
         contexts.describe(prepared_device), contexts.describe(current));
  }
  fail(Status::invalid_argument, "{} lies in another context of {} than the current one", name,
       contexts.describe(prepared_device));
}

}  // namespace

// A plan has no device memory, so it can run in every context of its device. The first call in a context
// creates a handle of cuBLAS, which allocates memory and would break a capture of a stream.
void check_caller(const Plan& plan, const Queue& queue) {
  const DeviceContexts& contexts = *plan.engine->contexts();
  const DeviceContext current = contexts.current();
  if (current.device != plan.context.device) {
    fail(Status::invalid_argument,
         "the plan was made for {}, and {} is current: every device needs its own plan",
         contexts.describe(plan.context.device), contexts.describe(current.device));
  }
  contexts.check_stream(queue);
  if (current == plan.context || !contexts.is_captured(queue)) return;
  fail(Status::invalid_argument,
       "the stream is being captured, and the plan was made in another context of {} than the current one: "
       "make it in this one, before the capture",
       contexts.describe(current.device));
}

void check_caller(const Plan& plan, const Operands& operands, const Queue& queue) {
  check_caller(plan, queue);
  check_prepared(*plan.engine->contexts(), operands.prepared_a, "prepared_a");
  check_prepared(*plan.engine->contexts(), operands.prepared_b, "prepared_b");
}

// A driver that is too old, or has no device, cannot be asked for contexts. Planning then fails and says why.
PlaceScope::PlaceScope(const DevicePlace& place) {
  if (!cuda::driver().reason.empty()) return;
  for (const Engine* engine : all_engines()) {
    if (engine->contexts() == nullptr) continue;
    if (engine->contexts()->enter_for_memory(place.device, place.context)) entered_ = engine->contexts();
    return;
  }
}

}  // namespace kintsugi::core

#include "execute/device/caller.hpp"

#include "base/cuda/cuda_driver.hpp"
#include "base/status.hpp"
#include "engines/registry.hpp"
#include "execute/device/prepare.hpp"

namespace kintsugi::core {

namespace {

void check_prepared(const Prepared* prepared, const char* name) {
  if (prepared == nullptr || cuda::reaches(prepared->device->context)) return;
  const int prepared_device = prepared->device->context.device;
  const int current = cuda::current_context().device;
  if (prepared_device != current) {
    fail(Status::invalid_argument, "{} lies on {}, and {} is current", name,
         cuda::text_of_device(prepared_device), cuda::text_of_device(current));
  }
  fail(Status::invalid_argument, "{} lies in another context of {} than the current one", name,
       cuda::text_of_device(prepared_device));
}

}  // namespace

// A plan has no device memory, so it can run in every context of its device. The first call in a context
// creates a handle of cuBLAS, which allocates memory and would break a capture of a stream.
void check_caller(const Plan& plan, const Queue& queue) {
  const DeviceContext current = cuda::current_context();
  if (current.device != plan.context.device) {
    fail(Status::invalid_argument,
         "the plan was made for {}, and {} is current: every device needs its own plan",
         cuda::text_of_device(plan.context.device), cuda::text_of_device(current.device));
  }
  cuda::check_stream(queue);
  if (current == plan.context || !cuda::is_captured(queue)) return;
  fail(Status::invalid_argument,
       "the stream is being captured, and the plan was made in another context of {} than the current one: "
       "make it in this one, before the capture",
       cuda::text_of_device(current.device));
}

void check_caller(const Plan& plan, const Operands& operands, const Queue& queue) {
  check_caller(plan, queue);
  check_prepared(operands.prepared_a, "prepared_a");
  check_prepared(operands.prepared_b, "prepared_b");
}

// A driver that is too old, or has no device, cannot be asked for contexts. Planning then fails and says why.
PlaceScope::PlaceScope(const DevicePlace& place) {
  if (!cuda::driver().reason.empty()) return;
  entered_ = cuda::enter_for_memory(place.device, place.context);
}

}  // namespace kintsugi::core

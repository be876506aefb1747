// Products of cublasXt, whose matrices lie in host memory: answered by the library's offload to all GPUs.
#include <algorithm>
#include <exception>
#include <mutex>
#include <vector>

#include "answer.hpp"
#include "core/lock.hpp"
#include "core/record.hpp"
#include "core/settings.hpp"
#include "core/sites/site.hpp"

namespace kintsugi::cublas {

namespace {

// Handles that have selected all GPUs, which the offload takes, too. Never destroyed, since calls may come
// from other libraries' destructors.
std::vector<XtHandle>& handles_with_all_devices() {
  static auto* const handles = new std::vector<XtHandle>;
  return *handles;  // guarded by pools_mutex
}

bool has_all_devices(XtHandle handle) {
  const std::lock_guard lock(pools_mutex);
  const auto& handles = handles_with_all_devices();
  return std::find(handles.begin(), handles.end(), handle) != handles.end();
}

void note_devices(XtHandle handle, bool are_all) {
  const std::lock_guard lock(pools_mutex);
  auto& handles = handles_with_all_devices();
  std::erase(handles, handle);
  if (are_all) handles.push_back(handle);
}

// The handle whose plans are offloaded, nullptr without memory.
constinit MadeOnce<kintsugi_handle> offloading([] {
  kintsugi_handle handle = nullptr;
  if (kintsugi_create(&handle) != KINTSUGI_SUCCESS) return handle;
  kintsugi_set(handle, "offload", "force");
  return handle;
});

constinit Kept<ProblemKey, Decision, ProblemKeyHash> offloaded(decisions_mutex);

DecisionPointer decide_on(const Call& call) {
  const auto make = [&] {
    return drop_in::new_decision(call, problem_of(call), KINTSUGI_OPTIONS_INIT, offloading.get());
  };
  return offloaded.get(problem_key(call), make, [](const Decision& made) { return made.is_final; });
}

// Returns the reason for which cublasXt must answer, whatever the plan is; nullptr: there is none.
const char* reason_in_state(XtHandle handle, const Call& call) {
  if (const char* reason = reason_to_forward(call)) return reason;
  if (settings().is_malformed()) return settings().malformed.c_str();
  if (settings().policy == Policy::native && call.site == nullptr) return "policy native forwards every call";
  if (!has_all_devices(handle)) return "cublasXtDeviceSelect has not chosen all GPUs";
  for (const void* matrix : {call.a, call.b, static_cast<const void*>(call.c)})
    if (is_in_device_memory(matrix)) return "a matrix is in device memory";
  return nullptr;
}

// Under `auto` cublasXt keeps the products that the GPUs would compute natively.
bool is_answered(const Decision& decision, const Call& call) {
  const bool emulates_only = call.site == nullptr && settings().policy == Policy::automatic;
  return decision.is_offloaded && (!emulates_only || decision.candidates != "native");
}

int answer_located(const Symbol& symbol, XtHandle handle, const Call& call, const Forward& forward) {
  const auto forward_as = [&](std::string_view why, bool failed = false) {
    note(symbol, call, "", why, failed, reads_c(call));
    return forward();
  };
  if (const char* reason = reason_in_state(handle, call)) return forward_as(reason);
  const DecisionPointer decision = decide_on(call);
  note_decision(symbol.name(), *decision);
  if (!is_answered(*decision, call)) return forward_as(decision->why);
  const kintsugi_operands operands = operands_of(call);
  const kintsugi_status status = kintsugi_plan_execute(nullptr, decision->plan.get(), &operands);
  if (status == KINTSUGI_SUCCESS) {
    note(symbol, call, decision->candidates, decision->why, false, reads_c(call));
    return success;
  }
  const std::string failure = std::string(kintsugi_status_name(status)) + ": " + kintsugi_last_error();
  note_failure(symbol.name(), failure);
  return forward_as(failure, true);
}

}  // namespace

int answer_xt(const Invocation& invocation, XtHandle handle, const Call& call, const Forward& forward) {
  const CallUnderWay under_way;
  const void* const compiled_site = take_announced_site();
  try {
    Call located = call;
    located.site = site_of(invocation.return_address, compiled_site);
    return answer_located(invocation.symbol, handle, located, forward);
  } catch (const std::exception&) {  // No memory; C is not written yet.
    return forward();
  }
}

int select_xt_devices(const Invocation& invocation, XtHandle handle, int count, int* devices) {
  const int status = call_real(invocation.symbol, handle, count, devices);
  if (status == success) note_devices(handle, count >= device_count());
  return status;
}

int destroy_xt(const Invocation& invocation, XtHandle handle) {
  note_devices(handle, false);
  return call_real(invocation.symbol, handle);
}

}  // namespace kintsugi::cublas

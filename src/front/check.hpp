// All checks of arguments. The functions take C structs and return checked values. Error messages contain the
// values.
#pragma once

#include <optional>

#include "base/memory.hpp"
#include "base/queue.hpp"
#include "base/settings.hpp"
#include "execute/device/device.hpp"
#include "execute/execute.hpp"
#include "kintsugi/kintsugi.h"
#include "planner/problem.hpp"

namespace kintsugi::core {

// Options of a call. Values of settings are not checked yet; layer() checks them when a plan is made.
struct CheckedOptions {
  kintsugi_options given;
  Allocator allocator;
  Queue queue;

  // Returns the settings of the call. Fails with bad_setting if a setting does not accept its value.
  SettingLayer layer() const;
  // Appends all values that layer() reads to `text`. If two calls append equal texts, their layers are equal.
  void append_settings(std::string& text) const;
};

// Returns the problem. Under KINTSUGI_ANY_MEMORY its memory is the host's until find_memory() has set it.
Problem check_problem(const kintsugi_problem* problem);

// Returns the problem as a struct of the C ABI.
kintsugi_problem to_c(const Problem& problem);
// These write the members to the caller's struct, as far as its struct_size has room.
void write_problem(const Problem& problem, kintsugi_problem* target);
void write_summary(const kintsugi_plan_summary& summary, kintsugi_plan_summary* target);
void write_summary(const kintsugi_report_summary& summary, kintsugi_report_summary* target);

// Checks the request for a calibration.
kintsugi_calibration check_calibration(const kintsugi_calibration* given);

// Checks the options except for values of settings. `options` may be nullptr, if no option is set.
CheckedOptions check_options(const kintsugi_options* options);

// Returns the queue, which a struct of the caller has as member `name`.
Queue check_queue(const kintsugi_queue& queue, const char* name);

// Fails with invalid_argument if host matrices would go through a device's queue.
void check_queue_of(const Problem& problem, const Queue& queue);

// Prepared operands of a call; nullptr for an operand that is not prepared.
struct GivenPrepared {
  const Prepared* a;
  const Prepared* b;
};
GivenPrepared given_prepared(const kintsugi_operands* operands);

// Finds out where the matrices of a call under KINTSUGI_ANY_MEMORY lie, as far as the call reads or writes
// them, and sets problem.memory. Returns their place on a device; nothing if they are in host memory. Fails
// with invalid_argument unless all are in host memory or all on one device; the message says where each lies.
std::optional<DevicePlace> find_memory(const kintsugi_operands* operands, Problem& problem);

// Sets problem.adds_to_c by the operands' beta, if matrices are in device memory, scalars are on the host and
// no workspace is given: a workspace has the size of a plan that was made without knowing beta.
void set_adds_to_c(const kintsugi_operands* operands, Problem& problem);

// Checks the operands, and reads alpha and beta if they are on the host. Fails with invalid_argument if a
// pointer is null whose data will be read or written.
Operands check_operands(const Problem& problem, const kintsugi_operands* operands);

// Fails with invalid_argument if `data` is null. For a batch by pointers in host memory, also fails if a
// pointer of the batch is null.
void check_data(const Problem& problem, const void* data, const char* name);

// Fails with invalid_argument if a struct was not filled with its _INIT macro.
void check_struct_size(std::size_t given, std::size_t least, const char* name);

// Fails with invalid_argument, naming the argument, if the pointer is null.
void check_not_null(const void* pointer, const char* name);

}  // namespace kintsugi::core

// Checks of arguments, all in one place: C structs in, checked values out, messages with the values.
#pragma once

#include "base/memory.hpp"
#include "base/queue.hpp"
#include "base/settings.hpp"
#include "execute/execute.hpp"
#include "kintsugi/kintsugi.h"
#include "planner/problem.hpp"

namespace kintsugi::core {

// Options of a call. The values of the settings among them are checked only when a plan is made (layer()).
struct CheckedOptions {
  kintsugi_options given;
  Allocator allocator;
  Queue queue;

  // Returns the settings of the call. Fails with bad_setting if one has a value that it does not accept.
  SettingLayer layer() const;
  // Appends all that layer() reads to `text`: equal appended texts mean equal layers.
  void append_settings(std::string& text) const;
};

Problem check_problem(const kintsugi_problem* problem);

// Returns the problem as a struct of the C ABI.
kintsugi_problem to_c(const Problem& problem);
// Writes the problem's members for which the caller's struct has room by its struct_size.
void write_problem(const Problem& problem, kintsugi_problem* target);

// Checks the request for a calibration.
kintsugi_calibration check_calibration(const kintsugi_calibration* given);

// Checks all but the values of settings. `options` may be nullptr: no option is set.
CheckedOptions check_options(const kintsugi_options* options);

// Fails with invalid_argument if host matrices would go through a device's queue.
void check_queue_of(const Problem& problem, const Queue& queue);

// Prepared operands of a call; nullptr for an operand that is not prepared.
struct GivenPrepared {
  const Prepared* a;
  const Prepared* b;
};
GivenPrepared given_prepared(const kintsugi_operands* operands);

// Checks the operands and reads alpha and beta, if they are on the host. Fails with invalid_argument if a
// pointer to data that will be read or written is null.
Operands check_operands(const Problem& problem, const kintsugi_operands* operands);

// Fails with invalid_argument if `data` is null or points, for a batch by pointers in host memory, to an
// array in which a pointer is null.
void check_data(const Problem& problem, const void* data, const char* name);

// Fails with invalid_argument if a struct was not filled with its _INIT macro.
void check_struct_size(std::size_t given, std::size_t least, const char* name);

// Fails with invalid_argument, naming the argument, if the pointer is null.
void check_not_null(const void* pointer, const char* name);

}  // namespace kintsugi::core

// Checks of arguments, all in one place: C structs in, checked values out, messages with the values.
#pragma once

#include "base/memory.hpp"
#include "base/queue.hpp"
#include "base/settings.hpp"
#include "execute/execute.hpp"
#include "kintsugi/kintsugi.h"
#include "planner/problem.hpp"

namespace kintsugi::core {

// Options of a call. The texts of its settings are read only when a plan is made.
struct CheckedOptions {
  kintsugi_options given;
  Allocator allocator;
  Queue queue;

  // Settings of the call. Fails with bad_setting.
  SettingLayer layer() const;
  // Appends the texts that layer() reads, so that equal texts mean equal layers.
  void append_settings(std::string& text) const;
};

Problem check_problem(const kintsugi_problem* problem);

// Returns the problem as the C ABI has it.
kintsugi_problem to_c(const Problem& problem);
// Writes as much of the problem as the caller's struct has room for by its struct_size.
void write_problem(const Problem& problem, kintsugi_problem* target);

// Checks the request for a calibration.
kintsugi_calibration check_calibration(const kintsugi_calibration* given);

// nullptr: nothing is set.
CheckedOptions check_options(const kintsugi_options* options);

// Fails with invalid_argument if host matrices would go through a device's queue.
void check_queue_of(const Problem& problem, const Queue& queue);

// Prepared operands of a call, or nullptr each.
struct GivenPrepared {
  const Prepared* a;
  const Prepared* b;
};
GivenPrepared given_prepared(const kintsugi_operands* operands);

// Checks operands and reads alpha and beta; pointers to data that will be read or written must not be null.
Operands check_operands(const Problem& problem, const kintsugi_operands* operands);

// Fails if the pointer or, in a batch of pointers in host memory, any of these is null.
void check_data(const Problem& problem, const void* data, const char* name);

// Fails with invalid_argument if a struct was not filled with its _INIT macro.
void check_struct_size(std::size_t given, std::size_t least, const char* name);

// Fails with invalid_argument, naming the argument, if the pointer is null.
void check_not_null(const void* pointer, const char* name);

}  // namespace kintsugi::core

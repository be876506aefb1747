// Allocates the workspace of a call if the caller gave none.
#pragma once

#include <cstddef>

#include "base/status.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the plan's workspace as allocate(bytes) returns it: an object with pointer() and bytes(). If an
// allocation fails, makes `blocking` smaller, which does not change the bits of C, and tries again. Fails
// with out_of_memory if there is no memory for the smallest block. `allocator`: name of the allocator in the
// message.
template <class Allocate>
auto allocate_workspace(const Plan& plan, Blocking& blocking, const char* allocator,
                        const Allocate& allocate) {
  for (;;) {
    auto memory = allocate(workspace_bytes(plan, blocking));
    if (memory.pointer() != nullptr || memory.bytes() == 0) return memory;
    const Blocking smaller = smaller_blocking(blocking, block_multiple(plan));
    if (smaller == blocking) {
      fail(Status::out_of_memory, "{} has no {} bytes for the smallest block of m = {}, n = {}, k = {}",
           allocator, memory.bytes(), plan.problem.m, plan.problem.n, plan.problem.k);
    }
    blocking = smaller;
  }
}

}  // namespace kintsugi::core

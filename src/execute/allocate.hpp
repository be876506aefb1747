// The workspace of a call that was given none.
#pragma once

#include <cstddef>

#include "base/status.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// allocate(bytes) returns an owner with pointer() and bytes(); where it has nothing, a smaller block of C
// with the same bits is tried. Fails with out_of_memory where not even the smallest one fits. `allocator`
// names it in the message.
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

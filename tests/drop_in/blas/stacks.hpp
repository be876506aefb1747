#pragma once

#include <cstddef>

namespace kintsugi::test {

// Calls every routine in threads of its own with orders of 1 to 200. Prints for each call the name, the order
// and the bytes of stack that the call takes.
int print_stacks();

// The same calls in threads with stacks of so many bytes.
int call_with_stack(std::size_t bytes);

}  // namespace kintsugi::test

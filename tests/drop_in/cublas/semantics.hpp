// Calls that must reach cuBLAS or Kintsugi for what their arguments and the handle say.
#pragma once

namespace kintsugi::test {

// Runs under the policy emulate. Returns the number of failures.
int check_semantics();

}  // namespace kintsugi::test

// Data of double-double products, and the engines that compute them here.
#pragma once

#include <string>
#include <vector>

#include "tests/support/c_objects.hpp"
#include "tests/support/pair_reference.hpp"

namespace kintsugi::test {

using PairData = GemmDataOf<DoubleDouble>;

inline std::vector<std::string> engines_here() {
  return has_cpu_engine() ? std::vector<std::string>{"reference", "cpu"}
                          : std::vector<std::string>{"reference"};
}

}  // namespace kintsugi::test

// The machine that the program runs on.
#pragma once

#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

struct Machine {
  std::string system;     // "Linux 6.1.0 x86_64"
  std::string processor;  // the model's name
  std::vector<std::string> flags;
  int threads = 0;  // that this process may use
  double memory_bytes = 0;
  double available_bytes = 0;

  bool has(const std::string& flag) const;
};

// Processor flags that matter to matrix products, in the order in which they came to be.
const std::vector<std::string>& product_flags();

const Machine& machine();
Json machine_document();

}  // namespace kintsugi::tools

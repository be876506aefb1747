// The machine on which the program runs.
#pragma once

#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

struct Machine {
  std::string system;              // "Linux 6.1.0 x86_64"
  std::string processor;           // name of the model
  std::vector<std::string> flags;  // of /proc/cpuinfo
  int threads = 0;                 // usable by this process
  double memory_bytes = 0;
  double available_bytes = 0;

  bool has(const std::string& flag) const;
};

// Returns the processor flags relevant to matrix products, oldest first.
const std::vector<std::string>& product_flags();

const Machine& machine();
Json machine_document();

}  // namespace kintsugi::tools

// What `kintsugi demo` measures: runs of kintsugi bench, which checks every result before it times it.
#pragma once

#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

struct DemoRequest {
  std::string memory;               // host or device; "": device where the engine cuda can be used
  std::vector<std::int64_t> sizes;  // m = n = k; none: those of the memory
  std::string output;               // the page; "": none
  bool json = false;
};

struct Demo {
  bool on_device = false;
  std::string why_host;  // why no GPU is used, where nobody asked for the host; "" else
  std::vector<Json>
      runs;  // documents of kintsugi bench: on the host one of each number of threads, else of each type
};

// On the host: FP64 products with 1 and 2 threads; on a device FP32 and FP64 ones. Throws Finding where a
// product is beyond what is promised, its bits among threads included.
Demo run_demo(const DemoRequest& request);

// A product of a run in the words of people: OpenBLAS or cuBLAS for the native one, else what was asked for.
std::string product_text(const Json& row);

// Whether the product `name` of that size has the same bits in all runs that have it.
bool has_same_bits(const Demo& demo, const std::string& name, std::int64_t size);

// The rows of all runs: by size, then type, then product, then threads.
std::vector<Json> demo_rows(const Demo& demo);

// Sizes in the order of the runs.
std::vector<std::int64_t> demo_sizes(const Demo& demo);

// What the runs show, a sentence each.
std::vector<std::string> demo_sentences(const Demo& demo);

}  // namespace kintsugi::tools

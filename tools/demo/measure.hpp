// Measurements of `kintsugi demo`. They are runs of kintsugi bench, which checks every result before it times
// it.
#pragma once

#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

struct DemoRequest {
  std::string memory;               // host or device; "": device if the engine cuda can be used
  std::vector<std::int64_t> sizes;  // m = n = k; empty: the defaults for the memory
  std::string output;               // file of the page; "": none
  bool json = false;
};

struct Demo {
  bool on_device = false;
  std::string why_host;  // reason why no GPU is used; "" if a GPU is used, or if the host was requested
  // Documents of kintsugi bench. On the host: with 1 thread, then with 2. On a device: FP32, then FP64.
  std::vector<Json> runs;
};

// Runs FP64 products with 1 and 2 threads on the host, or FP32 and FP64 products on a device. Throws a
// Finding if a product breaks its promise, or if the bits of C depend on the number of threads.
Demo run_demo(const DemoRequest& request);

// Returns the name of a product for readers: OpenBLAS or cuBLAS for the native product, else the candidate's
// name.
std::string product_text(const Json& row);

// True if the product `name` of that size has the same bits in all runs that contain it.
bool has_same_bits(const Demo& demo, const std::string& name, std::int64_t size);

// Returns the rows of all runs, ordered by size, type, product, threads.
std::vector<Json> demo_rows(const Demo& demo);

// Returns the sizes in the order of the runs.
std::vector<std::int64_t> demo_sizes(const Demo& demo);

// Returns the findings of the runs, one sentence each.
std::vector<std::string> demo_sentences(const Demo& demo);

}  // namespace kintsugi::tools

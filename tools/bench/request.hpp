// What `kintsugi bench` compares: candidates and baselines, shapes, operands, and how.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accuracy/sweep.hpp"

namespace kintsugi::tools {

// As the command line has it.
struct BenchRequest {
  std::vector<std::string> candidates;
  std::vector<std::string> baselines{"native"};
  std::vector<std::string> shapes{"512"};
  std::string type = "fp32";
  std::string distribution = "uniform";
  std::string seed = "1";
  std::string memory = "host";
  std::string engine;  // "": cpu, or cuda for operands on a device
  std::string workspace_limit = "0";
  std::string prepare = "none";
  std::string output;
  int threads = 0;  // 0: the setting's
  int repeat = 5;
  std::int64_t batch = 1;
  std::int64_t baseline_size = 128;
  bool no_ceilings = false;
  bool json = false;
};

// Names are those that are known, and none is there twice; the library judges schemes, engine and limit.
struct Bench {
  std::vector<std::string> candidates;
  std::vector<std::string> baselines;  // native, schemes, and arithmetics of lab/reference/reference_loop.hpp
  std::vector<Shape> shapes;
  std::int64_t batch = 1;        // products of a shape in one call, operands behind each other
  std::string prepare = "none";  // or a, b: the operand that is split before
  Type type = Type::float32;     // of the parts of complex elements
  bool complex = false;
  std::string distribution;
  std::uint64_t seed = 0;
  bool on_device = false;  // operands are in device memory
  std::string engine;
  std::string workspace_limit;
  int threads = 0;
  int repeat = 0;
  std::int64_t baseline_size = 0;  // plain loops compute so many rows and columns of C at most
  bool no_ceilings = false;        // what a device can do at most is not measured

  std::int64_t parts() const { return complex ? 2 : 1; }
};
// Fails, naming the flag, for what is not known.
Bench make_bench(const BenchRequest& request);
Json settings_of(const Bench& bench);

// fp32, fp64, c32 or c64.
std::string element_text(const Bench& bench);

// The contract of the operands' type under the policy auto.
inline constexpr const char* auto_candidate = "auto";
// fp32, fp64, exact or a tolerance; else the word is auto or names a scheme.
bool is_contract(const std::string& candidate);
// An arithmetic of lab/reference/reference_loop.hpp.
bool is_reference_loop(const std::string& name);

}  // namespace kintsugi::tools

// Runs a benchmark of candidates and baselines. Every contestant is checked, then all are timed, round by
// round.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan.hpp"

namespace kintsugi::tools {

// The request as given on the command line. add_bench() has the help text of each member.
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
  std::string call = "plan";
  std::string output;
  int threads = 0;  // 0: the number of the setting
  int repeat = 5;
  std::int64_t batch = 1;
  std::int64_t problems = 1;
  std::int64_t baseline_size = 128;
  bool no_ceilings = false;
  bool json = false;
};

// A checked request. Names are known, and lists have no duplicates. Parameters of schemes, engine and
// workspace limit are not checked yet; the library checks them when a plan is made.
struct Bench {
  std::vector<std::string> candidates;
  // native, native_policy, mkl_call, vendor_call, schemes, and arithmetics of
  // tools/measure/reference/reference_loop.hpp
  std::vector<std::string> baselines;
  std::vector<Shape> shapes;
  std::int64_t batch = 1;        // products of a shape in one call, with contiguous operands
  std::string prepare = "none";  // operand that is split before timing: a, b or none
  bool by_gemm = false;          // times whole calls of kintsugi_gemm instead of executions of a plan
  std::int64_t problems = 1;     // different problems whose calls take turns; on a device only
  Type type = Type::float32;     // type of the parts of complex elements
  bool complex = false;
  std::string distribution;
  std::uint64_t seed = 0;
  bool on_device = false;  // operands are in device memory
  std::string engine;
  std::string workspace_limit;
  int threads = 0;
  int repeat = 0;
  std::int64_t baseline_size = 0;  // most rows and columns of C that reference loops compute
  bool no_ceilings = false;        // true: the device's ceilings are not measured
  bool hashes_results = true;      // false: rows have no hash of C, which takes seconds where C is large

  std::int64_t parts() const { return complex ? 2 : 1; }  // numbers in an element
  // True if calls on a device are timed on the host, from call to return.
  bool times_calls() const { return by_gemm && on_device; }
  bool measures_ceilings() const { return on_device && !by_gemm && !no_ceilings; }
};

// Returns the checked request; fails, naming the flag, for unknown values.
Bench make_bench(const BenchRequest& request);

// Candidate: a call without options, under the policy auto and the contract of the operands' type.
inline constexpr const char* auto_candidate = "auto";
// Baseline: a call under the policy native and the contract of the operands' type. The baseline `native` has
// no contract, so that the vendor library also computes products whose operands it multiplies by alpha.
inline constexpr const char* native_policy = "policy:native";
// Baseline on the host: a call of Intel's MKL, where it is installed.
inline constexpr const char* mkl_call = "mkl";
// Baseline for calls that are timed on a device: a call of the vendor library itself.
inline constexpr const char* vendor_call = "cublas";
// True for fp32, fp64, exact or a tolerance; other candidates are auto or schemes.
bool is_contract(const std::string& candidate);
// True for an arithmetic of tools/measure/reference/reference_loop.hpp.
bool is_reference_loop(const std::string& name);

// Returns the document (docs/schema/bench.schema.json). Writes it to `file` after every shape unless `file`
// is "". Throws a Finding if a result breaks its promise, before anything of that shape is timed.
Json run_bench(const Bench& bench, const std::string& file);

}  // namespace kintsugi::tools

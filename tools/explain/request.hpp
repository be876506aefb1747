// Request of `kintsugi explain`: a problem of files, or of sizes and a distribution.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem.hpp"
#include "support.hpp"

namespace kintsugi::tools {

struct ExplainRequest {
  ProblemRequest files;  // a_file is "" if the operands are generated
  std::int64_t m = 0;    // 0: not given
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::string distribution;  // "": the operands are files
  std::string seed = "1";
  std::string type;      // "": the type of the files, or fp32 for generated operands
  std::string accuracy;  // "": the accuracy of the settings
  std::string engine;
  std::string prepare = "none";      // the operand that comes prepared: a, b or none
  std::vector<std::string> schemes;  // empty: all schemes for the operands' type, and native
  bool json = false;

  bool is_generated() const { return !distribution.empty(); }
};

// The problem; op(A) is m x k, op(B) k x n.
struct ExplainedProblem {
  Operands operands;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Json source;           // files, or distribution and seed
  std::string prepared;  // operand that comes prepared: a, b or none
};

// Reads or generates the operands. Fails with the flag or the file in the message if the request is
// contradictory, or if m, n or k is 0.
ExplainedProblem read_problem(const ExplainRequest& request);

}  // namespace kintsugi::tools

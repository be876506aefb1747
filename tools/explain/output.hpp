// Output of `kintsugi explain`: text or JSON.
#pragma once

#include <string>
#include <vector>

#include "explain/request.hpp"
#include "explain/verdict.hpp"

namespace kintsugi::tools {

struct Explanation {
  std::string type;  // "fp32"
  OperandFacts a;
  OperandFacts b;
  Contract contract;
  Choices choices;
  std::vector<std::int64_t> sampled_rows;
  std::vector<std::int64_t> sampled_columns;
  std::vector<SchemeRow> rows;
};

// Prints plain text on stdout.
void print_text(const ExplainedProblem& problem, const Explanation& explanation);

// Prints one document, format "kintsugi.explain" (docs/schema/explain.schema.json), on stdout.
void print_json(const ExplainedProblem& problem, const Explanation& explanation);

}  // namespace kintsugi::tools

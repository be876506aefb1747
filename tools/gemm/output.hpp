// Output of `kintsugi gemm`: text or JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/product.hpp"

namespace kintsugi::tools {

// Everything that is printed when the work is done.
struct Outcome {
  ProblemRequest request;
  std::string output;           // file of C; "": none
  std::vector<Row> rows;        // the requested product comes first
  const Row* native = nullptr;  // native product of the same operands, if one was made
  bool checked = false;
  bool explained = false;
};

// Prints plain text on stdout.
void print_text(const Operands& operands, const Outcome& outcome);

// Prints one document, format "kintsugi.gemm" (docs/schema/gemm.schema.json), on stdout.
void print_json(const Operands& operands, const Outcome& outcome);

}  // namespace kintsugi::tools

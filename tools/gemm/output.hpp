// What `kintsugi gemm` says: for people or as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/product.hpp"

namespace kintsugi::tools {

// All that there is to say when the work is done.
struct Outcome {
  ProblemRequest request;
  std::string output;           // the file of C; "" when there is none
  std::vector<Row> rows;        // the product asked for comes first
  const Row* native = nullptr;  // the native product of the same operands, where one was made
  bool checked = false;
  bool explained = false;
};

// Plain text on stdout.
void print_text(const Operands& operands, const Outcome& outcome);

// One document, format "kintsugi.gemm" (docs/schema/gemm.schema.json), on stdout.
void print_json(const Operands& operands, const Outcome& outcome);

}  // namespace kintsugi::tools

// Errors that no sweep has: of operands without signs, of FP16 results, against another engine's native
// product.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reproduce/figures.hpp"

namespace kintsugi::tools {

// FP32 products of all schemes on all distributions, shapes and seeds.
struct ProductErrors {
  std::vector<std::string> schemes;
  std::vector<Way> ways;  // the engines and accumulators; their schemes are not read
  std::vector<std::string> distributions;
  std::vector<Shape> shapes;
  std::vector<std::uint64_t> seeds;
  std::string native = "reference";  // the engine of the native product that Max_error and MRED compare with
  bool positive = false;             // operands are the distribution's absolute values
  bool half_output = false;          // results are rounded to FP16 before they are compared
  std::int64_t max_elements = 4096;
};

// What rows of operands without signs have as their distribution.
std::string positive_text(const std::string& distribution);

// A document of docs/schema/product-errors.schema.json. Rows have the members of a sweep's rows that Evidence
// reads, and "native", "output" and "shares": of the elements whose relative difference to the native product
// is below 1e-7, 1e-6, 1e-5 and 1e-4. `quick` takes one seed and at most 32 rows, 32 columns and 256 inner
// indices.
Json product_errors(const std::vector<ProductErrors>& studies, bool quick);

// Rows of the analysis that compare with that engine's native product, and rows of sweeps.
Filter against_native(const std::string& engine);
Filter of_sweeps();

}  // namespace kintsugi::tools

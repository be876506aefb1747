// Error studies that sweeps cannot make: nonnegative operands, results rounded to FP16, and errors relative
// to another engine's native product.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/reproduce/figures.hpp"

namespace kintsugi::tools {

// A study: FP32 products of all schemes on all distributions, shapes and seeds.
struct ProductErrors {
  std::vector<std::string> schemes;
  std::vector<SchemeOnEngine> methods;  // engine and accumulator of each; `scheme` is ignored
  std::vector<std::string> distributions;
  std::vector<Shape> shapes;
  std::vector<std::uint64_t> seeds;
  std::string native = "reference";  // engine whose native product Max_error and MRED compare with
  bool positive = false;             // operands are the distribution's absolute values
  bool fp16_output = false;          // results are rounded to FP16 before the comparison
  std::int64_t max_elements = 4096;
};

// Returns the distribution's name in rows of a study with `positive` set, such as "uniform, positive".
std::string positive_text(const std::string& distribution);

// Returns an analysis beside sweeps whose document follows lab/schema/product-errors.schema.json. Its rows
// have the members of a sweep's rows that Evidence reads, and "native", "output" and "shares" (the shares of
// elements whose relative difference to the native product is below 1e-7, 1e-6, 1e-5 and 1e-4). --quick uses
// one seed and at most 32 rows, 32 columns and 256 inner indices.
Analysis product_errors_analysis(const std::string& name, const std::vector<ProductErrors>& studies);

// Returns a filter for the rows of such documents whose Max_error and MRED compare with this engine's native
// product.
Filter against_native(const std::string& engine);
// Returns a filter for rows of sweeps, which have no member "native".
Filter of_sweeps();

}  // namespace kintsugi::tools

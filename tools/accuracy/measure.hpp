// One case of a sweep: the matrices of a shape, type, distribution and seed, their exact product, and rows
// with the errors of methods on them.
#pragma once

#include <memory>

#include "accuracy/methods.hpp"

namespace kintsugi::tools {

struct SweepCase {
  Shape shape;
  Type type = Type::float32;
  std::string distribution;
  std::uint64_t seed = 0;
};

// Returns the members that identify a row of the document.
Json row_key(const SweepCase& sweep_case, const Method& method);

// The matrices of a case and their exact product.
class CaseMatrices {
 public:
  virtual ~CaseMatrices() = default;
  // Multiplies by the method, which must be of the case's type, and returns the row of the document
  // (docs/schema/accuracy.schema.json). Throws LibraryError, contract_unreachable, if the scheme refuses
  // these operands.
  virtual Json measure(const Method& method) = 0;
};
std::unique_ptr<CaseMatrices> make_matrices(const SweepCase& sweep_case, const Sweep& sweep);

}  // namespace kintsugi::tools

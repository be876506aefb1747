// One case of a sweep: matrices of one shape, type, distribution and seed. Methods multiply them, and their
// errors relative to the exact product become rows of the document.
#pragma once

#include <memory>

#include "lab/accuracy/methods.hpp"

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
  // Multiplies by the method and returns the row of the document (lab/schema/accuracy.schema.json). Throws
  // LibraryError with contract_unreachable if the scheme refuses these operands. Precondition: the method has
  // the case's type.
  virtual Json measure(const Method& method) = 0;
};
std::unique_ptr<CaseMatrices> make_matrices(const SweepCase& sweep_case, const Sweep& sweep);

}  // namespace kintsugi::tools

// One cell of a sweep (shape, type, distribution, seed): its matrices, their exact product, rows of errors.
#pragma once

#include <memory>

#include "accuracy/methods.hpp"

namespace kintsugi::tools {

struct CellKey {
  Shape shape;
  Type type = Type::float32;
  std::string distribution;
  std::uint64_t seed = 0;
};

// Returns the members that identify a row of the document.
Json row_key(const CellKey& cell, const Method& method);

class AccuracyCell {
 public:
  virtual ~AccuracyCell() = default;
  // Returns the row of the document (docs/schema/accuracy.schema.json). The method must be of the cell's
  // type. Throws LibraryError, contract_unreachable, if the scheme refuses these operands.
  virtual Json row(const Method& method) = 0;
};
std::unique_ptr<AccuracyCell> make_cell(const CellKey& key, const Sweep& sweep);

}  // namespace kintsugi::tools

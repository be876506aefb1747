// Loop nests that are proved to multiply matrices.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>

#include <array>
#include <string>

namespace kintsugi::pass {

// Addresses that a nest of three loops goes through: base + sum of iteration * stride, in bytes, the
// outermost loop first.
struct LoopAccess {
  const llvm::SCEV* base = nullptr;
  std::array<const llvm::SCEV*, 3> strides{};
};

// C = A B or C += A B.
struct LoopProduct {
  llvm::Loop* nest = nullptr;               // the outermost loop
  llvm::Type* element = nullptr;            // float or double
  unsigned row = 0, column = 0, inner = 0;  // loops over the rows of C, its columns, and the sum
  std::array<const llvm::SCEV*, 3> counts{};
  LoopAccess a, b, c;
  bool adds_to_c = false;
};

// The loops of a function, as they are analysed.
struct LoopAnalyses {
  llvm::LoopInfo& loops;
  llvm::ScalarEvolution& evolution;
  llvm::DominatorTree& dominators;
};

// True if a nest of just three loops begins with this loop, whose innermost one multiplies.
bool is_candidate(const llvm::Loop& outer);

// Why the nest is no product, or "" and the product.
std::string find_product(llvm::Loop& outer, const LoopAnalyses& analyses, LoopProduct& product);

}  // namespace kintsugi::pass

// Loop nests that are proved to multiply matrices.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>

#include <array>
#include <string>

namespace kintsugi::pass {

// Addresses of a memory access in a nest of three loops: base + the sum over all loops of iteration * stride.
// Strides are in bytes. Arrays over loops begin with the outermost loop.
struct LoopAccess {
  const llvm::SCEV* base = nullptr;
  std::array<const llvm::SCEV*, 3> strides{};
};

// C = A B or C += A B.
struct LoopProduct {
  llvm::Loop* nest = nullptr;     // the outermost loop
  llvm::Type* element = nullptr;  // float or double
  unsigned row = 0, column = 0,
           inner = 0;  // indices of the loops over the rows of C, its columns, and the sum
  std::array<const llvm::SCEV*, 3> counts{};
  LoopAccess a, b, c;
  bool adds_to_c = false;
};

struct LoopAnalyses {
  llvm::LoopInfo& loops;
  llvm::ScalarEvolution& evolution;
  llvm::DominatorTree& dominators;
};

// True if `outer` is the outermost loop of a nest of exactly three loops whose innermost loop multiplies.
bool is_candidate(const llvm::Loop& outer);

// Sets `product` and returns "" if the nest is proved to be a product; else returns the reason why not.
std::string find_product(llvm::Loop& outer, const LoopAnalyses& analyses, LoopProduct& product);

}  // namespace kintsugi::pass

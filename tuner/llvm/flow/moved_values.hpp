// Floating-point values that a program moves from one matrix to another: copied, or computed from others.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>

#include <map>
#include <vector>

namespace kintsugi::pass {

// Instructions from which a value is computed, within its function.
struct Sources {
  std::vector<const llvm::LoadInst*> loads;
  std::vector<const llvm::CallBase*> calls;  // calls that returned a value
};

// Returns the loads and calls of floating-point values from which a value is computed.
Sources sources_of(const llvm::Value& value);

// True for the types of elements of matrices.
bool is_element(const llvm::Type& type);

// Tells which functions are worth an analysis: those that store floating-point values, copy memory, return a
// floating-point value, or call such a function.
class MovingFunctions {
 public:
  bool contains(const llvm::Function& function) { return is_moving(function, 0); }

 private:
  bool is_moving(const llvm::Function& function, int depth);
  bool has_moves(const llvm::Function& function, int depth);

  std::map<const llvm::Function*, bool> known_;
};

}  // namespace kintsugi::pass

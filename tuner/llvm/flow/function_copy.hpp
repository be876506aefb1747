// A copy of a function for analysis.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace kintsugi::pass {

// An object that a pointer may point into, and the pointer's offset in it.
struct PointedMemory {
  const llvm::Value* object =
      nullptr;  // local variable, global, argument, result of a call, or loaded pointer
  std::optional<std::int64_t> offset;  // in bytes; nullopt: not constant
};

// A copy of a function whose local variables are promoted to SSA values (mem2reg). Code compiled at -O0 loads
// a local variable anew at each use, which would hide that the uses have the same value.
class FunctionCopy {
 public:
  explicit FunctionCopy(llvm::Function& function);
  ~FunctionCopy();
  FunctionCopy(const FunctionCopy&) = delete;
  FunctionCopy& operator=(const FunctionCopy&) = delete;

  llvm::Function& function() const { return *function_; }
  // Returns the copy of a call of the original function.
  llvm::CallBase& copy_of(const llvm::CallBase& call) const;
  // True if control can reach `to` after `from` in one invocation of the function. If both are the same
  // instruction, true if it is in a loop.
  bool can_reach(const llvm::Instruction& from, const llvm::Instruction& to) const;
  // Returns all objects that a pointer may point into.
  std::vector<PointedMemory> memory_of(const llvm::Value& pointer) const;

 private:
  void promote_variables();

  llvm::ValueToValueMapTy values_;
  llvm::Function* function_;
  llvm::DominatorTree dominators_;
  llvm::LoopInfo loops_;
};

}  // namespace kintsugi::pass

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

// Memory that a pointer may point into, and at which distance in bytes from its first one.
struct PointedMemory {
  const llvm::Value* object = nullptr;  // local variable, global, argument, result of a call, load
  std::optional<std::int64_t> offset;   // nullopt: not constant
};

// A copy of a function whose local variables are values, as far as they can be: the function itself may be
// compiled without optimisation, in which every use of a pointer loads it again.
class FunctionCopy {
 public:
  explicit FunctionCopy(llvm::Function& function);
  ~FunctionCopy();
  FunctionCopy(const FunctionCopy&) = delete;
  FunctionCopy& operator=(const FunctionCopy&) = delete;

  llvm::Function& function() const { return *function_; }
  // The copy of a call of the original.
  llvm::CallBase& copy_of(const llvm::CallBase& call) const;
  // True if the program may come from one call to the other within one run of the function; for one and the
  // same call, if it is in a loop.
  bool can_reach(const llvm::CallBase& from, const llvm::CallBase& to) const;
  // Returns all memory that a pointer may point into.
  std::vector<PointedMemory> memory_of(const llvm::Value& pointer) const;

 private:
  void promote_variables();

  llvm::ValueToValueMapTy values_;
  llvm::Function* function_;
  llvm::DominatorTree dominators_;
  llvm::LoopInfo loops_;
};

}  // namespace kintsugi::pass

#include "function_copy.hpp"

#include <llvm/Analysis/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <map>

namespace kintsugi::pass {

namespace {

// Follows a pointer through additions, casts, selects and phis to the objects that it may point into.
class PointerOrigins {
 public:
  explicit PointerOrigins(const llvm::DataLayout& layout) : layout_(layout) {}

  void visit(const llvm::Value* pointer, std::optional<std::int64_t> offset) {
    llvm::APInt bytes(layout_.getIndexTypeSizeInBits(pointer->getType()), 0);
    constexpr bool allow_wrapping = true;
    pointer = pointer->stripAndAccumulateConstantOffsets(layout_, bytes, allow_wrapping);
    if (offset) *offset += bytes.getSExtValue();
    if (const auto* const sum = llvm::dyn_cast<llvm::GEPOperator>(pointer)) {
      visit(sum->getPointerOperand(), std::nullopt);
    } else if (llvm::isa<llvm::PHINode, llvm::SelectInst>(pointer)) {
      visit_choices(*llvm::cast<llvm::Instruction>(pointer), offset);
    } else if (!llvm::isa<llvm::ConstantData>(pointer)) {
      found_.push_back({pointer, offset});
    }
  }

  std::vector<PointedMemory> found() const {
    std::vector<PointedMemory> all = found_;
    if (moves_)
      for (PointedMemory& memory : all) memory.offset.reset();
    return all;
  }

 private:
  void visit_choices(const llvm::Instruction& choice, std::optional<std::int64_t> offset) {
    const auto [place, is_new] = visited_.try_emplace(&choice, offset);
    if (!is_new) {  // A loop has come back. With another offset, the loop moves the pointer.
      moves_ = moves_ || place->second != offset;
      return;
    }
    for (const llvm::Value* const operand : choice.operand_values())
      if (operand->getType()->isPointerTy()) visit(operand, offset);
  }

  const llvm::DataLayout& layout_;
  std::map<const llvm::Instruction*, std::optional<std::int64_t>> visited_;
  std::vector<PointedMemory> found_;
  bool moves_ = false;
};

}  // namespace

FunctionCopy::FunctionCopy(llvm::Function& function) : function_(llvm::CloneFunction(&function, values_)) {
  dominators_.recalculate(*function_);
  promote_variables();
  loops_.analyze(dominators_);
}

FunctionCopy::~FunctionCopy() { function_->eraseFromParent(); }

llvm::CallBase& FunctionCopy::copy_of(const llvm::CallBase& call) const {
  return *llvm::cast<llvm::CallBase>(values_.lookup(&call));
}

bool FunctionCopy::can_reach(const llvm::Instruction& from, const llvm::Instruction& to) const {
  if (&from == &to) return loops_.getLoopFor(from.getParent()) != nullptr;
  return llvm::isPotentiallyReachable(&from, &to, nullptr, &dominators_, &loops_);
}

std::vector<PointedMemory> FunctionCopy::memory_of(const llvm::Value& pointer) const {
  if (!pointer.getType()->isPointerTy()) return {};
  PointerOrigins origins(function_->getParent()->getDataLayout());
  origins.visit(&pointer, 0);
  return origins.found();
}

void FunctionCopy::promote_variables() {
  std::vector<llvm::AllocaInst*> variables;
  for (llvm::Instruction& instruction : function_->getEntryBlock())
    if (auto* const variable = llvm::dyn_cast<llvm::AllocaInst>(&instruction))
      if (llvm::isAllocaPromotable(variable)) variables.push_back(variable);
  if (!variables.empty()) llvm::PromoteMemToReg(variables, dominators_);
}

}  // namespace kintsugi::pass

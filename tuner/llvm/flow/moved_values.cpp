#include "moved_values.hpp"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <set>

namespace kintsugi::pass {

bool is_element(const llvm::Type& type) { return type.isFPOrFPVectorTy(); }

Sources sources_of(const llvm::Value& value) {
  constexpr std::size_t most_instructions = 64;  // bounds the time of the pass
  Sources sources;
  std::vector<const llvm::Value*> pending{&value};
  std::set<const llvm::Value*> visited;
  while (!pending.empty() && visited.size() < most_instructions) {
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(pending.back());
    pending.pop_back();
    if (instruction == nullptr || !visited.insert(instruction).second) continue;
    if (const auto* const load = llvm::dyn_cast<llvm::LoadInst>(instruction)) {
      if (is_element(*load->getType())) sources.loads.push_back(load);
      continue;
    }
    if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(instruction); call != nullptr)
      if (is_element(*call->getType()) && !llvm::isa<llvm::IntrinsicInst>(call))
        sources.calls.push_back(call);
    for (const llvm::Value* const operand : instruction->operand_values())
      if (!operand->getType()->isPointerTy()) pending.push_back(operand);
  }
  return sources;
}

bool MovingFunctions::is_moving(const llvm::Function& function, int depth) {
  constexpr unsigned most_instructions = 400;  // bounds the time of the pass
  constexpr int deepest = 12;
  if (function.isDeclaration() || depth > deepest) return false;
  const auto [place, is_new] = known_.try_emplace(&function, false);  // false: for recursive calls
  if (!is_new) return place->second;
  if (function.getInstructionCount() > most_instructions) return false;
  const bool found = has_moves(function, depth);
  known_[&function] = found;
  return found;
}

bool MovingFunctions::has_moves(const llvm::Function& function, int depth) {
  if (is_element(*function.getReturnType())) return true;
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    const auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
    if (store != nullptr && is_element(*store->getValueOperand()->getType()) &&
        !llvm::isa<llvm::AllocaInst>(store->getPointerOperand()))
      return true;
    if (llvm::isa<llvm::MemTransferInst>(instruction)) return true;
    const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    const llvm::Function* const called = call != nullptr ? call->getCalledFunction() : nullptr;
    if (called != nullptr && is_moving(*called, depth + 1)) return true;
  }
  return false;
}

}  // namespace kintsugi::pass

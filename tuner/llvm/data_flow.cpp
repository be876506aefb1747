#include "data_flow.hpp"

#include <llvm/Analysis/CFG.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <algorithm>

namespace kintsugi::pass {

namespace {

using Objects = llvm::SmallVector<const llvm::Value*, 4>;

bool is_zero(const llvm::Value* value) {
  const auto* const constant = llvm::dyn_cast<llvm::Constant>(value);
  return constant != nullptr && constant->isNullValue();
}

// True if a pointer to beta is a constant's, or a local variable's to which zeros alone are stored. Calls do
// not write their scalars.
bool refers_to_zero(const llvm::Value* pointer) {
  pointer = pointer->stripPointerCasts();
  if (const auto* const global = llvm::dyn_cast<llvm::GlobalVariable>(pointer))
    return global->isConstant() && global->hasDefinitiveInitializer() && is_zero(global->getInitializer());
  const auto* const variable = llvm::dyn_cast<llvm::AllocaInst>(pointer);
  if (variable == nullptr) return false;
  bool is_stored = false;
  for (const llvm::User* const user : variable->users()) {
    if (const auto* const store = llvm::dyn_cast<llvm::StoreInst>(user)) {
      if (!is_zero(store->getValueOperand())) return false;
      is_stored = true;
    } else if (llvm::isa<llvm::GetElementPtrInst, llvm::MemIntrinsic>(user)) {
      return false;
    }
  }
  return is_stored;
}

// A copy of a function whose local variables are values, as far as they can be: the function itself may be
// compiled without optimisation, in which every use of a pointer loads it again.
class Copy {
 public:
  explicit Copy(llvm::Function& function) : function_(llvm::CloneFunction(&function, values_)) {
    dominators_.recalculate(*function_);
    promote();
    loops_.analyze(dominators_);
  }
  ~Copy() { function_->eraseFromParent(); }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  const llvm::CallBase& call_of(const CallSite& site) const {
    return *llvm::cast<llvm::CallBase>(values_.lookup(site.call));
  }

  bool can_reach(const llvm::CallBase& from, const llvm::CallBase& to) const {
    if (&from == &to) return loops_.getLoopFor(from.getParent()) != nullptr;
    return llvm::isPotentiallyReachable(&from, &to, nullptr, &dominators_, &loops_);
  }

  Objects objects_of(const llvm::Value* pointer) {
    Objects objects;
    if (!pointer->getType()->isPointerTy()) return objects;
    constexpr unsigned no_limit = 0;
    llvm::getUnderlyingObjects(pointer, objects, &loops_, no_limit);
    llvm::erase_if(objects, [](const llvm::Value* object) { return llvm::isa<llvm::ConstantData>(object); });
    return objects;
  }

 private:
  void promote() {
    std::vector<llvm::AllocaInst*> variables;
    for (llvm::Instruction& instruction : function_->getEntryBlock())
      if (auto* const variable = llvm::dyn_cast<llvm::AllocaInst>(&instruction))
        if (llvm::isAllocaPromotable(variable)) variables.push_back(variable);
    if (!variables.empty()) llvm::PromoteMemToReg(variables, dominators_);
  }

  llvm::ValueToValueMapTy values_;
  llvm::Function* function_;
  llvm::DominatorTree dominators_;
  llvm::LoopInfo loops_;
};

bool have_common(const Objects& one, const Objects& other) {
  return std::any_of(one.begin(), one.end(),
                     [&](const llvm::Value* object) { return llvm::is_contained(other, object); });
}

struct Operand {
  char name;
  unsigned position;
};

// Operands that a call reads: not C where beta is known to be zero.
std::vector<Operand> operands_read(const CallSite& site, const llvm::CallBase& call) {
  const GemmCallee& callee = site.callee;
  std::vector<Operand> operands = {{'A', callee.a}, {'B', callee.b}};
  const llvm::Value* const beta = call.getArgOperand(callee.beta);
  if (!(callee.beta_is_reference ? refers_to_zero(beta) : is_zero(beta))) operands.push_back({'C', callee.c});
  return operands;
}

bool has_all_arguments(const CallSite& site) { return site.call->arg_size() >= site.callee.arguments; }

void add_inputs_of(CallSite& site, const std::vector<CallSite>& sites, Copy& copy) {
  const llvm::CallBase& call = copy.call_of(site);
  for (const Operand& operand : operands_read(site, call)) {
    const Objects read = copy.objects_of(call.getArgOperand(operand.position));
    for (const CallSite& other : sites) {
      if (!has_all_arguments(other)) continue;
      const llvm::CallBase& writer = copy.call_of(other);
      const Objects written = copy.objects_of(writer.getArgOperand(other.callee.c));
      if (have_common(read, written) && copy.can_reach(writer, call))
        site.record.inputs.push_back({operand.name, other.record.callee, other.record.ordinal});
    }
  }
}

}  // namespace

void add_inputs(std::vector<CallSite>& sites) {
  if (sites.empty()) return;
  Copy copy(*sites.front().call->getFunction());
  for (CallSite& site : sites)
    if (has_all_arguments(site)) add_inputs_of(site, sites, copy);
}

}  // namespace kintsugi::pass

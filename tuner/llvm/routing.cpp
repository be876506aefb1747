#include "routing.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

namespace kintsugi::pass {

namespace {

constexpr const char* begin_symbol = "kintsugi_site_begin";
constexpr const char* end_symbol = "kintsugi_site_end";

// Inserts `if (symbol != nullptr) symbol(argument);` before an instruction; without an argument for nullptr.
void call_if_defined(llvm::Instruction* before, const llvm::DebugLoc& location, const char* symbol,
                     llvm::GlobalVariable* argument) {
  llvm::Module& module = *before->getModule();
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* const pointer = llvm::Type::getInt8PtrTy(context);
  llvm::Type* const nothing = llvm::Type::getVoidTy(context);
  llvm::FunctionCallee callee = argument != nullptr ? module.getOrInsertFunction(symbol, nothing, pointer)
                                                    : module.getOrInsertFunction(symbol, nothing);
  auto* const function = llvm::dyn_cast<llvm::Function>(callee.getCallee());
  if (function != nullptr && function->isDeclaration()) {
    function->setLinkage(llvm::GlobalValue::ExternalWeakLinkage);
    function->setDoesNotThrow();
  }
  llvm::IRBuilder<> builder(before);
  builder.SetCurrentDebugLocation(location);
  llvm::Value* const is_defined = builder.CreateIsNotNull(callee.getCallee());
  llvm::Instruction* const end = llvm::SplitBlockAndInsertIfThen(is_defined, before, false);
  builder.SetInsertPoint(end);
  builder.SetCurrentDebugLocation(location);
  if (argument != nullptr)
    builder.CreateCall(callee, {builder.CreateBitCast(argument, pointer)});
  else
    builder.CreateCall(callee);
}

void end_after_invoke(llvm::InvokeInst& invoke, const llvm::DebugLoc& location) {
  llvm::BasicBlock* const normal = llvm::SplitEdge(invoke.getParent(), invoke.getNormalDest());
  call_if_defined(&*normal->getFirstInsertionPt(), location, end_symbol, nullptr);
  // Other calls may share this landing pad; none of them is between begin and end.
  llvm::BasicBlock* const unwind = invoke.getUnwindDest();
  call_if_defined(&*unwind->getFirstInsertionPt(), location, end_symbol, nullptr);
}

}  // namespace

bool can_route(const llvm::CallBase& call) {
  return !call.isMustTailCall() && llvm::isa<llvm::CallInst, llvm::InvokeInst>(call);
}

void route(llvm::CallBase& call, llvm::GlobalVariable& record) {
  const llvm::DebugLoc location = call.getDebugLoc();
  call_if_defined(&call, location, begin_symbol, &record);
  if (auto* const invoke = llvm::dyn_cast<llvm::InvokeInst>(&call))
    return end_after_invoke(*invoke, location);
  call_if_defined(call.getNextNode(), location, end_symbol, nullptr);
}

}  // namespace kintsugi::pass

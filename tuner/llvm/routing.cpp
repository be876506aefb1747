#include "routing.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/Path.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>

namespace kintsugi::pass {

namespace {

// Functions of a drop-in, which are called before and after a call of its library.
struct Announcement {
  const char* begin;
  const char* end;
};
constexpr Announcement of_blas{"kintsugi_site_begin", "kintsugi_site_end"};
constexpr Announcement of_cublas{"kintsugi_cublas_site_begin", "kintsugi_cublas_site_end"};

// Inserts `if (symbol != nullptr) symbol(argument);` before an instruction. If `argument` is nullptr, the
// function is called without an argument.
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
  constexpr bool ends_unreachable = false;
  llvm::Instruction* const end = llvm::SplitBlockAndInsertIfThen(is_defined, before, ends_unreachable);
  builder.SetInsertPoint(end);
  builder.SetCurrentDebugLocation(location);
  if (argument != nullptr)
    builder.CreateCall(callee, {builder.CreateBitCast(argument, pointer)});
  else
    builder.CreateCall(callee);
}

void end_after_invoke(llvm::InvokeInst& invoke, const llvm::DebugLoc& location, const char* end) {
  llvm::BasicBlock* const normal = llvm::SplitEdge(invoke.getParent(), invoke.getNormalDest());
  call_if_defined(&*normal->getFirstInsertionPt(), location, end, nullptr);
  // Other calls may share this landing pad. The function has no effect after such a call, since no site has
  // begun.
  llvm::BasicBlock* const unwind = invoke.getUnwindDest();
  call_if_defined(&*unwind->getFirstInsertionPt(), location, end, nullptr);
}

// Returns the personality routine of the function, or the one that it would have.
llvm::Constant* personality_of(llvm::Function& function) {
  if (function.hasPersonalityFn()) return function.getPersonalityFn();
  llvm::Module& module = *function.getParent();
  for (const llvm::Function& other : module)
    if (other.hasPersonalityFn()) return other.getPersonalityFn();
  const bool is_c = llvm::sys::path::extension(module.getSourceFileName()) == ".c";
  constexpr bool is_variadic = true;
  llvm::Type* const integer = llvm::Type::getInt32Ty(module.getContext());
  return llvm::cast<llvm::Constant>(
      module
          .getOrInsertFunction(is_c ? "__gcc_personality_v0" : "__gxx_personality_v0",
                               llvm::FunctionType::get(integer, is_variadic))
          .getCallee());
}

// Replaces the call by an invoke whose landing pad rethrows the exception.
llvm::InvokeInst& as_invoke(llvm::CallInst& call) {
  llvm::Function& function = *call.getFunction();
  llvm::LLVMContext& context = function.getContext();
  function.setPersonalityFn(personality_of(function));
  auto* const pad = llvm::BasicBlock::Create(context, "kintsugi.unwind", &function);
  llvm::IRBuilder<> builder(pad);
  builder.SetCurrentDebugLocation(call.getDebugLoc());
  llvm::Type* const exception =
      llvm::StructType::get(llvm::Type::getInt8PtrTy(context), llvm::Type::getInt32Ty(context));
  llvm::LandingPadInst* const landing = builder.CreateLandingPad(exception, 0);
  landing->setCleanup(true);
  builder.CreateResume(landing);
  llvm::BasicBlock* const block = call.getParent();
  llvm::changeToInvokeAndSplitBasicBlock(&call, pad);
  return *llvm::cast<llvm::InvokeInst>(block->getTerminator());
}

}  // namespace

bool can_route(const llvm::CallBase& call) {
  return !call.isMustTailCall() && llvm::isa<llvm::CallInst, llvm::InvokeInst>(call);
}

llvm::CallBase& route(llvm::CallBase& call, bool is_of_cublas, llvm::GlobalVariable& record) {
  const llvm::DebugLoc location = call.getDebugLoc();
  const Announcement& announcement = is_of_cublas ? of_cublas : of_blas;
  call_if_defined(&call, location, announcement.begin, &record);
  if (auto* const plain = llvm::dyn_cast<llvm::CallInst>(&call)) {
    if (call.doesNotThrow() || call.getFunction()->doesNotThrow()) {
      call_if_defined(call.getNextNode(), location, announcement.end, nullptr);
      return call;
    }
    llvm::InvokeInst& invoke = as_invoke(*plain);
    end_after_invoke(invoke, location, announcement.end);
    return invoke;
  }
  end_after_invoke(*llvm::cast<llvm::InvokeInst>(&call), location, announcement.end);
  return call;
}

}  // namespace kintsugi::pass

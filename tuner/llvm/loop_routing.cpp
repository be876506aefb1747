#include "loop_routing.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <vector>

namespace kintsugi::pass {

namespace {

// Arguments of kintsugi_site_multiply(). Inserts the instructions that compute them before the nest.
class Arguments {
 public:
  Arguments(const LoopProduct& product, const LoopAnalyses& analyses)
      : before_(product.nest->getLoopPreheader()->getTerminator()),
        expander_(analyses.evolution, before_->getModule()->getDataLayout(), "kintsugi"),
        integer_(llvm::Type::getInt64Ty(before_->getContext())), evolution_(analyses.evolution) {}

  void add(llvm::Value* value) { values_.push_back(value); }
  void add_flag(bool flag) {
    add(llvm::ConstantInt::get(llvm::Type::getInt32Ty(before_->getContext()), flag));
  }
  void add_count(const llvm::SCEV* count) {
    add_integer(evolution_.getTruncateOrZeroExtend(count, integer_));
  }
  void add_matrix(const LoopAccess& access, unsigned row, unsigned column) {
    llvm::Type* const pointer = llvm::Type::getInt8PtrTy(before_->getContext());
    llvm::Value* const base = expander_.expandCodeFor(access.base, access.base->getType(), before_);
    add(llvm::IRBuilder<>(before_).CreatePointerCast(base, pointer));
    for (const unsigned loop : {row, column})
      add_integer(evolution_.getTruncateOrSignExtend(access.strides[loop], integer_));
  }
  const std::vector<llvm::Value*>& values() const { return values_; }

 private:
  void add_integer(const llvm::SCEV* value) { add(expander_.expandCodeFor(value, integer_, before_)); }

  llvm::Instruction* before_;
  llvm::SCEVExpander expander_;
  llvm::Type* integer_;
  llvm::ScalarEvolution& evolution_;
  std::vector<llvm::Value*> values_;
};

// Declares a function of the drop-in as a weak symbol: it is undefined if the program runs without the
// drop-in.
llvm::FunctionCallee weak_function(llvm::Module& module, llvm::StringRef name, llvm::Type* result,
                                   const std::vector<llvm::Value*>& arguments) {
  std::vector<llvm::Type*> types;
  for (const llvm::Value* const argument : arguments) types.push_back(argument->getType());
  constexpr bool is_variadic = false;
  llvm::FunctionCallee callee =
      module.getOrInsertFunction(name, llvm::FunctionType::get(result, types, is_variadic));
  if (auto* const function = llvm::dyn_cast<llvm::Function>(callee.getCallee());
      function != nullptr && function->isDeclaration()) {
    function->setLinkage(llvm::GlobalValue::ExternalWeakLinkage);
    function->setDoesNotThrow();
  }
  return callee;
}

// Calls kintsugi_site_loop_end() after the nest. A program that skips the nest skips this call, too.
void add_end(const LoopProduct& product, const LoopAnalyses& analyses) {
  llvm::BasicBlock* const end = llvm::SplitEdge(product.nest->getHeader(), product.nest->getExitBlock(),
                                                &analyses.dominators, &analyses.loops);
  llvm::Instruction* const last = end->getTerminator();
  llvm::IRBuilder<> builder(last);
  builder.SetCurrentDebugLocation(product.nest->getStartLoc());
  llvm::FunctionCallee callee =
      weak_function(*end->getModule(), "kintsugi_site_loop_end", builder.getVoidTy(), {});
  llvm::Value* const is_defined = builder.CreateIsNotNull(callee.getCallee());
  builder.SetInsertPoint(llvm::SplitBlockAndInsertIfThen(is_defined, last, false, nullptr,
                                                         &analyses.dominators, &analyses.loops));
  builder.CreateCall(callee);
}

}  // namespace

void route(const LoopProduct& product, llvm::GlobalVariable& record, const LoopAnalyses& analyses) {
  llvm::BasicBlock* const preheader = product.nest->getLoopPreheader();
  llvm::BasicBlock* const exit = product.nest->getExitBlock();
  llvm::Instruction* const before = preheader->getTerminator();
  llvm::IRBuilder<> builder(before);
  builder.SetCurrentDebugLocation(product.nest->getStartLoc());
  Arguments arguments(product, analyses);
  arguments.add(builder.CreatePointerCast(&record, builder.getInt8PtrTy()));
  arguments.add_flag(product.element->isDoubleTy());
  arguments.add_flag(product.adds_to_c);
  for (const unsigned loop : {product.row, product.column, product.inner})
    arguments.add_count(product.counts[loop]);
  arguments.add_matrix(product.a, product.row, product.inner);
  arguments.add_matrix(product.b, product.inner, product.column);
  arguments.add_matrix(product.c, product.row, product.column);

  add_end(product, analyses);
  llvm::FunctionCallee callee = weak_function(*preheader->getModule(), "kintsugi_site_multiply",
                                              builder.getInt32Ty(), arguments.values());
  llvm::Value* const is_defined = builder.CreateIsNotNull(callee.getCallee());
  llvm::Instruction* const end = llvm::SplitBlockAndInsertIfThen(is_defined, before, false, nullptr,
                                                                 &analyses.dominators, &analyses.loops);
  builder.SetInsertPoint(end);
  llvm::Value* const multiplied = builder.CreateIsNotNull(builder.CreateCall(callee, arguments.values()));
  llvm::BasicBlock* const block = end->getParent();
  builder.CreateCondBr(multiplied, exit, end->getSuccessor(0));
  end->eraseFromParent();
  analyses.dominators.insertEdge(block, exit);
}

}  // namespace kintsugi::pass

#include "replacement.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <cassert>
#include <vector>

namespace kintsugi::pass {

namespace {

constexpr int replaced = 0, failed = 2;  // kintsugi_replacement
constexpr std::int32_t column_major = 102;

std::int32_t kintsugi_type_of(char letter) {
  return letter == 's' ? 0 : letter == 'd' ? 1 : letter == 'c' ? 2 : 3;
}

bool is_complex(const GemmCallee& callee) { return callee.type == 'c' || callee.type == 'z'; }

// Arguments of a gemm in the order of BLAS. CBLAS has the layout before them.
enum Position : unsigned { op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count };

llvm::Value& argument(const CallSite& site, unsigned position) {
  const unsigned first = site.callee.library == Library::cblas ? 1 : 0;
  return *site.call->getArgOperand(first + position);
}

bool is_scalar(unsigned position) { return position == alpha || position == beta; }
bool is_matrix(unsigned position) { return position == a || position == b || position == c; }

bool has_expected_type(const CallSite& site, unsigned position) {
  const llvm::Type& type = *argument(site, position).getType();
  if (site.callee.library == Library::blas || is_matrix(position)) return type.isPointerTy();
  if (!is_scalar(position)) return type.isIntegerTy() && type.getIntegerBitWidth() <= 64;
  if (is_complex(site.callee)) return type.isPointerTy();
  return site.callee.type == 's' ? type.isFloatTy() : type.isDoubleTy();
}

// Arguments of kintsugi_replace_gemm(). Inserts instructions that compute them before the call.
class Arguments {
 public:
  explicit Arguments(const CallSite& site) : site_(site), builder_(site.call) {
    builder_.SetCurrentDebugLocation(site.call->getDebugLoc());
  }

  std::vector<llvm::Value*> all(const sites::Level& level) {
    std::vector<llvm::Value*> values = {
        options(level), builder_.getInt32(kintsugi_type_of(site_.callee.type)),
        is_cblas() ? as_32_bits(*site_.call->getArgOperand(0)) : builder_.getInt32(column_major)};
    for (unsigned position = 0; position < count; ++position) values.push_back(value(position));
    return values;
  }

 private:
  bool is_cblas() const { return site_.callee.library == Library::cblas; }

  llvm::Value* value(unsigned position) {
    llvm::Value& given = argument(site_, position);
    if (is_matrix(position)) return as_pointer(given);
    if (is_scalar(position)) return given.getType()->isPointerTy() ? as_pointer(given) : stored(given);
    if (position == op_a || position == op_b)
      return as_32_bits(is_cblas() ? given : *load(given, builder_.getInt8Ty()));
    return builder_.CreateSExt(is_cblas() ? &given : load(given, integer_behind(given)),
                               builder_.getInt64Ty());
  }

  llvm::Value* as_pointer(llvm::Value& pointer) {
    return builder_.CreatePointerCast(&pointer, builder_.getInt8PtrTy());
  }
  llvm::Value* as_32_bits(llvm::Value& integer) {
    return builder_.CreateZExtOrTrunc(&integer, builder_.getInt32Ty());
  }

  // Programs for a 64-bit BLAS without a suffix, such as MKL's, pass pointers to 64-bit integers.
  llvm::IntegerType* integer_behind(const llvm::Value& pointer) {
    const auto* const type = llvm::cast<llvm::PointerType>(pointer.getType());
    const bool is_64_bits = !type->isOpaque() && type->getNonOpaquePointerElementType()->isIntegerTy(64);
    return site_.callee.has_64_bit_integers || is_64_bits ? builder_.getInt64Ty() : builder_.getInt32Ty();
  }
  llvm::Value* load(llvm::Value& pointer, llvm::Type* type) {
    return builder_.CreateAlignedLoad(type, builder_.CreatePointerCast(&pointer, type->getPointerTo()),
                                      llvm::Align(1));
  }

  // Stores a scalar that the call has by value in a variable of the function.
  llvm::Value* stored(llvm::Value& scalar) {
    llvm::BasicBlock& entry = site_.call->getFunction()->getEntryBlock();
    llvm::IRBuilder<> at_entry(&entry, entry.begin());
    llvm::AllocaInst* const variable = at_entry.CreateAlloca(scalar.getType());
    builder_.CreateStore(&scalar, variable);
    return as_pointer(*variable);
  }

  // Returns a constant kintsugi_options.
  llvm::Constant* options(const sites::Level& level) {
    llvm::Module& module = *site_.call->getModule();
    llvm::PointerType* const pointer = builder_.getInt8PtrTy();
    llvm::Constant* const null = llvm::ConstantPointerNull::get(pointer);
    llvm::Constant *const zero = builder_.getInt64(0), *const small_zero = builder_.getInt32(0);
    const auto text = [&](const std::string& option) -> llvm::Constant* {
      return option.empty() ? null : builder_.CreateGlobalStringPtr(option, "kintsugi_level", 0, &module);
    };
    constexpr std::uint64_t bytes = 104;
    llvm::Constant* const content = llvm::ConstantStruct::getAnon({
        builder_.getInt64(bytes), text(level.accuracy), text(level.scheme), null, text(level.policy), null,
        zero, small_zero, small_zero,  // accumulator, workspace_limit, threads, reserved
        null, null, null,              // allocate, deallocate, allocator_user
        small_zero, small_zero, null   // queue
    });
    assert(module.getDataLayout().getTypeAllocSize(content->getType()) == bytes);
    constexpr bool is_constant = true;
    auto* const variable =
        new llvm::GlobalVariable(module, content->getType(), is_constant, llvm::GlobalValue::PrivateLinkage,
                                 content, "kintsugi_options");
    return llvm::ConstantExpr::getPointerCast(variable, pointer);
  }

  const CallSite& site_;
  llvm::IRBuilder<> builder_;
};

llvm::FunctionCallee replacing_function(llvm::Module& module, const std::vector<llvm::Value*>& arguments) {
  std::vector<llvm::Type*> types;
  for (const llvm::Value* const argument : arguments) types.push_back(argument->getType());
  constexpr bool is_variadic = false;
  llvm::FunctionCallee callee = module.getOrInsertFunction(
      "kintsugi_replace_gemm",
      llvm::FunctionType::get(llvm::Type::getInt32Ty(module.getContext()), types, is_variadic));
  if (auto* const function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) function->setDoesNotThrow();
  return callee;
}

// Returns a function of the module that prints why a site is native, unless it has done so. Its arguments are
// a byte that tells whether it has, and the site's name.
llvm::Function& saying_function(llvm::Module& module) {
  constexpr const char* name = "kintsugi.say_why_native";
  if (llvm::Function* const made = module.getFunction(name)) return *made;
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* const pointer = llvm::Type::getInt8PtrTy(context);
  llvm::Type* const integer = llvm::Type::getInt32Ty(context);
  llvm::Type* const nothing = llvm::Type::getVoidTy(context);
  auto* const function = llvm::Function::Create(llvm::FunctionType::get(nothing, {pointer, pointer}, false),
                                                llvm::GlobalValue::InternalLinkage, name, module);
  for (const auto attribute : {llvm::Attribute::Cold, llvm::Attribute::NoInline, llvm::Attribute::NoUnwind})
    function->addFnAttr(attribute);
  auto* const entry = llvm::BasicBlock::Create(context, "", function);
  auto* const print = llvm::BasicBlock::Create(context, "print", function);
  auto* const end = llvm::BasicBlock::Create(context, "end", function);
  llvm::IRBuilder<> builder(entry);
  llvm::Value* const has_said =
      builder.CreateAtomicRMW(llvm::AtomicRMWInst::Xchg, function->getArg(0), builder.getInt8(1),
                              llvm::Align(1), llvm::AtomicOrdering::Monotonic);
  builder.CreateCondBr(builder.CreateIsNull(has_said), print, end);
  builder.SetInsertPoint(print);
  llvm::Value* const reason = builder.CreateCall(
      module.getOrInsertFunction("kintsugi_last_error", llvm::FunctionType::get(pointer, false)));
  constexpr bool is_variadic = true;
  constexpr std::uint32_t standard_error = 2;
  builder.CreateCall(
      module.getOrInsertFunction("dprintf",
                                 llvm::FunctionType::get(integer, {integer, pointer}, is_variadic)),
      {builder.getInt32(standard_error),
       builder.CreateGlobalStringPtr("kintsugi: call site %s is native: %s\n"), function->getArg(1), reason});
  builder.CreateBr(end);
  builder.SetInsertPoint(end);
  builder.CreateRetVoid();
  return *function;
}

// Returns a new block that runs after the call and before what came next, on the path without an exception.
llvm::BasicBlock& block_after(llvm::CallBase& call) {
  if (auto* const invoke = llvm::dyn_cast<llvm::InvokeInst>(&call))
    return *llvm::SplitEdge(invoke->getParent(), invoke->getNormalDest());
  return *llvm::SplitBlock(call.getParent(), call.getNextNode());
}

// Lets uses of the call's result see 0 where the call does not run. BLAS returns nothing, but f2c declares
// its functions with a result.
void join_results(llvm::CallBase& call, llvm::BasicBlock& after, llvm::BasicBlock& skipping) {
  if (call.getType()->isVoidTy() || call.use_empty()) return;
  constexpr unsigned paths = 2;
  llvm::PHINode* const result = llvm::PHINode::Create(call.getType(), paths, "", &after.front());
  call.replaceAllUsesWith(result);
  result->addIncoming(&call, call.getParent());
  result->addIncoming(llvm::Constant::getNullValue(call.getType()), &skipping);
}

}  // namespace

std::string obstacle_to_replacement(const CallSite& site) {
  if (site.callee.library == Library::cublas) return "calls of cuBLAS are not replaced";
  if (site.call->isMustTailCall()) return "the call must be a tail call, after which nothing can run";
  if (site.call->arg_size() < site.callee.arguments) return "the call has too few arguments";
  for (unsigned position = 0; position < count; ++position)
    if (!has_expected_type(site, position)) return "an argument has another type than BLAS's";
  if (site.callee.library == Library::cblas && !site.call->getArgOperand(0)->getType()->isIntegerTy())
    return "an argument has another type than BLAS's";
  return "";
}

void replace(const CallSite& site, const sites::Level& level) {
  llvm::CallBase& call = *site.call;
  llvm::Module& module = *call.getModule();
  const llvm::DebugLoc location = call.getDebugLoc();
  const std::vector<llvm::Value*> arguments = Arguments(site).all(level);
  llvm::IRBuilder<> builder(&call);
  builder.SetCurrentDebugLocation(location);
  llvm::Value* const answer = builder.CreateCall(replacing_function(module, arguments), arguments);

  llvm::BasicBlock& before = *call.getParent();
  llvm::BasicBlock& original = *llvm::SplitBlock(&before, &call);
  llvm::BasicBlock& after = block_after(call);
  before.getTerminator()->eraseFromParent();
  builder.SetInsertPoint(&before);
  builder.CreateCondBr(builder.CreateICmpEQ(answer, builder.getInt32(replaced)), &after, &original);

  builder.SetInsertPoint(&call);
  llvm::Value* const has_failed = builder.CreateICmpEQ(answer, builder.getInt32(failed));
  constexpr bool ends_unreachable = false;
  builder.SetInsertPoint(llvm::SplitBlockAndInsertIfThen(has_failed, &call, ends_unreachable));
  builder.SetCurrentDebugLocation(location);
  constexpr bool is_constant = false;
  auto* const has_said =
      new llvm::GlobalVariable(module, builder.getInt8Ty(), is_constant, llvm::GlobalValue::InternalLinkage,
                               builder.getInt8(0), "kintsugi_has_said");
  builder.CreateCall(
      &saying_function(module),
      {has_said, builder.CreateGlobalStringPtr(sites::site_name(site.record), "kintsugi_name")});
  join_results(call, after, before);
}

}  // namespace kintsugi::pass

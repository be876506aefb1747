#include "data_flow.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "function_copy.hpp"

namespace kintsugi::pass {

namespace {

bool is_zero(const llvm::Value* value) {
  const auto* const constant = llvm::dyn_cast<llvm::Constant>(value);
  return constant != nullptr && constant->isNullValue();
}

// True if the pointer points to a constant 0, or to a local variable to which only zeros are stored. (A BLAS
// call does not write its scalars.)
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

// Memory that a pointer of the analysed function may point to. Starting from the pointer `base`, the offsets
// in `loads` are followed in turn: the next pointer is loaded from that offset, as from a member of a struct.
struct Object {
  const llvm::Value* base = nullptr;
  std::vector<std::int64_t> loads = {};
  std::optional<std::int64_t> offset = 0;  // bytes added to the last pointer; nullopt: not constant

  bool operator==(const Object&) const = default;
};
using Objects = std::vector<Object>;

void add_objects(Objects& objects, const Objects& more) {
  for (const Object& object : more)
    if (!llvm::is_contained(objects, object)) objects.push_back(object);
}

bool is_same_memory(const Object& one, const Object& other) {
  return one.base == other.base && one.loads == other.loads;
}

// True if two pointers may point to the same matrix. Within one function, any offsets into the same memory
// count as the same matrix, because a program multiplies blocks of a matrix. Across calls, only equal offsets
// do, because programs keep several matrices in one piece of memory and pass them to functions.
bool have_common(const Objects& one, const Objects& other, bool is_one_function) {
  for (const Object& x : one)
    for (const Object& y : other)
      if (is_same_memory(x, y) && (is_one_function || !x.offset || !y.offset || x.offset == y.offset))
        return true;
  return false;
}

std::optional<std::int64_t> sum(std::optional<std::int64_t> x, std::optional<std::int64_t> y) {
  return x && y ? std::optional(*x + *y) : std::nullopt;
}

// Returns the objects that are reached if the loads and the offset of `object` start at these pointers in
// place of `object.base`.
Objects continued(Objects pointers, const Object& object) {
  for (Object& pointer : pointers) {
    if (object.loads.empty()) {
      pointer.offset = sum(pointer.offset, object.offset);
      continue;
    }
    const std::size_t first = pointer.loads.size();
    pointer.loads.insert(pointer.loads.end(), object.loads.begin(), object.loads.end());
    pointer.loads[first] += pointer.offset.value_or(0);
    pointer.offset = object.offset;
  }
  return pointers;
}

struct Operand {
  char name;
  Objects objects;
};

// Reads and writes of one site, as a function sees them. The site is a call in this function or in a function
// that it calls.
struct Effect {
  CallSite* site;
  const llvm::CallBase* position;  // call in this function: the site's own call, or one that reaches the site
  const llvm::CallBase* own_call;  // the site's own call; nullptr: it is in a called function
  std::vector<Operand> read;
  Objects written;
};

bool has_all_arguments(const CallSite& site) { return site.call->arg_size() >= site.callee.arguments; }

class ModuleFlow;

// Effects of all sites that a function reaches.
class FunctionFlow {
 public:
  FunctionFlow(ModuleFlow& module, llvm::Function& function, std::vector<CallSite>* sites);

  const std::vector<Effect>& effects() const { return effects_; }
  // Translates objects of this function into objects of `caller`, which calls this function by `call`. Local
  // memory of this function is left out, unless the function returns it.
  Objects seen_by_caller(const Objects& objects, const llvm::CallBase& call, FunctionFlow& caller) const;
  const Objects& returned() const { return returned_; }
  Objects objects_of(const llvm::Value& pointer, int depth = 0);

 private:
  void add_own_effects(std::vector<CallSite>& sites);
  void add_effects_of_calls();
  void connect() const;
  Objects objects_of_load(const llvm::LoadInst& load, int depth);

  ModuleFlow& module_;
  FunctionCopy copy_;
  std::vector<Effect> effects_;
  Objects returned_;
};

// Analyses the functions of a module that reach sites. A function is analysed once, after the functions that
// it calls.
class ModuleFlow {
 public:
  explicit ModuleFlow(std::vector<FunctionSites>& all) {
    for (FunctionSites& one : all) sites_[one.function] = &one.sites;
  }

  // Returns the analysis of a function. Returns nullptr if the function neither reaches a site nor returns a
  // pointer, and for a recursive call, whose analysis is not finished yet.
  FunctionFlow* flow_of(llvm::Function* function) {
    if (function == nullptr || !(relevant_.contains(function) || is_small_and_returns_pointer(*function)))
      return nullptr;
    const auto [place, is_new] = flows_.try_emplace(function);
    if (is_new) {
      const auto sites = sites_.find(function);
      auto flow =
          std::make_unique<FunctionFlow>(*this, *function, sites == sites_.end() ? nullptr : sites->second);
      flows_[function] = std::move(flow);
      return flows_[function].get();
    }
    return place->second.get();
  }

  void run() {
    find_relevant();
    const std::set<llvm::Function*> all = relevant_;
    for (llvm::Function* const function : all) flow_of(function);
  }

 private:
  // A small function that returns a pointer may return its argument, or a member of its argument. The limit
  // on the size bounds the time of the pass.
  static bool is_small_and_returns_pointer(const llvm::Function& function) {
    constexpr unsigned most_instructions = 100;
    return function.getReturnType()->isPointerTy() && !function.isDeclaration() &&
           function.getInstructionCount() <= most_instructions;
  }

  // Finds the functions with sites, and the functions that call them directly or indirectly.
  void find_relevant() {
    std::vector<llvm::Function*> pending;
    for (const auto& [function, sites] : sites_) pending.push_back(function);
    while (!pending.empty()) {
      llvm::Function* const function = pending.back();
      pending.pop_back();
      if (!relevant_.insert(function).second) continue;
      for (llvm::User* const user : function->users())
        if (auto* const call = llvm::dyn_cast<llvm::CallBase>(user);
            call != nullptr && call->getCalledFunction() == function)
          pending.push_back(call->getFunction());
    }
  }

  std::map<llvm::Function*, std::vector<CallSite>*> sites_;
  std::set<llvm::Function*> relevant_;
  std::map<llvm::Function*, std::unique_ptr<FunctionFlow>> flows_;
};

FunctionFlow::FunctionFlow(ModuleFlow& module, llvm::Function& function, std::vector<CallSite>* sites)
    : module_(module), copy_(function) {
  if (sites != nullptr) add_own_effects(*sites);
  add_effects_of_calls();
  for (const llvm::Instruction& instruction : llvm::instructions(copy_.function()))
    if (const auto* const end = llvm::dyn_cast<llvm::ReturnInst>(&instruction);
        end != nullptr && end->getReturnValue() != nullptr)
      add_objects(returned_, objects_of(*end->getReturnValue()));
  connect();
}

// Adds the effects of the function's own sites. A site reads C unless beta is known to be 0.
void FunctionFlow::add_own_effects(std::vector<CallSite>& sites) {
  for (CallSite& site : sites) {
    if (!has_all_arguments(site)) continue;
    const GemmCallee& callee = site.callee;
    const llvm::CallBase& call = copy_.copy_of(*site.call);
    const auto objects = [&](unsigned position) { return objects_of(*call.getArgOperand(position)); };
    Effect effect{
        &site, &call, &call, {{'A', objects(callee.a)}, {'B', objects(callee.b)}}, objects(callee.c)};
    const llvm::Value* const beta = call.getArgOperand(callee.beta);
    if (!(callee.beta_is_reference ? refers_to_zero(beta) : is_zero(beta)))
      effect.read.push_back({'C', effect.written});
    effects_.push_back(std::move(effect));
  }
}

void FunctionFlow::add_effects_of_calls() {
  constexpr std::size_t most_effects = 256;  // bounds the time of deep trees of calls
  for (const llvm::Instruction& instruction : llvm::instructions(copy_.function())) {
    const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    const FunctionFlow* const called = call != nullptr ? module_.flow_of(call->getCalledFunction()) : nullptr;
    if (called == nullptr) continue;
    for (const Effect& inner : called->effects()) {
      if (effects_.size() >= most_effects) return;
      Effect effect{inner.site, call, nullptr, {}, called->seen_by_caller(inner.written, *call, *this)};
      for (const Operand& operand : inner.read)
        effect.read.push_back({operand.name, called->seen_by_caller(operand.objects, *call, *this)});
      effects_.push_back(std::move(effect));
    }
  }
}

// Adds a site that writes to the inputs of a site that reads. If one call reaches both sites, the analysis of
// the called function has connected them already.
void FunctionFlow::connect() const {
  for (const Effect& reader : effects_) {
    for (const Effect& writer : effects_) {
      sites::SiteRecord& record = reader.site->record;
      const sites::SiteRecord& other = writer.site->record;
      const bool is_own = other.function == record.function;
      // An inline function's record is the same in all files, whatever calls it there.
      if (!is_own && record.file.empty() && !other.file.empty()) continue;
      const bool is_own_pair = reader.position == reader.own_call && writer.position == writer.own_call;
      for (const Operand& operand : reader.read) {
        if (!have_common(operand.objects, writer.written, is_own_pair)) continue;
        if (!copy_.can_reach(*writer.position, *reader.position)) continue;
        const sites::SiteInput input{operand.name, other.callee, other.ordinal,
                                     is_own ? std::string() : other.function, !is_own && other.file.empty()};
        if (!llvm::is_contained(record.inputs, input)) record.inputs.push_back(input);
      }
    }
  }
}

Objects FunctionFlow::seen_by_caller(const Objects& objects, const llvm::CallBase& call,
                                     FunctionFlow& caller) const {
  Objects seen;
  for (const Object& object : objects) {
    if (const auto* const argument = llvm::dyn_cast<llvm::Argument>(object.base)) {
      if (argument->getArgNo() < call.arg_size())
        add_objects(seen, continued(caller.objects_of(*call.getArgOperand(argument->getArgNo())), object));
    } else if (llvm::isa<llvm::GlobalValue>(object.base)) {
      add_objects(seen, {object});
    } else if (llvm::any_of(returned_, [&](const Object& result) {
                 return result.loads.empty() && result.base == object.base;
               })) {
      add_objects(seen, {{&call, object.loads, object.offset}});
    }
  }
  return seen;
}

Objects FunctionFlow::objects_of(const llvm::Value& pointer, int depth) {
  Objects objects;
  for (const auto& [value, offset] : copy_.memory_of(pointer)) {
    Objects origins;
    const auto* const load = llvm::dyn_cast<llvm::LoadInst>(value);
    const auto* const call = llvm::dyn_cast<llvm::CallBase>(value);
    FunctionFlow* const called = call != nullptr ? module_.flow_of(call->getCalledFunction()) : nullptr;
    if (load != nullptr) origins = objects_of_load(*load, depth);
    if (called != nullptr) origins = called->seen_by_caller(called->returned(), *call, *this);
    if (origins.empty()) origins = {{value}};
    add_objects(objects, continued(origins, {nullptr, {}, offset}));
  }
  return objects;
}

// Returns the objects that a loaded pointer may point to: the pointer that was in memory when the function
// was entered, and all pointers that the function stores there.
Objects FunctionFlow::objects_of_load(const llvm::LoadInst& load, int depth) {
  constexpr int deepest = 4;
  if (depth >= deepest) return {};
  const Objects addresses = objects_of(*load.getPointerOperand(), depth + 1);
  Objects objects = continued(addresses, {nullptr, {0}, 0});
  for (const llvm::Instruction& instruction : llvm::instructions(copy_.function())) {
    const auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
    if (store == nullptr || !store->getValueOperand()->getType()->isPointerTy()) continue;
    constexpr bool is_one_function = false;  // members of a struct are told apart
    if (have_common(objects_of(*store->getPointerOperand(), depth + 1), addresses, is_one_function))
      add_objects(objects, objects_of(*store->getValueOperand(), depth + 1));
  }
  return objects;
}

}  // namespace

void add_inputs(std::vector<FunctionSites>& all) { ModuleFlow(all).run(); }

}  // namespace kintsugi::pass

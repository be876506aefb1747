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
#include "moved_values.hpp"

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
  Objects origins = {};  // memory from which elements of `objects` were transferred before
};

// Elements that are copied from some memory to other memory, or from which those are computed.
struct Transfer {
  const llvm::Instruction* position;  // in this function: a store, a copy, or a call that reaches one
  bool is_own;                        // false: it is in a called function
  Objects read;
  Objects written;
};

// Reads and writes of one site, as a function sees them. The site is a call in this function or in a function
// that it calls.
struct Effect {
  CallSite* site;
  const llvm::CallBase* position;  // call in this function: the site's own call, or one that reaches the site
  const llvm::CallBase* own_call;  // the site's own call; nullptr: it is in a called function
  std::vector<Operand> read;
  Objects written;
  std::vector<const Transfer*> transfers = {};  // of the result, directly or after each other

  bool is_own() const { return position == own_call; }
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
  // Memory that holds the elements from which the returned number is computed.
  const Objects& returned_elements() const { return returned_elements_; }
  const std::vector<Transfer>& transfers() const { return transfers_; }
  const Objects& objects_of(const llvm::Value& pointer, int depth = 0);

 private:
  void add_own_effects(std::vector<CallSite>& sites);
  void add_effects_of_calls();
  void add_results(const llvm::ReturnInst& end);
  void add_transfer(const llvm::Instruction& instruction);
  void add_transfers_of_calls();
  void follow_transfers();
  void connect() const;
  void follow_result(Effect& effect) const;
  void find_origins(const Effect& effect, Operand& operand) const;
  bool is_after(const llvm::Instruction& later, const llvm::Instruction& earlier) const;
  bool is_result_read(const Effect& writer, const Effect& reader, const Operand& operand) const;
  // Returns the memory that holds the elements from which a value is computed.
  Objects elements_of(const llvm::Value& value);
  Objects find_objects(const llvm::Value& pointer, int depth);
  Objects objects_of_load(const llvm::LoadInst& load, int depth);

  ModuleFlow& module_;
  FunctionCopy copy_;
  std::vector<const llvm::StoreInst*> pointer_stores_;
  std::map<std::pair<const llvm::Value*, int>, Objects> known_objects_;  // by pointer and depth
  std::vector<Effect> effects_;
  std::vector<Transfer> transfers_;
  std::size_t examined_transfers_ = 0;
  Objects returned_;
  Objects returned_elements_;
};

// Analyses the functions of a module that reach sites. A function is analysed once, after the functions that
// it calls.
class ModuleFlow {
 public:
  explicit ModuleFlow(std::vector<FunctionSites>& all) {
    for (FunctionSites& one : all) sites_[one.function] = &one.sites;
  }

  // Returns the analysis of a function. Returns nullptr if the function neither reaches a site nor returns a
  // pointer nor moves elements of matrices, and for a recursive call, whose analysis is not finished yet.
  FunctionFlow* flow_of(llvm::Function* function) {
    if (function == nullptr || !(relevant_.contains(function) || is_small_and_returns_pointer(*function) ||
                                 moving_.contains(*function)))
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
  MovingFunctions moving_;
  std::map<llvm::Function*, std::unique_ptr<FunctionFlow>> flows_;
};

FunctionFlow::FunctionFlow(ModuleFlow& module, llvm::Function& function, std::vector<CallSite>* sites)
    : module_(module), copy_(function) {
  for (const llvm::Instruction& instruction : llvm::instructions(copy_.function()))
    if (const auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
        store != nullptr && store->getValueOperand()->getType()->isPointerTy())
      pointer_stores_.push_back(store);
  if (sites != nullptr) add_own_effects(*sites);
  add_effects_of_calls();
  for (const llvm::Instruction& instruction : llvm::instructions(copy_.function())) {
    add_transfer(instruction);
    if (const auto* const end = llvm::dyn_cast<llvm::ReturnInst>(&instruction);
        end != nullptr && end->getReturnValue() != nullptr)
      add_results(*end);
  }
  add_transfers_of_calls();
  follow_transfers();
  connect();
}

void FunctionFlow::add_results(const llvm::ReturnInst& end) {
  const llvm::Value& value = *end.getReturnValue();
  add_objects(returned_, objects_of(value));
  if (is_element(*value.getType())) add_objects(returned_elements_, elements_of(value));
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
      for (const Transfer* const transfer : inner.transfers)
        add_objects(effect.written, called->seen_by_caller(transfer->written, *call, *this));
      for (const Operand& operand : inner.read) {
        effect.read.push_back({operand.name, called->seen_by_caller(operand.objects, *call, *this)});
        add_objects(effect.read.back().objects, called->seen_by_caller(operand.origins, *call, *this));
      }
      effects_.push_back(std::move(effect));
    }
  }
}

constexpr std::size_t most_transfers = 256;  // bounds the time of large functions

// Adds what a store or a copy of memory transfers.
void FunctionFlow::add_transfer(const llvm::Instruction& instruction) {
  const auto* const copy = llvm::dyn_cast<llvm::MemTransferInst>(&instruction);
  const auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
  const bool is_of_element = store != nullptr && is_element(*store->getValueOperand()->getType());
  if (copy == nullptr && !is_of_element) return;
  if (++examined_transfers_ > most_transfers) return;
  Transfer transfer{&instruction, true, {}, {}};
  if (copy != nullptr) {
    transfer.read = objects_of(*copy->getRawSource());
    transfer.written = objects_of(*copy->getRawDest());
  } else {
    transfer.read = elements_of(*store->getValueOperand());
    if (!transfer.read.empty()) transfer.written = objects_of(*store->getPointerOperand());
  }
  if (!transfer.read.empty() && !transfer.written.empty()) transfers_.push_back(std::move(transfer));
}

void FunctionFlow::add_transfers_of_calls() {
  for (const llvm::Instruction& instruction : llvm::instructions(copy_.function())) {
    const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    const FunctionFlow* const called = call != nullptr ? module_.flow_of(call->getCalledFunction()) : nullptr;
    if (called == nullptr) continue;
    for (const Transfer& inner : called->transfers()) {
      if (transfers_.size() >= most_transfers) return;
      Transfer transfer{call, false, called->seen_by_caller(inner.read, *call, *this),
                        called->seen_by_caller(inner.written, *call, *this)};
      if (!transfer.read.empty() && !transfer.written.empty()) transfers_.push_back(std::move(transfer));
    }
  }
}

// Two parts of one call have no order here, so either may come first.
bool FunctionFlow::is_after(const llvm::Instruction& later, const llvm::Instruction& earlier) const {
  return &later == &earlier || copy_.can_reach(earlier, later);
}

void FunctionFlow::follow_transfers() {
  for (Effect& effect : effects_) {
    follow_result(effect);
    for (Operand& operand : effect.read) find_origins(effect, operand);
  }
}

void FunctionFlow::follow_result(Effect& effect) const {
  const auto add = [&](const Objects& objects, const llvm::Instruction& position, bool is_own) {
    for (const Transfer& transfer : transfers_)
      if (!llvm::is_contained(effect.transfers, &transfer) && is_after(*transfer.position, position) &&
          have_common(transfer.read, objects, is_own && transfer.is_own))
        effect.transfers.push_back(&transfer);
  };
  add(effect.written, *effect.position, effect.is_own());
  for (std::size_t i = 0; i < effect.transfers.size(); ++i) {
    const Transfer& last = *effect.transfers[i];
    add(last.written, *last.position, last.is_own);
  }
}

void FunctionFlow::find_origins(const Effect& effect, Operand& operand) const {
  std::vector<const Transfer*> found;
  const auto add = [&](const Objects& objects, const llvm::Instruction& position, bool is_own) {
    for (const Transfer& transfer : transfers_)
      if (!llvm::is_contained(found, &transfer) && is_after(position, *transfer.position) &&
          have_common(transfer.written, objects, is_own && transfer.is_own))
        found.push_back(&transfer);
  };
  add(operand.objects, *effect.position, effect.is_own());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Transfer& first = *found[i];
    add_objects(operand.origins, first.read);
    add(first.read, *first.position, first.is_own);
  }
}

// True if the operand may hold the writer's result, or elements that were transferred from it.
bool FunctionFlow::is_result_read(const Effect& writer, const Effect& reader, const Operand& operand) const {
  if (copy_.can_reach(*writer.position, *reader.position) &&
      have_common(operand.objects, writer.written, reader.is_own() && writer.is_own()))
    return true;
  return llvm::any_of(writer.transfers, [&](const Transfer* transfer) {
    return copy_.can_reach(*transfer->position, *reader.position) &&
           have_common(operand.objects, transfer->written, reader.is_own() && transfer->is_own);
  });
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
      for (const Operand& operand : reader.read) {
        if (!is_result_read(writer, reader, operand)) continue;
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

const Objects& FunctionFlow::objects_of(const llvm::Value& pointer, int depth) {
  const std::pair key(&pointer, depth);
  const auto known = known_objects_.find(key);
  if (known != known_objects_.end()) return known->second;
  return known_objects_[key] = find_objects(pointer, depth);
}

Objects FunctionFlow::find_objects(const llvm::Value& pointer, int depth) {
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

Objects FunctionFlow::elements_of(const llvm::Value& value) {
  Objects elements;
  const Sources sources = sources_of(value);
  for (const llvm::LoadInst* const load : sources.loads)
    add_objects(elements, objects_of(*load->getPointerOperand()));
  for (const llvm::CallBase* const call : sources.calls)
    if (FunctionFlow* const called = module_.flow_of(call->getCalledFunction()); called != nullptr)
      add_objects(elements, called->seen_by_caller(called->returned_elements(), *call, *this));
  return elements;
}

// Returns the objects that a loaded pointer may point to: the pointer that was in memory when the function
// was entered, and all pointers that the function stores there.
Objects FunctionFlow::objects_of_load(const llvm::LoadInst& load, int depth) {
  constexpr int deepest = 4;
  if (depth >= deepest) return {};
  const Objects& addresses = objects_of(*load.getPointerOperand(), depth + 1);
  Objects objects = continued(addresses, {nullptr, {0}, 0});
  for (const llvm::StoreInst* const store : pointer_stores_) {
    constexpr bool is_one_function = false;  // members of a struct are told apart
    if (have_common(objects_of(*store->getPointerOperand(), depth + 1), addresses, is_one_function))
      add_objects(objects, objects_of(*store->getValueOperand(), depth + 1));
  }
  return objects;
}

}  // namespace

void add_inputs(std::vector<FunctionSites>& all) { ModuleFlow(all).run(); }

}  // namespace kintsugi::pass

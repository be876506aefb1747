#include "loop_product.hpp"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <stdexcept>
#include <vector>

namespace kintsugi::pass {

namespace {

namespace match = llvm::PatternMatch;

// Thrown for a nest that is not proved to be a product. The message completes the sentence "the loops are no
// product of matrices that can be proved: ...".
struct NoProduct : std::runtime_error {
  using std::runtime_error::runtime_error;
};
void require(bool condition, const char* reason) {
  if (!condition) throw NoProduct(reason);
}

using Loops = std::array<llvm::Loop*, 3>;  // the outermost first

Loops loops_of(llvm::Loop& outer) {
  llvm::Loop* const middle = outer.getSubLoops().front();
  return {&outer, middle, middle->getSubLoops().front()};
}

bool is_multiplication(const llvm::Instruction& instruction) {
  const auto* const intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  return instruction.getOpcode() == llvm::Instruction::FMul ||
         (intrinsic != nullptr && intrinsic->getIntrinsicID() == llvm::Intrinsic::fmuladd);
}

// All loads and stores of a nest. No other instruction of the nest has an effect.
struct Memory {
  std::vector<llvm::LoadInst*> loads;
  std::vector<llvm::StoreInst*> stores;
};

Memory memory_of(const llvm::Loop& outer) {
  Memory memory;
  for (llvm::BasicBlock* const block : outer.blocks()) {
    for (llvm::Instruction& instruction : *block) {
      if (llvm::isa<llvm::DbgInfoIntrinsic>(instruction)) continue;
      auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
      if (load != nullptr && load->isSimple()) {
        memory.loads.push_back(load);
      } else if (store != nullptr && store->isSimple()) {
        memory.stores.push_back(store);
      } else {
        require(!instruction.mayReadOrWriteMemory() && !instruction.mayHaveSideEffects(),
                "they call a function, or access memory that is volatile or atomic");
      }
      for (const llvm::User* const user : instruction.users())
        require(outer.contains(llvm::cast<llvm::Instruction>(user)), "a value of theirs is used after them");
    }
  }
  return memory;
}

// Requires that all iterations run the same instructions, and that each loop ends only at its head.
void require_plain(const Loops& loops) {
  for (const llvm::Loop* const loop : loops) {
    require(loop->getLoopPreheader() != nullptr && loop->getLoopLatch() != nullptr &&
                loop->getExitBlock() != nullptr && loop->getExitingBlock() == loop->getHeader(),
            "a loop does not end at its head alone");
  }
  for (const llvm::BasicBlock* const block : loops[0]->blocks()) {
    bool is_header = false;
    for (const llvm::Loop* const loop : loops) is_header = is_header || loop->getHeader() == block;
    require(is_header || block->getUniqueSuccessor() != nullptr, "there is a condition in them");
  }
  require(loops[0]->getExitBlock()->phis().empty(), "a value of theirs is used after them");
}

// One step of the innermost loop: a * b + addend.
struct Sum {
  llvm::LoadInst *a = nullptr, *b = nullptr;
  llvm::Value* addend = nullptr;  // the sum before the step: an element of C or a local variable
};

Sum sum_of(llvm::Value* value) {
  llvm::Value *x = nullptr, *y = nullptr, *addend = nullptr;
  const bool is_sum = match::match(value, match::m_c_FAdd(match::m_FMul(match::m_Value(x), match::m_Value(y)),
                                                          match::m_Value(addend))) ||
                      match::match(value, match::m_Intrinsic<llvm::Intrinsic::fmuladd>(
                                              match::m_Value(x), match::m_Value(y), match::m_Value(addend)));
  require(is_sum, "what they store is no sum of products of two elements");
  Sum sum{llvm::dyn_cast<llvm::LoadInst>(x), llvm::dyn_cast<llvm::LoadInst>(y), addend};
  require(sum.a != nullptr && sum.b != nullptr && sum.a != sum.b, "a factor is no element of a matrix");
  return sum;
}

class Finder {
 public:
  Finder(llvm::Loop& outer, const LoopAnalyses& analyses)
      : loops_(loops_of(outer)), analyses_(analyses), evolution_(analyses.evolution) {}

  LoopProduct find() {
    require_plain(loops_);
    memory_ = memory_of(*loops_[0]);
    require(!memory_.stores.empty() && memory_.stores.size() <= 2, "they store to several matrices, or none");
    llvm::StoreInst* store = memory_.stores.back();
    for (llvm::StoreInst* const candidate : memory_.stores)
      if (!match::match(candidate->getValueOperand(), match::m_AnyZeroFP())) store = candidate;
    product_.nest = loops_[0];
    product_.element = store->getValueOperand()->getType();
    require(product_.element->isFloatTy() || product_.element->isDoubleTy(), "elements are no FP32 or FP64");
    address_of_c_ = evolution_.getSCEV(store->getPointerOperand());
    const Sum sum = loops_[2]->contains(store) ? sum_in_memory(*store) : sum_in_variable(*store);
    find_zero(*store);
    require(memory_.loads.size() == loads_, "they read more than the elements of A, B and C");
    find_counts();
    find_roles(*sum.a, *sum.b, *store);
    return product_;
  }

 private:
  bool is_c(llvm::Value* value) {
    auto* const load = llvm::dyn_cast<llvm::LoadInst>(value);
    return load != nullptr && evolution_.getSCEV(load->getPointerOperand()) == address_of_c_;
  }

  // Matches c[..] += a[..] * b[..] in the innermost loop.
  Sum sum_in_memory(llvm::StoreInst& store) {
    const Sum sum = sum_of(store.getValueOperand());
    require(is_c(sum.addend), "what they store is no sum of products of two elements");
    product_.adds_to_c = true;
    loads_ = 3;
    return sum;
  }

  // Matches three statements. The first is sum = 0 or sum = c[..]. The second is the innermost loop, which
  // adds to sum. The third is c[..] = sum or c[..] += sum.
  Sum sum_in_variable(llvm::StoreInst& store) {
    require(loops_[1]->contains(&store), "they store outside of the two inner loops");
    llvm::Value* value = store.getValueOperand();
    llvm::Value *one = nullptr, *other = nullptr;
    if (match::match(value, match::m_FAdd(match::m_Value(one), match::m_Value(other)))) {
      value = is_c(one) ? other : one;
      require(is_c(one) || is_c(other), "what they store is no sum of products of two elements");
      product_.adds_to_c = true;
    }
    auto* variable = llvm::dyn_cast<llvm::PHINode>(value);
    // Behind the loop LCSSA form has a phi with one operand, which is the phi of the loop.
    if (variable != nullptr && variable->getNumIncomingValues() == 1)
      variable = llvm::dyn_cast<llvm::PHINode>(variable->getIncomingValue(0));
    require(variable != nullptr && variable->getParent() == loops_[2]->getHeader(),
            "what they store is no sum of products of two elements");
    llvm::Value* const first = variable->getIncomingValueForBlock(loops_[2]->getLoopPreheader());
    const Sum sum = sum_of(variable->getIncomingValueForBlock(loops_[2]->getLoopLatch()));
    require(sum.addend == variable, "what they store is no sum of products of two elements");
    const bool begins_with_c = is_c(first);
    require(begins_with_c ? !product_.adds_to_c : match::match(first, match::m_AnyZeroFP()),
            "the sum begins with neither 0 nor an element of C");
    product_.adds_to_c = product_.adds_to_c || begins_with_c;
    loads_ = product_.adds_to_c ? 3 : 2;
    return sum;
  }

  // Matches c[..] = 0 before the innermost loop. `sum` is the store of the sum.
  void find_zero(const llvm::StoreInst& sum) {
    for (llvm::StoreInst* const store : memory_.stores) {
      if (store == &sum) continue;
      const bool is_zero = match::match(store->getValueOperand(), match::m_AnyZeroFP()) &&
                           evolution_.getSCEV(store->getPointerOperand()) == address_of_c_ &&
                           analyses_.loops.getLoopFor(store->getParent()) == loops_[1] &&
                           analyses_.dominators.dominates(store->getParent(), loops_[2]->getHeader());
      require(is_zero && loops_[2]->contains(&sum), "they store twice, and not 0 before the sum");
      product_.adds_to_c = false;
    }
  }

  void require_expandable(const llvm::SCEV* value, const char* reason) {
    require(evolution_.isLoopInvariant(value, loops_[0]) &&
                llvm::isSafeToExpandAt(value, loops_[0]->getLoopPreheader()->getTerminator(), evolution_),
            reason);
  }

  void find_counts() {
    for (unsigned i = 0; i < loops_.size(); ++i) {
      constexpr const char* reason = "numbers of iterations are not known before them";
      const llvm::SCEV* const count = evolution_.getBackedgeTakenCount(loops_[i]);
      require(!llvm::isa<llvm::SCEVCouldNotCompute>(count), reason);
      require_expandable(count, reason);
      product_.counts[i] = count;
    }
  }

  LoopAccess access_of(llvm::Value* pointer) {
    constexpr const char* reason = "an address does not grow by the same in every iteration";
    LoopAccess access;
    llvm::Type* const offset = evolution_.getEffectiveSCEVType(pointer->getType());
    access.strides.fill(evolution_.getZero(offset));
    const llvm::SCEV* address = evolution_.getSCEV(pointer);
    while (const auto* const step = llvm::dyn_cast<llvm::SCEVAddRecExpr>(address)) {
      const auto* const found = llvm::find(loops_, step->getLoop());
      if (found == loops_.end()) break;
      require(step->isAffine(), reason);
      const llvm::SCEV* const stride = step->getStepRecurrence(evolution_);
      require_expandable(stride, reason);
      access.strides[static_cast<unsigned>(found - loops_.begin())] = stride;
      address = step->getStart();
    }
    require_expandable(address, reason);
    access.base = address;
    return access;
  }

  void find_roles(llvm::LoadInst& one, llvm::LoadInst& other, llvm::StoreInst& store) {
    LoopProduct& p = product_;
    p.a = access_of(one.getPointerOperand());
    p.b = access_of(other.getPointerOperand());
    p.c = access_of(store.getPointerOperand());
    for (unsigned inner = 0; inner < 3; ++inner) {
      for (unsigned row = 0; row < 3; ++row) {
        if (row == inner) continue;
        const unsigned column = 3 - inner - row;
        const auto is_used = [](const LoopAccess& access, unsigned loop) {
          return !access.strides[loop]->isZero();
        };
        const bool fits = is_used(p.a, row) && is_used(p.a, inner) && !is_used(p.a, column) &&  //
                          is_used(p.b, inner) && is_used(p.b, column) && !is_used(p.b, row) &&  //
                          is_used(p.c, row) && is_used(p.c, column) && !is_used(p.c, inner);
        if (!fits) continue;
        require(p.adds_to_c || inner == 2, "C is set to 0 within the sum");
        p.row = row, p.column = column, p.inner = inner;
        return;
      }
    }
    throw NoProduct("addresses are not those of a row, a column and an element");
  }

  Loops loops_;
  LoopAnalyses analyses_;
  llvm::ScalarEvolution& evolution_;
  Memory memory_;
  const llvm::SCEV* address_of_c_ = nullptr;
  std::size_t loads_ = 0;
  LoopProduct product_;
};

}  // namespace

bool is_candidate(const llvm::Loop& outer) {
  const llvm::Loop* loop = &outer;
  for (int level = 0; level < 2; ++level) {
    if (loop->getSubLoops().size() != 1) return false;
    loop = loop->getSubLoops().front();
  }
  if (!loop->getSubLoops().empty()) return false;
  for (const llvm::BasicBlock* const block : loop->blocks())
    for (const llvm::Instruction& instruction : *block)
      if (is_multiplication(instruction)) return true;
  return false;
}

std::string find_product(llvm::Loop& outer, const LoopAnalyses& analyses, LoopProduct& product) try {
  product = Finder(outer, analyses).find();
  return "";
} catch (const NoProduct& reason) {
  return reason.what();
}

}  // namespace kintsugi::pass

#include "loop_sites.hpp"

#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

#include "loop_routing.hpp"
#include "sites.hpp"
#include "table.hpp"

namespace kintsugi::pass {

namespace {

constexpr const char* loop_callee = "loop";

std::vector<llvm::Loop*> candidates(const llvm::LoopInfo& loops) {
  std::vector<llvm::Loop*> found;
  for (llvm::Loop* const loop : loops.getLoopsInPreorder())
    if (is_candidate(*loop)) found.push_back(loop);
  return found;
}

// Runs standard passes, so that local variables become SSA values, and each loop has one entry, one exit and
// one counter. The optimiser would run these passes later anyway.
void simplify(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  llvm::FunctionPassManager manager;
  manager.addPass(llvm::SROAPass());
  manager.addPass(llvm::EarlyCSEPass());
  manager.addPass(llvm::SimplifyCFGPass());
  manager.addPass(llvm::InstCombinePass());
  manager.addPass(llvm::LoopSimplifyPass());
  manager.addPass(llvm::LCSSAPass());
  manager.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::IndVarSimplifyPass()));
  analyses.invalidate(function, manager.run(function, analyses));
}

sites::SiteRecord record_of_loop(const llvm::Loop& loop, std::uint32_t ordinal) {
  sites::SiteRecord record = record_of(*loop.getHeader()->getParent(), loop_callee, ordinal);
  if (const llvm::DebugLoc location = loop.getStartLoc()) record.line = location.getLine();
  return record;
}

void remark_missed(llvm::OptimizationRemarkEmitter& remarks, const llvm::Loop& loop,
                   const std::string& reason) {
  remarks.emit([&] {
    return llvm::OptimizationRemarkMissed("kintsugi", "Loop", loop.getStartLoc(), loop.getHeader())
           << "the loops are no product of matrices that can be proved: " << reason;
  });
}

void remark_found(llvm::OptimizationRemarkEmitter& remarks, const llvm::Loop& loop, const std::string& name) {
  remarks.emit([&] {
    return llvm::OptimizationRemark("kintsugi", "LoopSite", loop.getStartLoc(), loop.getHeader())
           << "call site " << name;
  });
}

void set_native(sites::SiteRecord& record, Levels& levels, llvm::Module& module) {
  record.level = sites::Level::native();
  if (!levels.of(record).is_native())
    warn(module, site_name(record) + " stays native: loops are not replaced");
}

}  // namespace

std::vector<llvm::GlobalVariable*> add_loop_sites(llvm::Function& function,
                                                  llvm::FunctionAnalysisManager& analyses,
                                                  std::optional<Levels>& levels) {
  std::vector<llvm::GlobalVariable*> records;
  if (function.hasOptNone() || candidates(analyses.getResult<llvm::LoopAnalysis>(function)).empty())
    return {};
  simplify(function, analyses);
  const LoopAnalyses loop_analyses{analyses.getResult<llvm::LoopAnalysis>(function),
                                   analyses.getResult<llvm::ScalarEvolutionAnalysis>(function),
                                   analyses.getResult<llvm::DominatorTreeAnalysis>(function)};
  llvm::OptimizationRemarkEmitter remarks(&function);
  for (llvm::Loop* const loop : candidates(loop_analyses.loops)) {
    LoopProduct product;
    const std::string reason = find_product(*loop, loop_analyses, product);
    if (!reason.empty()) {
      remark_missed(remarks, *loop, reason);
      continue;
    }
    const auto ordinal = static_cast<std::uint32_t>(records.size() + 1);
    sites::SiteRecord record = record_of_loop(*loop, ordinal);
    remark_found(remarks, *loop, sites::site_name(record));
    if (levels) set_native(record, *levels, *function.getParent());
    records.push_back(make_record(*function.getParent(), record));
    if (!record.level) route(product, *records.back(), loop_analyses);
  }
  analyses.invalidate(function, llvm::PreservedAnalyses::none());
  return records;
}

}  // namespace kintsugi::pass

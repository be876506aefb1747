// The compiler pass: finds calls of GEMM, writes their table, and routes or replaces them.
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>

#include "flow/data_flow.hpp"
#include "levels.hpp"
#include "loop_sites.hpp"
#include "replacement.hpp"
#include "routing.hpp"
#include "sites.hpp"
#include "table.hpp"

namespace kintsugi::pass {

namespace {

constexpr const char* pass_name = "kintsugi";

void remark_found(llvm::OptimizationRemarkEmitter& remarks, const CallSite& site) {
  remarks.emit([&] {
    return llvm::OptimizationRemark(pass_name, "CallSite", site.call)
           << "call site " << sites::site_name(site.record)
           << (site.record.level ? ": " + level_text(*site.record.level) : std::string());
  });
}

void remark_missed(llvm::OptimizationRemarkEmitter& remarks, const CallSite& site) {
  remarks.emit([&] {
    return llvm::OptimizationRemarkMissed(pass_name, "TailCall", site.call)
           << "the call of " << site.record.callee
           << " must be a tail call, after which nothing can run; without musttail it would be a call site";
  });
}

class SitesPass : public llvm::PassInfoMixin<SitesPass> {
 public:
  static bool isRequired() { return true; }  // LLVM then runs the pass at -O0, too

  explicit SitesPass(bool finds_loops) : finds_loops_(finds_loops) {}

  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
    std::vector<llvm::Function*> functions;
    for (llvm::Function& function : module)
      if (!function.isDeclaration() && !function.hasAvailableExternallyLinkage())
        functions.push_back(&function);
    std::optional<Levels> levels = Levels::of_environment(module);
    std::vector<llvm::GlobalVariable*> records;
    std::vector<FunctionSites> all;
    for (llvm::Function* const function : functions)
      if (std::vector<CallSite> sites = sites_of(*function); !sites.empty())
        all.push_back({function, std::move(sites)});
    if (!all.empty()) add_inputs(all);
    for (FunctionSites& one : all) add_sites(one, levels, records);
    if (finds_loops_) {
      auto& manager = analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
      for (llvm::Function* const function : functions) {
        manager.invalidate(*function, llvm::PreservedAnalyses::none());
        for (llvm::GlobalVariable* const record : add_loop_sites(*function, manager, levels))
          records.push_back(record);
      }
    }
    if (levels) levels->warn_of_unknown_sites(module);
    if (!records.empty()) retain(module, records);
    return llvm::PreservedAnalyses::none();
  }

 private:
  static void add_sites(FunctionSites& one, std::optional<Levels>& levels,
                        std::vector<llvm::GlobalVariable*>& records) {
    llvm::OptimizationRemarkEmitter remarks(one.function);
    llvm::Module& module = *one.function->getParent();
    for (CallSite& site : one.sites) {
      if (levels) set_level(site, *levels, module);
      if (!site.record.level && !can_route(*site.call)) {
        remark_missed(remarks, site);
        continue;
      }
      remark_found(remarks, site);
      records.push_back(make_record(module, site.record));
      llvm::CallBase* call = site.call;
      if (!site.record.level)
        call = &route(*call, site.callee.library == Library::cublas, *records.back());
      else if (!site.record.level->is_native())
        replace(site, *site.record.level);
      mark_found(*call);
    }
  }

  // Sets the level with which the call is compiled. Calls of cuBLAS get none, since their drop-in decides at
  // run time.
  static void set_level(CallSite& site, Levels& levels, llvm::Module& module) {
    sites::Level level = levels.of(site.record);
    const std::string obstacle = level.is_native() ? "" : obstacle_to_replacement(site);
    if (!obstacle.empty()) {
      warn(module, site_name(site.record) + " stays native: " + obstacle);
      level = sites::Level::native();
    }
    if (site.callee.library != Library::cublas) site.record.level = level;
  }

  bool finds_loops_;
};

// Registers the pass before all optimisations, so that names of sites do not depend on them. The pass runs at
// every optimisation level, but it does not analyse loops at -O0.
void register_pass(llvm::PassBuilder& builder) {
  builder.registerPipelineStartEPCallback(
      [](llvm::ModulePassManager& manager, llvm::OptimizationLevel level) {
        manager.addPass(SitesPass(level != llvm::OptimizationLevel::O0));
      });
}

}  // namespace

}  // namespace kintsugi::pass

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, kintsugi::pass::pass_name, "1", kintsugi::pass::register_pass};
}

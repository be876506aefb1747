// The compiler pass: finds calls of GEMM, writes their table and routes them.
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>

#include "flow/data_flow.hpp"
#include "loop_sites.hpp"
#include "routing.hpp"
#include "sites.hpp"
#include "table.hpp"

namespace kintsugi::pass {

namespace {

constexpr const char* pass_name = "kintsugi";

void remark_found(llvm::OptimizationRemarkEmitter& remarks, const CallSite& site) {
  remarks.emit([&] {
    return llvm::OptimizationRemark(pass_name, "CallSite", site.call)
           << "call site " << sites::site_name(site.record);
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
    std::vector<llvm::GlobalVariable*> records;
    std::vector<FunctionSites> all;
    for (llvm::Function* const function : functions)
      if (std::vector<CallSite> sites = sites_of(*function); !sites.empty())
        all.push_back({function, std::move(sites)});
    if (!all.empty()) add_inputs(all);
    for (FunctionSites& one : all) add_sites(one, records);
    if (finds_loops_) {
      auto& manager = analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
      for (llvm::Function* const function : functions) {
        manager.invalidate(*function, llvm::PreservedAnalyses::none());
        for (llvm::GlobalVariable* const record : add_loop_sites(*function, manager))
          records.push_back(record);
      }
    }
    if (!records.empty()) retain(module, records);
    return llvm::PreservedAnalyses::none();
  }

 private:
  static void add_sites(FunctionSites& one, std::vector<llvm::GlobalVariable*>& records) {
    llvm::OptimizationRemarkEmitter remarks(one.function);
    llvm::erase_if(one.sites, [&](const CallSite& site) {
      if (can_route(*site.call)) return false;
      remark_missed(remarks, site);
      return true;
    });
    for (const CallSite& site : one.sites) {
      remark_found(remarks, site);
      records.push_back(make_record(*one.function->getParent(), site.record));
      const bool is_of_cublas = llvm::StringRef(site.record.callee).startswith("cublas");
      mark_found(route(*site.call, is_of_cublas, *records.back()));
    }
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

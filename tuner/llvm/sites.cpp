#include "sites.hpp"

#include <llvm/IR/DebugLoc.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Support/Path.h>

#include <map>

namespace kintsugi::pass {

namespace {

constexpr const char* mark = "kintsugi.site";

// Returns the name of the called function. Looks through casts, which C code without prototypes has.
llvm::StringRef callee_name(const llvm::CallBase& call) {
  const auto* const function =
      llvm::dyn_cast_or_null<llvm::Function>(call.getCalledOperand()->stripPointerCastsAndAliases());
  return function != nullptr ? function->getName() : llvm::StringRef();
}

// True if several source files may define the function, of which the linker keeps one definition.
bool is_inline(const llvm::Function& function) {
  return function.hasLinkOnceLinkage() || function.hasWeakLinkage();
}

}  // namespace

sites::SiteRecord record_of(const llvm::Function& function, llvm::StringRef callee, std::uint32_t ordinal) {
  sites::SiteRecord record;
  record.function = function.getName().str();
  record.callee = callee.str();
  record.ordinal = ordinal;
  if (is_inline(function)) return record;
  const std::string& path = function.getParent()->getSourceFileName();
  record.file = llvm::sys::path::filename(path).str();
  record.path_hash = sites::hash_of(path);
  return record;
}

std::vector<CallSite> sites_of(llvm::Function& function) {
  std::vector<CallSite> found;
  std::map<std::string, std::uint32_t> calls;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call == nullptr || call->getMetadata(mark) != nullptr) continue;
    const llvm::StringRef name = callee_name(*call);
    const auto callee = gemm_callee(name);
    if (!callee) continue;
    found.push_back({call, *callee, record_of(function, name, ++calls[name.str()])});
    if (const llvm::DebugLoc& location = call->getDebugLoc()) found.back().record.line = location.getLine();
  }
  return found;
}

void mark_found(llvm::CallBase& call) { call.setMetadata(mark, llvm::MDNode::get(call.getContext(), {})); }

}  // namespace kintsugi::pass

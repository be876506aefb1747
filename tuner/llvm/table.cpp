#include "table.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

namespace kintsugi::pass {

llvm::GlobalVariable* make_record(llvm::Module& module, const sites::SiteRecord& site) {
  const std::string bytes = sites::encode(site);
  constexpr bool is_constant = true, ends_with_zero = false;
  llvm::Constant* const content =
      llvm::ConstantDataArray::getString(module.getContext(), bytes, ends_with_zero);
  auto* const record = new llvm::GlobalVariable(module, content->getType(), is_constant,
                                                llvm::GlobalValue::PrivateLinkage, content, "kintsugi_site");
  record->setSection(sites::section_name);
  record->setAlignment(llvm::Align(sites::record_alignment));
  if (!site.file.empty()) return record;
  // The record has a section group (comdat) of its own, apart from the inline function's group: the linker
  // may drop the function, but its inlined copies still refer to the record.
  record->setName("kintsugi_site:" + sites::site_name(site));
  record->setLinkage(llvm::GlobalValue::LinkOnceODRLinkage);
  record->setVisibility(llvm::GlobalValue::HiddenVisibility);
  record->setComdat(module.getOrInsertComdat(record->getName()));
  return record;
}

void retain(llvm::Module& module, const std::vector<llvm::GlobalVariable*>& records) {
  const std::vector<llvm::GlobalValue*> used(records.begin(), records.end());
  llvm::appendToUsed(module, used);
}

}  // namespace kintsugi::pass

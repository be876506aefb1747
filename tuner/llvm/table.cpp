#include "table.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

namespace kintsugi::pass {

llvm::GlobalVariable* make_record(const CallSite& site) {
  llvm::Function& function = *site.call->getFunction();
  llvm::Module& module = *function.getParent();
  const std::string bytes = sites::encode(site.record);
  constexpr bool is_constant = true, ends_with_zero = false;
  llvm::Constant* const content =
      llvm::ConstantDataArray::getString(module.getContext(), bytes, ends_with_zero);
  auto* const record = new llvm::GlobalVariable(module, content->getType(), is_constant,
                                                llvm::GlobalValue::PrivateLinkage, content, "kintsugi_site");
  record->setSection(sites::section_name);
  record->setAlignment(llvm::Align(sites::record_alignment));
  if (function.hasComdat()) record->setComdat(function.getComdat());
  return record;
}

void retain(llvm::Module& module, const std::vector<llvm::GlobalVariable*>& records) {
  const std::vector<llvm::GlobalValue*> used(records.begin(), records.end());
  llvm::appendToUsed(module, used);
}

}  // namespace kintsugi::pass

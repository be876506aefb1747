#include "execute/device/offload/kept_operands.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

#include "base/threads.hpp"

namespace kintsugi::core {

namespace {

struct KeptOperands {
  std::mutex mutex;
  std::list<KeptOperand> operands;
};

// Never destroyed, since a call may be made after static objects were.
KeptOperands& kept_operands() {
  static auto* instance = new KeptOperands;
  return *instance;
}

// Moves an operand out of the list, whose mutex is locked.
std::list<KeptOperand> extract(std::list<KeptOperand>& operands, const KeptOperandKey& key) {
  std::list<KeptOperand> extracted;
  const auto found = std::ranges::find(operands, key, &KeptOperand::key);
  if (found != operands.end()) extracted.splice(extracted.end(), operands, found);
  return extracted;
}

}  // namespace

std::optional<KeptOperand> take_kept_operand(const KeptOperandKey& key) {
  KeptOperands& kept = kept_operands();
  const std::lock_guard lock(kept.mutex);
  std::list<KeptOperand> found = extract(kept.operands, key);
  if (found.empty()) return {};
  return std::move(found.front());
}

void keep_operand(KeptOperand operand) {
  operand.memory.forget_queue();
  KeptOperands& kept = kept_operands();
  std::list<KeptOperand> older;  // freed without the lock
  const std::lock_guard lock(kept.mutex);
  older = extract(kept.operands, operand.key);
  kept.operands.push_back(std::move(operand));
}

// In a forked child another thread of the parent may have locked the mutex, and the driver frees nothing.
bool release_kept_operands() noexcept {
  if (fork_depth() > 0) return false;
  KeptOperands& kept = kept_operands();
  std::list<KeptOperand> released;
  const std::lock_guard lock(kept.mutex);
  released.swap(kept.operands);
  return !released.empty();
}

}  // namespace kintsugi::core

// Operands that stay in device memory after an offloaded call, because the caller said that it does not
// change them.
#pragma once

#include <optional>

#include "execute/device/memory.hpp"
#include "execute/device/offload/pieces.hpp"
#include "planner/offload/steps.hpp"

namespace kintsugi::core {

// Tells a kept operand from others: which elements of the host it is a copy of, and where the copy is.
struct KeptOperandKey {
  const void* host = nullptr;
  std::int64_t ld = 0;
  bool rows_are_lines = false;
  std::size_t element_bytes = 0;
  IndexRange vectors;
  std::int64_t inner = 0;
  std::int64_t parts = 1;  // that are stored one behind the other
  DeviceContext context;

  friend bool operator==(const KeptOperandKey&, const KeptOperandKey&) = default;
};

// An operand as a whole, as a strip is stored.
struct KeptOperand {
  KeptOperandKey key;
  DeviceBuffer memory;
};

// Takes the operand out of those that are kept; nothing: it is not there, or another call uses it.
std::optional<KeptOperand> take_kept_operand(const KeptOperandKey& key);

// Keeps an operand for later calls, in place of an older copy. No work on the device uses it any more.
void keep_operand(KeptOperand operand);

// Frees the operands that no call uses. Returns false if there were none.
bool release_kept_operands() noexcept;

}  // namespace kintsugi::core

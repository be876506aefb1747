// Operands that stay in device memory after an offloaded call, because the caller said that it does not
// change them.
#pragma once

#include <optional>

#include "engines/cuda/transfers.hpp"
#include "execute/device/memory.hpp"
#include "planner/offload.hpp"

namespace kintsugi::core {

// Identifies a kept operand: the elements of the host that were copied, and the device with the copy.
struct KeptOperandKey {
  const void* host = nullptr;
  std::int64_t ld = 0;
  bool rows_are_lines = false;
  std::size_t element_bytes = 0;
  Interval vectors;
  std::int64_t inner = 0;
  std::int64_t parts = 1;  // parts of the operand that are stored one behind the other
  DeviceContext context;

  friend bool operator==(const KeptOperandKey&, const KeptOperandKey&) = default;
};

// A copy of a whole operand, stored like a strip.
struct KeptOperand {
  KeptOperandKey key;
  DeviceBuffer memory;
};

// Takes the operand out of the kept operands. Returns nothing if the operand is not kept, or if another call
// uses it.
std::optional<KeptOperand> take_kept_operand(const KeptOperandKey& key);

// Keeps an operand for later calls, in place of an older copy. Precondition: no work on the device uses the
// operand any more.
void keep_operand(KeptOperand operand);

// Frees the operands that no call uses. Returns false if there were none.
bool release_kept_operands() noexcept;

}  // namespace kintsugi::core

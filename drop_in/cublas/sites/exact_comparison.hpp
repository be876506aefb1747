// Compares calls of a site with exact ones on the same operands in device memory.
#pragma once

#include <cstdint>
#include <optional>

#include "cublas/answer.hpp"
#include "cublas/device/workspace.hpp"

namespace kintsugi::cublas {

// A call whose error is measured; of a strided batch, its first product alone. Made before the call, it
// keeps a copy of C in device memory, as the call reads it.
class ExactComparison {
 public:
  // Begins a comparison if the sites file asks for errors and this call of the site is to be measured. Does
  // nothing under a capture, for batches by pointers and for calls with an epilogue. Call and state must
  // outlive the comparison.
  ExactComparison(const Origin& origin, const Call& call, const CallState& state);

  // Computes the call exactly in the copy of C, waits for the device and records the error of the caller's C.
  // Must be called after the call, with its status. Records nothing if the call failed or if the exact call
  // cannot be computed.
  void finish(int status) const noexcept;

 private:
  bool compute_exactly() const;

  const Call& call_;
  const CallState& state_;
  std::int64_t number_ = -1;  // of the call at its site; -1: the call is not measured
  std::optional<Workspace> c_;
};

}  // namespace kintsugi::cublas

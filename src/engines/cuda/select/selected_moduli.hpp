// Candidates of a chain that share kernels: they multiply residues of different numbers of moduli, and the
// kernels read in the selection how many.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arith/host_device.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core {

// Candidates first, first + 1, ... of a chain, with least, least + 1, ..., most moduli. The kernels of a step
// of all of them are launched once. They exit early unless one of these candidates is selected, and else
// compute with its number of moduli. The selection must have been made before the preceding step began
// (DeviceCondition::selected_earlier).
struct SelectedModuli {
  static constexpr int max_candidates = 5;

  const DeviceSelection* selection = nullptr;
  std::int32_t first = 0;
  std::int32_t least = 0;
  std::int32_t most = 0;

  KINTSUGI_HOST_DEVICE constexpr std::int32_t candidates() const { return most - least + 1; }
  // Number of moduli if `candidate` is selected; 0 if that is none of these candidates.
  KINTSUGI_HOST_DEVICE constexpr std::int32_t moduli_of(std::int32_t candidate) const {
    const std::int32_t index = candidate - first;
    return index >= 0 && index < candidates() ? least + index : 0;
  }
  // Condition of a step of the candidate with `count` moduli alone.
  DeviceCondition condition_of(std::int32_t count) const { return {selection, first + count - least, true}; }
};

// Candidates of select_by_norms(), all accepted by norms, which a candidate without a test follows. A batch
// item takes the first one for which norms prove every element of C, and else the candidate after them.
struct NormCandidates {
  static constexpr int max_candidates = 6;

  Acceptance acceptances[max_candidates] = {};
  int count = 0;
  double coefficient = 0;  // coefficient of |A||B| that norms must prove for every element of C
};

// A DeviceReport that also counts the candidates of longer chains. All reports are parts of one.
struct LongDeviceReport {
  static constexpr int max_candidates = NormCandidates::max_candidates + 1;

  DeviceReport report;
  std::int64_t more_items[max_candidates - DeviceReport::max_candidates] = {};

  // Number of batch items that selected a candidate.
  std::int64_t items(std::size_t candidate) const {
    constexpr std::size_t counted = DeviceReport::max_candidates;
    return candidate < counted ? report.items[candidate] : more_items[candidate - counted];
  }
};

}  // namespace kintsugi::core

// Candidates of a chain that share kernels: they multiply residues of different numbers of moduli, and the
// kernels read in the selection how many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "arith/host_device.hpp"
#include "arith/split_rule.hpp"
#include "base/queue.hpp"
#include "engines/device.hpp"

namespace kintsugi::core {

// Candidates first, first + 1, ... of a chain, with least, least + 1, ..., most moduli. The kernels of a step
// of all of them are launched once. They exit early unless one of these candidates is selected, and else
// compute with its number of moduli. The selection must have been made before the preceding step began
// (DeviceCondition::selected_earlier).
struct SelectedModuli {
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

// Kernels that several candidates of a fallback chain share on a device. Each step is launched once for all
// of them, so a chain may have a candidate for every number of moduli.
class DeviceSharedKernels {
 public:
  virtual ~DeviceSharedKernels() = default;

  // True if the kernels take operands of this type and real candidates whose rules are `least` and `most`,
  // and those between them.
  virtual bool take(ElementType type, const SplitRule& least, const SplitRule& most) const = 0;
  // True if split() is a single launch for vectors of this length, along rows or columns in memory.
  virtual bool split_at_once(std::int64_t length) const = 0;
  // DeviceSplits::select() for candidates that norms prove. A report must be that of a LongDeviceReport.
  virtual void select(const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                      const DeviceScalars& scalars, const NormCandidates& candidates,
                      DeviceSelection* selection, const DeviceReporting& reporting) const = 0;
  // DeviceSplits::split(). `rules` are those of the candidates, the fewest moduli first. The splits have the
  // last rule, and memory for the slices of the most moduli.
  virtual void split(const Queue& queue, std::span<const DeviceSplit> splits,
                     std::span<const SplitRule> rules, const SelectedModuli& selected) const = 0;
  // DeviceProducts::multiply(). `schedule`, slices and sums are those of the most moduli. The first slices
  // are multiplied, as many as moduli are selected.
  virtual void multiply(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                        const Accumulators& sums, const SelectedModuli& selected) const = 0;
  // DeviceProducts::recombine_residues(). The tile's condition is not used.
  virtual void recombine(const Queue& queue, const Accumulators& sums, const DeviceTile& tile,
                         const SelectedModuli& selected) const = 0;
};

}  // namespace kintsugi::core

// Kernels that several candidates of a fallback chain share on a device. Each step is launched once for all
// of them, so a chain may have a candidate for every number of moduli.
#pragma once

#include <span>

#include "arith/split_rule.hpp"
#include "base/queue.hpp"
#include "engines/device.hpp"
#include "engines/device_moduli.hpp"

namespace kintsugi::core {

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

// Operands and products in device memory for measurements of kernels that lead from slices to C.
#pragma once

#include <memory>
#include <vector>

#include "base/cuda/owned.hpp"
#include "calibrate/measurement.hpp"
#include "calibrate/workbench.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::calibrate {

// Returns matrix `index` of the workbench, whose rows are contiguous, as `vectors` rows of `k` elements.
DeviceMatrix row_major_matrix(const Workbench& bench, std::int64_t vectors, std::int64_t k, int index);

// Slices and ranges of one operand, which is matrix `index` of the workbench.
class SplitOperand {
 public:
  SplitOperand(const Workbench& bench, const SplitRule& rule, std::int64_t vectors, std::int64_t k,
               int index);

  const DeviceSide& side() const { return side_; }
  const Slices& slices() const { return slices_; }

 private:
  cuda::OwnedMemory ranges_;
  Slices slices_;
  cuda::OwnedMemory memory_;
  DeviceSide side_;
};

// Several products of the same shape, each with operands of its own. There are so many that a product's
// operands are no longer in a cache when it is computed again. `program` must outlive the object.
class FusedProducts {
 public:
  FusedProducts(const Workbench& bench, const Program& program, const Shape& shape);

  // Returns the product for step `i`.
  const DeviceFusedProduct& at(int i) const {
    return products_[static_cast<std::size_t>(i) % products_.size()];
  }

 private:
  const Program& program_;
  std::vector<std::unique_ptr<SplitOperand>> a_, b_;
  std::vector<DeviceFusedProduct> products_;
};

}  // namespace kintsugi::core::calibrate

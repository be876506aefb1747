// Plans of calls on device memory, and operands prepared for them.
#pragma once

#include <cstddef>

#include "gpu/calls/device_stream.hpp"

namespace kintsugi::test {

struct Planned {
  Planned(const kintsugi_problem& problem, const kintsugi_options& options,
          kintsugi_handle handle = nullptr) {
    EXPECT_EQ(kintsugi_plan_create(handle, &problem, &options, &plan), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    EXPECT_EQ(kintsugi_plan_workspace_size(plan, &workspace), KINTSUGI_SUCCESS);
  }
  ~Planned() { kintsugi_plan_destroy(plan); }
  kintsugi_plan plan = nullptr;
  std::size_t workspace = 0;
};

// A and B of a call, prepared for its plan.
class PreparedOperands {
 public:
  PreparedOperands(kintsugi_plan plan, const kintsugi_operands& operands, bool borrow = false) {
    const auto prepare = borrow ? kintsugi_prepare_borrowed : kintsugi_prepare;
    EXPECT_EQ(prepare(nullptr, plan, KINTSUGI_A, operands.a, &a_), KINTSUGI_SUCCESS) << kintsugi_last_error();
    EXPECT_EQ(prepare(nullptr, plan, KINTSUGI_B, operands.b, &b_), KINTSUGI_SUCCESS) << kintsugi_last_error();
  }
  PreparedOperands(const PreparedOperands&) = delete;
  PreparedOperands& operator=(const PreparedOperands&) = delete;
  ~PreparedOperands() {
    kintsugi_prepared_destroy(a_);
    kintsugi_prepared_destroy(b_);
  }

  // Returns the operands with A prepared if bit 0 of `sides` is set, and B prepared if bit 1 is.
  kintsugi_operands add_to(kintsugi_operands operands, int sides) const {
    operands.prepared_a = (sides & 1) != 0 ? a_ : nullptr;
    operands.prepared_b = (sides & 2) != 0 ? b_ : nullptr;
    return operands;
  }

 private:
  kintsugi_prepared a_ = nullptr, b_ = nullptr;
};

}  // namespace kintsugi::test

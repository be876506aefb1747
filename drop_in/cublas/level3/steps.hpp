// Divides a call of a level-3 routine into steps, by recursion. The order of the triangular or symmetric
// matrix is halved. Each off-diagonal block becomes a product. Each diagonal block becomes a smaller call of
// the same routine, which is divided again or left to cuBLAS.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "cublas/call.hpp"
#include "cublas/decision.hpp"
#include "routine.hpp"

namespace kintsugi::cublas {

struct Step {
  std::optional<RoutineCall> native;  // a smaller call, which cuBLAS answers; nothing: the step is `product`
  Call product = {};
  std::optional<DecisionPointer> decision = {};  // decision on `product`
  bool emulates = false;                         // true: the product is emulated; false: cuBLAS multiplies
};

// Scalars of the matrices' type in host memory. Products of all routines use `one` and `minus_one`. Only herk
// uses `alpha` and `beta`, complex copies of the caller's real scalars; products of other routines use the
// caller's alpha and beta themselves.
struct StepScalars {
  struct alignas(16) Scalar {
    std::array<std::byte, 16> bytes;
  };
  Scalar one, minus_one, alpha, beta;

  StepScalars(const RoutineCall& call, int pointer_mode);
};

class Steps {
 public:
  // A matrix of an order below twice `min_order` is not divided.
  Steps(const CallState& state, const StepScalars& scalars, std::int64_t min_order)
      : state_(state), scalars_(scalars), min_order_(min_order) {}

  // Appends the steps of the call. If the largest product of the call would not be emulated, the call itself
  // is the only step.
  void add(const RoutineCall& call);

  const std::vector<Step>& all() const { return steps_; }
  // Returns the decision on the largest product. add() decides on that product first.
  const Decision& first_decision() const { return **first_decision_; }

 private:
  void add_update(const RoutineCall& call);
  void add_symmetric(const RoutineCall& call);
  void add_solve(const RoutineCall& call);
  void add_native(const RoutineCall& call);
  void add_product(const Call& product);
  // Decides on the product, and stores the decision if it is the first one. Returns true if the product will
  // be emulated.
  bool decide_emulation(const Call& product);

  const CallState& state_;
  const StepScalars& scalars_;
  std::int64_t min_order_;
  std::vector<Step> steps_;
  std::optional<DecisionPointer> first_decision_;
};

}  // namespace kintsugi::cublas

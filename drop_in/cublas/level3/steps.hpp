// Steps of a level-3 routine by recursion: the triangular or symmetric matrix is divided into two halves of
// its order; the blocks beside the diagonal are products, the blocks on it smaller calls of the same routine,
// which cuBLAS answers.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cublas/call.hpp"
#include "cublas/decision.hpp"
#include "routine.hpp"

namespace kintsugi::cublas {

// Either a smaller call of the routine, which cuBLAS answers, or a product.
struct Step {
  std::optional<RoutineCall> native;  // the smaller call; nothing: the step is the product
  Call product = {};
  std::optional<Decided> decision = {};  // on the product
  bool emulates = false;                 // true: the product is emulated; false: cuBLAS multiplies
};

// Scalars of the matrices' type in host memory that products need besides the caller's alpha and beta.
// `alpha` and `beta` are complex copies of the real scalars of herk, whose products are complex; other
// routines pass the caller's scalars on and do not use them.
struct StepScalars {
  struct alignas(16) Scalar {
    std::array<std::byte, 16> bytes;
  };
  Scalar one, minus_one, alpha, beta;

  StepScalars(const RoutineCall& call, int pointer_mode);
};

class Steps {
 public:
  // Blocks of an order below twice `min_order` are not divided.
  Steps(const CallState& state, const StepScalars& scalars, std::int64_t min_order)
      : state_(state), scalars_(scalars), min_order_(min_order) {}

  // Appends the steps of the call. A call whose largest product would not be emulated is a single step,
  // itself.
  void add(const RoutineCall& call);

  const std::vector<Step>& all() const { return steps_; }
  // These return the decision on the largest product, which is the first that add() asks for, and the reason
  // for it.
  const Decision& first_decision() const { return **first_; }
  const std::string& why() const { return why_; }

 private:
  void add_update(const RoutineCall& call);
  void add_symmetric(const RoutineCall& call);
  void add_solve(const RoutineCall& call);
  void add_native(const RoutineCall& call);
  void add_product(const Call& product);
  // Decides on the product, and keeps the first decision for first_decision() and why(). Returns true if the
  // product is to be emulated.
  bool decide_emulation(const Call& product);

  const CallState& state_;
  const StepScalars& scalars_;
  std::int64_t min_order_;
  std::vector<Step> steps_;
  std::optional<Decided> first_;
  std::string why_;
};

}  // namespace kintsugi::cublas

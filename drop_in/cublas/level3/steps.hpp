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

// Either a product or a smaller call of the routine.
struct Step {
  std::optional<RoutineCall> native;
  Call product = {};
  std::optional<Decided> decision = {};  // of the product
  bool emulates = false;                 // the product; else cuBLAS multiplies
};

// Scalars in host memory that the products need beside the caller's, as values of the matrices' type. alpha
// and beta are complex copies of the real scalars of herk; other routines do not use them.
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

  // Appends the steps of the call: the call itself where no product of it would be emulated.
  void add(const RoutineCall& call);

  const std::vector<Step>& all() const { return steps_; }
  // The decision on the largest product, which is asked for first, and the reason for it.
  const Decision& first_decision() const { return **first_; }
  const std::string& why() const { return why_; }

 private:
  void add_update(const RoutineCall& call);
  void add_symmetric(const RoutineCall& call);
  void add_solve(const RoutineCall& call);
  void add_native(const RoutineCall& call);
  void add_product(const Call& product);
  // Asks for the decision, and keeps the first one.
  bool is_emulated(const Call& product);

  const CallState& state_;
  const StepScalars& scalars_;
  std::int64_t min_order_;
  std::vector<Step> steps_;
  std::optional<Decided> first_;
  std::string why_;
};

}  // namespace kintsugi::cublas

// The contract of a plan: the allowed difference between C and the exact product.
#pragma once

#include <cstdint>

#include "planner/contract/request.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

// The contract |C - AB| <= coefficient * (|A||B|)_ij, before alpha, beta and the term for underflow
// (docs/design/bounds.md).
struct Contract {
  Accuracy accuracy;  // the accuracy that the caller named, or the accuracy of the operands' type
  // Coefficient for the problem's inner length. 0 if a scheme was named without an accuracy: then only the
  // scheme's own bound holds.
  double coefficient = 0;
  // Coefficient that a check of an element must prove. For an accuracy of a type it is the contract at k = 1.
  // The contract for large k would allow coarse splits, whose errors a native product never has.
  double checked_coefficient = 0;
};

// Returns the coefficient of (|A||B|)_ij that the accuracy allows; 0 if it allows only the correctly rounded
// result.
double contract_coefficient(const Accuracy& accuracy, std::int64_t k);

Contract contract_of(const PlanRequest& request, const Problem& problem);

// True if native arithmetic is proved to meet the contract.
bool native_meets(const Contract& contract, const Problem& problem);

}  // namespace kintsugi::core

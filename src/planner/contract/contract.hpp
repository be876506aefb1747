// The contract of a plan: the allowed difference between C and the exact product.
#pragma once

#include <cstdint>

#include "planner/contract/request.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

// The contract |C - AB| <= coefficient * (|A||B|)_ij, before alpha and beta.
struct Contract {
  Accuracy accuracy;  // named by the caller, or that of the operands' type
  // Coefficient for the problem's inner length. 0 if a scheme was named without an accuracy: then only the
  // scheme's own bound holds.
  double coefficient = 0;
  // Coefficient that an element check has to prove. For an accuracy of a type it is the contract at k = 1: a
  // contract that grows with k would allow a coarse split with errors that a native product never has.
  double checked_coefficient = 0;
};

// Returns the coefficient of (|A||B|)_ij that the accuracy allows; 0 allows the correctly rounded result
// only.
double contract_coefficient(const Accuracy& accuracy, std::int64_t k);

Contract contract_of(const PlanRequest& request, const Problem& problem);

// True if native arithmetic is proved to meet the contract.
bool native_meets(const Contract& contract, const Problem& problem);

}  // namespace kintsugi::core

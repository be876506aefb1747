// The contract of a plan: how far C may be from the exact product.
#pragma once

#include <cstdint>

#include "planner/contract/request.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core {

// |C - AB| <= coefficient * (|A||B|)_ij before alpha and beta.
struct Contract {
  Accuracy accuracy;  // as asked for, or that of the operands' type
  // For the problem's number of products; 0 where a scheme was named and no accuracy: then its own bound
  // holds alone.
  double coefficient = 0;
  // What an element check shows: of an accuracy of a type the contract at k = 1, since a long sum would
  // forgive a coarse split that the native product never has.
  double checked_coefficient = 0;
};

// The coefficient of (|A||B|)_ij that the accuracy allows; 0: nothing but the correctly rounded result.
double contract_coefficient(const Accuracy& accuracy, std::int64_t k);

Contract contract_of(const PlanRequest& request, const Problem& problem);

// Whether native arithmetic is proved to meet it.
bool native_meets(const Contract& contract, const Problem& problem);

}  // namespace kintsugi::core

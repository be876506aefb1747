#include "planner/contract/contract.hpp"

#include "schemes/bound.hpp"

namespace kintsugi::core {

namespace {

// Returns Contract::checked_coefficient. A tolerance below twice the error of the last rounding requires the
// correctly rounded result.
double checked_coefficient(const Contract& contract, OperandType type) {
  // Elements for which the grid of `reproducible` is not proved are correctly rounded.
  if (contract.accuracy.is_reproducible()) return 0;
  if (contract.accuracy.is_of_type()) return contract_coefficient(contract.accuracy, 1);
  return contract.coefficient >= 2 * unit_roundoff(type) ? contract.coefficient : 0;
}

}  // namespace

double contract_coefficient(const Accuracy& accuracy, std::int64_t k) {
  switch (accuracy.kind) {
    case Accuracy::Kind::by_type:
    case Accuracy::Kind::reproducible: return contract_of_type(accuracy.type, k);
    case Accuracy::Kind::exact: return 0;
    case Accuracy::Kind::tolerance: return accuracy.tolerance;
  }
  return 0;
}

Contract contract_of(const PlanRequest& request, const Problem& problem) {
  Contract contract;
  contract.accuracy = request.accuracy.value_or(accuracy_of_type(problem.type));
  if (contract.accuracy.is_reproducible()) contract.accuracy.type = problem.type;
  contract.coefficient = contract_coefficient(contract.accuracy, problem.products());
  contract.checked_coefficient = checked_coefficient(contract, problem.type);
  if (!request.scheme.empty() && !request.accuracy) contract.coefficient = 0;
  return contract;
}

bool native_meets(const Contract& contract, const Problem& problem) {
  return native_coefficient(problem.type, problem.products()) <= contract.coefficient;
}

}  // namespace kintsugi::core

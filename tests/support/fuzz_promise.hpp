// Promise of the library for a FuzzCase's result: a contract, the accuracy of native arithmetic, or the
// bound of the scheme, which the plan's description has.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "tests/support/fuzz_case.hpp"
#include "tools/measure/bound_check.hpp"

namespace kintsugi::test {

struct Promise {
  enum class Kind { exact, contract, native, scheme };
  Kind kind = Kind::contract;
  double coefficient = 0;  // of |A||B|; for contract and native
  // For scheme: split_a, split_b, bound_in_window and bound_outside_window of the plan's description; null:
  // nothing is promised.
  nlohmann::json bound;
};

// (k + 8) 2^-24 for "fp32", similarly for "fp64" and "dd"; a tolerance itself. Parts of complex elements are
// sums of 2k products.
inline double contract_coefficient(const FuzzCase& test) {
  const std::string name = !test.accuracy.empty()      ? test.accuracy
                           : test.type == "dd"         ? "dd"
                           : is_single_type(test.type) ? "fp32"
                                                       : "fp64";
  const double products = static_cast<double>(test.k) * (is_complex_type(test.type) ? 2 : 1);
  for (const auto& [contract, unit] : {std::pair("fp32", 0x1p-24), {"fp64", 0x1p-53}, {"dd", 0x1p-104}}) {
    if (name == contract) return (products + 8) * unit;
  }
  return std::strtod(name.c_str(), nullptr);
}

// The promise without a named scheme's bound, which is in the plan.
inline Promise promise_of(const FuzzCase& test) {
  Promise promise;
  promise.coefficient = contract_coefficient(test);
  if (test.scheme.starts_with("superaccumulator") || test.accuracy == "exact") {
    promise.kind = Promise::Kind::exact;
  } else if (!test.scheme.empty()) {
    promise.kind = Promise::Kind::scheme;
  } else if (test.policy == "native") {
    promise.kind = Promise::Kind::native;
  }
  return promise;
}

// The bound of a named scheme: from the report of the execution where the program was fitted to the data
// (which it says only of a single batch item), else from the plan's description.
inline nlohmann::json bound_of(const nlohmann::json& plan, const nlohmann::json& report, std::int64_t batch) {
  nlohmann::json adapted = report.value("adapted", nlohmann::json());
  if (!adapted.is_null()) return batch == 1 ? adapted : nlohmann::json();
  const nlohmann::json& candidate = plan.at("candidates").at(0);
  if (!candidate.contains("bound_in_window")) return {};
  return {{"split_a", candidate.at("program").at("split_a")},
          {"split_b", candidate.at("program").at("split_b")},
          {"bound_in_window", candidate.at("bound_in_window")},
          {"bound_outside_window", candidate.at("bound_outside_window")}};
}

namespace fuzz {

inline measure::SplitDescription split_of(const nlohmann::json& split) {
  const auto word = [&](const char* name) -> std::string_view {
    return split.at(name).get_ref<const std::string&>();
  };
  measure::SplitDescription description{word("format"), split.at("slices").get<int>(), word("first_rounding"),
                                        word("residual_rounding"), split.at("residual_exponent").get<int>()};
  description.scale_vectors = split.at("scale_vectors").get<bool>();
  if (!split.at("top_exponent").is_null()) description.top_exponent = split.at("top_exponent").get<int>();
  description.kind = word("kind");
  if (!split.at("tile_vectors").is_null()) {
    description.tile_vectors = split.at("tile_vectors").get<int>();
    description.tile_depth = split.at("tile_depth").get<int>();
  }
  return description;
}

inline measure::BoundCoefficients coefficients_of(const nlohmann::json& bound) {
  return {bound.at("relative"), bound.at("floor_a"), bound.at("floor_b"), bound.at("floor_both")};
}

}  // namespace fuzz
}  // namespace kintsugi::test

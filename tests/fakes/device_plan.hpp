// Descriptions of plans for problems in device memory, over the fakes.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fakes/device_call.hpp"
#include "tests/support/c_objects.hpp"

namespace kintsugi::test {

class DevicePlan : public OverFakes {
 protected:
  json describe(const Call& call) {
    return Handle::text(
        [&](char* b, size_t c, size_t* n) { return kintsugi_plan_describe(call.plan, b, c, n); });
  }
  json planned(Call& call) {
    call.make_plan();
    return call.plan == nullptr ? json() : describe(call);
  }
  static std::vector<std::string> schemes(const json& plan) {
    std::vector<std::string> names;
    for (const json& candidate : plan.at("candidates")) names.push_back(candidate.at("scheme"));
    return names;
  }
  void expect_refused(Call& call, kintsugi_status status, const std::string& reason) {
    EXPECT_EQ(kintsugi_plan_create(nullptr, &call.problem, &call.options, &call.plan), status);
    EXPECT_THAT(kintsugi_last_error(), testing::HasSubstr(reason));
  }

  const Stream stream_;
};

using Names = std::vector<std::string>;

// Product of square matrices with `k` inner indices, and the moduli of its candidates.
struct CaseOfModuli {
  kintsugi_type type;
  std::int64_t size;
  std::int64_t k;
  std::vector<int> moduli;

  void set(kintsugi_problem& problem) const {
    problem.m = problem.n = problem.lda = problem.ldc = size;
    problem.k = problem.ldb = k;
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = type;
  }
  Names names(const std::string& ending) const {
    Names result;
    for (const int count : moduli) result.push_back("ozaki2:moduli=" + std::to_string(count) + ending);
    return result;
  }
};

}  // namespace kintsugi::test

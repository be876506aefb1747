// Objects of the C ABI that clean up after themselves, and what they describe as JSON.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/gemm_case.hpp"

namespace kintsugi::test {

using nlohmann::json;

class Handle {
 public:
  Handle() { kintsugi_create(&handle_); }
  ~Handle() { kintsugi_destroy(handle_); }
  operator kintsugi_handle() const { return handle_; }
  json report() const {
    return text([&](char* b, size_t c, size_t* n) { return kintsugi_report(handle_, b, c, n); });
  }

  template <class Call>
  static json text(const Call& call) {
    size_t needed = 0;
    EXPECT_EQ(call(nullptr, 0, &needed), KINTSUGI_SUCCESS) << kintsugi_last_error();
    std::string buffer(needed, 'x');
    EXPECT_EQ(call(buffer.data(), buffer.size(), nullptr), KINTSUGI_SUCCESS);
    EXPECT_EQ(buffer.back(), '\0');
    buffer.pop_back();
    return json::parse(buffer);
  }

 private:
  kintsugi_handle handle_ = nullptr;
};

class PlanOf {
 public:
  template <class T>
  explicit PlanOf(const GemmDataOf<T>& data) {
    const auto problem = data.problem();
    const auto options = data.options();
    status = kintsugi_plan_create(nullptr, &problem, &options, &plan);
    error = status == KINTSUGI_SUCCESS ? "" : kintsugi_last_error();
  }
  ~PlanOf() { kintsugi_plan_destroy(plan); }
  json describe() const {
    return Handle::text([&](char* b, size_t c, size_t* n) { return kintsugi_plan_describe(plan, b, c, n); });
  }
  std::size_t workspace() const {
    std::size_t bytes = 1;
    EXPECT_EQ(kintsugi_plan_workspace_size(plan, &bytes), KINTSUGI_SUCCESS);
    return bytes;
  }
  kintsugi_plan plan = nullptr;
  kintsugi_status status;
  std::string error;
};

inline bool has_cpu_engine() {
  GemmData data(GemmCase{.engine = "cpu"});
  return PlanOf(data).status == KINTSUGI_SUCCESS;
}

// Names of the schemes in a plan's or a report's candidates.
inline std::vector<std::string> candidates(const json& document) {
  std::vector<std::string> names;
  for (const auto& candidate : document.at("candidates")) names.push_back(candidate.at("scheme"));
  return names;
}

// Runs the case. Returns the index of the candidate that multiplied all of C, and the number of elements that
// wider candidates recomputed; C's bits do not tell.
template <class T>
std::pair<std::size_t, std::int64_t> run_checked(GemmDataOf<T>& data) {
  const Handle handle;
  data.run_well(handle);
  const auto names = candidates(PlanOf(data).describe());
  const auto found = std::find(names.begin(), names.end(), candidates(handle.report()).at(0));
  return {static_cast<std::size_t>(found - names.begin()), handle.report().at("recomputed_elements")};
}

}  // namespace kintsugi::test

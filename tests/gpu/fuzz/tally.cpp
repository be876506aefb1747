#include "gpu/fuzz/tally.hpp"

#include <fmt/format.h>

namespace kintsugi::test {
namespace {

// Returns the case's request: a scheme, or policy and accuracy.
std::string request_text(const FuzzCase& test) {
  if (!test.scheme.empty()) return "scheme " + test.scheme;
  return (test.policy.empty() ? "auto" : test.policy) + (test.accuracy.empty() ? "" : " " + test.accuracy);
}

}  // namespace

void Tally::add(const FuzzCase& test, const Outcome& outcome) {
  const std::scoped_lock lock(mutex_);
  ++calls_;
  elements_ += outcome.elements;
  if (!outcome.program.empty())
    ++programs_[fmt::format("{}, {}, {}", test.type, request_text(test), outcome.program)];
  if (!outcome.refusal.empty()) {
    ++refused_;
    ++refusals_[fmt::format("{}, {}: {}", test.type, request_text(test), outcome.refusal)];
  }
  for (const Fault& fault : outcome.faults) count_fault(test, fault, outcome.program);
}

void Tally::add_fault(const FuzzCase& test, const Fault& fault, const std::string& program) {
  const std::scoped_lock lock(mutex_);
  count_fault(test, fault, program);
}

void Tally::count_fault(const FuzzCase& test, const Fault& fault, const std::string& program) {
  const std::string text = to_text(test);
  Class& found = classes_[fmt::format("{}: {}, {}, {}", fault.kind, test.type, request_text(test), program)];
  if (found.count++ == 0) {
    found.first_case = text;
    found.first_detail = fault.detail;
  }
  if (++violations_ > max_printed) return;
  fmt::print("FAILED  {}: {}\n        {} --case '{}'\n", fault.kind, fault.detail, prefix_, text);
  std::fflush(stdout);
}

std::int64_t Tally::calls() const {
  const std::scoped_lock lock(mutex_);
  return calls_;
}

std::int64_t Tally::violations() const {
  const std::scoped_lock lock(mutex_);
  return violations_;
}

nlohmann::json Tally::document() const {
  const std::scoped_lock lock(mutex_);
  nlohmann::json classes = nlohmann::json::array();
  for (const auto& [name, found] : classes_)
    classes.push_back({{"class", name},
                       {"count", found.count},
                       {"case", found.first_case},
                       {"detail", found.first_detail}});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
  return {{"calls", calls_},           {"refused", refused_},       {"elements", elements_},
          {"violations", violations_}, {"classes", classes},        {"refusals", refusals_},
          {"programs", programs_},     {"seconds", seconds.count()}};
}

void Tally::print_summary() const {
  const std::scoped_lock lock(mutex_);
  for (const auto& [name, found] : classes_)
    fmt::print("{:>8} x {}\n           --case '{}'\n", found.count, name, found.first_case);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
  fmt::print(
      "{} calls in {:.1f} s, {} of them refused; {} elements of C compared with the reference; {} "
      "violations\n",
      calls_, seconds.count(), refused_, elements_, violations_);
}

}  // namespace kintsugi::test

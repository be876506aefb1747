// Counts of a run of the differential test, and its JSON.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "gpu/fuzz/call.hpp"

namespace kintsugi::test {

class Tally {
 public:
  // `prefix`: the command line that repeats a case, up to the case itself.
  explicit Tally(std::string prefix) : prefix_(std::move(prefix)) {}

  void add(const FuzzCase& test, const Outcome& outcome);
  void add_fault(const FuzzCase& test, const Fault& fault, const std::string& program = "");
  std::int64_t calls() const;
  std::int64_t violations() const;
  // JSON with the numbers of calls and refusals, and the violations by class with the first case of each.
  nlohmann::json document() const;
  void print_summary() const;

 private:
  struct Class {
    std::int64_t count = 0;
    std::string first_case, first_detail;
  };

  void count_fault(const FuzzCase& test, const Fault& fault, const std::string& program);

  static constexpr std::int64_t max_printed = 40;

  const std::string prefix_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::int64_t calls_ = 0, refused_ = 0, violations_ = 0, elements_ = 0;
  std::map<std::string, std::int64_t> programs_;  // calls by type, policy and first candidate
  std::map<std::string, std::int64_t> refusals_;
  std::map<std::string, Class> classes_;
};

}  // namespace kintsugi::test

// One product of the operands: the constructor makes its plan, run() multiplies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gemm/problem.hpp"
#include "lab/metrics.hpp"
#include "support.hpp"

namespace kintsugi::tools {

// A setting given as a flag of the command line.
struct FlagValue {
  std::string flag;         // "--scheme"
  std::string name;         // "scheme"
  std::string environment;  // "KINTSUGI_SCHEME"
  std::string value;
  bool environment_only = false;  // true: the library reads the variable alone, for the whole program
};

// One row of the table: request, plan, report and measurements.
struct Row {
  std::string requested_scheme;  // scheme of --compare; "" for the product of the settings
  Json plan;                     // kintsugi_plan_describe
  Json report;                   // kintsugi_report
  Json settings;                 // kintsugi_describe_settings
  Matrix c;
  double plan_seconds = 0;
  double seconds = 0;  // time of the fastest run
  int runs = 0;
  std::optional<lab::ErrorReport> errors;
};

struct PlanDeleter {
  void operator()(kintsugi_plan plan) const { kintsugi_plan_destroy(plan); }
};

// Product that the command line asks for: that of its settings, or one of --compare.
class RequestedProduct {
 public:
  // Plans the product with the settings of the flags.
  RequestedProduct(const Operands& operands, const std::vector<FlagValue>& flags);
  // Plans the product with another scheme, or "native": flags and variables that name a scheme, a policy or
  // an accuracy are ignored.
  RequestedProduct(const Operands& operands, const std::vector<FlagValue>& flags, const std::string& scheme);

  const std::string& requested_scheme() const { return row_.requested_scheme; }

  // Computes C and returns the row; repeats short products to time them. Can be called only once.
  Row run();

 private:
  // Sets the settings in the handle and in the environment, from which the library reads some of them only.
  void set_flags(const std::vector<FlagValue>& flags);
  void plan(const kintsugi_options& options, const std::vector<FlagValue>& flags);
  void execute_once(Matrix& c);
  template <class T>
  void execute_once(Matrix& c);

  const Operands& operands_;
  Handle handle_;
  std::unique_ptr<kintsugi_plan_s, PlanDeleter> plan_;
  Row row_;
};

}  // namespace kintsugi::tools

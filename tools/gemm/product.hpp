// One product of the operands. The constructor makes the plan, and run() multiplies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gemm/problem.hpp"
#include "plan.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::tools {

// A setting given as a flag of the command line.
struct FlagValue {
  std::string flag;         // "--scheme"
  std::string name;         // "scheme"
  std::string environment;  // "KINTSUGI_SCHEME"
  std::string value;
  bool environment_only = false;  // true: the library reads only the environment variable
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
  std::optional<measure::ErrorReport> errors;
};

// A product that the command line asks for, by its settings or by --compare.
class RequestedProduct {
 public:
  // Plans the product with the settings of the flags.
  RequestedProduct(const Operands& operands, const std::vector<FlagValue>& flags);
  // Plans the product with another scheme, or "native": flags and variables that name a scheme, a policy or
  // an accuracy are ignored.
  RequestedProduct(const Operands& operands, const std::vector<FlagValue>& flags, const std::string& scheme);

  const std::string& requested_scheme() const { return row_.requested_scheme; }

  // Computes C and returns the row. Repeats short products to time them. May be called only once.
  Row run();

 private:
  // Sets the settings in the handle and in the environment. (The library reads some settings only from the
  // environment.)
  void set_flags(const std::vector<FlagValue>& flags);
  void plan(const kintsugi_options& options, const std::vector<FlagValue>& flags);
  void execute_once(Matrix& c);
  template <class T>
  void execute_once(Matrix& c);

  const Operands& operands_;
  Handle handle_;
  Plan plan_;
  Row row_;
};

}  // namespace kintsugi::tools

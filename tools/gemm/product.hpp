// Products of the operands of files and flags, and their errors relative to the exact result.
#pragma once

#include <kintsugi/kintsugi.h>

#include <complex>
#include <optional>
#include <string>
#include <vector>

#include "io/matrix_file.hpp"
#include "plan.hpp"
#include "tools/measure/metrics.hpp"
#include "tools/measure/reference/exact.hpp"

namespace kintsugi::tools {

struct ProblemRequest {
  std::string a_file;
  std::string b_file;
  std::string c_file;  // "": none
  std::string transa = "N";
  std::string transb = "N";
  std::string alpha = "1";  // "RE"; for complex operands "RE,IM", for double-double ones "HI,LO"
  std::string beta;         // "": 0, or an error if a C is given
  std::string type;         // "": the type of the files
  std::string order = "c";
};

// The operands in memory and the problem that describes them. C has the order of `--order`. An operand in the
// other order is not copied; in the problem it is the transpose of a matrix in C's order.
struct Operands {
  Matrix a;
  Matrix b;
  std::optional<Matrix> c0;        // old C, stored like C
  std::complex<double> alpha = 1;  // rounded to the operands' type; a double-double number as (hi, lo)
  std::complex<double> beta = 0;
  std::string transa;
  std::string transb;
  Order order = Order::row_major;
  kintsugi_problem problem;
  std::vector<std::string> notes;  // changes to the files' elements, in words

  Type type() const { return a.type(); }  // type of the parts, if complex
  bool complex() const { return a.complex; }

  // Returns views of op(A), op(B) and C0, as tools/measure needs them. Precondition: the operands are real
  // and have type T.
  template <class T>
  measure::Product<T> product() const;
};

// Reads the files and checks that they fit together.
Operands read_operands(const ProblemRequest& request);

// A setting given as a flag of the command line.
struct FlagValue {
  std::string flag;         // "--scheme"
  std::string name;         // "scheme"
  std::string environment;  // "KINTSUGI_SCHEME"
  std::string value;
  bool environment_only = false;  // true: the library reads only the environment variable
};

// A word of --compare: "native", a scheme, or an accuracy as the setting `accuracy` takes it.
struct ComparedProduct {
  std::string word;  // "": the product of the settings
  bool is_accuracy = false;
};

// Parses a word of --compare; fails with the nearest name if it is none of these.
ComparedProduct compared_product(const std::string& word);

// One row of the table: request, plan, report and measurements.
struct Row {
  ComparedProduct requested;
  Json plan;      // kintsugi_plan_describe
  Json report;    // kintsugi_report
  Json settings;  // kintsugi_describe_settings
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
  // Plans the product with another scheme or accuracy, or natively. Flags and variables that name a scheme or
  // an accuracy are ignored; so are those of the policy unless an accuracy is compared.
  RequestedProduct(const Operands& operands, const std::vector<FlagValue>& flags,
                   const ComparedProduct& compared);

  // Description of the plan. Must not be called after run().
  const Json& plan() const { return row_.plan; }

  // Computes C and returns the row. Repeats short products to time them. May be called only once.
  Row run();

 private:
  // Sets the settings in the handle and in the environment. (The library reads some settings only from the
  // environment.)
  void set_flags(const std::vector<FlagValue>& flags);
  void make_plan(const kintsugi_options& options, const std::vector<FlagValue>& flags);
  void execute_once(Matrix& c);

  const Operands& operands_;
  Handle handle_;
  Plan plan_;
  Row row_;
};

inline constexpr std::uint64_t sample_seed = 1;

// Sets row.errors. `native` is the C of the native product, with which le-gemm's error measures compare;
// nullptr: there is none.
void measure(const Operands& operands, const Matrix* native, Row& row);

// The accuracy by which a measured row is judged, and whether C meets it.
struct ContractVerdict {
  std::string accuracy;
  double coefficient;  // of |A||B|; 0: C must be correctly rounded
  bool named;          // true: a setting names the accuracy; false: it is the accuracy of the operands' type
  bool met;
};
ContractVerdict judge(const Row& row);

// True if the errors meet an accuracy and its coefficient of |A||B|. If these are of the operands' type, the
// report's verdict decides, which allows for subnormal results too.
bool meets(const measure::ErrorReport& errors, const std::string& accuracy, double coefficient);

// Returns the errors as JSON (docs/schema/gemm.schema.json).
Json errors_document(const measure::ErrorReport& errors);

}  // namespace kintsugi::tools

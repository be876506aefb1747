// Results of one scheme on one problem: retained bits, window, bounds, and errors on the sample.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "bound.hpp"
#include "explain/facts.hpp"
#include "explain/plans.hpp"
#include "explain/sample.hpp"
#include "tools/measure/bound_check.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/measure/retained_bits.hpp"

namespace kintsugi::tools {

// Bounds of |C - AB| relative to |A||B| for three sets of operands. The last two are missing if the problem's
// operands are outside the window.
struct Bound {
  measure::BoundCoefficients coefficients;    // for all operands inside the window
  std::optional<double> dynamic_range_bound;  // for all operands with the problem's dynamic ranges
  std::optional<double> sample_bound;         // largest of the sampled elements' own bounds
};

struct SchemeRow {
  std::string scheme;
  std::string refusal;  // "" if the scheme ran
  Json program;         // program of the plan; null for native and without a plan
  std::int64_t k = 0;   // inner length
  std::string accumulator;
  std::optional<measure::RetainedCounts> retained_a;  // nothing for native and without a plan
  std::optional<measure::RetainedCounts> retained_b;
  measure::SplitWindow window;  // window of the split of A
  std::optional<bool> in_window;
  std::optional<Bound> bound;
  std::optional<measure::ErrorReport> errors;
  bool meets_contract = false;  // true: every element of the sample does
  bool proved = false;          // true: the contract is proved for all elements
  // Largest dynamic range, in binades, for which the contract is proved; nothing if there is none, and for a
  // split that does not scale vectors.
  std::optional<int> proved_dynamic_range;

  int products() const { return program.is_null() ? 0 : program.at("products").get<int>(); }
  // Returns the number of inner indices in a block of k (0: all of k); null without a program.
  Json k_block() const;
};

template <class T>
class SchemeRows {
 public:
  // Views have vectors along k as rows: op(A), op(B) transposed.
  SchemeRows(core::MatrixView<const T> a, core::MatrixView<const T> b, const OperandFacts& facts_a,
             const OperandFacts& facts_b, const Sample<T>& sample, const Contract& contract,
             std::string engine)
      : a_(a), b_(b), facts_a_(facts_a), facts_b_(facts_b), sample_(sample), contract_(contract),
        engine_(std::move(engine)) {}

  // Multiplies the sample by the scheme and returns the results.
  SchemeRow row(const std::string& scheme);

 private:
  // Returns the retained bits. Counting reads whole operands, and many schemes have the same split, so
  // results are kept.
  measure::RetainedCounts retained(measure::Side side, const Json& split);
  // Returns the bound for operands whose non-zero elements are at least min_a and min_b, in units of the
  // split.
  double bound_for_smallest(const Json& program, const measure::BoundCoefficients& bound, double min_a,
                            double min_b) const;
  std::optional<int> proved_dynamic_range(const Json& program, const measure::BoundCoefficients& bound) const;
  Bound bound_of(const Json& program, const Json& coefficients, bool in_window,
                 const std::vector<measure::ElementError>& elements) const;

  core::MatrixView<const T> a_;
  core::MatrixView<const T> b_;
  const OperandFacts& facts_a_;
  const OperandFacts& facts_b_;
  const Sample<T>& sample_;
  Contract contract_;
  std::string engine_;
  std::map<std::pair<measure::Side, std::string>, measure::RetainedCounts> retained_;
};

extern template class SchemeRows<float>;
extern template class SchemeRows<double>;

Json row_document(const SchemeRow& row);

}  // namespace kintsugi::tools

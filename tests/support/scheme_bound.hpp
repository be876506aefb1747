// Largest error of a scheme on an engine, for tests of its results.
#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "engines/registry.hpp"
#include "planner/candidates.hpp"
#include "planner/plan.hpp"
#include "schemes/bound.hpp"
#include "schemes/program.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::test {

// The engine's first accumulator for the program; fp32 if the engine multiplies nothing of it.
inline core::Accumulator first_accumulator(const core::Engine& engine, const core::Program& program) {
  const auto accumulators = core::accumulators_of(engine, program, core::ElementType::f32, /*is_named=*/true);
  return accumulators.empty() ? core::Accumulator::fp32 : accumulators.front();
}

// Coefficient of (|A||B|)_ij in the error bound, for operands inside the windows whose vectors each have all
// magnitudes in one binade; includes the last rounding to fp32.
inline double coefficient(const std::string& scheme, const std::string& engine, std::int64_t k) {
  const auto type = core::OperandType::f32;
  const core::Program program = core::fitted_program(*core::find_scheme(scheme), type, k);
  const core::ErrorBound bound =
      core::error_bound(program, first_accumulator(*core::find_engine(engine), program), k, true, true);
  return core::relative_bound(program, bound, type, k, 0, 0) * (1 + 0x1p-20) + 0x1p-24;
}

// The error bound of each element of one product, from the program, the accumulator and the operands.
template <class T>
class Allowance {
 public:
  // For finite a (m x k) and b (k x n), and the engine's first accumulator unless one is given.
  Allowance(const core::Scheme& scheme, const core::Engine& engine, core::MatrixView<const T> a,
            core::MatrixView<const T> b, std::optional<core::Accumulator> accumulator = {})
      : Allowance(core::fitted_program(scheme, type, a.columns), engine, a, b, accumulator) {}

  // True if a split may overflow, so that nothing is promised.
  bool overflows() const { return overflows_; }

  // The bound of |C - R| with R = alpha A B + beta C0, including all roundings to T after the recombination:
  // of alpha's product, of beta's, and of their sum.
  double operator()(const measure::ElementError& element, double alpha = 1) const {
    constexpr double unit = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-53;
    constexpr double smallest = std::is_same_v<T, float> ? 0x1p-149 : 0x1p-1074;
    const double floors = bound_.floor_a * a_.unscales[element.i] * b_.ones[element.j] +
                          bound_.floor_b * b_.unscales[element.j] * a_.ones[element.i] +
                          bound_.floor_both * a_.unscales[element.i] * b_.unscales[element.j];
    const double before = bound_.relative * element.absolute + std::abs(alpha) * floors;
    const double roundings = std::is_same_v<T, float> ? 1 + 0x1p-20 : 3;
    return before * (1 + 0x1p-20) + roundings * unit * (std::abs(element.exact) + before) +
           (std::is_same_v<T, float> ? 0 : unit * element.absolute) + smallest;
  }

 private:
  static constexpr core::OperandType type =
      std::is_same_v<T, float> ? core::OperandType::f32 : core::OperandType::f64;

  Allowance(const core::Program& program, const core::Engine& engine, core::MatrixView<const T> a,
            core::MatrixView<const T> b, std::optional<core::Accumulator> accumulator)
      : a_(a, program.split_a), b_(b.transposed(), program.split_b) {
    overflows_ =
        core::can_overflow(program.split_a, a_.summary) || core::can_overflow(program.split_b, b_.summary);
    const auto used = accumulator ? *accumulator : first_accumulator(engine, program);
    if (a.columns > 0) {
      bound_ = core::error_bound(program, used, a.columns, core::in_window(program.split_a, a_.summary),
                                 core::in_window(program.split_b, b_.summary));
    }
  }

  struct Norms {
    Norms(core::MatrixView<const T> rows, const core::SplitRule& rule)
        : ones(static_cast<std::size_t>(rows.rows)), unscales(ones.size()) {
      std::vector<core::VectorRange> ranges(ones.size());
      core::find_ranges(rows, rule, ranges, 1);
      summary = core::summarize(ranges);
      for (std::int64_t v = 0; v < rows.rows; ++v) {
        unscales[v] = std::ldexp(1.0, -ranges[v].scale);
        for (std::int64_t p = 0; p < rows.columns; ++p) ones[v] += std::abs(static_cast<double>(rows(v, p)));
      }
    }
    std::vector<double> ones;      // 1-norm of each vector
    std::vector<double> unscales;  // 2^-scale
    core::RangeSummary summary;
  };

  Norms a_;
  Norms b_;
  core::ErrorBound bound_;
  bool overflows_ = false;
};

}  // namespace kintsugi::test

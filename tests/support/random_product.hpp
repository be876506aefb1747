// Random products of host matrices, of every layout, with zeros, special values and wide ranges.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "base/embedding.hpp"
#include "base/settings.hpp"
#include "engines/registry.hpp"
#include "execute/execute.hpp"
#include "formats/double_double.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Type of the numbers that elements have one or two of.
template <class T>
using NumberOf = std::conditional_t<is_double_double<T>, double, RealOf<T>>;

template <class T>
constexpr OperandType operand_type = is_double_double<T>                    ? OperandType::dd
                                     : sizeof(NumberOf<T>) == sizeof(float) ? OperandType::f32
                                                                            : OperandType::f64;

// A random problem with its matrices.
template <class T>
class RandomProduct {
 public:
  explicit RandomProduct(std::uint64_t seed) : random_(seed) {
    problem.type = operand_type<T>;
    problem.complex = is_complex<T>;
    problem.m = pick({1, 2, 5, 16, 31, 33, 64, 65, 130, 200});
    problem.n = pick({1, 3, 4, 17, 32, 48, 63, 97, 150});
    problem.k = pick({1, 2, 5, 63, 64, 66, 129, 511, 513, 1030});
    problem.layout = draw(2) == 0 ? Layout::column_major : Layout::row_major;
    const std::vector<Op> ops{Op::none, Op::transpose,
                              is_complex<T> ? Op::conjugate_transpose : Op::transpose};
    problem.op_a = ops[draw(3)];
    problem.op_b = ops[draw(3)];
    const bool by_rows = problem.layout == Layout::row_major;
    const auto stride = [&](Op op, std::int64_t rows, std::int64_t columns) {
      return ((op != Op::none) != by_rows ? columns : rows) + static_cast<std::int64_t>(draw(3));
    };
    problem.lda = stride(problem.op_a, problem.m, problem.k);
    problem.ldb = stride(problem.op_b, problem.k, problem.n);
    problem.ldc = (by_rows ? problem.n : problem.m) + static_cast<std::int64_t>(draw(3));
    alpha = std::vector<T>{1, 1, 1, -1, scalar(NumberOf<T>(2.5))}[draw(5)];
    beta = std::vector<T>{0, 0, 1, -1, scalar(NumberOf<T>(0.3))}[draw(5)];
    a = matrix(problem.lda * std::max(problem.m, problem.k));
    b = matrix(problem.ldb * std::max(problem.k, problem.n));
    c = matrix(problem.ldc * std::max(problem.m, problem.n));
    for (T& x : c) x = is_finite(x) ? x : T(7);
    if (beta == T(0)) std::ranges::fill(c, T(std::numeric_limits<NumberOf<T>>::quiet_NaN()));
    threads_ = draw(4) == 0 ? "2" : "1";
  }

  Plan plan(const char* engine, const char* setting, const char* value) const {
    SettingLayer call;
    call.set(find_setting(setting), value, "test");
    call.set(find_setting("threads"), threads_, "test");
    return make_plan_on(problem, Settings(call, {}, {}, {}), *find_engine(engine));
  }

  std::vector<T> run(const Plan& plan) const {
    std::vector<T> result = c;
    Report report;
    execute(plan,
            {.alpha = alpha, .beta = beta, .a = a.data(), .b = b.data(), .c = result.data(), .queue = {}},
            report);
    return result;
  }

  std::uint64_t draw(std::uint64_t count) { return random_() % count; }

  Problem problem;
  T alpha = 1;
  T beta = 0;
  std::vector<T> a, b, c;

 private:
  std::int64_t pick(const std::vector<std::int64_t>& from) { return from[draw(from.size())]; }

  static T scalar(NumberOf<T> x) {
    if constexpr (is_complex<T>)
      return {x, -2 * x};
    else
      return x;
  }
  static bool is_finite(const T& x) {
    if constexpr (is_double_double<T>)
      return core::is_finite(x.hi);
    else
      return x - x == T(0);
  }

  std::vector<T> matrix(std::int64_t elements) {
    using Number = NumberOf<T>;
    std::normal_distribution<double> normal;
    const double phi = std::vector<double>{0, 0.5, 2, 8}[draw(4)];
    const std::uint64_t kind = draw(10);
    std::vector<T> result(static_cast<std::size_t>(elements));
    const auto number = [&] {
      double value = normal(random_) * std::exp(phi * normal(random_));
      if (kind == 0) value = std::round(3 * value);  // many zeros in C
      if (kind == 1) value = draw(2) == 0 ? 0 : value;
      if (kind == 2) value = static_cast<double>(draw(1 << 24)) - (1 << 23);     // many halfway cases in C
      if (kind == 3) value *= sizeof(Number) == sizeof(float) ? 1e-21 : 1e-160;  // subnormal elements of C
      return static_cast<Number>(value);
    };
    for (T& x : result) {
      if constexpr (is_complex<T>) {
        const Number re = number();
        x = {re, kind == 6 ? Number(0) : number()};  // real numbers: zeros in C
      } else if constexpr (is_double_double<T>) {
        const double high = number();
        x = {high, kind < 3 ? 0 : kind == 7 ? number() : high * number() * 0x1p-53};
      } else {
        x = number();
      }
    }
    if (kind == 4) result[draw(result.size())] = std::numeric_limits<Number>::quiet_NaN();
    if (kind == 5) result[draw(result.size())] = std::numeric_limits<Number>::infinity();
    return result;
  }

  std::mt19937_64 random_;
  const char* threads_ = "1";
};

template <class T>
bool have_same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  using Number = NumberOf<T>;
  using Bits = std::conditional_t<sizeof(Number) == sizeof(float), std::uint32_t, std::uint64_t>;
  const auto same = [](Number p, Number q) {
    return std::isnan(p) ? std::isnan(q) : std::bit_cast<Bits>(p) == std::bit_cast<Bits>(q);
  };
  return std::ranges::equal(x, y, [&](T p, T q) {
    if constexpr (is_complex<T>)
      return same(p.real(), q.real()) && same(p.imag(), q.imag());
    else if constexpr (is_double_double<T>)
      return same(p.hi, q.hi) && same(p.lo, q.lo);
    else
      return same(p, q);
  });
}

}  // namespace kintsugi::core

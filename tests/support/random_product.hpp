// Random products of real host matrices, of every layout, with zeros, special values and wide ranges.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "base/settings.hpp"
#include "engines/registry.hpp"
#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

template <class T>
constexpr OperandType operand_type = sizeof(T) == sizeof(float) ? OperandType::f32 : OperandType::f64;

// A random problem with its matrices.
template <class T>
class RandomProduct {
 public:
  explicit RandomProduct(std::uint64_t seed) : random_(seed) {
    problem.type = operand_type<T>;
    problem.m = pick({1, 2, 5, 16, 31, 33, 64, 65, 130, 200});
    problem.n = pick({1, 3, 4, 17, 32, 48, 63, 97, 150});
    problem.k = pick({1, 2, 5, 63, 64, 66, 129, 511, 513, 1030});
    problem.layout = draw(2) == 0 ? Layout::column_major : Layout::row_major;
    problem.op_a = draw(2) == 0 ? Op::none : Op::transpose;
    problem.op_b = draw(2) == 0 ? Op::none : Op::transpose;
    const bool by_rows = problem.layout == Layout::row_major;
    const auto stride = [&](Op op, std::int64_t rows, std::int64_t columns) {
      return ((op == Op::transpose) != by_rows ? columns : rows) + static_cast<std::int64_t>(draw(3));
    };
    problem.lda = stride(problem.op_a, problem.m, problem.k);
    problem.ldb = stride(problem.op_b, problem.k, problem.n);
    problem.ldc = (by_rows ? problem.n : problem.m) + static_cast<std::int64_t>(draw(3));
    alpha = std::vector<T>{1, 1, 1, -1, T(2.5)}[draw(5)];
    beta = std::vector<T>{0, 0, 1, -1, T(0.3)}[draw(5)];
    a = matrix(problem.lda * std::max(problem.m, problem.k));
    b = matrix(problem.ldb * std::max(problem.k, problem.n));
    c = matrix(problem.ldc * std::max(problem.m, problem.n));
    for (T& x : c) x = std::isfinite(x) ? x : T(7);
    if (beta == 0) std::ranges::fill(c, std::numeric_limits<T>::quiet_NaN());
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

  std::vector<T> matrix(std::int64_t elements) {
    std::normal_distribution<double> normal;
    const double phi = std::vector<double>{0, 0.5, 2, 8}[draw(4)];
    const std::uint64_t kind = draw(10);
    std::vector<T> result(static_cast<std::size_t>(elements));
    for (T& x : result) {
      double value = normal(random_) * std::exp(phi * normal(random_));
      if (kind == 0) value = std::round(3 * value);  // many zeros in C
      if (kind == 1) value = draw(2) == 0 ? 0 : value;
      if (kind == 2) value = static_cast<double>(draw(1 << 24)) - (1 << 23);  // many halfway cases in C
      if (kind == 3) value *= sizeof(T) == sizeof(float) ? 1e-21 : 1e-160;    // subnormal elements of C
      x = static_cast<T>(value);
    }
    if (kind == 4) result[draw(result.size())] = std::numeric_limits<T>::quiet_NaN();
    if (kind == 5) result[draw(result.size())] = std::numeric_limits<T>::infinity();
    return result;
  }

  std::mt19937_64 random_;
  const char* threads_ = "1";
};

template <class T>
bool have_same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  using Bits = std::conditional_t<sizeof(T) == sizeof(float), std::uint32_t, std::uint64_t>;
  return std::ranges::equal(x, y, [](T p, T q) {
    return std::isnan(p) ? std::isnan(q) : std::bit_cast<Bits>(p) == std::bit_cast<Bits>(q);
  });
}

}  // namespace kintsugi::core

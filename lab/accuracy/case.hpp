// Random matrices, their products by a method, and the errors of compared elements against exact products.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "lab/numerics/long_double_reference.hpp"
#include "tools/gemm/product.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/plan.hpp"

namespace kintsugi::tools {

template <class T>
core::MatrixView<const T> row_major(const std::vector<T>& values, std::int64_t rows, std::int64_t columns) {
  return {values.data(), rows, columns, columns, 1};
}

// Returns zeros; fails if they do not fit in the machine's memory.
template <class T>
std::vector<T> make_elements(std::int64_t rows, std::int64_t columns) {
  return std::get<std::vector<T>>(
      make_matrix("--shapes", rows, columns, type_of<T>, Order::row_major).values);
}

template <class T>
std::vector<T> random_elements(const std::string& distribution, measure::Side side, std::uint64_t seed,
                               std::int64_t rows, std::int64_t columns) {
  std::vector<T> values = make_elements<T>(rows, columns);
  try {
    measure::fill(measure::parse_distribution(distribution), side, seed,
                  core::MatrixView<T>{values.data(), rows, columns, columns, 1});
  } catch (const std::runtime_error& error) {  // the type cannot hold the distribution's values
    fail("--distributions", "{}", error.what());
  }
  return values;
}

// A product C = A B of row-major matrices, executed once.
template <class T>
struct TimedProduct {
  std::vector<T> c;
  double plan_seconds = 0;
  double seconds = 0;
  Json plan;    // the plan's description
  Json report;  // of the execution
  // Set by ComparedCase::compare().
  Json errors;
  std::vector<measure::ElementError> elements;
};

template <class T>
TimedProduct<T> timed_product(const Shape& shape, const Method& method, const std::vector<T>& a,
                              const std::vector<T>& b) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  TimedProduct<T> product;
  const Handle handle = make_handle();
  const auto planning = Clock::now();
  const Plan plan = make_plan(handle.get(), shape, method);
  product.plan_seconds = seconds_since(planning);
  product.c = make_elements<T>(shape.m, shape.n);
  const auto start = Clock::now();
  require(method.scheme, execute_product(handle.get(), plan, a.data(), b.data(), product.c.data()));
  product.seconds = seconds_since(start);
  product.plan = describe(plan);
  product.report = report_of(handle.get());
  return product;
}

// Operands of one shape with the exact values of the compared elements of C.
template <class T>
class ComparedCase {
 public:
  ComparedCase(const Shape& shape, std::vector<T> a, std::vector<T> b, std::int64_t max_elements)
      : shape_(shape), a_(std::move(a)), b_(std::move(b)),
        // A work limit of 0: max_elements alone decides how many elements are compared.
        exact_({.a = view_a(), .b = view_b()}, shape.m, shape.n,
               {.work_limit = 0, .max_elements = max_elements, .seed = sample_seed}) {}

  core::MatrixView<const T> view_a() const { return row_major(a_, shape_.m, shape_.k); }
  core::MatrixView<const T> view_b() const { return row_major(b_, shape_.k, shape_.n); }

  TimedProduct<T> multiply(const Method& method) const { return timed_product(shape_, method, a_, b_); }

  // Sets the product's errors and elements. `native`: the native product; nullptr: there is none.
  void compare(TimedProduct<T>& product, const TimedProduct<T>* native) {
    const auto view_c = [&](const TimedProduct<T>& some) { return row_major(some.c, shape_.m, shape_.n); };
    const auto native_c = native != nullptr ? view_c(*native) : core::MatrixView<const T>{};
    product.errors = errors_document(exact_.measure(view_c(product), native_c, &product.elements));
    product.errors["mean_relative_long_double"] = nullptr;
    if (!lab::has_80_bit_long_double) return;
    if (long_double_sums_.empty())
      long_double_sums_ = lab::long_double_sums(view_a(), view_b(), product.elements);
    product.errors["mean_relative_long_double"] =
        number(lab::mean_relative_error(product.elements, long_double_sums_));
  }

 private:
  Shape shape_;
  std::vector<T> a_;
  std::vector<T> b_;
  measure::ExactReference<T> exact_;
  std::vector<long double>
      long_double_sums_;  // sums of the compared elements, computed for the first product
};

}  // namespace kintsugi::tools

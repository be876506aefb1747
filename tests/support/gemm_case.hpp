// One product through the C ABI: random operands with padding, a poisoned C, and a check that nothing but C's
// elements is written.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "base/embedding.hpp"
#include "base/view.hpp"
#include "kintsugi/kintsugi.h"
#include "planner/problem.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/measure/metrics.hpp"

namespace kintsugi::test {

using core::MatrixView;

// A NaN with a payload that no result has, so that it shows where memory was not written, or was read.
inline constexpr std::uint32_t poison_bits = 0x7fc0dead;
inline float poison() { return std::bit_cast<float>(poison_bits); }
inline bool is_poison(float x) { return std::bit_cast<std::uint32_t>(x) == poison_bits; }

inline constexpr std::uint64_t double_poison_bits = 0x7ff8000000c0deadU;
inline bool is_poison(double x) { return std::bit_cast<std::uint64_t>(x) == double_poison_bits; }

inline bool is_poison(const core::DoubleDouble& x) { return is_poison(x.hi) && is_poison(x.lo); }

template <class T>
bool is_poison(const std::complex<T>& x) {
  return is_poison(x.real()) && is_poison(x.imag());
}

template <class T>
T poison_of() {
  if constexpr (core::is_complex<T>) {
    return {poison_of<core::RealOf<T>>(), poison_of<core::RealOf<T>>()};
  } else if constexpr (core::is_double_double<T>) {
    return {poison_of<double>(), poison_of<double>()};
  } else if constexpr (std::is_same_v<T, float>) {
    return poison();
  } else {
    return std::bit_cast<double>(double_poison_bits);
  }
}

// The bits of a vector, for comparisons in which -0 differs from 0 and NaN equals itself.
template <class T>
auto bits_of(const std::vector<T>& values) {
  using Bits = std::conditional_t<std::is_same_v<core::RealOf<T>, float>, std::uint32_t, std::uint64_t>;
  std::vector<Bits> bits(values.size() * sizeof(T) / sizeof(Bits));
  if (!values.empty()) std::memcpy(bits.data(), values.data(), values.size() * sizeof(T));
  return bits;
}

struct GemmCase {
  std::int64_t m = 1, n = 1, k = 1;
  kintsugi_op op_a = KINTSUGI_OP_N, op_b = KINTSUGI_OP_N;
  kintsugi_layout layout = KINTSUGI_COLUMN_MAJOR;
  std::int64_t pad_a = 0, pad_b = 0, pad_c = 0;  // leading dimension beyond the smallest
  std::int64_t batch = 1, gap = 3;               // elements between batch items
  double alpha = 1, beta = 0;                    // of the operands' type
  double alpha_im = 0, beta_im = 0;              // imaginary parts, or low words of double-double scalars
  std::string distribution = "uniform";
  std::uint64_t seed = 1;
  std::string scheme = {}, engine = {}, accumulator = {}, policy = {}, accuracy = {};
  std::int64_t workspace_limit = 0;
  int threads = 0;
};

// Fills real and imaginary parts of a complex matrix as two real matrices with different seeds.
template <class T>
void fill_elements(const measure::Distribution& distribution, measure::Side side, std::uint64_t seed,
                   const MatrixView<T>& view) {
  if constexpr (core::is_complex<T>) {
    for (const int part : {0, 1}) {
      auto* first = reinterpret_cast<core::RealOf<T>*>(view.data) + part;
      measure::fill(distribution, side, seed + 7919U * static_cast<unsigned>(part),
                    MatrixView<core::RealOf<T>>{first, view.rows, view.columns, 2 * view.row_stride,
                                                2 * view.column_stride});
    }
  } else {
    measure::fill(distribution, side, seed, view);
  }
}

template <class T>
T scalar_of(double re, double im) {
  using Real = core::RealOf<T>;
  if constexpr (core::is_complex<T>) {
    return {static_cast<Real>(re), static_cast<Real>(im)};
  } else if constexpr (core::is_double_double<T>) {
    return {re, im};
  } else {
    return static_cast<T>(re);
  }
}

template <class T>
constexpr kintsugi_type type_of() {
  constexpr bool is_single = std::is_same_v<core::RealOf<T>, float>;
  if (core::is_double_double<T>) return KINTSUGI_DD;
  if (core::is_complex<T>) return is_single ? KINTSUGI_C32 : KINTSUGI_C64;
  return is_single ? KINTSUGI_F32 : KINTSUGI_F64;
}

// Memory of a case, and views of op(A), op(B) (complex ones not conjugated) and C of batch item t.
template <class T>
class GemmDataOf {
 public:
  explicit GemmDataOf(const GemmCase& test)
      : test_(test), alpha_(scalar_of<T>(test.alpha, test.alpha_im)),
        beta_(scalar_of<T>(test.beta, test.beta_im)) {
    lda_ = leading(test.op_a, test.m, test.k) + test.pad_a;
    ldb_ = leading(test.op_b, test.k, test.n) + test.pad_b;
    ldc_ = leading(KINTSUGI_OP_N, test.m, test.n) + test.pad_c;
    stride_a_ = lda_ * lines(test.op_a, test.m, test.k) + test.gap;
    stride_b_ = ldb_ * lines(test.op_b, test.k, test.n) + test.gap;
    stride_c_ = ldc_ * lines(KINTSUGI_OP_N, test.m, test.n) + test.gap;
    a_.assign(size(stride_a_), poison_of<T>());
    b_.assign(size(stride_b_), poison_of<T>());
    c_.assign(size(stride_c_), poison_of<T>());
    const auto distribution = measure::parse_distribution(test.distribution);
    for (std::int64_t t = 0; t < test.batch; ++t) {
      fill_elements(distribution, measure::Side::a, test.seed + static_cast<std::uint64_t>(t), a(t));
      fill_elements(distribution, measure::Side::b, test.seed + static_cast<std::uint64_t>(t), b(t));
      if (beta_ != T(0))
        fill_elements(measure::parse_distribution("uniform"), measure::Side::a, test.seed + 1000, c(t));
    }
  }

  MatrixView<T> a(std::int64_t t = 0) { return view(a_, stride_a_, t, test_.op_a, test_.m, test_.k, lda_); }
  MatrixView<T> b(std::int64_t t = 0) { return view(b_, stride_b_, t, test_.op_b, test_.k, test_.n, ldb_); }
  MatrixView<T> c(std::int64_t t = 0) {
    return view(c_, stride_c_, t, KINTSUGI_OP_N, test_.m, test_.n, ldc_);
  }

  kintsugi_problem problem() const {
    kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
    problem.m = test_.m;
    problem.n = test_.n;
    problem.k = test_.k;
    problem.lda = lda_;
    problem.ldb = ldb_;
    problem.ldc = ldc_;
    problem.op_a = test_.op_a;
    problem.op_b = test_.op_b;
    problem.layout = test_.layout;
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = type_of<T>();
    problem.batch_count = test_.batch;
    problem.stride_a = stride_a_;
    problem.stride_b = stride_b_;
    problem.stride_c = stride_c_;
    return problem;
  }

  kintsugi_options options() const {
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    const auto text = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
    options.scheme = text(test_.scheme);
    options.engine = text(test_.engine);
    options.accumulator = text(test_.accumulator);
    options.policy = text(test_.policy);
    options.accuracy = text(test_.accuracy);
    options.workspace_limit = test_.workspace_limit;
    options.threads = test_.threads;
    return options;
  }

  kintsugi_operands operands() {
    kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
    operands.alpha = &alpha_;
    operands.beta = &beta_;
    operands.a = a_.data();
    operands.b = b_.data();
    operands.c = c_.data();
    return operands;
  }

  // Runs the case; the result is in c(). Checks that nothing but C's elements has changed.
  kintsugi_status run(kintsugi_handle handle = nullptr) {
    const auto a_before = bits_of(a_);
    const auto b_before = bits_of(b_);
    const kintsugi_problem the_problem = problem();
    const kintsugi_options the_options = options();
    const kintsugi_operands the_operands = operands();
    const kintsugi_status status = kintsugi_gemm(handle, &the_problem, &the_options, &the_operands);
    EXPECT_EQ(a_before, bits_of(a_)) << "A was modified";
    EXPECT_EQ(b_before, bits_of(b_)) << "B was modified";
    EXPECT_EQ(count_poison(), expected_padding()) << "memory outside C's elements was written";
    return status;
  }

  void run_well(kintsugi_handle handle = nullptr) {
    ASSERT_EQ(run(handle), KINTSUGI_SUCCESS) << kintsugi_last_error();
  }

  // Elements of C, item by item and column by column, in the same order for both layouts.
  std::vector<T> result() {
    std::vector<T> values;
    for (std::int64_t t = 0; t < test_.batch; ++t) {
      for (std::int64_t j = 0; j < test_.n; ++j) {
        for (std::int64_t i = 0; i < test_.m; ++i) values.push_back(c(t)(i, j));
      }
    }
    return values;
  }

  std::vector<T>& raw_c() { return c_; }
  std::vector<T>& raw_a() { return a_; }
  std::vector<T>& raw_b() { return b_; }
  const GemmCase& test() const { return test_; }
  T alpha() const { return alpha_; }
  T beta() const { return beta_; }

 private:
  bool unit_row_stride(kintsugi_op op) const {
    return (test_.layout == KINTSUGI_COLUMN_MAJOR) == (op == KINTSUGI_OP_N);
  }
  std::int64_t leading(kintsugi_op op, std::int64_t rows, std::int64_t columns) const {
    return std::max<std::int64_t>(unit_row_stride(op) ? rows : columns, 1);
  }
  std::int64_t lines(kintsugi_op op, std::int64_t rows, std::int64_t columns) const {
    return unit_row_stride(op) ? columns : rows;
  }
  std::size_t size(std::int64_t stride) const {
    return static_cast<std::size_t>(stride * test_.batch + test_.gap);
  }

  MatrixView<T> view(std::vector<T>& memory, std::int64_t stride, std::int64_t t, kintsugi_op op,
                     std::int64_t rows, std::int64_t columns, std::int64_t ld) const {
    return core::matrix_view(memory.data() + t * stride, static_cast<core::Layout>(test_.layout),
                             static_cast<core::Op>(op), rows, columns, ld);
  }

  std::int64_t expected_padding() const {
    return static_cast<std::int64_t>(c_.size()) - test_.m * test_.n * test_.batch;
  }
  // Number of poisoned values outside C's elements. A copy is counted whose elements are cleared.
  std::int64_t count_poison() {
    std::vector<T> copy = c_;
    for (std::int64_t t = 0; t < test_.batch; ++t) {
      const MatrixView<T> elements = view(copy, stride_c_, t, KINTSUGI_OP_N, test_.m, test_.n, ldc_);
      for (std::int64_t j = 0; j < test_.n; ++j) {
        for (std::int64_t i = 0; i < test_.m; ++i) elements(i, j) = 0;
      }
    }
    return std::count_if(copy.begin(), copy.end(), [](T x) { return is_poison(x); });
  }

  GemmCase test_;
  T alpha_, beta_;
  std::int64_t lda_, ldb_, ldc_, stride_a_, stride_b_, stride_c_;
  std::vector<T> a_, b_, c_;
};

using GemmData = GemmDataOf<float>;

template <class T>
MatrixView<const T> constant(const MatrixView<T>& view) {
  return {view.data, view.rows, view.columns, view.row_stride, view.column_stride, view.space};
}

// Errors of all checked elements of one batch item, compared with the exact result.
template <class T>
std::vector<measure::ElementError> element_errors(GemmDataOf<T>& data, const std::vector<T>& c_before = {},
                                                  std::int64_t t = 0) {
  std::vector<measure::ElementError> elements;
  measure::CheckOptions options;
  options.elements = &elements;
  measure::Product<T> product{constant(data.a(t)), constant(data.b(t)), data.alpha(), data.beta()};
  MatrixView<T> old = data.c(t);
  if (!c_before.empty()) {
    old.data = const_cast<T*>(c_before.data()) + (data.c(t).data - data.raw_c().data());
    product.c0 = constant(old);
  }
  measure::measure_errors<T>(product, constant(data.c(t)), {}, options);
  return elements;
}

// |C - R|_F / |R|_F of checked elements.
inline double frobenius_error(const std::vector<measure::ElementError>& elements) {
  double errors = 0, exact = 0;
  for (const auto& element : elements) {
    errors += element.error * element.error;
    exact += element.exact * element.exact;
  }
  return std::sqrt(errors / exact);
}

// Runs a case that must succeed and returns its error, |C - R|_F / |R|_F.
template <class T = float>
double frobenius_of(const GemmCase& test) {
  GemmDataOf<T> data(test);
  data.run_well();
  return frobenius_error(element_errors(data));
}

}  // namespace kintsugi::test

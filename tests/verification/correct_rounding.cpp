// Checks the contract `exact`: every element is RN(alpha AB + beta C). More than half of the elements are
// constructed with a known answer (rounding_cases.hpp); the others are random, and MPFR sums them exactly and
// rounds once.
//
//   build/tests/correct_rounding              what the test suite takes
//   build/tests/correct_rounding 10000000     the figure of lab/results/log
#include <fmt/format.h>

#include <complex>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "kintsugi/kintsugi.hpp"
#include "lab/generators/generators.hpp"
#include "tests/lab/mpfr_value.hpp"
#include "tests/support/effort.hpp"
#include "tests/verification/rounding_cases.hpp"

namespace kintsugi::test {
namespace {

using lab::testing::Mpfr;

struct Count {
  std::int64_t elements = 0;
  std::int64_t misses = 0;
};

// Options of a call: the contract on both engines, or the scheme of the contract's last candidate.
Options route(std::int64_t number) {
  switch (number % 8) {
    case 0: return {.scheme = "superaccumulator", .engine = "reference"};
    case 1: return {.accuracy = "exact", .engine = "reference"};
    default: return {.accuracy = "exact", .engine = "cpu"};
  }
}

// Name of a family whose miss is intended.
const std::string intended_miss = "moved";

template <class T>
std::string type_name() {
  using Real = decltype(std::real(T()));
  const std::string bits = std::is_same_v<Real, float> ? "32 " : "64 ";
  return (std::is_same_v<T, Real> ? "FP" : "complex ") + bits;
}

std::string text(double x) { return fmt::format("{:a}", x); }
template <class T>
std::string text(const std::complex<T>& x) {
  return fmt::format("({:a}, {:a})", x.real(), x.imag());
}

template <class T>
class Judge {
 public:
  Judge(std::map<std::string, Count>& families, std::map<std::string, std::int64_t>& candidates)
      : families_(families), candidates_(candidates) {}

  // Multiplies and compares bits, so that -0 is not +0.
  void operator()(const std::string& family, const RoundingProblem<T>& problem, const Options& options) {
    std::vector<T> c = problem.c;
    gemm(Op::N, Op::N, problem.m, problem.n, problem.k, problem.alpha, problem.a.data(), problem.m,
         problem.b.data(), problem.k, problem.beta, c.data(), problem.m, options, &handle_);
    Count& count = families_[type_name<T>() + family];
    count.elements += problem.m * problem.n;
    for (std::size_t e = 0; e < c.size(); ++e) {
      if (std::memcmp(&c[e], &problem.expected[e], sizeof(T)) == 0) continue;
      if (count.misses++ == 0 && family != intended_miss) show(problem, e, c[e]);
    }
    const auto done = nlohmann::json::parse(report(handle_));
    for (const auto& candidate : done.at("candidates")) {
      if (candidate.at("items") > 0) candidates_[candidate.at("scheme")] += problem.m * problem.n;
    }
  }

 private:
  static void show(const RoundingProblem<T>& problem, std::size_t e, T computed) {
    const auto i = static_cast<std::int64_t>(e) % problem.m;
    const auto j = static_cast<std::int64_t>(e) / problem.m;
    fmt::print(stderr, "element {}, {}: {}, expected {}; alpha {} beta {} C {}\n", i, j, text(computed),
               text(problem.expected[e]), text(problem.alpha), text(problem.beta), text(problem.c[e]));
    for (std::int64_t p = 0; p < problem.k; ++p) {
      const T x = problem.a[i + p * problem.m];
      const T y = problem.b[p + j * problem.k];
      if (x != T(0) && y != T(0)) fmt::print(stderr, "  {} * {}\n", text(x), text(y));
    }
  }

  std::map<std::string, Count>& families_;
  std::map<std::string, std::int64_t>& candidates_;
  Handle handle_;
};

template <class T>
T rounded(const Mpfr& sum) {
  if (sum.sign() == 0) return 0;
  if constexpr (std::is_same_v<T, float>) return sum.to_float();
  return static_cast<T>(sum.to_double());
}

// Fills vectors whose rounding to integers of two bits more than T's has the largest error: every element
// except the first is three binades below it, ends in ones, and is rounded up by half a unit.
template <class T>
void fill_with_largest_roundings(Random& random, const core::MatrixView<T>& vectors) {
  constexpr int digits = RoundingLimits<T>::digits;
  for (std::int64_t v = 0; v < vectors.rows; ++v) {
    for (std::int64_t p = 0; p < vectors.columns; ++p) {
      const std::uint64_t integer = RoundingLimits<T>::top | (random.bits() >> (65 - digits)) | 3U;
      vectors(v, p) = std::ldexp(static_cast<T>(integer), p == 0 ? 3 - digits : -digits);
    }
  }
}

// Random operands and scalars; the answers are MPFR's.
template <class T>
RoundingProblem<T> random_problem(Random& random, std::int64_t number) {
  constexpr bool wide = std::is_same_v<T, double>;
  static const std::string distributions[] = {"uniform",   "phi:1",           "phi:4",
                                              "span:30",   "span:60",         wide ? "span:2000" : "span:250",
                                              "subnormal", "subnormal-mixed", "cancellation:40",
                                              "type3",     "graded-inner:90", wide ? "span:700" : "span:120"};
  static constexpr double scalars[] = {1, 1, -1, 0.3, -7e8, 1.7e-33};
  RoundingProblem<T> problem(24, 20, random.integer(1, 40));
  const auto seed = random.bits();
  const auto distribution = lab::parse_distribution(distributions[number % std::ssize(distributions)]);
  const bool largest_roundings = number % 13 == 12;
  const core::MatrixView<T> a{problem.a.data(), problem.m, problem.k, 1, problem.m};
  const core::MatrixView<T> b{problem.b.data(), problem.k, problem.n, 1, problem.k};
  if (largest_roundings) {
    fill_with_largest_roundings(random, a);
    fill_with_largest_roundings(random, b.transposed());
  } else {
    lab::fill(distribution, lab::Side::a, seed, a);
    lab::fill(distribution, lab::Side::b, seed, b);
  }
  problem.alpha = static_cast<T>(scalars[random.integer(0, 5)]);
  problem.beta = static_cast<T>(random.flip() ? 0 : scalars[random.integer(0, 5)]);
  if (problem.beta != 0)
    lab::fill(distribution, lab::Side::a, seed + 1, core::MatrixView<T>{problem.c.data(), 24, 20, 1, 24});
  for (std::int64_t j = 0; j < problem.n; ++j) {
    for (std::int64_t i = 0; i < problem.m; ++i) {
      Mpfr sum;
      for (std::int64_t p = 0; p < problem.k; ++p) sum += Mpfr(a(i, p)) * Mpfr(b(p, j));
      sum *= Mpfr(problem.alpha);
      const std::int64_t e = i + j * problem.m;
      if (problem.beta != 0) sum += Mpfr(problem.beta) * Mpfr(problem.c[e]);
      problem.expected[e] = rounded<T>(sum);
    }
  }
  return problem;
}

// Real or imaginary parts of a column-major matrix.
template <class T>
core::MatrixView<T> parts(std::vector<std::complex<T>>& matrix, std::int64_t rows, int part) {
  return {reinterpret_cast<T*>(matrix.data()) + part, rows, std::ssize(matrix) / rows, 2, 2 * rows};
}

// Re z (part 0) or Im z (part 1) of the product of two complex numbers.
template <class T>
Mpfr product_part(const std::complex<T>& x, const std::complex<T>& y, int part) {
  if (part == 0) return Mpfr(x.real()) * Mpfr(y.real()) - Mpfr(x.imag()) * Mpfr(y.imag());
  return Mpfr(x.real()) * Mpfr(y.imag()) + Mpfr(x.imag()) * Mpfr(y.real());
}

// Random complex operands: each part of an element is rounded once.
template <class T>
RoundingProblem<std::complex<T>> random_complex_problem(Random& random, std::int64_t number) {
  using Element = std::complex<T>;
  static const std::string distributions[] = {"uniform",  "phi:1",           "span:30",
                                              "span:120", "subnormal-mixed", "cancellation:40"};
  static constexpr double scalars[] = {1, 0, -1, 0.3, -7e8};
  const auto scalar = [&] { return static_cast<T>(scalars[random.integer(0, 4)]); };
  RoundingProblem<Element> problem(12, 10, random.integer(1, 20));
  const auto distribution = lab::parse_distribution(distributions[number % std::ssize(distributions)]);
  for (const int part : {0, 1}) {
    lab::fill(distribution, lab::Side::a, random.bits(), parts(problem.a, problem.m, part));
    lab::fill(distribution, lab::Side::b, random.bits(), parts(problem.b, problem.k, part));
    lab::fill(distribution, lab::Side::a, random.bits(), parts(problem.c, problem.m, part));
  }
  problem.alpha = {scalar(), scalar()};
  problem.beta = {scalar(), scalar()};
  for (std::int64_t e = 0; e < problem.m * problem.n; ++e) {
    Mpfr sum[2];
    for (std::int64_t p = 0; p < problem.k; ++p) {
      const Element& x = problem.a[e % problem.m + p * problem.m];
      const Element& y = problem.b[p + e / problem.m * problem.k];
      for (const int part : {0, 1}) sum[part] += product_part(x, y, part);
    }
    const Mpfr re(problem.alpha.real()), im(problem.alpha.imag());
    problem.expected[e] = {
        rounded<T>(re * sum[0] - im * sum[1] + product_part(problem.beta, problem.c[e], 0)),
        rounded<T>(re * sum[1] + im * sum[0] + product_part(problem.beta, problem.c[e], 1))};
  }
  return problem;
}

template <class T>
void judge_complex_round(Random& random, std::int64_t number, Judge<std::complex<T>>& judge) {
  for (int part = 0; part < 6; ++part)
    judge("random, against MPFR", random_complex_problem<T>(random, 6 * number + part), route(number));
}

template <class T>
void judge_round(Random& random, std::int64_t number, Judge<T>& judge) {
  constexpr std::int64_t rows = 256, columns = 8;
  const Options options = route(number);
  constexpr int far = std::is_same_v<T, double> ? 1900 : 200;
  for (const bool scalars : {false, true}) {
    const std::string tail = scalars ? ", alpha and beta C" : "";
    judge("constructed, narrow" + tail,
          ConstructedRounding<T>(random, rows, columns, 40, false, scalars).problem(), options);
    judge("constructed, 2^-200" + tail,
          ConstructedRounding<T>(random, rows, columns, 200, false, scalars).problem(), options);
    judge("constructed, any dynamic range" + tail,
          ConstructedRounding<T>(random, rows, columns, far, true, scalars).problem(), options);
  }
  judge("constructed, ties of alpha and beta", TiesOfScalars<T>(random, rows, columns).problem(), options);
  for (int part = 0; part < 12; ++part)
    judge("random, against MPFR", random_problem<T>(random, 12 * number + part), options);
}

// Returns true if an expected element that is moved by one last place counts as one miss.
bool finds_a_miss(Random& random) {
  std::map<std::string, Count> families;
  std::map<std::string, std::int64_t> candidates;
  RoundingProblem<double> problem = TiesOfScalars<double>(random, 4, 3).problem();
  problem.expected[5] = std::nextafter(problem.expected[5], 0.0);
  Judge<double>{families, candidates}(intended_miss, problem, route(1));
  return families["FP64 " + intended_miss].misses == 1;
}

int run(std::int64_t wanted) {
  Random random(20261120);
  if (!finds_a_miss(random)) {
    fmt::print(stderr, "an element that is wrong by a last place was not seen\n");
    return 1;
  }
  std::map<std::string, Count> families;
  std::map<std::string, std::int64_t> candidates;
  Judge<float> floats(families, candidates);
  Judge<double> doubles(families, candidates);
  Judge<std::complex<float>> complex_floats(families, candidates);
  Judge<std::complex<double>> complex_doubles(families, candidates);
  Count all;
  for (std::int64_t number = 0; all.elements < wanted; ++number) {
    judge_round(random, number, floats);
    judge_round(random, number, doubles);
    judge_complex_round(random, number, complex_floats);
    judge_complex_round(random, number, complex_doubles);
    all = {};
    for (const auto& [family, count] : families) {
      all.elements += count.elements;
      all.misses += count.misses;
    }
  }
  for (const auto& [family, count] : families)
    fmt::print("{:<60} {:>10} elements {:>6} misses\n", family, count.elements, count.misses);
  for (const auto& [candidate, elements] : candidates)
    fmt::print("{:<60} {:>10} elements\n", "by " + candidate, elements);
  fmt::print("{:<60} {:>10} elements {:>6} misses\n", "all", all.elements, all.misses);
  return all.misses == 0 ? 0 : 1;
}

}  // namespace
}  // namespace kintsugi::test

int main(int argc, char** argv) {
  const std::string argument = argc > 1 ? argv[1] : kintsugi::test::thorough ? "300000" : "30000";
  const std::int64_t elements = std::atoll(argument.c_str());
  if (argc > 2 || elements <= 0) {
    fmt::print(
        "correct_rounding [ELEMENTS]: at least so many elements of exact products against known answers\n"
        "example: correct_rounding 10000000\n");
    return argument == "--help" ? 0 : 2;
  }
  return kintsugi::test::run(elements);
}

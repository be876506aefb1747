// Tests the proof of native arithmetic's contract (docs/design/bounds.md, "Native products under a contract")
// in small formats, where a few products reach the bounds: random orders of addition, fused or not, scaled
// partial sums, gradual underflow and results that are flushed to zero.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace kintsugi::core {
namespace {

enum class Underflow { gradual, flushed };

// A binary format with `digits` significant bits and the smallest normal number 1/8, in double, where
// products and sums of a few dozen of its numbers are exact.
struct Toy {
  int digits = 4;
  Underflow underflow = Underflow::flushed;

  static constexpr int min_exponent = -3;
  static constexpr double omega = 0x1p-3;

  double unit_roundoff() const { return std::ldexp(1.0, -digits); }

  double to_grid(double x) const {
    if (x == 0) return 0;
    const double quantum = std::ldexp(1.0, std::max(std::ilogb(x), min_exponent) - digits + 1);
    return std::nearbyint(x / quantum) * quantum;
  }

  // Result of an operation with the exact result x.
  double round(double x) const {
    return underflow == Underflow::flushed && std::fabs(x) < omega ? 0 : to_grid(x);
  }
};

// A value during a summation: a number of the format, or an exact product that waits for a fused addition.
struct Value {
  double value = 0;
  bool is_product = false;
};

class Products {
 public:
  Products(Toy toy, unsigned seed) : toy_(toy), random_(seed) {}

  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int n) { return between(1, n) == 1; }

  // A number of the format, subnormal ones included.
  double number(int low, int high) {
    const double significand = 1 + std::uniform_real_distribution<double>()(random_);
    return (chance(2) ? 1 : -1) * toy_.to_grid(std::ldexp(significand, between(low, high)));
  }

  // Operands of one sum, of a kind that underflows or cancels more or less often.
  std::vector<double> products(int k) {
    const int kind = between(0, 4);
    std::vector<double> exact;
    for (int p = 0; p < k; ++p) {
      const double x = kind == 0 ? number(0, 4) : kind == 1 ? number(-1, -1) : number(-6, 2);
      const double y = kind == 1 ? number(-3, -2) : number(-3, 1);
      const double product = kind == 2 ? std::fabs(x * y) : x * y;
      exact.push_back(kind == 3 && p % 2 == 1 && !chance(4) ? -exact.back() : product);
    }
    return exact;
  }

  // Adds in a random order: each step takes any two values, or always the last two.
  double add(std::vector<Value> values) {
    const bool is_chain = chance(2);
    const auto take = [&] {
      if (!is_chain) std::swap(values[static_cast<std::size_t>(between(0, size(values) - 1))], values.back());
      const Value taken = values.back();
      values.pop_back();
      return taken;
    };
    while (values.size() > 1) {
      const Value x = take();
      Value y = take();
      if (x.is_product && y.is_product) y.value = toy_.round(y.value);
      values.push_back({toy_.round(x.value + y.value)});
    }
    return values[0].is_product ? toy_.round(values[0].value) : values[0].value;
  }

  // A multiplication whose result is rounded, or left to a fused addition.
  Value multiply(double exact, bool fused) {
    return fused && chance(2) ? Value{exact, true} : Value{toy_.round(exact)};
  }

  // Computes alpha times the sum of the products, in up to `parts` partial sums that are each multiplied by
  // alpha, to be added to `values`.
  void add_scaled(double alpha, const std::vector<double>& exact, int parts, std::vector<Value>& values) {
    const bool fused = chance(2);
    std::vector<std::vector<Value>> sums(static_cast<std::size_t>(parts));
    for (std::size_t p = 0; p < exact.size(); ++p)
      sums[p * sums.size() / exact.size()].push_back(multiply(exact[p], fused));
    for (std::vector<Value>& sum : sums) {
      if (sum.empty()) continue;
      const double value = add(std::move(sum));
      values.push_back(alpha == 1 ? Value{value} : multiply(alpha * value, fused));
    }
  }

  // beta C0: a multiplication, unless beta is 0 or 1.
  void add_old(double beta, double old, std::vector<Value>& values) {
    if (beta != 0) values.push_back(beta == 1 ? Value{old} : multiply(beta * old, chance(2)));
    if (values.empty() || chance(2)) values.push_back({0});
  }

  double scalar() { return chance(3) ? 1 : number(-6, 5); }

  const Toy& toy() const { return toy_; }

 private:
  static int size(const std::vector<Value>& values) { return static_cast<int>(values.size()); }

  Toy toy_;
  std::mt19937_64 random_;
};

// The proof needs k u <= 2, and a quarter for complex products.
int largest_k(const Toy& toy) { return std::min(40, 2 << toy.digits); }

// Returns the error of a random real product, divided by the bound
// (k + 8) (u (|alpha||A||B| + |beta||C0|) + (1 + |alpha|) omega).
double real_ratio(Products& products) {
  const int k = products.between(1, largest_k(products.toy()));
  const double alpha = products.scalar();
  const double beta = products.chance(3) ? 0 : products.scalar();
  const double old = products.number(-6, 3);
  const std::vector<double> exact = products.products(k);
  std::vector<Value> values;
  products.add_scaled(alpha, exact, products.chance(2) ? 1 : products.between(1, k), values);
  products.add_old(beta, old, values);
  double result = beta * old;
  double magnitude = std::fabs(beta * old);
  for (const double product : exact) {
    result += alpha * product;
    magnitude += std::fabs(alpha * product);
  }
  const double unit = products.toy().unit_roundoff() * magnitude + (1 + std::fabs(alpha)) * Toy::omega;
  return std::fabs(products.add(std::move(values)) - result) / ((k + 8) * unit);
}

// Returns the same of the real part of a complex product, with 2k for k and |z| = |Re z| + |Im z|: two sums
// of 2k products, each multiplied by a part of alpha.
double complex_ratio(Products& products) {
  const int k = products.between(1, largest_k(products.toy()) / 8);
  const int parts = products.chance(2) ? 1 : products.between(1, k);
  const double beta = products.chance(3) ? 0 : 1;
  const double old = products.number(-6, 3);
  std::vector<Value> values;
  double result = beta * old;
  double magnitude = std::fabs(beta * old);
  double scalars = 0;
  for (int part = 0; part < 2; ++part) {  // Re alpha Re(AB) and -Im alpha Im(AB)
    const double alpha = products.number(-6, 5);
    const std::vector<double> exact = products.products(2 * k);
    products.add_scaled(alpha, exact, parts, values);
    scalars += std::fabs(alpha);
    for (const double product : exact) {
      result += alpha * product;
      magnitude += std::fabs(alpha * product);
    }
  }
  products.add_old(beta, old, values);
  const double unit = products.toy().unit_roundoff() * magnitude + (1 + scalars) * Toy::omega;
  return std::fabs(products.add(std::move(values)) - result) / ((2 * k + 8) * unit);
}

TEST(NativeContract, HoldsInEveryOrder) {
  for (const Underflow underflow : {Underflow::gradual, Underflow::flushed}) {
    for (const int digits : {3, 4, 6}) {
      Products products({digits, underflow}, 41);
      double largest = 0;
      for (int i = 0; i < 20000; ++i)
        largest = std::max({largest, real_ratio(products), complex_ratio(products)});
      EXPECT_LE(largest, 1) << digits << " digits";
      EXPECT_GE(largest, 0.15) << digits << " digits";
    }
  }
}

// Products just below omega are lost, fused or not, and alpha multiplies the loss: no smaller term than
// |alpha| k omega holds. The next test shows that no order loses more.
TEST(NativeContract, LosesOmegaForEveryProduct) {
  const Toy toy{10, Underflow::flushed};
  constexpr double product = 31.0 / 32 * 33 / 256;  // omega (1 - 2^-10)
  constexpr double alpha = 4;
  for (const bool fused : {false, true}) {
    for (const int k : {1, 2, 7, 16}) {
      double sum = 0;
      for (int p = 0; p < k; ++p) sum = toy.round(sum + (fused ? product : toy.round(product)));
      const double magnitude = alpha * k * product;
      const double error = std::fabs(toy.round(alpha * sum) - magnitude);
      EXPECT_GT(error, (k + 8) * toy.unit_roundoff() * magnitude + 0.95 * alpha * k * Toy::omega);
    }
  }
}

// A flushed sum has two operands that were not flushed, so that k products lose at most k omega in all.
TEST(NativeContract, LosesAtMostOmegaForEveryProduct) {
  Products products({6, Underflow::flushed}, 43);
  for (int i = 0; i < 30000; ++i) {
    const int k = products.between(1, 12);
    std::vector<Value> values;
    double exact = 0;
    double magnitude = 0;
    for (const double product : products.products(k)) {
      values.push_back(products.multiply(product, i % 2 == 0));
      exact += product;
      magnitude += std::fabs(product);
    }
    const double u = products.toy().unit_roundoff();
    const double error = std::fabs(products.add(std::move(values)) - exact);
    ASSERT_LE(error, (k * (1 + 2 * u) + 1) * u * magnitude + k * Toy::omega);
  }
}

// Intended failures: what the contract leaves out has no such bound. Flushed inputs lose a subnormal alpha,
// and a library that multiplies an operand by alpha loses it before it meets a large factor.
TEST(NativeContract, NeedsInputsThatAreKeptAndScalarsThatMultiplySums) {
  const Toy toy{4, Underflow::flushed};
  const double u = toy.unit_roundoff();
  const double alpha = Toy::omega / 2;
  const double product = 64.0 * 32.0;  // k = 1
  const double bound = 9 * (u * alpha * product + (1 + alpha) * Toy::omega);
  EXPECT_GT(alpha * product, bound);                                       // alpha flushed: the result is 0
  EXPECT_GT(alpha * product - toy.round(alpha / 2) * 2 * product, bound);  // alpha times an operand of 1/2
  EXPECT_LE(std::fabs(toy.round(alpha * toy.round(product)) - alpha * product), bound);
}

}  // namespace
}  // namespace kintsugi::core

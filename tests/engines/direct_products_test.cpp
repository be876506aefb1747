// Products of operands that are split while they are multiplied (docs/schemes/bf16x6-direct.md): the
// reference engine against the page's definition, and the proof against operands that are made to break it.
#include "engines/direct_products.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "arith/exact/exact_sum.hpp"
#include "engines/reference/models.hpp"
#include "engines/registry.hpp"
#include "formats/formats.hpp"
#include "schemes/bf16x6_direct.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::core {
namespace {

using Random = std::mt19937_64;
using Vectors = std::vector<std::vector<float>>;  // rows of A or columns of B

std::int64_t below(Random& random, std::int64_t count) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
}
double unit(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

struct Product {
  std::vector<float> c;  // column by column
  std::int64_t recomputed = 0;
};

Product multiply(const char* engine, Accumulator accumulator, const Vectors& rows, const Vectors& columns) {
  const auto m = static_cast<std::int64_t>(rows.size());
  const auto n = static_cast<std::int64_t>(columns.size());
  const auto k = static_cast<std::int64_t>(rows[0].size());
  const auto joined = [](const Vectors& vectors) {
    std::vector<float> all;
    for (const auto& vector : vectors) all.insert(all.end(), vector.begin(), vector.end());
    return all;
  };
  const std::vector<float> a = joined(rows);
  const std::vector<float> b = joined(columns);
  const Program& program = schemes::bf16x6_direct.program;
  const FusedProblem problem{.split_a = program.split_a,
                             .split_b = program.split_b,
                             .schedule = program.schedule,
                             .accumulator = accumulator,
                             .weighted = false,
                             .type = ElementType::f32,
                             .m = m,
                             .n = n,
                             .k = k};
  for (const FusedKernel& kernel : find_engine(engine)->fused_kernels()) {
    if (!kernel.takes(problem)) continue;
    std::vector<std::max_align_t> scratch(kernel.scratch_bytes(problem, 1) / sizeof(std::max_align_t) + 1);
    const std::vector<VectorRange> ranges_a(rows.size()), ranges_b(columns.size());
    std::atomic<std::int64_t> recomputed = 0;
    Product product{std::vector<float>(static_cast<std::size_t>(m * n), NAN)};
    kernel.run_f32({.problem = problem,
                    .a = {a.data(), m, k, k, 1},
                    .b = {b.data(), n, k, k, 1},
                    .rows = ranges_a,
                    .columns = ranges_b,
                    .c = {product.c.data(), m, n, 1, m},
                    .alpha = 1,
                    .beta = 0,
                    .scratch = reinterpret_cast<std::byte*>(scratch.data()),
                    .threads = 1,
                    .recomputed = &recomputed});
    product.recomputed = recomputed;
    return product;
  }
  ADD_FAILURE() << engine << " has no such kernel";
  return {};
}

// ---------------------------------------------------------------- the definition, written again

// Slice `slice` of an element: three roundings to bf16, to nearest even.
double slice_of(float x, int slice) {
  double left = x;
  for (int s = 0; s < slice; ++s) left -= decode(bf16, encode(bf16, left));
  return decode(bf16, encode(bf16, left));
}

bool is_accepted(const std::vector<float>& row, const std::vector<float>& column, float sum) {
  const auto largest = [](const std::vector<float>& vector) {
    double most = 0;
    for (const float x : vector) most = std::max({most, std::fabs(slice_of(x, 0)), x != 0 ? 0x1p-149 : 0});
    return most;
  };
  const double more = std::max(largest(row), largest(column));
  const double less = std::min(largest(row), largest(column));
  return std::isfinite(sum) &&
         (more <= 64 || less == 0 || std::fabs(static_cast<double>(sum)) >= std::ldexp(more, -84));
}

template <class Leaf>
float sum_of_leaves(std::size_t k, const Leaf& leaf) {
  constexpr std::size_t lengths[] = {std::size_t{1} << 19, 16384, 512, 128};
  const auto chain = [&](const auto& self, std::size_t begin, std::size_t end, int level) -> float {
    float sum = 0;
    for (; begin < end; begin += lengths[level])
      sum += level == 3 ? leaf(begin) : self(self, begin, std::min(begin + lengths[level], end), level + 1);
    return sum;
  };
  return chain(chain, 0, k, 0);
}

template <class Model>
float defined_element(const std::vector<float>& row, const std::vector<float>& column) {
  using Element = typename Model::Element;
  const std::size_t k = row.size();
  const auto slices = [](const std::vector<float>& vector, std::size_t first, int slice) {
    std::vector<Element> elements;
    for (std::size_t p = first; p < first + 16; ++p)
      elements.push_back(Model::load(bf16, encode(bf16, p < vector.size() ? slice_of(vector[p], slice) : 0)));
    return elements;
  };
  const float sum = sum_of_leaves(k, [&](std::size_t begin) {
    float leaf = 0;
    for (std::size_t first = begin; first < std::min(begin + 128, k); first += 16) {
      float step = 0;
      for (const auto& [a, b] : {std::pair{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}})
        step = Model::run(slices(row, first, a).data(), slices(column, first, b).data(), 16, step);
      leaf += step;
    }
    return leaf;
  });
  if (is_accepted(row, column, sum)) return sum;
  return sum_of_leaves(k, [&](std::size_t begin) {
    float leaf = 0;
    for (std::size_t first = begin; first < std::min(begin + 128, k); first += 16) {
      float step = 0;
      for (std::size_t p = first; p < std::min(first + 16, k); ++p) step = std::fma(row[p], column[p], step);
      leaf += step;
    }
    return leaf;
  });
}

float defined_element(Accumulator accumulator, const std::vector<float>& row,
                      const std::vector<float>& column) {
  switch (accumulator) {
    case Accumulator::h200: return defined_element<ModelOf<FormatId::bf16, Accumulator::h200>>(row, column);
    case Accumulator::a100: return defined_element<ModelOf<FormatId::bf16, Accumulator::a100>>(row, column);
    default: return defined_element<Fp32Nearest>(row, column);
  }
}

// ---------------------------------------------------------------- operands

// Operands that are made to break the proof: each kind aims at one of its terms.
class Attack {
 public:
  explicit Attack(std::uint64_t seed) : random_(seed) {}

  void draw(Vectors& rows, Vectors& columns) {
    const auto length =
        static_cast<std::size_t>(random_() % 8 == 0 ? 1 + below(random_, 1300) : 1 + below(random_, 150));
    const auto count = [&] { return static_cast<std::size_t>(1 + below(random_, 3)); };
    rows.assign(count(), std::vector<float>(length));
    columns.assign(count(), std::vector<float>(length));
    switch (below(random_, 5)) {
      case 0: return few_elements(rows, columns);
      case 1: return crossed_depths(rows, columns);
      case 2: return cancelling(rows, columns);
      case 3: return any_range(rows, columns);
      default: return extreme(rows, columns);
    }
  }

 private:
  // A significand whose lower slices are as large as they can be, or any.
  double significand() {
    if (random_() % 4 == 0) return 1 + unit(random_);
    const double high = 1 + static_cast<double>(below(random_, 3)) * 0x1p-7;
    return high + 0x1p-8 - 0x1p-16 + static_cast<double>(below(random_, 3)) * 0x1p-17 -
           static_cast<double>(1 + 2 * below(random_, 40)) * 0x1p-23;
  }
  float number(int exponent, bool is_signed) {
    const double magnitude = std::ldexp(significand(), exponent);
    return static_cast<float>(is_signed && random_() % 2 == 0 ? -magnitude : magnitude);
  }
  template <class Element>
  void fill(Vectors& vectors, const Element& element) {
    for (auto& vector : vectors) {
      for (std::size_t p = 0; p < vector.size(); ++p) vector[p] = element(p);
    }
  }

  // Elements of one binade and sign at few positions: together, or in as many blocks and instructions as
  // possible.
  void few_elements(Vectors& rows, Vectors& columns) {
    const std::size_t stride = std::size_t{1} << below(random_, 7);
    const auto taken = static_cast<std::size_t>(1 + below(random_, 50));
    const bool is_signed = random_() % 4 == 0;
    const auto element = [&](std::size_t p) {
      return p % stride == 0 && p / stride < taken ? number(random_() % 8 == 0 ? -12 : 0, is_signed) : 0.0F;
    };
    fill(rows, element);
    fill(columns, element);
  }

  // Small elements of each side beside the largest of the other: they alone make C.
  void crossed_depths(Vectors& rows, Vectors& columns) {
    const int depth_a = static_cast<int>(below(random_, 148));
    const int depth_b = random_() % 2 == 0 ? depth_a : static_cast<int>(below(random_, 148));
    const int largest = static_cast<int>(below(random_, 120));
    const bool is_signed = random_() % 2 == 0;
    const std::uint64_t share = 2 + random_() % 30;
    std::vector<bool> deep(rows[0].size());
    for (std::size_t p = 0; p < deep.size(); ++p) deep[p] = random_() % share == 0;
    fill(rows, [&](std::size_t p) { return number(deep[p] ? -depth_a : largest, is_signed); });
    fill(columns, [&](std::size_t p) { return number(deep[p] ? largest : -depth_b, is_signed); });
  }

  // Pairs of products that cancel up to a few bits, and small products beside them.
  void cancelling(Vectors& rows, Vectors& columns) {
    const int depth = static_cast<int>(below(random_, 45));
    fill(rows, [&](std::size_t p) { return number(p % 3 == 2 ? -depth : 0, true); });
    fill(columns, [&](std::size_t) { return number(0, true); });
    for (auto* side : {&rows, &columns}) {
      for (auto& vector : *side) {
        for (std::size_t p = 0; p + 1 < vector.size(); p += 3)
          vector[p + 1] = side == &rows ? vector[p] : -vector[p];
      }
    }
  }

  // Exponents of any range, zeros among them.
  void any_range(Vectors& rows, Vectors& columns) {
    const std::int64_t range = 1 + below(random_, 90);
    const std::uint64_t zeros = 1 + random_() % 6;
    const bool is_signed = random_() % 3 != 0;
    const auto element = [&](std::size_t) {
      return random_() % 6 < zeros - 1 ? 0.0F : number(-static_cast<int>(below(random_, range)), is_signed);
    };
    fill(rows, element);
    fill(columns, element);
  }

  // The same near the ends of FP32's range, where slices are subnormal or infinite and sums overflow.
  void extreme(Vectors& rows, Vectors& columns) {
    any_range(rows, columns);
    for (auto* side : {&rows, &columns}) {
      const auto shift = static_cast<int>(below(random_, 270)) - 148;
      for (auto& vector : *side) {
        for (float& x : vector) {
          x = std::ldexp(x, shift);
          if (!std::isfinite(x)) x = std::numeric_limits<float>::max();
        }
      }
    }
  }

  Random random_;
};

TEST(DirectProducts, HaveTheBitsOfTheirDefinition) {
  Attack attack(1);
  Vectors rows, columns;
  const int draws = test::thorough ? 1500 : 100;
  for (const Accumulator accumulator : {Accumulator::h200, Accumulator::a100, Accumulator::fp32}) {
    for (int draw = 0; draw < draws; ++draw) {
      attack.draw(rows, columns);
      const Product product = multiply("reference", accumulator, rows, columns);
      for (std::size_t e = 0; e < product.c.size(); ++e) {
        const float expected = defined_element(accumulator, rows[e % rows.size()], columns[e / rows.size()]);
        ASSERT_EQ(std::bit_cast<std::uint32_t>(product.c[e]), std::bit_cast<std::uint32_t>(expected))
            << accumulator_name(accumulator) << ", draw " << draw << ": " << product.c[e] << ", expected "
            << expected;
      }
      if (accumulator != Accumulator::fp32) continue;
      const Product on_cpu = multiply("cpu", accumulator, rows, columns);
      for (std::size_t e = 0; e < product.c.size(); ++e)
        ASSERT_EQ(std::bit_cast<std::uint32_t>(on_cpu.c[e]), std::bit_cast<std::uint32_t>(product.c[e]));
    }
  }
}

// Long vectors: groups, segments and sections.
TEST(DirectProducts, AddTheirLevelsInOrder) {
  Random random(2);
  for (const std::size_t k : {127, 513, 16385, 40000, 1100000}) {
    Vectors rows(1, std::vector<float>(k)), columns(1, std::vector<float>(k));
    for (std::size_t p = 0; p < k; ++p) {
      rows[0][p] = static_cast<float>(unit(random) - 0.5);
      columns[0][p] = static_cast<float>(unit(random) - 0.5);
    }
    const Product product = multiply("reference", Accumulator::h200, rows, columns);
    EXPECT_EQ(product.c[0], defined_element(Accumulator::h200, rows[0], columns[0])) << k;
    EXPECT_EQ(product.recomputed, 0);
  }
}

// Error of an element in units of the contract's bound, with the smaller number of non-zero elements in place
// of k; nothing if sums might overflow.
struct Judge {
  double ratio = -1;

  Judge(const std::vector<float>& row, const std::vector<float>& column, float c) {
    ExactSum error, magnitude;
    std::int64_t nonzero_row = 0, nonzero_column = 0;
    for (std::size_t p = 0; p < row.size(); ++p) {
      error.add_product(row[p], column[p]);
      magnitude.add_product(std::fabs(row[p]), std::fabs(column[p]));
      nonzero_row += row[p] != 0 ? 1 : 0;
      nonzero_column += column[p] != 0 ? 1 : 0;
    }
    if (magnitude.to_double() >= 0x1p127) return;
    const auto q = static_cast<double>(std::min(nonzero_row, nonzero_column));
    error.add(-static_cast<double>(c));
    const double allowed = (q + 8) * 0x1p-24 * magnitude.to_double() + (2 * q + 8) * 0x1p-126;
    ratio = std::isfinite(c) ? std::fabs(error.to_double()) / allowed : 1e9;
  }
};

TEST(DirectProducts, KeepTheContractOfTheirNonZeroElements) {
  Vectors rows, columns;
  for (const Accumulator accumulator : {Accumulator::h200, Accumulator::a100, Accumulator::fp32}) {
    Attack attack(3);
    std::int64_t elements = 0, recomputed = 0;
    double worst = 0;
    constexpr std::int64_t wanted = 30'000;  // fewer do not reach the least error below
    while (elements < wanted) {
      attack.draw(rows, columns);
      const Product product = multiply("reference", accumulator, rows, columns);
      elements += static_cast<std::int64_t>(product.c.size());
      recomputed += product.recomputed;
      for (std::size_t e = 0; e < product.c.size(); ++e) {
        const Judge judge(rows[e % rows.size()], columns[e / rows.size()], product.c[e]);
        worst = std::max(worst, judge.ratio);
        ASSERT_LE(judge.ratio, 1) << accumulator_name(accumulator) << ", element " << elements;
      }
    }
    // An attack that the test accepts nothing of, or everything, shows nothing.
    EXPECT_GT(recomputed, elements / 50) << accumulator_name(accumulator);
    EXPECT_LT(recomputed, elements / 2) << accumulator_name(accumulator);
    EXPECT_GT(worst, accumulator == Accumulator::fp32 ? 0.2 : 0.3) << accumulator_name(accumulator);
  }
}

}  // namespace
}  // namespace kintsugi::core

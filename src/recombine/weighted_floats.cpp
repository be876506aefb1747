#include "recombine/weighted_floats.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "base/vectorised.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

namespace {

// Size of the blocks that are recombined at once. 16 columns of one row are a cache line of a row-major C,
// and 256 such lines fit the L1 cache.
constexpr std::int64_t max_rows = 256;
constexpr std::int64_t max_columns = 16;

KINTSUGI_VECTORIZED void add_group(const float* group, double weight, std::int64_t count, double* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += weight * static_cast<double>(group[i]);
}

// Computes epilogue() for `count` rows of a column: element = alpha * sum * 2^-(row_scale + column_scale) +
// beta * element. If `reads_c` is false, the second summand is left out. The power of two is made from its
// exponent field.
KINTSUGI_VECTORIZED void finish(const double* sums, const std::int32_t* row_scales, std::int32_t column_scale,
                                double alpha, double beta, bool reads_c, std::int64_t count,
                                float* elements) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto field = static_cast<std::uint64_t>(std::int64_t{1023 - column_scale - row_scales[i]}) << 52;
    const double product = alpha * (sums[i] * std::bit_cast<double>(field));
    const double old = reads_c ? beta * static_cast<double>(elements[i]) : 0;
    elements[i] = static_cast<float>(reads_c ? product + old : product);
  }
}

class Recombination {
 public:
  Recombination(const Accumulators& sums, std::span<const int> exponents, std::span<const VectorRange> rows,
                std::span<const VectorRange> columns, float alpha, float beta, const MatrixView<float>& c)
      : sums_(sums), exponents_(exponents), rows_(rows), columns_(columns), alpha_(alpha), beta_(beta),
        c_(c) {}

  // Writes columns first ... last - 1.
  void run(std::int64_t first, std::int64_t last) const {
    RowScales scales;
    for (std::int64_t row = 0; row < c_.rows; row += max_rows) {
      const std::int64_t count = std::min(max_rows, c_.rows - row);
      const auto ranges = rows_.subspan(static_cast<std::size_t>(row), static_cast<std::size_t>(count));
      std::transform(ranges.begin(), ranges.end(), scales.begin(),
                     [](const VectorRange& range) { return range.scale; });
      const bool all_finite =
          std::all_of(ranges.begin(), ranges.end(), [](const VectorRange& range) { return range.finite(); });
      for (std::int64_t j = first; j < last; ++j) {
        const VectorRange& column = columns_[static_cast<std::size_t>(j)];
        if (!column.finite()) continue;
        const Elements elements = results_of_column(row, j, count, scales, column.scale);
        float* target = &c_(row, j);
        for (std::int64_t i = 0; i < count; ++i) {
          if (all_finite || ranges[static_cast<std::size_t>(i)].finite())
            target[i * c_.row_stride] = elements[static_cast<std::size_t>(i)];
        }
      }
    }
  }

 private:
  using RowScales = std::array<std::int32_t, max_rows>;

  using Elements = std::array<float, max_rows>;

  // Returns the results of `count` rows of a column.
  Elements results_of_column(std::int64_t row, std::int64_t j, std::int64_t count, const RowScales& scales,
                             std::int32_t scale) const {
    alignas(64) std::array<double, max_rows> sums;
    alignas(64) Elements elements;  // first the old elements of C, then the results
    std::fill_n(sums.begin(), count, 0.0);
    for (int g = 0; g < sums_.groups; ++g)
      add_group(sums_.group<float>(g) + row + j * sums_.rows,
                power_of_two(exponents_[static_cast<std::size_t>(g)]), count, sums.data());
    const bool reads_c = beta_ != 0;
    if (reads_c) {
      for (std::int64_t i = 0; i < count; ++i) elements[static_cast<std::size_t>(i)] = c_(row + i, j);
    }
    finish(sums.data(), scales.data(), scale, static_cast<double>(alpha_), static_cast<double>(beta_),
           reads_c, count, elements.data());
    return elements;
  }

  const Accumulators& sums_;
  std::span<const int> exponents_;
  std::span<const VectorRange> rows_;
  std::span<const VectorRange> columns_;
  float alpha_;
  float beta_;
  const MatrixView<float>& c_;
};

}  // namespace

void recombine_weighted_floats(const Accumulators& sums, std::span<const int> group_exponents,
                               std::span<const VectorRange> rows, std::span<const VectorRange> columns,
                               float alpha, float beta, const MatrixView<float>& c, int threads) {
  const Recombination recombination(sums, group_exponents, rows, columns, alpha, beta, c);
  const std::int64_t blocks = divide_up(c.columns, max_columns);
#pragma omp parallel for num_threads(workers_for(blocks, threads)) schedule(static)
  for (std::int64_t block = 0; block < blocks; ++block) {
    const FloatingEnvironment environment;
    const std::int64_t first = block * max_columns;
    recombination.run(first, std::min(first + max_columns, c.columns));
  }
}

}  // namespace kintsugi::core

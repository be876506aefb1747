// Products of unsplit operands by the SIMT and DMMA kernels have the bits of the host's sums in their order.
#include <cmath>

#include "arith/complex.hpp"
#include "engines/cuda/gemm/simt_tiles.hpp"
#include "gpu/recombine/recombine_case.hpp"

namespace kintsugi::test {
namespace {

// Adds the products of each of `parts` parts of k one by one, each by a fused multiply-add, in the order of
// base/embedding.hpp, and in the end the parts' sums.
template <class R, class View>
R sequential_sum(const View& a, const View& b, std::int64_t i, std::int64_t v, std::int64_t parts = 1) {
  const std::int64_t length =
      parts == 1 ? std::max<std::int64_t>(a.columns, 1) : core::cuda::split_length(a.columns, parts);
  R sum = 0;
  for (std::int64_t first = 0; first < a.columns; first += length) {
    R part = 0;
    for (std::int64_t p = first; p < std::min(a.columns, first + length); ++p)
      part = std::fma(R(a(i, p)), R(b(v, p)), part);
    sum = first == 0 ? part : sum + part;
  }
  return sum;
}

template <class T>
T sequential_element(const core::OperandView<T>& a, const core::OperandView<T>& b, std::int64_t i,
                     std::int64_t j, std::int64_t parts) {
  using R = core::RealOf<T>;
  if constexpr (core::is_complex<T>) {
    return {sequential_sum<R>(a, b, i, 2 * j), sequential_sum<R>(a, b, i, 2 * j + 1)};
  } else {
    return sequential_sum<R>(a, b, i, j, parts);
  }
}

template <class T>
double magnitude(const T& x) {
  if constexpr (core::is_complex<T>) {
    return std::abs(double{x.real()}) + std::abs(double{x.imag()});
  } else {
    return std::abs(double{x});
  }
}

// Largest distance between FP64 sums in different orders, since tensor cores add in an order of their own.
// NaN for FP32, whose kernels add in the host's order.
template <class T>
double distance_of_orders(TestTile<T>& tile, std::int64_t i, std::int64_t j, const T& old) {
  if constexpr (std::is_same_v<core::RealOf<T>, float>) return std::numeric_limits<double>::quiet_NaN();
  const core::OperandView<T> a = tile.a.view();
  const core::OperandView<T> b = tile.b.view();
  double sum = 0;
  for (std::int64_t part = 0; part < core::parts_of<T>; ++part) {
    for (std::int64_t p = 0; p < a.columns; ++p)
      sum += std::abs(a(i, p)) * std::abs(b(core::parts_of<T> * j + part, p));
  }
  const double added = tile.scalars.beta == T(0) ? 0 : magnitude(tile.scalars.beta) * magnitude(old);
  return 0x1p-52 * (static_cast<double>(a.columns + 2) * magnitude(tile.scalars.alpha) * sum + 2 * added);
}

// Compares a product with the host's. Returns false if the condition of the tile does not hold, so that
// nothing was computed.
template <class T>
bool check_unsplit_product(std::mt19937_64& random, std::int64_t rows, std::int64_t columns,
                           std::int64_t length, bool special, const std::string& where, int spread = 8) {
  TestTile<T> tile(random, rows, columns, length, special, spread);
  std::vector<T> expected = tile.c.values();
  const core::OperandView<T> a = tile.a.view();
  const core::OperandView<T> b = tile.b.view();
  const auto c = tile.c.view(expected).block(tile.first_row, tile.first_column, tile.rows, tile.columns);
  const std::int64_t parts = core::cuda::blocks_per_tile(tile.on_device());
  std::vector<double> tolerance(expected.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t j = 0; tile.condition.holds() && j < tile.columns; ++j) {
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      tolerance[static_cast<std::size_t>(&c(i, j) - expected.data())] =
          distance_of_orders(tile, tile.first_row + i, tile.first_column + j, c(i, j));
      if (tile.scalars.alpha == T(0)) {
        c(i, j) = tile.scalars.beta == T(0) ? T(0) : core::times(tile.scalars.beta, c(i, j));
        continue;
      }
      const T sum = sequential_element<T>(a, b, tile.first_row + i, tile.first_column + j, parts);
      const T product = core::times(tile.scalars.alpha, sum);
      c(i, j) = tile.scalars.beta == T(0) ? product : product + core::times(tile.scalars.beta, c(i, j));
    }
  }
  core::cuda::multiply_unsliced({}, tile.on_device());
  tile.c.expect(expected, fmt::format("{}, {}", where, tile.text()), tolerance);
  return tile.condition.holds();
}

TYPED_TEST(Recombine, UnsplitProductsAreSequentialSums) {
  for (int draw = 0; draw < 60 && !testing::Test::HasFailure(); ++draw) {
    const std::int64_t max_size = draw % 10 == 0 ? 300 : 140;
    check_unsplit_product<TypeParam>(this->random, draw_size(this->random, 1, max_size),
                                     draw_size(this->random, 1, max_size), draw_size(this->random, 1, 200),
                                     draw % 3 == 0, fmt::format("draw {}", draw));
  }
}

// FP32 sums that underflow or overflow on the way are what fused multiply-adds give.
TYPED_TEST(Recombine, UnsplitProductsOfAnyExponentsEqualTheHosts) {
  for (const int spread : {70, 100}) {
    for (int draw = 0; draw < 30 && !testing::Test::HasFailure(); ++draw) {
      check_unsplit_product<TypeParam>(this->random, draw_size(this->random, 1, 140),
                                       draw_size(this->random, 1, 140), draw_size(this->random, 1, 30),
                                       draw % 3 == 0, fmt::format("spread {} draw {}", spread, draw), spread);
    }
  }
}

// On an H200 the kernel has tiles of 64 and of 128 rows and columns here, and several k-blocks.
TYPED_TEST(Recombine, UnsplitProductsOfLargerTilesEqualTheHosts) {
  for (const std::int64_t size : {750, 1450}) {
    bool computed = false;
    while (!computed && !testing::Test::HasFailure()) {
      computed = check_unsplit_product<TypeParam>(
          this->random, draw_size(this->random, size, size + 50), draw_size(this->random, size, size + 50),
          draw_size(this->random, 33, 40), size == 750, "larger tiles");
    }
  }
}

// On Hopper clusters share a tile of FP32 elements here, by its inner indices.
TYPED_TEST(Recombine, UnsplitProductsOfSmallLongTilesEqualTheHosts) {
  for (int draw = 0; draw < 12 && !testing::Test::HasFailure(); ++draw) {
    check_unsplit_product<TypeParam>(this->random, draw_size(this->random, 1, 400),
                                     draw_size(this->random, 1, 400), draw_size(this->random, 100, 700),
                                     draw % 3 == 0, fmt::format("long tiles, draw {}", draw),
                                     draw % 4 == 1 ? 100 : 8);
  }
}

TYPED_TEST(Recombine, OperandsThatNoCandidateAcceptsGiveNan) {
  using T = TypeParam;
  TestTile<T> tile(this->random, 130, 70, 5, false);
  const auto selection = selection_of(core::DeviceSelection::none);
  core::DeviceTile device = tile.on_device();
  device.condition = {selection.data(), core::DeviceSelection::none};
  std::vector<T> expected = tile.c.values();
  const auto c = tile.c.view(expected).block(tile.first_row, tile.first_column, tile.rows, tile.columns);
  const auto nan = std::numeric_limits<core::RealOf<T>>::quiet_NaN();
  for (std::int64_t j = 0; j < c.columns; ++j) {
    for (std::int64_t i = 0; i < c.rows; ++i) {
      if constexpr (core::is_complex<T>) {
        c(i, j) = {nan, nan};
      } else {
        c(i, j) = nan;
      }
    }
  }
  core::cuda::multiply_unsliced({}, device);
  tile.c.expect(expected, tile.text());
}

}  // namespace
}  // namespace kintsugi::test

// Open elements become their exact sums, rounded once, whichever kernels sum them; others stay as they are.
#include "arith/exact/exact_sum.hpp"
#include "engines/cuda/recombine/checked/checks.hpp"
#include "gpu/recombine/recombine_case.hpp"

namespace kintsugi::test {
namespace {

class OpenElements : public testing::Test {
 protected:
  // Draws which elements of the tile are open: one of `distance` everywhere, and every second element of 32
  // rows if `dense`.
  void draw_masks(const TestTile<double>& tile, std::uint64_t distance, bool dense) {
    masks_per_column = core::DeviceOpenElements::masks_for_rows(tile.rows);
    masks.assign(static_cast<std::size_t>(masks_per_column * tile.columns), 0);
    open = 0;
    const std::int64_t dense_row = dense ? draw_size(random, 0, (tile.rows - 1) / 32) * 32 : -32;
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      for (std::int64_t i = 0; i < tile.rows; ++i) {
        const bool is_dense = i >= dense_row && i < dense_row + 32 && random() % 2 == 0;
        if (!is_dense && random() % distance != 0) continue;
        masks[static_cast<std::size_t>(i / 32 + j * masks_per_column)] |= 1U << (i % 32);
        ++open;
      }
    }
  }
  bool is_open(std::int64_t i, std::int64_t j) const {
    return (masks[static_cast<std::size_t>(i / 32 + j * masks_per_column)] >> (i % 32) & 1U) != 0;
  }

  std::vector<double> expected(TestTile<double>& tile) const {
    std::vector<double> values = tile.c.values();
    const auto c = tile.c.view(values).block(tile.first_row, tile.first_column, tile.rows, tile.columns);
    const auto a = tile.a.view();
    const auto b = tile.b.view();
    for (std::int64_t j = 0; j < c.columns; ++j) {
      for (std::int64_t i = 0; i < c.rows; ++i) {
        if (!is_open(i, j)) continue;
        core::ExactSum sum;
        for (std::int64_t p = 0; p < a.columns; ++p)
          sum.add_product(a(tile.first_row + i, p), b(tile.first_column + j, p));
        sum.multiply(tile.scalars.alpha);
        if (tile.scalars.beta != 0) sum.add_product(tile.scalars.beta, c(i, j));
        c(i, j) = sum.to_double();
      }
    }
    return values;
  }

  // Recomputes the open elements on the device, and compares C and the report.
  void check(TestTile<double>& tile, const std::string& where) {
    const std::vector<double> values = expected(tile);
    core::DeviceCheckState state;
    state.open = open;
    const DeviceArray<core::DeviceCheckState> states(std::vector{state});
    const DeviceArray<std::uint32_t> device_masks(masks);
    const DeviceArray<std::uint32_t> list(masks.size());
    const DeviceArray<core::DeviceReport> report(std::vector<core::DeviceReport>(1));
    core::cuda::recompute({}, tile.on_device(),
                          {states.data(), device_masks.data(), masks_per_column, list.data()}, report.data());
    tile.c.expect(values,
                  fmt::format("{}, {} open, k = {}, {}", where, open, tile.a.view().columns, tile.text()));
    EXPECT_EQ(report.host()[0].recomputed, open) << where;
  }

  const std::uint64_t seed = fresh_seed();
  std::mt19937_64 random{seed};
  const testing::ScopedTrace trace{__FILE__, __LINE__, fmt::format("seed {}", seed)};
  std::vector<std::uint32_t> masks;
  std::int64_t masks_per_column = 0;
  std::uint64_t open = 0;
};

// Tiles that are large enough for bands to be read as a whole; in three of four rows of A or columns of B are
// adjacent in memory. Few, many and very many elements of a band are open, and with a wide spread two doubles
// cannot tell all sums.
TEST_F(OpenElements, BecomeExactSums) {
  for (int draw = 0; draw < 16 && !HasFailure(); ++draw) {
    const std::int64_t rows = draw_size(random, 1024, 1200);
    const std::int64_t length = draw_size(random, 1, draw % 2 == 0 ? 70 : 200);
    const int spread = draw % 5 == 4 ? 400 : 8;
    TestTile<double> tile(random, rows, draw_size(random, 1024, 1100), length, draw % 4 == 3, spread);
    if (tile.scalars.alpha == 0 || draw % 3 == 0) tile.scalars.set(1, 0);
    draw_masks(tile, draw % 3 == 0 ? 20000 : 500, draw % 3 == 1);
    check(tile, fmt::format("draw {}", draw));
  }
}

TEST_F(OpenElements, OfSmallTilesBecomeExactSums) {
  for (int draw = 0; draw < 20 && !HasFailure(); ++draw) {
    TestTile<double> tile(random, draw_size(random, 1, 200), draw_size(random, 1, 200),
                          draw_size(random, 1, 300), draw % 4 == 3, draw % 5 == 4 ? 400 : 8);
    if (tile.scalars.alpha == 0) tile.scalars.set(-0.5, 3);
    draw_masks(tile, 50, draw % 3 == 1);
    check(tile, fmt::format("draw {}", draw));
  }
}

}  // namespace
}  // namespace kintsugi::test

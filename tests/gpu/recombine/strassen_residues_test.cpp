// Recombination of residues of Strassen's seven products gives the bits of the host's recombination of the
// residues of their sums.
#include "arith/residue/strassen.hpp"

#include "engines/cuda/recombine/arguments.hpp"
#include "gpu/recombine/drawn_integers.hpp"
#include "gpu/recombine/recombine_case.hpp"

namespace kintsugi::test {
namespace {

constexpr int max_count = core::cuda::max_real_digit_residues;

// Residues of seven products: drawn for four of them, and for the others such that the four sums are residues
// of given integers of the tile. Elements beyond the tile's edge have drawn residues only.
class StrassenResidues {
 public:
  StrassenResidues(std::mt19937_64& random, int count, std::int64_t rows, std::int64_t columns,
                   const DrawnIntegers& integers)
      : rows_(core::strassen_half(rows)), columns_(core::strassen_half(columns)), count_(count),
        residues_(static_cast<std::size_t>(core::strassen_products * count * rows_ * columns_)) {
    for (int t = 0; t < count; ++t) {
      const int m = core::moduli[static_cast<std::size_t>(t)];
      for (std::int64_t j = 0; j < columns_; ++j) {
        for (std::int64_t i = 0; i < rows_; ++i) {
          const auto sum = [&](int row_half, int column_half) {
            const std::int64_t row = core::strassen_group * (i / core::strassen_group + row_half) + i;
            const std::int64_t column = core::strassen_group * (j / core::strassen_group + column_half) + j;
            EXPECT_EQ(core::index_in_half(row), i);
            EXPECT_EQ(core::half_of(column), column_half);
            if (row >= rows || column >= columns)
              return static_cast<int>(random() % static_cast<unsigned>(m));
            return static_cast<int>(integers.residue(row + column * rows, m));
          };
          int p[core::strassen_products];
          for (const int q : {0, 4, 5, 6}) p[q] = static_cast<int>(random() % static_cast<unsigned>(m));
          p[6] = sum(1, 1) - p[0] - p[5] - p[4];
          p[1] = sum(0, 0) - p[0];
          p[2] = sum(0, 1) - p[0] - p[5] - p[4];
          p[3] = sum(1, 0) - p[0] - p[5] - p[6];
          for (int q = 0; q < core::strassen_products; ++q)
            residues_[index(q * count + t, i + j * rows_)] = representative(random, p[q], m);
        }
      }
    }
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  std::uint8_t operator()(int group, std::int64_t element) const { return residues_[index(group, element)]; }

 private:
  // Any byte with the residue of x.
  static std::uint8_t representative(std::mt19937_64& random, int x, int modulus) {
    const int residue = (x % modulus + modulus) % modulus;
    const bool has_second = residue + modulus <= 255;
    return static_cast<std::uint8_t>(residue + (has_second && random() % 2 == 0 ? modulus : 0));
  }
  std::size_t index(int group, std::int64_t element) const {
    return static_cast<std::size_t>(group * rows_ * columns_ + element);
  }

  std::int64_t rows_, columns_;
  int count_;
  std::vector<std::uint8_t> residues_;
};

class StrassenRecombine : public Recombine<double> {
 protected:
  // Moves the tile to a position that a tile of such products may have.
  static void align(TestTile<double>& tile) {
    tile.first_row -= tile.first_row % (2 * core::strassen_group);
    tile.first_column -= tile.first_column % (2 * core::strassen_group);
  }

  void check(TestTile<double>& tile, int count) {
    align(tile);
    const DrawnIntegers integers(random, core::residue_bits(count), tile.rows * tile.columns);
    const TestSums<std::uint8_t> plain(
        core::SumType::residue, tile.rows, tile.columns, count, [&](int t, std::int64_t element) {
          return integers.residue(element, core::moduli[static_cast<std::size_t>(t)]);
        });
    const StrassenResidues drawn(random, count, tile.rows, tile.columns, integers);
    const TestSums<std::uint8_t> sums(core::SumType::residue, drawn.rows(), drawn.columns(),
                                      core::strassen_products * count, drawn);
    const auto expected =
        tile.expected([&](auto rows, auto columns, double alpha, double beta, const auto& c) {
          core::recombine_residues(plain.host(), {count}, rows, columns, alpha, beta, c, 1);
        });
    core::cuda::recombine_residues({}, sums.device(), {.real_count = count, .strassen = true},
                                   tile.on_device());
    tile.c.expect(expected, fmt::format("{} moduli, {}", count, tile.text()));
  }
};

TEST_F(StrassenRecombine, EveryNumberOfModuliGivesTheHostsBits) {
  for (int count = 2; count <= max_count; ++count) {
    for (int draw = 0; draw < 12; ++draw) {
      TestTile<double> tile(random, draw < 2 ? 300 : 70, draw % 2 == 0);
      check(tile, count);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST_F(StrassenRecombine, LargerTilesGiveTheHostsBits) {
  for (const std::int64_t rows : {1, 8, 126, 128, 136, 513}) {
    for (const std::int64_t columns : {1, 4, 16, 127, 128, 520}) {
      for (const bool special : {false, true}) {
        TestTile<double> tile(random, rows, columns, 5, special);
        check(tile, static_cast<int>(draw_size(random, 2, max_count)));
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

// C is poisoned: with beta = 0 no element of it may be read or left as it is.
TEST_F(StrassenRecombine, BetaZeroOverwritesNaN) {
  for (int checked = 0; checked < 20;) {
    TestTile<double> tile(random, 300, false);
    if (tile.scalars.beta != 0) continue;
    ++checked;
    for (double& element : tile.c.values()) element = std::numeric_limits<double>::quiet_NaN();
    check(tile, static_cast<int>(draw_size(random, 2, max_count)));
    if (testing::Test::HasFailure()) return;
  }
}

TEST_F(StrassenRecombine, RefusesWhatItHasNoKernelFor) {
  TestTile<double> tile(random, 20, 20, 5, false);
  TestTile<float> floats(random, 20, 20, 5, false);
  const TestSums<std::uint8_t> sums(core::SumType::residue, 12, 12, 7 * (max_count + 1),
                                    [](int, std::int64_t) { return std::uint8_t{0}; });
  const auto status_of = [&](int count, const core::DeviceTile& device_tile) {
    try {
      core::cuda::recombine_residues({}, sums.device(), {.real_count = count, .strassen = true}, device_tile);
    } catch (const core::Error& error) {
      return error.status();
    }
    return core::Status::success;
  };
  EXPECT_EQ(status_of(max_count + 1, tile.on_device()), core::Status::internal);
  EXPECT_EQ(status_of(max_count, floats.on_device()), core::Status::internal);
}

}  // namespace
}  // namespace kintsugi::test

#include "execute/host/steps.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "arith/range.hpp"
#include "arith/tile_arithmetic.hpp"
#include "base/embedding.hpp"
#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

namespace {

// Digits of up to 16 vectors at half_piece (32) consecutive inner indices. The elements of a vector share an
// exponent there; weights[v] is 2 to the exponent of vector v.
struct Fp16Piece {
  static constexpr std::int64_t max_vectors = 16;

  std::int16_t digits[max_vectors][half_digits][half_piece];
  float weights[max_vectors];

  // Loads `vectors` vectors from vector `first` on, at inner indices from `begin` on. NaN, infinities and
  // elements after the end of a vector become 0.
  template <class View>
  void load(const TiledOperand<View>& operand, std::int64_t first, std::int64_t vectors, std::int64_t begin) {
    const std::int64_t length = std::min<std::int64_t>(half_piece, operand.slices.k - begin);
    for (std::int64_t v = 0; v < vectors; ++v) {
      std::array<float, half_piece> elements{};
      for (std::int64_t p = 0; p < length; ++p) {
        const float x = operand.elements(first + v, begin + p);
        elements[p] = x - x == 0.0F ? x : 0.0F;
      }
      load_vector(elements, -operand.ranges[first + v].scale, v);
    }
  }

 private:
  void load_vector(const std::array<float, half_piece>& elements, int panel_exponent, std::int64_t v) {
    int exponent = TileExponent::none;
    for (const float x : elements) {
      if (x != 0.0F) exponent = std::max(exponent, exponent_of(x));
    }
    weights[v] = exponent == TileExponent::none ? 0.0F : tile_weight(exponent - panel_exponent);
    for (std::size_t p = 0; p < elements.size(); ++p) {
      const std::uint64_t integer = half_integer(elements[p], exponent);
      for (int s = 0; s < half_digits; ++s) digits[v][s][p] = half_digit(integer, elements[p] < 0, s);
    }
  }
};

// Returns the product of vector i of `a` and vector j of `b` without their weights.
float piece_product(const Fp16Piece& a, std::int64_t i, const Fp16Piece& b, std::int64_t j) {
  std::int32_t sums[half_digits] = {};
  for (int s = 0; s < half_digits; ++s) {
    for (int t = 0; t + s < half_digits; ++t) {
      std::int32_t sum = 0;
      for (int p = 0; p < half_piece; ++p) sum += a.digits[i][s][p] * b.digits[j][t][p];
      sums[s + t] += sum;
    }
  }
  return half_value(sums);
}

// Computes group 1 of the sums, for one panel of tiles of A after the other.
template <class View>
class FailingTiles {
 public:
  FailingTiles(const TiledOperand<View>& a, const TiledOperand<View>& b, const Accumulators& sums)
      : a_(a), b_(b), sums_(sums) {}

  // Sets group 1 in the rows of the panel that begins at row `row`.
  void multiply_panel(std::int64_t row) const {
    const std::int64_t rows = std::min<std::int64_t>(a_.slices.tile_vectors, sums_.rows - row);
    for (std::int64_t j = 0; j < sums_.columns; ++j)
      std::fill_n(sums_.group<float>(1) + row + j * sums_.rows, rows, 0.0F);
    for (std::int64_t begin = 0; begin < a_.slices.k; begin += half_piece) {
      const std::int64_t tile_index = begin / a_.slices.tile_depth;
      const bool tile_of_a_fails = a_.slices.tile(row, tile_index).fails != 0;
      Fp16Piece piece_a;
      bool is_loaded = false;  // piece_a is loaded when the first pair of tiles needs it
      for (std::int64_t column = 0; column < sums_.columns; column += b_.slices.tile_vectors) {
        if (!tile_of_a_fails && b_.slices.tile(column, tile_index).fails == 0) continue;
        if (!is_loaded) piece_a.load(a_, row, rows, begin);
        is_loaded = true;
        add_piece_products(piece_a, row, rows, column, begin);
      }
    }
  }

 private:
  // Adds the products of piece_a and of the piece of B's tile that begins at vector `column`.
  void add_piece_products(const Fp16Piece& piece_a, std::int64_t row, std::int64_t rows, std::int64_t column,
                          std::int64_t begin) const {
    const std::int64_t columns = std::min<std::int64_t>(b_.slices.tile_vectors, sums_.columns - column);
    Fp16Piece piece_b;
    piece_b.load(b_, column, columns, begin);
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) {
        float& sum = sums_.group<float>(1)[row + i + (column + j) * sums_.rows];
        sum = std::fma(piece_product(piece_a, i, piece_b, j), piece_a.weights[i] * piece_b.weights[j], sum);
      }
    }
  }

  const TiledOperand<View>& a_;
  const TiledOperand<View>& b_;
  const Accumulators& sums_;
};

}  // namespace

template <class View>
bool add_failing_tiles(const TiledOperand<View>& a, const TiledOperand<View>& b, const Accumulators& sums,
                       int threads) {
  if (count_tiles(a.slices).failing == 0 && count_tiles(b.slices).failing == 0) return false;
  const FailingTiles<View> failing(a, b, sums);
  const std::int64_t panels = divide_up(sums.rows, a.slices.tile_vectors);
#pragma omp parallel for num_threads(workers_for(panels, threads)) schedule(static, 1)
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    const FloatingEnvironment environment;
    failing.multiply_panel(panel * a.slices.tile_vectors);
  }
  return true;
}

template bool add_failing_tiles(const TiledOperand<MatrixView<const float>>&,
                                const TiledOperand<MatrixView<const float>>&, const Accumulators&, int);
template bool add_failing_tiles(const TiledOperand<EmbeddedView<float>>&,
                                const TiledOperand<EmbeddedView<float>>&, const Accumulators&, int);

}  // namespace kintsugi::core

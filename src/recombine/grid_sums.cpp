// Exact sums on the grid of reproducible products, for few long vectors.
#include <array>
#include <bit>

#include "arith/complex.hpp"
#include "arith/exact/exact_rounding.hpp"
#include "arith/exact/wide_integer.hpp"
#include "base/vectorised.hpp"
#include "recombine/exact_tiles.hpp"
#include "recombine/recombine.hpp"

namespace kintsugi::core {

namespace {

__extension__ typedef __int128 Product;

// The sum of an element, in two's complement.
using GridSum = WideInteger<3>;

void add(GridSum& sum, Product x) {
  const auto bits = static_cast<GridSum::TwoLimbs>(x);
  GridSum addend{{static_cast<std::uint64_t>(bits), static_cast<std::uint64_t>(bits >> 64),
                  x < 0 ? ~std::uint64_t{0} : 0}};
  sum.add_multiple(addend, 1);  // a carry out of the last limb is dropped
}

// At most as many products as exact_packed_elements, so 128 bits hold the sum.
Product dot(const std::int64_t* a, const std::int64_t* b, std::int64_t length) {
  Product sum = 0;
  for (std::int64_t p = 0; p < length; ++p) sum += Product{a[p]} * b[p];
  return sum;
}

// integers[p] = RN(2^scale elements[p]), whose magnitudes are at most 2^51. The power of two may be no
// double, but its two factors are. Elements that become subnormal by the first are rounded to 0 anyway.
KINTSUGI_VECTORIZED void round_to_grid(const double* elements, std::int64_t length, double factor,
                                       double other_factor, std::int64_t* integers) {
  constexpr double shift = 0x1.8p52;  // of the sum, the last bit is worth 1
  for (std::int64_t p = 0; p < length; ++p)
    integers[p] = std::bit_cast<std::int64_t>(elements[p] * factor * other_factor + shift) -
                  std::bit_cast<std::int64_t>(shift);
}

// Pieces of more elements would leave the first cache before they are multiplied.
constexpr std::int64_t longest_piece = 1024;

// Returns the elements of a vector from inner index `first` on if they are adjacent doubles; nullptr else.
template <class View>
const double* adjacent_doubles(const View&, std::int64_t, std::int64_t) {
  return nullptr;
}
const double* adjacent_doubles(const MatrixView<const double>& vectors, std::int64_t v, std::int64_t first) {
  return vectors.column_stride == 1 ? &vectors(v, first) : nullptr;
}

// Writes a piece of vectors as integers of the grid, one vector after the other.
template <class View>
void pack_on_grid(const View& vectors, std::span<const VectorRange> ranges, std::int64_t first,
                  std::int64_t length, std::int64_t* target) {
  auto* const copies = reinterpret_cast<double*>(target);
  if (adjacent_doubles(vectors, 0, first) == nullptr) pack_vectors<1>(vectors, first, length, copies);
  for (std::int64_t v = 0; v < vectors.rows; ++v) {
    const double* const in_place = adjacent_doubles(vectors, v, first);
    const int half = ranges[v].scale / 2;
    round_to_grid(in_place != nullptr ? in_place : copies + v * length, length, power_of_two(half),
                  power_of_two(ranges[v].scale - half), target + v * length);
  }
}

template <class T>
T rounded_on_grid(const GridSum* sums, std::int64_t stride, int exponent, T alpha, T beta, const T* old) {
  const auto number = [&](std::int64_t part) { return signed_number<3>(sums[part * stride], exponent); };
  if constexpr (is_complex<T>) {
    return exact_epilogue(number(0), number(1), alpha, beta, old);
  } else {
    return exact_epilogue(number(0), alpha, beta, old);
  }
}

}  // namespace

template <class T>
void multiply_on_grid(const OperandView<T>& a, const OperandView<T>& b, std::span<const VectorRange> rows,
                      std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                      const std::uint8_t* states, std::byte* scratch, int threads) {
  constexpr std::int64_t parts = parts_of<T>;
  const ExactTileMemory sizes(c.rows, b.rows, a.columns);
  for_each_exact_tile<T>(c, sizes, scratch, threads, [&](const ExactTileShape& tile, std::byte* memory) {
    auto* const packed = reinterpret_cast<std::int64_t*>(memory);
    auto* const sums = reinterpret_cast<GridSum*>(packed + sizes.packed);
    const std::int64_t vectors = parts * tile.columns;
    const auto is_open = [&](std::int64_t i, std::int64_t j) {
      return rows[tile.row + i].finite() && columns[parts * (tile.column + j)].finite() &&
             (states == nullptr || states[tile.row + i + (tile.column + j) * c.rows] != 0);
    };
    std::fill_n(sums, tile.rows * vectors, GridSum{});
    const std::int64_t most = std::min(longest_piece, sizes.packed / (tile.rows + vectors));
    for (std::int64_t first = 0; first < a.columns; first += most) {
      const std::int64_t length = std::min(most, a.columns - first);
      std::int64_t* const packed_b = packed + tile.rows * length;
      pack_on_grid(a.vectors(tile.row, tile.rows), rows.subspan(tile.row, tile.rows), first, length, packed);
      pack_on_grid(b.vectors(parts * tile.column, vectors), columns.subspan(parts * tile.column, vectors),
                   first, length, packed_b);
      for (std::int64_t v = 0; v < vectors; ++v) {
        for (std::int64_t i = 0; i < tile.rows; ++i) {
          if (is_open(i, v / parts))
            add(sums[i + v * tile.rows], dot(packed + i * length, packed_b + v * length, length));
        }
      }
    }
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      for (std::int64_t i = 0; i < tile.rows; ++i) {
        if (!is_open(i, j)) continue;
        T& element = c(tile.row + i, tile.column + j);
        const int exponent = -(rows[tile.row + i].scale + columns[parts * (tile.column + j)].scale);
        element = rounded_on_grid<T>(sums + i + parts * j * tile.rows, tile.rows, exponent, alpha, beta,
                                     beta == T(0) ? nullptr : &element);
      }
    }
  });
}

#define INSTANTIATE(T)                                                                                \
  template void multiply_on_grid<T>(const OperandView<T>&, const OperandView<T>&,                     \
                                    std::span<const VectorRange>, std::span<const VectorRange>, T, T, \
                                    const MatrixView<T>&, const std::uint8_t*, std::byte*, int);
KINTSUGI_FOR_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace kintsugi::core

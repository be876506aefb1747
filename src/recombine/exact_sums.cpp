#include "recombine/recombine.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "arith/complex.hpp"
#include "arith/double_double.hpp"
#include "arith/exact/exact_sum.hpp"
#include "formats/double_double.hpp"
#include "recombine/compensated_sums.hpp"
#include "recombine/exact_tiles.hpp"

namespace kintsugi::core {

namespace {

// True if no product of elements of the two vectors, or sum of `products` of them, overflows, and if no
// product has bits below 2^-1074.
bool has_exact_products(const VectorRange& row, const VectorRange& column, std::int64_t products) {
  if (((row.flags | column.flags) & VectorRange::all_zero) != 0) return true;
  const auto length_bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(products)));
  constexpr int digits = std::numeric_limits<double>::digits;
  return row.largest + column.largest + 2 + length_bits <= 1000 &&
         row.smallest + column.smallest - 2 * (digits - 1) >= -1074;
}

// Returns the range of all elements of the vectors.
VectorRange merged(std::span<const VectorRange> ranges) {
  VectorRange all;
  std::uint32_t special = 0;
  for (const VectorRange& range : ranges) {
    all.largest = std::max(all.largest, range.largest);
    all.smallest = std::min(all.smallest, range.smallest);
    all.flags &= range.flags;
    special |= range.flags & ~static_cast<std::uint32_t>(VectorRange::all_zero);
  }
  all.flags |= special;
  return all;
}

template <class T>
struct ExactProduct {
  const OperandView<T>& a;
  const OperandView<T>& b;
  std::span<const VectorRange> rows;
  std::span<const VectorRange> columns;
  T alpha;
  T beta;
  const MatrixView<T>& c;
  const std::uint8_t* states;
  const SumKernels* kernels;
  RoundingMode rounding;

  static constexpr std::int64_t parts = parts_of<T>;

  std::int64_t length() const { return a.columns; }
  bool is_open(std::int64_t i, std::int64_t j) const {
    return rows[i].finite() && columns[parts * j].finite() &&
           (states == nullptr || states[i + j * c.rows] != 0);
  }
};

// ---------------------------------------------------------------- by superaccumulators

// Calls visit(row, column, length) for pieces of the row and of the vectors of the column, which are
// contiguous: vector number `part` begins at column[part * length].
template <class T, class Visit>
void visit_pieces(const ExactProduct<T>& task, std::int64_t i, std::int64_t j, const ExactTileMemory& sizes,
                  std::byte* memory, const Visit& visit) {
  using Real = RealOf<T>;
  constexpr std::int64_t parts = parts_of<T>;
  const auto memory_elements =
      sizes.packed * static_cast<std::int64_t>(sizeof(double)) / static_cast<std::int64_t>(sizeof(Real));
  const std::int64_t most = memory_elements / (1 + parts);
  Real* const row = reinterpret_cast<Real*>(memory);
  for (std::int64_t first = 0; first < task.length(); first += most) {
    const std::int64_t length = std::min(most, task.length() - first);
    Real* const column = row + length;
    for (std::int64_t p = 0; p < length; ++p) row[p] = task.a(i, first + p);
    for (std::int64_t part = 0; part < parts; ++part) {
      for (std::int64_t p = 0; p < length; ++p)
        column[part * length + p] = task.b(parts * j + part, first + p);
    }
    visit(row, column, length);
  }
}

template <class T>
T exact_element(const ExactProduct<T>& task, std::int64_t i, std::int64_t j, const ExactTileMemory& sizes,
                std::byte* memory, const T* old) {
  const auto with_sign = [&](auto result, std::int64_t part) {
    return with_sign_of_zero(result, task.rounding, task.a, task.b, i, parts_of<T> * j + part, task.alpha,
                             task.beta, old, part);
  };
  if constexpr (is_complex<T>) {
    ExactSum re, im;
    visit_pieces(task, i, j, sizes, memory, [&](const auto* row, const auto* column, std::int64_t length) {
      re.add_products(row, column, length);
      im.add_products(row, column + length, length);
    });
    const T result = exact_epilogue(re, im, task.alpha, task.beta, old, task.rounding);
    return {with_sign(result.real(), 0), with_sign(result.imag(), 1)};
  } else {
    ExactSum sum;
    visit_pieces(task, i, j, sizes, memory, [&](auto* row, auto* column, std::int64_t length) {
      if constexpr (is_double_double<T>) {
        for (std::int64_t p = 0; p < length; ++p) {
          row[p] = normalized(row[p]);
          column[p] = normalized(column[p]);
        }
        add_products(sum, row, column, length);
      } else {
        sum.add_products(row, column, length);
      }
    });
    if constexpr (is_double_double<T>) {
      return rounded_pair_result(sum, task.alpha, task.beta, old);
    } else {
      const T result = rounded_result(sum, task.alpha, task.beta, old, task.rounding);
      return with_sign(result, 0);
    }
  }
}

// ---------------------------------------------------------------- a tile of C

template <class T>
class ExactTile {
 public:
  ExactTile(const ExactProduct<T>& task, const ExactTileMemory& sizes, const ExactTileShape& shape,
            std::byte* memory)
      : task_(task), sizes_(sizes), memory_(memory), packed_(reinterpret_cast<double*>(memory)),
        row_(shape.row), column_(shape.column), rows_(shape.rows), columns_(shape.columns) {
    const std::int64_t elements = sizes.rows * sizes.vectors;
    double* const sums = packed_ + sizes.packed;
    sums_ = {.sum = sums, .errors = sums + elements, .magnitudes = sums + 2 * elements, .stride = sizes.rows};
  }

  // Computes the open elements of the tile.
  void compute() {
    const VectorRange all_rows = merged(task_.rows.subspan(row_, rows_));
    const VectorRange all_columns = merged(task_.columns.subspan(parts * column_, parts * columns_));
    are_all_open_ = task_.states == nullptr && all_rows.finite() && all_columns.finite();
    are_products_exact_ = has_exact_products(all_rows, all_columns, task_.length());
    if constexpr (!is_double_double<T>) {
      if (tries_two_doubles()) return compute_in_two_doubles();
    }
    for (std::int64_t j = 0; j < columns_; ++j) {
      for (std::int64_t i = 0; i < rows_; ++i) {
        if (is_open(i, j)) compute_exactly(i, j);
      }
    }
  }

 private:
  static constexpr std::int64_t parts = parts_of<T>;

  bool is_open(std::int64_t i, std::int64_t j) const {
    return are_all_open_ || task_.is_open(row_ + i, column_ + j);
  }

  // The real part, and number 1 the imaginary part, of a complex element; a real element itself.
  static const RealOf<T>& part_of(const T& element, std::int64_t part) {
    return reinterpret_cast<const RealOf<T>*>(&element)[part];
  }

  void compute_exactly(std::int64_t i, std::int64_t j) {
    T& element = task_.c(row_ + i, column_ + j);
    element =
        exact_element(task_, row_ + i, column_ + j, sizes_, memory_, task_.beta == T(0) ? nullptr : &element);
  }

  // ------------------------------------------------------------ in two doubles

  // A complex element's parts are rounded by themselves, so alpha and beta must be real.
  bool tries_two_doubles() {
    if (task_.kernels == nullptr) return false;
    if constexpr (is_complex<T>) {
      if (task_.alpha.imag() != 0 || task_.beta.imag() != 0) return false;
      scalars_ = {static_cast<double>(task_.alpha.real()), static_cast<double>(task_.beta.real()),
                  task_.length(), task_.rounding};
    } else {
      scalars_ = {static_cast<double>(task_.alpha), static_cast<double>(task_.beta), task_.length(),
                  task_.rounding};
    }
    return scalars_.may_be_certain();
  }

  void compute_in_two_doubles() {
    const std::int64_t open = count_open();
    if (open == 0) return;
    if (takes_vectors(open)) return compute_by_vectors();
    sum_by_panels();
    for (std::int64_t j = 0; j < columns_; ++j) round_column(j);
  }

  // Returns the number of open elements of a column; those of rows with special values may be counted.
  std::int64_t count_open(std::int64_t j) const {
    if (task_.states == nullptr) return rows_;
    const std::uint8_t* const states = task_.states + row_ + (column_ + j) * task_.c.rows;
    std::int64_t open = 0;
    for (std::int64_t i = 0; i < rows_; ++i) open += states[i] != 0 ? 1 : 0;
    return open;
  }
  std::int64_t count_open() const {
    std::int64_t open = 0;
    for (std::int64_t j = 0; j < columns_; ++j) open += count_open(j);
    return open;
  }

  OperandView<T> rows_of_a() const { return task_.a.vectors(row_, rows_); }
  OperandView<T> vectors_of_b() const { return task_.b.vectors(parts * column_, parts * columns_); }

  // Returns the length of the pieces of `vectors` vectors for which there is memory: whole panels.
  std::int64_t piece_length(std::int64_t vectors) const {
    return sizes_.packed / vectors / sum_panel_rows * sum_panel_rows;
  }

  // True if the open elements take less time one by one than all elements together.
  bool takes_vectors(std::int64_t open) const {
    constexpr std::int64_t copied_product = 4;  // time of the copy of two elements, in products
    constexpr std::int64_t products_of_lanes =
        600;  // time of the addition and rounding of lanes, in products
    const std::int64_t of_vector =
        (is_contiguous(task_.a) && is_contiguous(task_.b) ? 1 : 1 + copied_product) * task_.length() +
        products_of_lanes;
    const std::int64_t of_panels = round_up(rows_, sum_panel_rows) * parts * columns_ * task_.length() +
                                   copied_product * (rows_ + parts * columns_) * task_.length();
    return parts * open * of_vector < of_panels;
  }

  void sum_by_panels() {
    std::fill_n(sums_.sum, 3 * sizes_.rows * sizes_.vectors, 0.0);
    const std::int64_t rows = round_up(rows_, sum_panel_rows);
    const std::int64_t vectors = parts * columns_;
    const std::int64_t most = piece_length(rows + round_up(vectors, sum_panel_columns));
    for (std::int64_t first = 0; first < task_.length(); first += most) {
      const std::int64_t length = std::min(most, task_.length() - first);
      double* const a = packed_;
      double* const b = a + rows * length;
      pack_vectors<sum_panel_rows>(rows_of_a(), first, length, a);
      pack_vectors<sum_panel_columns>(vectors_of_b(), first, length, b);
      for (std::int64_t v = 0; v < vectors; v += sum_panel_columns) {
        for (std::int64_t i = 0; i < rows; i += sum_panel_rows)
          task_.kernels->add_panels(a + i * length, b + v * length, length,
                                    std::min(sum_panel_columns, vectors - v), sums_at(i, v));
      }
    }
  }

  CompensatedSums sums_at(std::int64_t i, std::int64_t v) const {
    const std::int64_t index = i + v * sums_.stride;
    return {sums_.sum + index, sums_.errors + index, sums_.magnitudes + index, sums_.stride};
  }

  // True if kernels can read the operand's vectors in place.
  template <class View>
  static bool is_contiguous(const View& vectors) {
    if constexpr (std::is_same_v<View, MatrixView<const double>>) {
      return vectors.column_stride == 1;
    } else {
      return false;
    }
  }

  // Returns the elements first ... first + length - 1 of the vectors: in place, or copies in `memory`.
  template <class View>
  static const double* contiguous(const View& vectors, std::int64_t first, std::int64_t length,
                                  double* memory) {
    if constexpr (std::is_same_v<View, MatrixView<const double>>) {
      if (is_contiguous(vectors)) return &vectors(0, first);
    }
    pack_vectors<1>(vectors, first, length, memory);
    return memory;
  }

  // Computes the open elements one by one. A column is copied once if all of it fits the memory.
  void compute_by_vectors() {
    for (std::int64_t j = 0; j < columns_; ++j) {
      if (count_open(j) == 0) continue;
      const double* column = nullptr;
      for (std::int64_t i = 0; i < rows_; ++i) {
        if (!is_open(i, j)) continue;
        for (std::int64_t part = 0; part < parts; ++part) clear_sums(part);
        column = sum_vectors(i, j, column);
        round_element(i, j, column);
      }
    }
  }

  void clear_sums(std::int64_t index) const {
    sums_.sum[index] = sums_.errors[index] = sums_.magnitudes[index] = 0;
  }

  // Adds the products of an element to the first sums, one for each part. `copied`: the column's copy;
  // nullptr if there is none. Returns the copy after this call.
  const double* sum_vectors(std::int64_t i, std::int64_t j, const double* copied) {
    const std::int64_t most = piece_length(1 + parts);
    const bool keeps = task_.length() <= most;
    for (std::int64_t first = 0; first < task_.length(); first += most) {
      const std::int64_t length = std::min(most, task_.length() - first);
      double* const memory = packed_ + parts * most;
      const double* const row = contiguous(task_.a.vectors(row_ + i, 1), first, length, memory);
      const double* const column =
          copied != nullptr
              ? copied
              : contiguous(task_.b.vectors(parts * (column_ + j), parts), first, length, packed_);
      for (std::int64_t part = 0; part < parts; ++part)
        add_vectors(row, column + part * length, length, part);
      if (keeps) copied = column;
    }
    return copied;
  }

  // Adds a piece of products to a sum, as CompensatedSum::add() adds sums.
  void add_vectors(const double* a, const double* b, std::int64_t length, std::int64_t index) const {
    alignas(64) std::array<double, 3 * sum_panel_rows> lanes{};
    const CompensatedSums of_lanes{lanes.data(), lanes.data() + sum_panel_rows,
                                   lanes.data() + 2 * sum_panel_rows, sum_panel_rows};
    task_.kernels->add_vectors(a, b, length, of_lanes);
    double sum = sums_.sum[index];
    double errors = sums_.errors[index];
    double magnitudes = sums_.magnitudes[index];
    for (std::int64_t lane = 0; lane < sum_panel_rows; ++lane) {
      const ValueAndError<double> total = two_sum(sum, of_lanes.sum[lane]);
      sum = total.value;
      errors += of_lanes.errors[lane];
      errors += total.error;
      magnitudes += of_lanes.magnitudes[lane] + std::fabs(total.error);
    }
    sums_.sum[index] = sum;
    sums_.errors[index] = errors;
    sums_.magnitudes[index] = magnitudes;
  }

  // Writes the element whose parts have the first sums. An exact sum overwrites the copied column: it is then
  // set to nullptr.
  void round_element(std::int64_t i, std::int64_t j, const double*& column) {
    std::array<RealOf<T>, parts> values;
    std::array<std::uint64_t, parts> certain;
    T& element = task_.c(row_ + i, column_ + j);
    for (std::int64_t part = 0; part < parts; ++part) {
      const RealOf<T>* const old = task_.beta == T(0) ? nullptr : &part_of(element, part);
      round_sums(sums_at(part, 0), 1, scalars_, old, &values[part], &certain[part]);
    }
    if (!are_exact_products(i, j) || (certain.front() & certain.back()) == 0) {
      compute_exactly(i, j);
      column = nullptr;
    } else if constexpr (is_complex<T>) {
      element = {values[0], values[1]};
    } else {
      element = values[0];
    }
  }

  bool are_exact_products(std::int64_t i, std::int64_t j) const {
    return are_products_exact_ ||
           has_exact_products(task_.rows[row_ + i], task_.columns[parts * (column_ + j)], task_.length());
  }

  // Writes the open elements of a column: those that are certain, and the others by exact sums, which
  // overwrite the packed elements.
  void round_column(std::int64_t j) {
    using Real = RealOf<T>;
    std::array<std::array<Real, exact_tile_rows>, parts> values;
    std::array<std::array<std::uint64_t, exact_tile_rows>, parts> certain;
    std::array<Real, exact_tile_rows> old;
    const bool reads_c = task_.beta != T(0);
    for (std::int64_t part = 0; part < parts; ++part) {
      for (std::int64_t i = 0; reads_c && i < rows_; ++i)
        old[i] = part_of(task_.c(row_ + i, column_ + j), part);
      round_sums(sums_at(0, parts * j + part), rows_, scalars_, reads_c ? old.data() : nullptr,
                 values[part].data(), certain[part].data());
    }
    for (std::int64_t i = 0; i < rows_; ++i) {
      if (!is_open(i, j)) continue;
      const bool is_certain = (certain.front()[i] & certain.back()[i]) != 0 && are_exact_products(i, j);
      if (!is_certain) {
        compute_exactly(i, j);
      } else if constexpr (is_complex<T>) {
        task_.c(row_ + i, column_ + j) = {values[0][i], values[1][i]};
      } else {
        task_.c(row_ + i, column_ + j) = values[0][i];
      }
    }
  }

  const ExactProduct<T>& task_;
  const ExactTileMemory& sizes_;
  std::byte* memory_;
  double* packed_;
  CompensatedSums sums_{};
  SumScalars scalars_{};
  std::int64_t row_;
  std::int64_t column_;
  std::int64_t rows_;
  std::int64_t columns_;
  bool are_all_open_ = false;
  bool are_products_exact_ = false;
};

template <class T>
void multiply_tiles(const ExactProduct<T>& task, std::byte* scratch, int threads) {
  const ExactTileMemory sizes(task.c.rows, task.b.rows, task.length());
  for_each_exact_tile<T>(task.c, sizes, scratch, threads,
                         [&](const ExactTileShape& shape, std::byte* memory) {
                           ExactTile<T>(task, sizes, shape, memory).compute();
                         });
}

}  // namespace

template <class T>
std::size_t exact_scratch_bytes(std::int64_t rows, std::int64_t vectors_b, std::int64_t length, int threads) {
  const std::int64_t tiles = divide_up(rows, exact_tile_rows) * divide_up(vectors_b, exact_tile_vectors);
  return static_cast<std::size_t>(std::min<std::int64_t>(threads, tiles)) *
         ExactTileMemory(rows, vectors_b, length).bytes();
}

template <class T>
void multiply_exactly(const OperandView<T>& a, const OperandView<T>& b, std::span<const VectorRange> rows,
                      std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                      const std::uint8_t* states, const SumKernels* kernels, RoundingMode rounding,
                      std::byte* scratch, int threads) {
  multiply_tiles<T>({a, b, rows, columns, alpha, beta, c, states, kernels, rounding}, scratch, threads);
}

#define INSTANTIATE(T)                                                                                \
  template std::size_t exact_scratch_bytes<T>(std::int64_t, std::int64_t, std::int64_t, int);         \
  template void multiply_exactly<T>(const OperandView<T>&, const OperandView<T>&,                     \
                                    std::span<const VectorRange>, std::span<const VectorRange>, T, T, \
                                    const MatrixView<T>&, const std::uint8_t*, const SumKernels*,     \
                                    RoundingMode, std::byte*, int);
KINTSUGI_FOR_ALL_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace kintsugi::core

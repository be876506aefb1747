// Block of a tile of C whose elements are sums of Strassen's products (arith/residue/strassen.hpp).
//
// A warp has a column of the products: 64 rows, which are 128 rows of C, and two columns of C. It recombines
// 16 rows of the products at a time, 64 elements of C. Each lane has two of these: neighboring rows of one
// quadrant.
#pragma once

#include "arith/residue/strassen.hpp"
#include "engines/cuda/ptx/async_copy.cuh"
#include "engines/cuda/ptx/shared_memory.cuh"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// A lane's neighboring rows of one column.
struct alignas(16) PairOfRows {
  static constexpr int count = 2;

  double rows[count];
};

// Counterpart of TileBlock (tile.cuh), with the same interface. `e` is an index of the warp's columns of the
// products, `u` one of the units of 16 rows of the products.
class StrassenBlock {
 public:
  static constexpr int columns = 128;                             // of C, at most
  static constexpr int columns_each = columns / 2 / block_warps;  // of the products, per warp
  static constexpr int units = block_rows / 2 / strassen_unit_rows;
  static constexpr int columns_staged = 2 * block_warps;  // of C, that pass through shared memory at a time

  // `count`: number of columns of C of a thread block, a multiple of columns_staged.
  __device__ StrassenBlock(const DeviceTile& tile, int count) {
    const auto blocks_along_rows = static_cast<unsigned>(divide_up(tile.rows, block_rows));
    first_row_ = std::int64_t{blockIdx.x % blocks_along_rows} * block_rows;
    first_column_ = std::int64_t{blockIdx.x / blocks_along_rows} * count;
    c_ = view_of<double>(tile.c, tile.item)
             .block(tile.first_row + first_row_, tile.first_column + first_column_,
                    std::min<std::int64_t>(block_rows, tile.rows - first_row_),
                    std::min<std::int64_t>(count, tile.columns - first_column_));
    staged_ = c_.row_stride != 1 || c_.rows % PairOfRows::count != 0 ||
              reinterpret_cast<std::uintptr_t>(c_.data) % sizeof(PairOfRows) != 0 ||
              c_.column_stride % PairOfRows::count != 0;
  }

  // Quadrant of C that the lane's elements belong to: 2 (half of the rows) + half of the columns.
  __device__ static int quadrant() { return lane() % 4; }
  // The lane's first row in unit u, and its column, counted from the first row and column of the block.
  __device__ static int row_in_block(int u) {
    const int pair = lane() / 4;
    return 2 * strassen_unit_rows * u + pair / 2 * 2 * strassen_group + pair % 2 * PairOfRows::count +
           quadrant() / 2 * strassen_group;
  }
  __device__ static int column_in_block(int e) {
    return first_column_of_warp(e) + quadrant() % 2 * strassen_group;
  }
  // True if some warp of the thread block has an e-th column.
  __device__ bool has_any_column(int e) const { return columns_staged * e < static_cast<int>(c_.columns); }
  // True if the warp has an e-th column.
  __device__ bool has_column(int e) const { return first_column_of_warp(e) < static_cast<int>(c_.columns); }
  // True if the lane has an element of C in unit u of the e-th column.
  __device__ bool has_element(int u, int e) const {
    return row_in_block(u) < static_cast<int>(c_.rows) && column_in_block(e) < static_cast<int>(c_.columns);
  }
  // Rows of the products that the block's elements need.
  __device__ int product_rows() const { return static_cast<int>(strassen_half(c_.rows)); }
  // First row of the block in the products, and the warp's first column.
  __device__ std::int64_t first_product_row() const { return first_row_ / 2; }
  __device__ std::int64_t first_product_column() const {
    return first_column_ / 2 + static_cast<int>(threadIdx.x) / warp_size;
  }

  // As in TileBlock.
  __device__ bool load_scales(const DeviceTile& tile) const {
    static_assert(block_rows + columns <= block_threads);
    constexpr int max_scale = max_ordinary_exponent / 2;
    const auto thread = static_cast<int>(threadIdx.x);
    bool is_ordinary = true;
    if (thread < block_rows + columns) {
      const VectorRange& range = range_of(tile, thread);
      const int scale = range.scale;
      scales()[thread] = scale;
      is_ordinary = range.finite() && -max_scale <= scale && scale <= max_scale;
    }
    return __syncthreads_and(is_ordinary ? 1 : 0) != 0;
  }
  // Exponent that undoes the scales of the lane's row r of unit u and its e-th column.
  __device__ int exponent(int r, int u, int e) const {
    return -(scales()[row_in_block(u) + r] + scales()[block_rows + column_in_block(e)]);
  }

  // read() reads a copy of the element in shared memory. If the lanes' accesses suit C's layout, the lane
  // has copied it there by fetch(e), which starts the copies of its elements of the e-th column; the last
  // ones must have been read. They are complete when the lane has awaited them. write() then writes to C.
  // Otherwise all threads call begin(), which copies the columns of all warps' e-th columns if C is read,
  // and end(e), which copies written elements back to C.
  __device__ void begin(bool reads_c, int e) const {
    if (!staged_) return;
    if (e != 0) __syncthreads();  // the columns before were copied to C
    if (!reads_c) return;
    for_each_staged(e, [](double& staged, double& element) { staged = element; });
    __syncthreads();
  }
  __device__ void end(int e) const {
    if (!staged_) return;
    __syncthreads();
    for_each_staged(e, [](double& staged, double& element) { element = staged; });
  }
  __device__ bool is_staged() const { return staged_; }
  __device__ void fetch(int e) const {
    if (staged_) return;
#pragma unroll
    for (int u = 0; u < units; ++u) {
      if (has_element(u, e)) {
        const int row = row_in_block(u);
        const int column = column_in_block(e);
        copy_16_bytes(shared_address(&staging(row, column)), &c_(row, column), true);
      }
    }
  }
  __device__ PairOfRows read(int u, int e) const {
    return reinterpret_cast<const PairOfRows&>(staging(row_in_block(u), column_in_block(e)));
  }
  __device__ void write(int u, int e, const PairOfRows& elements) const {
    const int row = row_in_block(u);
    const int column = column_in_block(e);
    reinterpret_cast<PairOfRows&>(staged_ ? staging(row, column) : c_(row, column)) = elements;
  }

  // A set of the lane's elements: bit 2 (units e + u) + r stands for row r of unit u of the e-th column.
  using Elements = std::uint64_t;
  static_assert(PairOfRows::count * units * columns_each == 64);
  static constexpr Elements all_elements = ~Elements{0};
  __device__ static constexpr Elements elements_of_unit(unsigned rows, int u, int e) {
    return Elements{rows} << PairOfRows::count * (units * e + u);
  }

  // As in TileBlock.
  template <class Visit>
  __device__ void for_each_element(Elements elements, const Visit& visit) const {
#pragma unroll 1
    for (; elements != 0; elements &= elements - 1) {
      const int index = __ffsll(static_cast<long long>(elements)) - 1;
      const int i = row_in_block(index / PairOfRows::count % units) + index % PairOfRows::count;
      const int j = column_in_block(index / (PairOfRows::count * units));
      if (i < c_.rows && j < c_.columns) visit(first_row_ + i, first_column_ + j, &c_(i, j));
    }
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x % warp_size); }
  // The lower of the two columns of C of the warp's e-th column.
  __device__ static int first_column_of_warp(int e) {
    const int warp = static_cast<int>(threadIdx.x) / warp_size;
    return columns_staged * e + warp / strassen_group * 2 * strassen_group + warp % strassen_group;
  }
  __device__ const VectorRange& range_of(const DeviceTile& tile, int index) const {
    if (index < block_rows)
      return tile.a.ranges[tile.first_row + first_row_ + std::min<std::int64_t>(index, c_.rows - 1)];
    return tile.b.ranges[tile.first_column + first_column_ +
                         std::min<std::int64_t>(index - block_rows, c_.columns - 1)];
  }
  __device__ static int* scales() {
    __shared__ int all[block_rows + columns];
    return all;
  }
  // Element of the copy of the block in shared memory. Eight neighboring lanes access eight rows of two
  // columns, four columns apart, in different banks.
  __device__ static double& staging(int row, int column) {
    constexpr int size = block_rows + 2;
    alignas(16) __shared__ double elements[columns_staged * size];
    return elements[column % columns_staged * size + row];
  }

  template <class Visit>
  __device__ void for_each_staged(int e, const Visit& visit) const {
    const bool by_rows = c_.column_stride < c_.row_stride;
#pragma unroll 4
    for (int n = static_cast<int>(threadIdx.x); n < block_rows * columns_staged; n += block_threads) {
      const int i = by_rows ? n / columns_staged : n % block_rows;
      const int j = columns_staged * e + (by_rows ? n % columns_staged : n / block_rows);
      if (i < c_.rows && j < c_.columns) visit(staging(i, j), c_(i, j));
    }
  }

  MatrixView<double> c_;    // the block of C
  std::int64_t first_row_;  // first row and column of the block in the tile
  std::int64_t first_column_;
  bool staged_;  // true: elements are read and written through shared memory
};

}  // namespace kintsugi::core::cuda

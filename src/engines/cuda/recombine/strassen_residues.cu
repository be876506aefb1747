// Recombination of residues of Strassen's seven products in FP64, by sums of digits on the matrix unit
// (arith/residue/digit_sums.hpp, strassen.hpp).
//
// The digit sums of an element of C are sums of those of two to four products. The matrix unit adds them:
// an instruction multiplies the residues of two products, 16 rows of each, by eight digits of their
// weights. Of the 16 digits, the four lanes of a row get those of one piece each. The lanes exchange pieces
// through shared memory, so that each has all pieces of two elements of one quadrant of C.
//
// Digit sums of four products of 16 moduli are those of 64 residues, which doubles hold.
#include "arith/residue/strassen.hpp"
#include "engines/cuda/ptx/mma.cuh"
#include "engines/cuda/ptx/shared_memory.cuh"
#include "engines/cuda/recombine/digit_residues.cuh"
#include "engines/cuda/recombine/tile.cuh"

namespace kintsugi::core::cuda {

// Block of a tile of C whose elements are sums of Strassen's products (arith/residue/strassen.hpp).
//
// A warp has a column of the products: 64 rows, which are 128 rows of C, and two columns of C. It recombines
// 16 rows of the products at a time, 64 elements of C. Each lane has two of these: neighboring rows of one
// quadrant.

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

// Residues of Strassen's seven products, on their way from memory to the matrix unit.

// Residues of the seven products as left operands of the matrix unit (PTX ISA, mma.m16n8k32). Rows 0 ... 7 of
// an operand are the even rows of a unit, rows 8 ... 15 the odd ones. Lane l has residues of rows l / 4 and
// l / 4 + 8, modulo moduli 2 (l % 4), 2 (l % 4) + 1, 2 (l % 4) + 8 and 2 (l % 4) + 9.
struct ProductResidues {
  static constexpr int units = 2;

  std::uint32_t word[strassen_products][units][2];
};

// Columns of the products that a warp copies to shared memory, one after the other.
class ProductColumns {
 public:
  // `source`: residues of the block's first row and the warp's first column, of product 0 modulo the first
  // modulus. `stride` is the distance from one modulus to the next, `column_stride` from one of the warp's
  // columns to the next.
  __device__ ProductColumns(const std::uint8_t* source, std::int64_t stride, std::int64_t column_stride,
                            int moduli, int rows)
      : stride_(stride), column_stride_(column_stride), moduli_(moduli) {
    const auto lane = static_cast<int>(threadIdx.x % warp_size);
    const std::uint32_t column = warps_memory();
    const int chunk = lane % chunks;
    const int modulus = lane / chunks;
    target_ = column + place(modulus, chunk);
    source_ = source + modulus * stride + chunk * chunk_rows;
    copies_ = chunk * chunk_rows < rows ? divide_up(moduli - modulus, moduli_at_once) : 0;
    // Lanes give the addresses of eight moduli each: of the lower and the upper eight of a chunk, and of the
    // next chunk.
    operand_ = column + place(lane / 8 % 2 * 8 + lane % 8, lane / 16);
  }

  // Starts the copies of the next column. The column before must have been loaded by all lanes.
  __device__ void start(bool exists) {
    if (exists) {
      const std::uint8_t* source = source_;
#pragma unroll
      for (int q = 0; q < strassen_products; ++q) {
#pragma unroll
        for (int i = 0; i < max_real_digit_residues / moduli_at_once; ++i) {
          if (i < copies_)
            copy_16_bytes_of_line(target_ + q * product_bytes + i * warp_size * chunk_rows,
                                  source + i * moduli_at_once * stride_);
        }
        source += moduli_ * stride_;
      }
    }
    commit_copies();
    source_ += column_stride_;
  }

  // Waits for all copies that were started.
  __device__ static void await() {
    await_copies();
    __syncwarp();
  }

  // Loads units `first` and first + 1 of the column whose copies were started last. All lanes have then
  // loaded what they have read before.
  __device__ void load(int first, ProductResidues& residues) const {
    const std::uint32_t operand = operand_ ^ static_cast<std::uint32_t>(first * chunk_rows);
#pragma unroll
    for (int q = 0; q < strassen_products; ++q) {
      std::uint32_t
          two[4];  // two moduli of two rows each: of the first unit, the upper moduli, of the next unit
      load_transposed(operand + q * product_bytes, two);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        residues.word[q][i][0] = __byte_perm(two[2 * i], two[2 * i + 1], 0x6420);
        residues.word[q][i][1] = __byte_perm(two[2 * i], two[2 * i + 1], 0x7531);
      }
    }
    __syncwarp();
  }

 private:
  static constexpr int chunk_rows = strassen_unit_rows;  // rows of a copy, one byte each
  static constexpr int chunks = StrassenBlock::units;
  static constexpr int moduli_at_once = warp_size / chunks;
  static constexpr int product_bytes = max_real_digit_residues * chunks * chunk_rows;
  static_assert(chunk_rows == 16 && chunks == 4);
  static_assert(strassen_products * product_bytes == strassen_column_bytes);

  // Place of the residues of a chunk in a product's memory. Eight moduli of a chunk are in different banks.
  __device__ static int place(int modulus, int chunk) {
    return (modulus * chunks + (chunk ^ (modulus / 2 % chunks))) * chunk_rows;
  }
  __device__ static std::uint32_t warps_memory() {
    extern __shared__ __align__(128) unsigned char shared[];
    return shared_address(shared) + threadIdx.x / warp_size * strassen_column_bytes;
  }

  std::uint32_t target_;
  std::uint32_t operand_;
  const std::uint8_t* source_;
  std::int64_t stride_;
  std::int64_t column_stride_;
  int moduli_;
  int copies_;  // of a product, by this lane
};

// Exchange of pieces between the four lanes of each of a unit's eight pairs of rows.
class PieceExchange {
 public:
  __device__ PieceExchange() {
    extern __shared__ __align__(128) unsigned char shared[];
    pairs_ = reinterpret_cast<PairOfRows*>(shared + block_warps * strassen_column_bytes +
                                           threadIdx.x / warp_size * strassen_exchange_bytes);
  }

  // Writes the lane's piece of both rows of a quadrant.
  __device__ void write(int quadrant, const PairOfRows& pieces) const {
    pairs_[place(quadrant, static_cast<int>(threadIdx.x) % 4)] = pieces;
  }
  // Reads piece j of both rows of the lane's quadrant.
  __device__ PairOfRows read(int j) const { return pairs_[place(StrassenBlock::quadrant(), j)]; }

 private:
  // Lanes write in the order of pieces and read in the order of quadrants; both meet different banks.
  __device__ static int place(int quadrant, int piece) {
    const auto pair = static_cast<int>(threadIdx.x % warp_size) / 4;
    return pair * 16 + (quadrant ^ (pair & 1)) * 4 + (piece ^ quadrant);
  }

  PairOfRows* pairs_;
};

class StrassenResidues {
 public:
  using Source = ResiduesOfParts<digit_limbs>;
  using Tables = RealDigitTables;
  using Elements = StrassenBlock::Elements;

  __device__ StrassenResidues(const Source& source, const Tables& tables)
      : source_(source), tables_(tables) {}

  __device__ static bool takes(const Scalars<double>& scalars) { return are_moderate(scalars); }

  __device__ Elements write_block(const StrassenBlock& block, const Scalars<double>& scalars) const {
    const bool adds = scalars.beta != 0;
    if (!is_unit(scalars.alpha) || (adds && !is_unit(scalars.beta)))
      return write_columns<Update::of_any_scalars>(block, scalars);
    if (adds) return write_columns<Update::of_units>(block, scalars);
    return write_columns<Update::none>(block, scalars);
  }

  // Sums of residues of up to four products are at most those of 64 residues, which RemainderSum holds.
  __device__ void write_finite(std::int64_t i, std::int64_t j, int row_scale, const VectorRange* column,
                               const Scalars<double>& scalars, double* element) const {
    const std::uint8_t* residues =
        source_.sums.data + index_in_half(i) + index_in_half(j) * source_.sums.rows;
    const auto quadrant = static_cast<int>(2 * half_of(i) + half_of(j));
    RemainderSum<digit_limbs> sum[1];
#pragma unroll 1
    for (int q = 0; q < strassen_products; ++q) {
      if (is_in_quadrant(q, quadrant))
        add_up<std::uint8_t>(residues + q * product_stride(), source_.sums.group_stride, source_.table, sum);
    }
    const ExactNumber<digit_limbs> exact[1]{sum[0].number(source_.table, -(row_scale + column->scale))};
    write_general_element(exact, scalars.alpha, scalars.beta, element);
  }

 private:
  __device__ static bool is_unit(double x) { return x == 1 || x == -1; }
  __device__ const DigitTable<padded_digit_residues(max_real_digit_residues)>& table() const {
    return tables_.table[0];
  }
  __device__ std::int64_t product_stride() const { return table().count * source_.sums.group_stride; }

  // Digits of the lane's column of the right operand, for the residues that the lane has of a left operand:
  // the first two digits of a piece, or the last two. Both products of an instruction have the same digits.
  __device__ std::uint32_t digits(int half) const {
    const auto lane = static_cast<int>(threadIdx.x % warp_size);
    const auto& word = table().digits[lane / 8 * digits_of_piece + 2 * half + lane / 4 % 2];
    const int pair = lane % 4;
    return __byte_perm(word[pair / 2], word[2 + pair / 2], pair % 2 == 0 ? 0x5410 : 0x7632);
  }

  // Writes the warp's columns. Returns the elements that are not written.
  template <Update update>
  __device__ Elements write_columns(const StrassenBlock& block, const Scalars<double>& scalars) const {
    const std::uint8_t* source =
        source_.sums.data + block.first_product_row() + block.first_product_column() * source_.sums.rows;
    ProductColumns columns(source, source_.sums.group_stride, block_warps * source_.sums.rows, table().count,
                           block.product_rows());
    const std::uint32_t digits_of_lane[2]{digits(0), digits(1)};
    const PieceExchange exchange;
    const bool adds = update == Update::of_units || (update == Update::of_any_scalars && scalars.beta != 0);
    Elements left = 0;
    if (adds) block.fetch(0);
    columns.start(block.has_column(0));
#pragma unroll 1
    for (int e = 0; block.has_any_column(e); ++e) {
      block.begin(adds, e);
      if (block.has_column(e))
        left |= write_column<update>(block, columns, e, digits_of_lane, exchange, scalars, adds);
      block.end(e);
    }
    return left;
  }

  static constexpr int units = StrassenBlock::units;
  static constexpr int step = ProductResidues::units;

  // Reads old elements of C of `count` units.
  template <int count>
  __device__ static void read_units(const StrassenBlock& block, int first, int e,
                                    PairOfRows (&elements)[count]) {
#pragma unroll
    for (int u = 0; u < count; ++u) elements[u] = block.read(first + u, e);
  }

  // Writes the warp's e-th column and starts the copies of the next one.
  template <Update update>
  __device__ Elements write_column(const StrassenBlock& block, ProductColumns& columns, int e,
                                   const std::uint32_t (&digits_of_lane)[2], const PieceExchange& exchange,
                                   const Scalars<double>& scalars, bool adds) const {
    // Old elements are read to registers at once, so that those of the next column can be fetched soon. The
    // code for any scalars is too long to be repeated for all units.
    constexpr bool reads_at_once = update == Update::of_units;
    Elements left = 0;
    PairOfRows elements[reads_at_once ? units : step]{};
    ProductColumns::await();
    if (reads_at_once) {
      read_units(block, 0, e, elements);
      block.fetch(e + 1);
    }
#pragma unroll(reads_at_once ? units / step : 1)
    for (int first = 0; first < units; first += step) {
      PairOfRows(&of_step)[step] = reinterpret_cast<PairOfRows(&)[step]>(elements[reads_at_once ? first : 0]);
      if (adds && !reads_at_once) read_units(block, first, e, of_step);
      ProductResidues residues;
      columns.load(first, residues);
      if (first + step == units) {
        if (adds && !reads_at_once) block.fetch(e + 1);
        columns.start(block.has_column(e + 1));
      }
      // The sums of a unit are computed while the elements of the unit before it are rounded.
      sum_up(residues, 0, digits_of_lane, exchange);
#pragma unroll
      for (int u = 0; u < step; ++u) {
        const Pieces pieces = read_pieces(exchange);
        if (u + 1 < step) sum_up(residues, u + 1, digits_of_lane, exchange);
        const unsigned rows_left = recombine_unit<update>(block, pieces, first + u, e, scalars, of_step[u]);
        if (!block.has_element(first + u, e)) continue;
        left |= StrassenBlock::elements_of_unit(rows_left, first + u, e);
        block.write(first + u, e, of_step[u]);
      }
    }
    return left;
  }

  // Computes the pieces of all elements of unit u.
  __device__ static void sum_up(const ProductResidues& residues, int u, const std::uint32_t (&digits)[2],
                                const PieceExchange& exchange) {
    struct Sums {
      std::uint32_t sum[2][4];
    };
    const auto plus = [&](Sums sums, int first, int second) {
      const std::uint32_t left[4]{residues.word[first][u][0], residues.word[first][u][1],
                                  residues.word[second][u][0], residues.word[second][u][1]};
#pragma unroll
      for (int half = 0; half < 2; ++half) mma_bytes(sums.sum[half], left, {digits[half], digits[half]});
      return sums;
    };
    const auto write = [&](int quadrant, const Sums& sums) {
      PairOfRows pieces;
      const int piece = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
      for (int r = 0; r < PairOfRows::count; ++r)
        pieces.rows[r] = shifted_piece(piece, sums.sum[0][2 * r], sums.sum[0][2 * r + 1], sums.sum[1][2 * r],
                                       sums.sum[1][2 * r + 1]);
      exchange.write(quadrant, pieces);
    };
    write(0, plus({}, 0, 1));
    const Sums common = plus({}, 0, 5);
    write(1, plus(common, 4, 2));
    write(2, plus(common, 6, 3));
    write(3, plus(common, 6, 4));
  }

  // Pieces of the lane's rows of a unit.
  struct Pieces {
    PairOfRows piece[weight_pieces];
  };

  // Reads the pieces of the unit that was summed up last. All lanes have then read theirs.
  __device__ static Pieces read_pieces(const PieceExchange& exchange) {
    Pieces pieces;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < weight_pieces; ++j) pieces.piece[j] = exchange.read(j);
    __syncwarp();
    return pieces;
  }

  // Recombines the lane's rows of unit u of its e-th column. Returns a bit for each row that is not changed.
  template <Update update>
  __device__ unsigned recombine_unit(const StrassenBlock& block, const Pieces& pieces, int u, int e,
                                     const Scalars<double>& scalars, PairOfRows& elements) const {
    unsigned left = 0;
#pragma unroll
    for (int r = 0; r < PairOfRows::count; ++r) {
      const double of_row[weight_pieces]{pieces.piece[0].rows[r], pieces.piece[1].rows[r],
                                         pieces.piece[2].rows[r], pieces.piece[3].rows[r]};
      const IntegerParts integer[1]{parts_of_pieces(of_row, table())};
      const int exponent[1]{block.exponent(r, u, e) - table().shift};
      double& element = elements.rows[r];
      if constexpr (update == Update::of_any_scalars) {
        if (!update_element(integer, exponent, scalars, element)) left |= 1U << r;
      } else {
        element = recombined<update>(integer[0], exponent[0], scalars, element);
      }
    }
    return left;
  }

  // Returns alpha X 2^exponent + beta `old` for scalars that are 1, -1 or 0.
  template <Update update>
  __device__ static double recombined(const IntegerParts& integer, int exponent,
                                      const Scalars<double>& scalars, double old) {
    const std::uint32_t alpha_sign = sign_of(scalars.alpha);
    const double unit = with_sign(core::power_of_two(exponent), alpha_sign);
    if constexpr (update == Update::none) {
      return rounded_product(integer, unit);
    } else {
      const double inverse = with_sign(core::power_of_two(-exponent), alpha_sign);
      return rounded_update(integer, unit, inverse, with_sign(old, sign_of(scalars.beta)));
    }
  }

  const Source& source_;
  const Tables& tables_;
};

extern "C" __global__ void __launch_bounds__(block_threads, 2)
    strassen_residues_f64(const __grid_constant__ DeviceTile tile,
                          const __grid_constant__ StrassenResidues::Source source,
                          const __grid_constant__ StrassenResidues::Tables tables) {
  recombine_block<double, StrassenBlock>(tile, StrassenResidues(source, tables), tables.block_columns);
}

}  // namespace kintsugi::core::cuda

// Recombination of residues of Strassen's seven products in FP64, by sums of digits on the matrix unit
// (arith/residue/digit_sums.hpp, strassen.hpp).
//
// The digit sums of an element of C are sums of those of two to four products. The matrix unit adds them:
// an instruction multiplies the residues of two products, 16 rows of each, by eight digits of their
// weights. Of the 16 digits, the four lanes of a row get those of one piece each. The lanes exchange pieces
// through shared memory, so that each has all pieces of two elements of one quadrant of C.
//
// Digit sums of four products of 16 moduli are those of 64 residues, which doubles hold.
#pragma once

#include "engines/cuda/recombine/digit_residues.cuh"
#include "engines/cuda/recombine/strassen/product_columns.cuh"

namespace kintsugi::core::cuda {

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

}  // namespace kintsugi::core::cuda

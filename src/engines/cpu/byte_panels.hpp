// Products of bytes in panels, from FP32 and FP64 operands to C. Plain data only, for the reason that
// kernels.hpp gives.
//
// The two operands of a product are called left and right. The rows of a tile of sums belong to vectors of
// the left operand, its columns to vectors of the right one. The right operand is the one whose vectors are
// neighbours in C (A for a column-major C), so that a row of a tile is contiguous in C.
//
// A panel has 32 vectors over at most `panel_depth` inner indices, one slice. It consists of steps of 64
// inner indices; a step has two tiles of 16 vectors, 1024 bytes each:
//   left    row v has 64 bytes of vector v, signed
//   right   row d has four bytes of each of 16 vectors, unsigned
// Bytes 4 d ... 4 d + 3 of a left row meet row d of a right tile. They belong to the inner indices 4 q ... 4
// q + 3 of the step, with d = 4 (q mod 4) + q / 4: in this order the lanes of AVX-512 leave elements after
// they are packed into bytes.
//
// Sums of a pair of panels are four tiles of 16 x 16 32-bit numbers: left half 0 or 1, right half 0 or 1.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::core {

inline constexpr std::int64_t panel_vectors = 32;
inline constexpr std::int64_t panel_step = 64;
inline constexpr std::int64_t panel_depth = 1024;
inline constexpr std::int64_t sums_of_panels = panel_vectors * panel_vectors;

// Words of four bytes of integers below 2^63, of wide ones up to 2^94, and of those of double-double
// elements, up to 2^114.
enum class IntegerWidth : std::uint8_t { narrow = 2, wide = 3, pair = 4 };
constexpr int words_of(IntegerWidth width) { return static_cast<int>(width); }

// Weights of the bytes of an integer, signed; word w has those of bytes 4 w ... 4 w + 3.
struct ByteWeights {
  std::uint32_t word[4];
};

// Constants for the residue of an integer in bytes modulo m, or of a sum of multiples of the two integers
// of a complex element.
//
// For odd m: the weighted sum of the bytes, each weight congruent to a power of 256 times the factor of its
// integer, has fewer than 20 bits. The weighted sum of its three bytes, with weights congruent to -2^16 times
// powers of 256, has 16. One Montgomery step, which multiplies by -2^-16, gives the residue in 0 ... m - 1.
// For m = 256 the lowest byte is the residue.
struct ByteReduction {
  std::uint32_t modulus;
  std::uint32_t inverse;     // of m modulo 2^16
  ByteWeights weights;       // of the real part
  ByteWeights imaginary;     // of the imaginary part
  std::uint32_t first_bias;  // makes the first sum positive, and undoes the offset of the integers
  std::uint32_t last;        // weights of the three bytes of the first sum
  std::uint32_t last_bias;
};

// Vectors of one operand that become one panel of every slice.
struct PanelSplit {
  const void* elements;  // float, or double if is_double: of the first vector at the first inner index
  bool is_double;
  bool is_complex;  // elements are pairs of such numbers
  bool conjugates;
  std::int64_t vector_stride;  // elements
  std::int64_t inner_stride;
  std::int64_t vectors;     // at most panel_vectors
  std::int64_t length;      // at most panel_depth
  const double* exponents;  // panel_vectors numbers; elements of vector v are multiplied by 2^exponents[v]
  // Residues, one a slice; nullptr: balanced digits of 8 bits of integers below 2^31,
  // the highest first.
  const ByteReduction* reductions;
  IntegerWidth width;  // of pairs: elements are double-double
  int slices;
  bool is_left;
  bool streams;               // panels are written past the caches
  std::byte* panel;           // of slice 0
  std::int64_t slice_stride;  // bytes from slice to slice
  std::int32_t* vector_sums;  // digits of the left operand: sums over each vector, [slice][panel_vectors]
  std::byte* scratch;         // slices * 1024 bytes
};

// A product of slices, added to the plane `plane`.
struct PanelTerm {
  int left;
  int right;
  int plane;
};

// Products of panels of a block. Planes have one kilobyte of residues or four of int32 sums for each pair of
// panels. Pair (i, j) is at (i * right_panels + j) of its plane.
struct PanelProducts {
  const std::byte* left;  // first left panel of slice 0
  const std::byte* right;
  const std::byte* next_left;  // first panels of the products that follow, to be prefetched
  const std::byte* next_right;
  std::int64_t left_stride;  // bytes from slice to slice
  std::int64_t right_stride;
  std::int64_t panel_stride;  // bytes from panel to panel
  std::int64_t left_panels;
  std::int64_t right_panels;
  std::int64_t length;     // inner indices, at most panel_depth
  const PanelTerm* terms;  // sorted by their right slices
  int term_count;
  // Constants of the residues' planes; nullptr: planes have int32 sums, with right digits that are 128
  // larger.
  const ByteReduction* reductions;
  std::byte* planes;
  std::int64_t plane_stride;  // bytes
  bool is_first;              // true: sums replace what the planes have
  // True: the sums of a pair of panels are reduced before the next pair is multiplied, for a study.
  bool reduces_at_once;
};

// Constants of recombination, as arith/residue/fraction_sums.hpp derives them.
struct PanelFractions {
  static constexpr int digits = 12;
  static constexpr int max_words = 12;
  std::uint32_t digit[digits][max_words];
  std::uint32_t first[digits];  // where sums of digits begin, for residues less 128
  int residues;
};

// The same as arith/residue/pair_fractions.hpp derives them.
struct PanelPairFractions {
  static constexpr int digits = 20;
  static constexpr int max_words = 8;
  std::uint32_t digit[digits][max_words];
  std::uint32_t first[digits];
  int residues;
};

// Terms of largest_deviation() (arith/residue/rounding_errors.hpp) of the vectors of a panel. A vector has c
// inexact elements. All terms are increased by more than the rounding of their sums.
struct PanelBounds {
  double inexact[panel_vectors];     // c / 4
  double products[panel_vectors];    // c / 2 times the largest integer of the other operand
  double magnitudes[panel_vectors];  // half of the sum of the integers' magnitudes
};

// Elements of C of one pair of panels.
struct PanelResults {
  const std::byte* planes;  // of this pair
  std::int64_t plane_stride;
  int plane_count;
  // Digits: what row i of plane g has more than its sums, [g][panel_vectors]: right bytes are digits plus
  // 128.
  const std::int32_t* row_shifts;
  // Row i of the tile: its unit, and the offset of FractionRow. Column j: FractionFactor.
  const double* row_units;
  const double* row_offsets;
  const double* column_units;
  const double* column_high;
  const double* column_low;
  const double* column_deviation;
  // Residues: of real elements, or of the real and the imaginary parts of complex ones.
  const PanelFractions* fractions[2];
  // Residues of double-double elements: column_high, column_low and column_last are m1, m2 and m3.
  const PanelPairFractions* pair_fractions;
  const double* column_last;
  const ByteReduction* reductions;  // of the planes
  int planes_of_roots;     // complex: planes of moduli with a root of -1, two for each; the others have three
  double smallest_weight;  // digits: the weight of the last plane
  double alpha;            // digits
  double beta;             // residues: 0, 1 or -1
  void* c;                 // element (0, 0) of the pair
  bool is_double;
  bool is_complex;
  std::int64_t row_stride;  // elements; columns are contiguous
  std::uint32_t* open;      // bit j of open[i]: element (i, j) must be computed
  bool writes;              // false: C is not written
  // Bounds of rows and columns under a check: results are certain if all numbers within the deviation round
  // alike. nullptr: the integers are the product.
  const PanelBounds* row_bounds;
  const PanelBounds* column_bounds;
};

struct PanelKernels {
  // Rate of products of one core, in 10^12 operations a second, with operands in the L1 cache: measured for
  // less than 25 us. nullptr: it does not vary.
  double (*measure_rate)();
  void (*split)(const PanelSplit& task);
  void (*multiply)(const PanelProducts& task);
  // Writes open elements that are certainly right, and clears their bits of PanelResults::open. Returns true
  // if exact integers probably prove others: double arithmetic was not exact enough for them.
  bool (*recombine)(const PanelResults& task);
};

extern const PanelKernels panels_avx512;  // x86-64 only
extern const PanelKernels panels_amx;     // x86-64 Linux only

}  // namespace kintsugi::core

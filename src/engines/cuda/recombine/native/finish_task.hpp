// Parameters of the kernels that test native sums.
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda {

inline constexpr int native_threads = 256;

// Record of the magnitudes of a part of an operand: the least one other than zero (infinity if there is none)
// and the largest finite one.
struct MagnitudeRecord {
  double least;
  double largest;
  std::int64_t has_special;  // 1 if a number is NaN or infinite, or a zero that counts as special
};

// An operand as lines of numbers that are contiguous in memory.
struct OperandLines {
  const void* data = nullptr;
  std::int64_t length = 0;  // numbers in a line; a complex element is two
  std::int64_t lines = 0;
  std::int64_t stride = 0;  // numbers from a line to the next
  std::int64_t items = 1;
  std::int64_t item_stride = 0;
};

// Parameters of find_magnitudes, which reads both operands, or the sums as operand 0 alone. Each of its
// thread blocks leaves a record; in finish_native_* thread t of every thread block reads record t, so there
// are as many records as threads.
struct MagnitudesTask {
  static constexpr int blocks = native_threads;
  static constexpr int threads = 256;

  OperandLines operands[2];
  int blocks_of_a = 0;             // the others find the magnitudes of B
  bool zeros_are_special = false;  // true for sums: a zero may be the result of underflow
  MagnitudeRecord* records = nullptr;
};

// Shape of the tiles of C in which sums are tested. A line is a row or a column of C, whichever is contiguous
// in memory. A thread tests at most 32 elements of a tile.
struct FinishTile {
  static constexpr int max_vectors = 288;  // most rows plus columns of a tile: 256 + 32

  int log2_line_length = 6;  // 6 to 8
  int lines = 64;            // at most 32 times lines_at_once()

  // Number of elements of a line in a tile.
  constexpr int line_length() const { return 1 << log2_line_length; }
  // Number of lines that the thread block reads at once; each thread reads one element.
  constexpr int lines_at_once() const { return native_threads >> log2_line_length; }
};

// Parameters that all tiles of a launch of finish_native_* share.
struct FinishTask {
  double min_sum = 0;  // a sum of at least this magnitude is reliable
  // Products of two elements, without alpha, do not underflow if their magnitude is at least this one.
  double min_product = 0;
  FinishTile tile{};
  unsigned int tiles_of_rows = 0;  // tiles along a column of C
  std::int64_t tiles = 0;          // tiles of an item
  // Records of find_magnitudes, first those of A; nullptr if the magnitudes are not known. If they prove all
  // sums, the kernel reads none of these.
  const MagnitudeRecord* records = nullptr;
  bool records_are_of_sums = false;
  int records_of_a = 0;
  // Limits of the magnitudes of products of two elements. If all products are within them, no sum underflows
  // or overflows, with or without alpha.
  double min_proved_product = 0;
  double max_proved_product = 0;
};

}  // namespace kintsugi::core::cuda

// Parameters of the kernels that test native sums.
#pragma once

#include <cstdint>

namespace kintsugi::core::cuda {

inline constexpr int native_threads = 256;

// Magnitudes of a part of an operand: the least one other than zero (infinity if there is none) and the
// largest finite one.
struct Magnitudes {
  double least;
  double largest;
  std::int64_t has_special;  // 1 if a number is NaN or infinite
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

// Parameters of find_magnitudes: one thread of finish_native_* reads the record of each of its thread blocks.
struct MagnitudesTask {
  static constexpr int blocks = native_threads;
  static constexpr int threads = 256;

  OperandLines operands[2];
  int blocks_of_a = 0;  // the others find the magnitudes of B
  Magnitudes* records = nullptr;
};

// Shape of the tiles of C in which sums are tested. A line is a row or a column of C, whichever is contiguous
// in memory. A thread tests at most 32 elements.
struct FinishTile {
  static constexpr int max_vectors = 288;  // rows and columns of a tile

  int log2_span = 6;  // of the elements of a line in a tile: 6 to 8
  int lines = 64;     // at most 32 times the lines that the threads read at once

  constexpr int span() const { return 1 << log2_span; }
  constexpr int lines_at_once() const { return native_threads >> log2_span; }
};

// Parameters that all tiles of a launch of finish_native_* share.
struct FinishTask {
  double min_sum = 0;      // least sum that is right by its size alone
  double min_product = 0;  // least product that does not underflow, before alpha multiplies it
  FinishTile tile{};
  unsigned int tiles_of_rows = 0;  // tiles along a column of C
  std::int64_t tiles = 0;          // tiles of an item
  // Magnitudes of the operands, nullptr if they are not known. No sum need be read if they prove all of them.
  const Magnitudes* records = nullptr;
  int records_of_a = 0;
  // Sums of products within these limits neither underflow nor overflow, whether alpha has multiplied them or
  // not.
  double min_proved_product = 0;
  double max_proved_product = 0;
};

}  // namespace kintsugi::core::cuda

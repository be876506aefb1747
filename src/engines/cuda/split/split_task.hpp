// What the split kernels are told.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/cuda/select/alpha.hpp"
#include "engines/device.hpp"
#include "split/slices.hpp"

namespace kintsugi::core::cuda {

// How a kernel computes slices: in the hardware's own arithmetic, or as arith/split_rule.hpp has it.
enum class ElementKind : std::uint8_t {
  any,
  fp16,             // rounded rests of f32
  fp16_with_depth,  // the same, of vectors whose depth is found with their range
  fitted,           // by a rule that the item's fit completes
  bf16,
  tf32,
  quantised,          // rounded rests of f32 in int8
  digits,             // of a grid, in int8
  residues,           // of integers of magnitude up to 2^62
  residues_by_norms,  // the same, of norms that the split finds
  wide_residues,      // up to 2^93
};

// Of a split that finds norms: what is to be proved by them, and whether a vector was found that rules it
// out.
struct NormFindings {
  double coefficient = 0;
  std::uint32_t* ruled_out = nullptr;
};

// A DeviceSplit without pointers to the host. What has a batch item is that of the launch's first
// one.
struct SplitTask {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  VectorRange* ranges = nullptr;  // of vector `first`
  std::int64_t item_ranges = 0;   // from item to item
  VectorNorm* norms = nullptr;    // likewise, where the rule scales by them
  std::int64_t first = 0;
  std::int64_t vectors = 0;
  std::int64_t padded_vectors = 0;
  std::int64_t length = 0;
  std::int64_t vector_stride = 0;
  std::int64_t slice_stride = 0;
  std::byte* slices = nullptr;
  std::int64_t item_bytes = 0;  // of slices, from item to item
  SplitRule rule{};             // its format lies below
  Format format{};
  std::int32_t largest_bound = 0;  // of rounded rests that the hardware's arithmetic gives (scaling.hpp)
  NormFindings found_norms;
  bool ranges_known = false;
  const DeviceFit* fit = nullptr;   // in the place of the rule's own
  std::int32_t vector_threads = 0;  // that a vector has to itself, where blocks hold whole ones
  std::int64_t part_length =
      0;                    // elements of a vector that a block splits, where it does not split whole ones
  std::int64_t blocks = 0;  // of threads
};

// One or two of equally many items, in one launch: the grid's second extent.
struct SplitTasks {
  SplitTask task[2];
  DeviceCondition condition;  // its selections: one an item, or of all items that are served by one
  std::int64_t served_items = 1;
  Alpha alpha;  // of splits before the selection
};

// Of the kernels that read tiles.
inline constexpr std::int64_t tile_vectors = 16;
inline constexpr std::int64_t tile_length = 64;
inline constexpr std::int64_t tile_threads = 256;

// Of the kernels whose blocks hold whole vectors: of a block, at most and, where vectors are short, at least.
inline constexpr std::int64_t rows_threads = 256;
inline constexpr std::int64_t least_rows_threads = 128;

// Of the kernels whose clusters hold panels: 64 bytes of each element's line.
inline constexpr std::int64_t largest_cluster = 8;    // which every device with clusters takes
inline constexpr std::int64_t cluster_threads = 256;  // of a block, at most
inline constexpr std::int64_t panel_bytes = 64;
inline constexpr std::int64_t panel_group = 8;  // elements of a vector that a thread writes at once

// Elements that are left out behind eight lines of a panel: thirty-two threads that read eight groups of four
// vectors then meet all banks.
inline constexpr std::int64_t panel_gap = 4;

// Of the kernels that split vectors in parts, with ranges that are known. Vectors up to long_stride elements
// are never divided.
inline constexpr std::int64_t long_stride = 8192;
inline constexpr std::int64_t parts_split_threads = 256;
inline constexpr std::int64_t row_part_length = 8192;
inline constexpr std::int64_t panel_part_length = 1024;
inline constexpr std::int64_t tiles_part_length = 4096;

// Of the kernels of many short vectors: threads of a block, and blocks of an SM.
inline constexpr std::int64_t short_threads = 256;
inline constexpr std::int64_t short_blocks = 3;
inline constexpr std::int64_t short_stride = 256;  // at most
inline constexpr std::int64_t many_vectors = 16384;

// What a block says at once of its part of a vector: magnitudes, of FP32 numbers without exponents, or sums
// of norms.
constexpr std::int64_t panel_message_bytes(std::int64_t element_bytes, ElementKind kind) {
  return element_bytes == 4 && kind != ElementKind::fp16_with_depth ? 16 : 32;
}

// Bytes of a block's part of a panel, and of what all blocks of the cluster say of their parts' vectors.
constexpr std::int64_t panel_part_bytes(std::int64_t element_bytes, std::int64_t vector_stride,
                                        std::int64_t blocks, ElementKind kind) {
  const std::int64_t width = panel_bytes / element_bytes;
  return vector_stride / (blocks * panel_group) * (panel_group * width + panel_gap) * element_bytes +
         width * blocks * panel_message_bytes(element_bytes, kind);
}

}  // namespace kintsugi::core::cuda

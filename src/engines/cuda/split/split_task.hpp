// Parameters of the split kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/cuda/select/alpha.hpp"
#include "engines/device.hpp"
#include "split/slices.hpp"

namespace kintsugi::core::cuda {

// Method by which a kernel computes slices: the GPU's conversions, or arith/split_rule.hpp (`any`).
enum class ElementKind : std::uint8_t {
  any,
  fp16,             // rounded residuals of f32
  fp16_with_depth,  // as fp16; the vectors' depth is found with their range
  fitted,           // as fp16; the batch item's fit completes the rule
  bf16,
  tf32,
  quantised,          // rounded residuals of f32 in int8
  digits,             // digits on a grid, in int8
  residues,           // residues of integers of magnitude up to 2^62
  residues_by_norms,  // as residues, scaled by norms that the split finds
  wide_residues,      // residues of integers of magnitude up to 2^93
};

// Proof by norms that a split finds: the coefficient to be proved, and a flag that is set if a vector rules
// the proof out.
struct NormFindings {
  double coefficient = 0;
  std::uint32_t* ruled_out = nullptr;
};

// A DeviceSplit without pointers to the host. Pointers to data of batch items are those of the launch's first
// item.
struct SplitTask {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  VectorRange* ranges = nullptr;  // starts with vector `first`
  std::int64_t item_ranges = 0;   // ranges from item to item
  VectorNorm* norms = nullptr;    // starts with vector `first`; nullptr unless the rule scales by norms
  std::int64_t first = 0;
  std::int64_t vectors = 0;
  std::int64_t padded_vectors = 0;
  std::int64_t length = 0;
  std::int64_t vector_stride = 0;
  std::int64_t slice_stride = 0;
  std::byte* slices = nullptr;
  std::int64_t item_bytes = 0;  // bytes of slices from item to item
  SplitRule rule{};             // its format is the member `format`
  Format format{};
  std::int32_t largest_bound = 0;  // for rounded residuals in the hardware's arithmetic (scaling.hpp)
  NormFindings found_norms;
  bool ranges_known = false;
  const DeviceFit* fit = nullptr;   // replaces the rule's own residual
  std::int32_t vector_threads = 0;  // threads per vector, if thread blocks hold whole vectors
  std::int64_t part_length = 0;     // elements of a vector per thread block, if blocks hold parts
  std::int64_t blocks = 0;          // thread blocks
};

// One or two splits of equally many batch items in one launch; the grid's second extent counts items.
struct SplitTasks {
  SplitTask task[2];
  DeviceCondition condition;  // one selection per item, or of all items that one operand serves
  std::int64_t served_items = 1;
  Alpha alpha;             // for splits before the selection
  DeviceCounters cleared;  // by the first thread block, for a product that waits for the split
};

// Constants of the kernels that read tiles.
inline constexpr std::int64_t tile_vectors = 16;
inline constexpr std::int64_t tile_length = 64;
inline constexpr std::int64_t tile_threads = 256;

// Threads per block of the kernels whose blocks hold whole vectors: at most and, where vectors are short, at
// least.
inline constexpr std::int64_t rows_threads = 256;
inline constexpr std::int64_t min_rows_threads = 128;

// Constants of the kernels whose clusters hold panels: 64 bytes of each element's line.
inline constexpr std::int64_t largest_cluster = 8;    // largest size that every device with clusters takes
inline constexpr std::int64_t cluster_threads = 256;  // threads per block, at most
inline constexpr std::int64_t panel_bytes = 64;
inline constexpr std::int64_t panel_group = 8;  // elements of a vector that a thread writes at once

// Padding elements after eight lines of a panel: thirty-two threads that read eight groups of four vectors
// then access all banks.
inline constexpr std::int64_t panel_gap = 4;

// Constants of the kernels that split vectors in parts, with ranges that are known. Vectors of up to
// long_stride elements are never divided.
inline constexpr std::int64_t long_stride = 8192;
inline constexpr std::int64_t parts_split_threads = 256;
inline constexpr std::int64_t row_part_length = 8192;
inline constexpr std::int64_t panel_part_length = 1024;
inline constexpr std::int64_t tiles_part_length = 4096;

// Threads per block, and thread blocks per SM, of the kernels for many short vectors.
inline constexpr std::int64_t short_threads = 256;
inline constexpr std::int64_t short_blocks = 3;
inline constexpr std::int64_t short_stride = 256;  // largest stride of a short vector
inline constexpr std::int64_t many_vectors = 16384;

// Bytes of one message about a part of a vector: magnitudes, for FP32 numbers without exponents, or sums of
// norms.
constexpr std::int64_t panel_message_bytes(std::int64_t element_bytes, ElementKind kind) {
  return element_bytes == 4 && kind != ElementKind::fp16_with_depth ? 16 : 32;
}

// Shared memory of a thread block: its part of a panel, and the messages of all blocks of the cluster.
constexpr std::int64_t panel_part_bytes(std::int64_t element_bytes, std::int64_t vector_stride,
                                        std::int64_t blocks, ElementKind kind) {
  const std::int64_t width = panel_bytes / element_bytes;
  return vector_stride / (blocks * panel_group) * (panel_group * width + panel_gap) * element_bytes +
         width * blocks * panel_message_bytes(element_bytes, kind);
}

}  // namespace kintsugi::core::cuda

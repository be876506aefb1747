// Parameters of the split kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/cuda/select/selected_moduli.hpp"
#include "engines/cuda/step_data.hpp"
#include "split/slices.hpp"

namespace kintsugi::core::cuda {

// Method by which slices are computed: by the GPU's conversions, or (`by_rule`) by arith/split_rule.hpp. The
// formats of typical calls have kernels of their own; others share kernels, which follow SplitTask::kind.
enum class ElementKind : std::uint8_t {
  by_rule,
  fp16,             // rounded residuals of f32
  fp16_with_depth,  // fp16; the vectors' depths are found with their ranges
  fitted,           // fp16; the batch item's fit (DeviceFit) replaces the rule's residual scale
  bf16,
  tf32,
  quantised,          // rounded residuals of f32 in int8
  digits,             // digits on a grid, in int8
  residues,           // residues of integers of magnitude up to 2^62
  residues_by_norms,  // residues, scaled by norms that the split finds
  wide_residues,      // residues of integers of magnitude up to 2^93
  other,              // of a kernel, not of a task: tf32, quantised or digits, as SplitTask::kind says
};

// Tells kernels whether alpha is zero; operands need not be read then.
struct Alpha {
  const void* device = nullptr;         // address of alpha in device memory; nullptr: alpha is on the host
  bool is_zero = false;                 // true if alpha is on the host and zero
  ElementType type = ElementType::f32;  // type of alpha in device memory
};

// Proof that the norms found by a split may rule out.
struct NormFindings {
  double coefficient = 0;              // coefficient of |A||B| to be proved
  std::uint32_t* ruled_out = nullptr;  // set to 1 if a vector's norm rules the proof out
};

// A DeviceSplit for kernels, without pointers to the host. Pointers to data of batch items point to the
// launch's first item.
struct SplitTask {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  VectorRange* ranges = nullptr;  // starts with vector `first`
  std::int64_t item_ranges = 0;   // number of ranges per item
  VectorNorm* norms = nullptr;    // starts with vector `first`; nullptr unless the rule scales by norms
  VectorMagnitudes* magnitudes = nullptr;  // likewise; nullptr: rounding errors are not wanted
  std::int64_t first = 0;                  // first of the operand's vectors that is split
  std::int64_t vectors = 0;
  std::int64_t padded_vectors = 0;
  std::int64_t length = 0;
  std::int64_t vector_stride = 0;
  std::int64_t slice_stride = 0;
  std::byte* slices = nullptr;
  std::int64_t item_bytes = 0;  // bytes of slices per item
  SplitRule rule{};             // its pointer to a format is the host's: rule_of() sets it to `format`
  Format format{};
  std::int32_t largest_bound = 0;  // largest_fitting_bound() (scaling.hpp), for rounded residuals
  NormFindings found_norms;
  bool ranges_known = false;
  ElementKind kind = ElementKind::by_rule;  // for kernels of several kinds
  const DeviceFit* fit = nullptr;           // replaces the rule's own residual scale
  std::int32_t vector_threads = 0;          // threads per vector, if thread blocks hold whole vectors
  std::int64_t part_length = 0;             // elements of a vector per thread block, if blocks hold parts
  std::int64_t blocks = 0;                  // thread blocks
};

// One or two splits in one launch, of equally many batch items. The grid's second extent counts the items.
struct SplitTasks {
  SplitTask task[2];
  // Condition on the selections of the items. If served_items is 1, each item has its own selection. An
  // operand that serves all items of a batch is split if any of its served_items selections has the
  // candidate.
  DeviceCondition condition;
  std::int64_t served_items = 1;
  Alpha alpha;             // splits before the selection exit early if alpha is 0
  DeviceCounters cleared;  // set to 0 by the first thread block, for a product that waits for the split
};

// Constants of the kernels that read tiles.
inline constexpr std::int64_t tile_vectors = 16;
inline constexpr std::int64_t tile_length = 64;
inline constexpr std::int64_t tile_threads = 256;

// Largest and smallest number of threads per block of kernels whose thread blocks hold whole vectors.
inline constexpr std::int64_t rows_threads = 256;
inline constexpr std::int64_t min_rows_threads = 128;

// Constants of the kernels whose clusters hold strips. A strip has as many adjacent vectors as 64 bytes hold
// elements.
inline constexpr std::int64_t largest_cluster = 8;    // largest size that every device with clusters allows
inline constexpr std::int64_t cluster_threads = 256;  // most threads per block
inline constexpr std::int64_t strip_bytes = 64;
inline constexpr std::int64_t strip_group = 8;  // elements of a vector that a thread writes at once

// Elements of padding after every eight lines of a strip in shared memory; a line has one element of each
// vector. With this padding the threads of a warp, which read eight groups of elements of four vectors,
// access all banks.
inline constexpr std::int64_t strip_gap = 4;

// Constants of the kernels that split vectors in parts. The ranges must be known. Vectors of up to
// long_stride elements are never divided. The length of a part depends on the traversal.
inline constexpr std::int64_t long_stride = 8192;
inline constexpr std::int64_t parts_split_threads = 256;
inline constexpr std::int64_t row_part_length = 8192;
inline constexpr std::int64_t strip_part_length = 1024;
inline constexpr std::int64_t tiles_part_length = 4096;

// Constants of the kernels for many short vectors.
inline constexpr std::int64_t short_threads = 256;   // per thread block
inline constexpr std::int64_t short_blocks = 3;      // thread blocks per SM
inline constexpr std::int64_t short_stride = 256;    // largest stride of a short vector in its slices
inline constexpr std::int64_t many_vectors = 16384;  // fewest vectors for which these kernels are used

// Bytes of one message about a part of a vector. 16 hold magnitudes of FP32 numbers. 32 hold magnitudes of
// FP64 numbers, magnitudes with sums of exponents, or sums of norms.
constexpr std::int64_t strip_message_bytes(std::int64_t element_bytes, ElementKind kind) {
  return element_bytes == 4 && kind != ElementKind::fp16_with_depth ? 16 : 32;
}

// Bytes of shared memory of a thread block, for its part of a strip and the messages of all thread blocks of
// the cluster.
constexpr std::int64_t strip_part_bytes(std::int64_t element_bytes, std::int64_t vector_stride,
                                        std::int64_t blocks, ElementKind kind) {
  const std::int64_t width = strip_bytes / element_bytes;
  const std::int64_t groups = vector_stride / (blocks * strip_group);  // of eight lines
  return groups * (strip_group * width + strip_gap) * element_bytes +
         width * blocks * strip_message_bytes(element_bytes, kind);
}

// Vectors of a tile, and elements of each of them. A warp writes runs of 256 bytes.
inline constexpr std::int64_t complex_tile_vectors = 8;
inline constexpr std::int64_t complex_tile_length = 256;
// In shared memory each group of eight elements, and each vector that is contiguous, is followed by padding
// of one element.
inline constexpr std::int64_t complex_tile_pitch = complex_tile_length / 8 * 9 + 1;
inline constexpr std::int64_t complex_tile_elements = complex_tile_vectors * complex_tile_pitch;

inline constexpr std::int64_t complex_tiles_blocks = 3;  // thread blocks per SM

// Bytes of shared memory of a thread block, which has two tiles.
constexpr std::int64_t complex_tiles_bytes(std::int64_t element_bytes) {
  return 2 * complex_tile_elements * element_bytes;
}

inline constexpr std::int64_t streaming_threads = 256;
inline constexpr std::int64_t streaming_blocks = 3;  // thread blocks per SM, as registers and memory allow
inline constexpr std::int64_t streaming_stages = 2;  // tiles per thread block in shared memory
inline constexpr int streaming_moduli = 28;          // most moduli of integers of up to 93 bits

// A tile has 4096 FP64 numbers. If vectors are adjacent, it has 256 elements of each of 16 vectors: a line of
// memory has one element of each of them. If elements are adjacent, each warp has 512 elements in the order
// of the slices, so that they may begin in one vector and end in another.
inline constexpr std::int64_t streaming_vectors = 16;
inline constexpr std::int64_t streaming_length = 256;
inline constexpr std::int64_t streaming_elements = streaming_vectors * streaming_length;
// Elements of padding in shared memory after every eight lines of a tile of adjacent vectors. With it the
// lanes of a warp, which read 32 groups of eight lines of a vector, access half of the banks.
inline constexpr std::int64_t streaming_gap = 2;
inline constexpr std::int64_t streaming_stage_elements =
    streaming_elements + streaming_length / 8 * streaming_gap;
// Least number of elements of a vector in a slice: a warp's part of a tile has at most three vectors.
inline constexpr std::int64_t least_streaming_stride = 256;
// Number of vectors of which slices have a multiple if vectors of padding are not needed. Their elements then
// fill whole tiles, as a vector has a multiple of 64.
inline constexpr std::int64_t streaming_vector_multiple = 64;

// Bytes of dynamic shared memory per thread block.
inline constexpr std::int64_t streaming_shared_bytes = streaming_stages * streaming_stage_elements * 8;

// Number of tiles of an operand whose slices have `vectors` vectors of `stride` elements, both with padding.
constexpr std::int64_t streaming_tiles(bool adjacent_elements, std::int64_t vectors, std::int64_t stride) {
  return adjacent_elements
             ? vectors * stride / streaming_elements
             : vectors / streaming_vectors * ((stride + streaming_length - 1) / streaming_length);
}

// Rules of candidates that share the kernel, which follows that of the selected one. Without a selection it
// follows the task's rule. The i-th rule has selected.least + i moduli.
struct StreamRules {
  static constexpr int max_rules = SelectedModuli::max_candidates;

  SelectedModuli selected;
  std::int16_t sum_bits[max_rules] = {};  // SplitRule::sum_bits
  std::int16_t top_exponent[max_rules] = {};
};

}  // namespace kintsugi::core::cuda

// Tiles of operands that stream through shared memory: their order, their copies to shared memory, and reads
// of a thread's elements.
#pragma once

#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/split/streaming/streaming.hpp"

namespace kintsugi::core::cuda {

inline constexpr int stream_group = 8;  // consecutive elements of a vector that a thread splits at once
inline constexpr int stream_warps = static_cast<int>(streaming_threads) / 32;
// Groups of a tile that a thread splits one after the other.
inline constexpr int groups_of_thread =
    static_cast<int>(streaming_elements / streaming_threads) / stream_group;
// Scalings of a tile: one for each of 16 adjacent vectors, or three for each warp.
inline constexpr int scalings_of_warp = 3;
inline constexpr int scalings_of_tile = scalings_of_warp * stream_warps;
static_assert(scalings_of_tile >= streaming_vectors);

// First vector of a tile, or of a warp's part of it, and the first of its elements there.
struct TilePosition {
  int vector;
  int element;
};

// Tiles that a thread block splits, or parts of tiles that a warp splits: next, next + step, ... below end.
struct TileSequence {
  std::uint32_t next;
  std::uint32_t step;
  std::uint32_t end;
};

// Eight consecutive elements of one vector, which a thread splits.
struct StreamGroup {
  double x[stream_group];
  int vector;
  int element;  // may be beyond the vector's padding; then the thread writes nothing
};

// Tiles of an operand whose vectors are adjacent in memory. A line has one element of each of 16 vectors.
class TilesOfColumns {
 public:
  __device__ explicit TilesOfColumns(const SplitTask& task) : task_(task) {
    source_ = matrix_start<double>(task) + task.first + 2 * chunk() + line() * task.matrix.column_stride;
    aligned_ =
        reinterpret_cast<std::uintptr_t>(source_) % sizeof(uint4) == 0 && task.matrix.column_stride % 2 == 0;
  }

  // Tiles of thread block `rank` of `ranks`.
  __device__ TileSequence sequence(std::uint32_t rank, std::uint32_t ranks) const {
    return {rank, ranks, static_cast<std::uint32_t>(task_.blocks)};
  }
  // Position of a tile. Tiles of the same vectors follow each other.
  __device__ TilePosition position(std::uint32_t tile) const {
    const auto tiles_of_vectors =
        static_cast<std::uint32_t>((task_.vector_stride + streaming_length - 1) / streaming_length);
    const std::uint32_t vectors = tile / tiles_of_vectors;
    return {static_cast<int>(vectors * streaming_vectors),
            static_cast<int>((tile - vectors * tiles_of_vectors) * streaming_length)};
  }

  // True if the tile needs no other scalings than the one before it.
  __device__ bool has_scalings(const TilePosition& tile, const TilePosition& before) const {
    return tile.vector == before.vector;
  }
  // Vector of the tile whose scaling the thread finds, if the tile has it.
  __device__ static int scaled_vector() { return static_cast<int>(threadIdx.x); }
  __device__ static bool has_vector(const SplitTask&, const TilePosition&, int v) {
    return v < streaming_vectors;
  }
  // True if the vector begins in the tile.
  __device__ static bool begins(const TilePosition& tile, int) { return tile.element == 0; }
  // Index of the scaling of the first vector among those of the tile.
  __device__ static int first_scaling() { return 0; }

  // Returns when the copies of the thread block are complete.
  __device__ static void synchronise() { __syncthreads(); }

  // Starts copies of the tile to shared memory, with zeros beyond the operand.
  __device__ void start_loading(const TilePosition& tile, double* stage) const {
    constexpr int copies = static_cast<int>(streaming_length) / lines_at_once;
    const std::int64_t stride = task_.matrix.column_stride;
    const double* source = source_ + tile.vector + tile.element * stride;
    double* target = stage + offset(line()) + 2 * chunk();
    if (aligned_ && tile.vector + streaming_vectors <= task_.vectors &&
        tile.element + streaming_length <= task_.length) {
#pragma unroll
      for (int i = 0; i < copies; ++i, source += lines_at_once * stride)
        copy_aligned(target + offset(i * lines_at_once), source, static_cast<int>(sizeof(uint4)));
      return;
    }
    const int vectors = min(max(static_cast<int>(task_.vectors) - tile.vector - 2 * chunk(), 0), 2);
    const int bytes = vectors * static_cast<int>(sizeof(double));
    const int existing = static_cast<int>(task_.length) - tile.element - line();
#pragma unroll 1
    for (int i = 0; i < copies; ++i, source += lines_at_once * stride)
      copy_unaligned(target + offset(i * lines_at_once), source, i * lines_at_once < existing ? bytes : 0);
  }

  // Reads a group of the thread's elements. The groups of a warp's lanes follow each other in a vector.
  __device__ StreamGroup read(const TilePosition& tile, const double* stage, int number) const {
    const int thread = static_cast<int>(threadIdx.x);
    const int vector = thread / 32 * groups_of_thread + number;
    const int line = thread % 32 * stream_group;
    StreamGroup group{.vector = tile.vector + vector, .element = tile.element + line};
    const double* source = stage + offset(line) + vector;
#pragma unroll
    for (int i = 0; i < stream_group; ++i) group.x[i] = source[i * streaming_vectors];
    return group;
  }

 private:
  static constexpr int chunks_of_line = static_cast<int>(streaming_vectors) / 2;
  static constexpr int lines_at_once = static_cast<int>(streaming_threads) / chunks_of_line;

  __device__ static int chunk() { return static_cast<int>(threadIdx.x) % chunks_of_line; }
  __device__ static int line() { return static_cast<int>(threadIdx.x) / chunks_of_line; }
  // Offset of a line in shared memory.
  __device__ static constexpr int offset(int line) {
    return line * static_cast<int>(streaming_vectors) + line / 8 * static_cast<int>(streaming_gap);
  }

  const SplitTask& task_;
  const double* source_;
  bool aligned_;
};

// Tiles of an operand whose elements are adjacent in memory. Each warp copies, reads and writes parts of its
// own, so that warps need not wait for each other. A part has 512 elements in the order of the slices.
class TilesOfRows {
 public:
  __device__ explicit TilesOfRows(const SplitTask& task) : task_(task) {
    source_ = matrix_start<double>(task) + task.first * task.matrix.row_stride;
    aligned_ =
        reinterpret_cast<std::uintptr_t>(source_) % sizeof(uint4) == 0 && task.matrix.row_stride % 2 == 0;
  }

  // Parts of this warp of thread block `rank` of `ranks`, which follow each other: so few of them need other
  // scalings than the part before.
  __device__ TileSequence sequence(std::uint32_t rank, std::uint32_t ranks) const {
    const std::uint32_t parts = static_cast<std::uint32_t>(task_.blocks) * stream_warps;
    const std::uint32_t warps = ranks * stream_warps;
    const std::uint32_t index = rank * stream_warps + warp();
    const std::uint32_t next = index * (parts / warps) + min(index, parts % warps);
    return {next, 1, next + parts / warps + (index < parts % warps ? 1 : 0)};
  }
  // Position of a part. Vectors have multiples of 64 elements in the slices.
  __device__ TilePosition position(std::uint32_t part) const {
    constexpr int unit = 64;
    const auto units_of_vector = static_cast<std::uint32_t>(task_.vector_stride / unit);
    const std::uint32_t index = part * (part_elements / unit);
    const std::uint32_t vector = index / units_of_vector;
    return {static_cast<int>(vector), static_cast<int>(index - vector * units_of_vector) * unit};
  }

  // True if the part needs no other scalings than the one before it.
  __device__ bool has_scalings(const TilePosition& part, const TilePosition& before) const {
    return part.vector == before.vector && part.element + part_elements <= task_.vector_stride;
  }
  // Vector of the part whose scaling the thread finds, if the part has it.
  __device__ static int scaled_vector() { return lane(); }
  __device__ static bool has_vector(const SplitTask& task, const TilePosition& part, int v) {
    return v < scalings_of_warp && v * static_cast<int>(task.vector_stride) < part.element + part_elements;
  }
  // True if the vector begins in the part.
  __device__ static bool begins(const TilePosition& part, int v) { return part.element == 0 || v > 0; }
  // Index of the scaling of the part's first vector among those of the tile.
  __device__ static int first_scaling() { return scalings_of_warp * warp(); }

  // Returns when the copies of the warp are complete.
  __device__ static void synchronise() { __syncwarp(); }

  // Starts copies of the part to shared memory, with zeros beyond the operand.
  __device__ void start_loading(const TilePosition& part, double* stage) const {
    constexpr int copies = part_elements / elements_at_once;
    const int stride = static_cast<int>(task_.vector_stride);
    int vector = part.vector;
    int element = part.element + 2 * lane();
    const double* source = source_ + vector * task_.matrix.row_stride + element;
    double* target = stage + warp() * part_elements + 2 * swizzled(lane());
    if (aligned_ && part.vector < task_.vectors && part.element + part_elements <= task_.length) {
#pragma unroll
      for (int i = 0; i < copies; ++i)
        copy_aligned(target + i * elements_at_once, source + i * elements_at_once,
                     static_cast<int>(sizeof(uint4)));
      return;
    }
#pragma unroll 1
    for (int i = 0; i < copies; ++i) {
      while (element >= stride) {
        element -= stride;
        ++vector;
        source += task_.matrix.row_stride - stride;
      }
      const int elements =
          vector < task_.vectors ? min(max(static_cast<int>(task_.length) - element, 0), 2) : 0;
      copy_unaligned(target, source, elements * static_cast<int>(sizeof(double)));
      element += elements_at_once;
      source += elements_at_once;
      target += elements_at_once;
    }
  }

  // Reads a group of the thread's elements. The groups of a warp's lanes follow each other.
  __device__ StreamGroup read(const TilePosition& part, const double* stage, int number) const {
    const int stride = static_cast<int>(task_.vector_stride);
    const int first = (number * 32 + lane()) * stream_group;
    StreamGroup group{.vector = part.vector, .element = part.element + first};
    while (group.element >= stride) {
      group.element -= stride;
      ++group.vector;
    }
    const double* source = stage + warp() * part_elements;
#pragma unroll
    for (int i = 0; i < stream_group; i += 2) {
      double pair[2];
      read_chunk(source + 2 * swizzled((first + i) / 2), pair);
      group.x[i] = pair[0];
      group.x[i + 1] = pair[1];
    }
    return group;
  }

 private:
  static constexpr int part_elements = static_cast<int>(streaming_elements) / stream_warps;
  static constexpr int elements_at_once = 2 * 32;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  // Place in shared memory of two elements. Threads that read at the same time, which are four places apart,
  // access all banks.
  __device__ static int swizzled(int pair) { return pair ^ (pair / 8 % 4); }

  const SplitTask& task_;
  const double* source_;
  bool aligned_;
};

}  // namespace kintsugi::core::cuda

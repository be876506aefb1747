// Sums of open FP64 elements in two doubles where many are open and the rows of A or the columns of B are
// adjacent in memory. A thread block has a band of 32 such vectors and a part of the other operand's. It
// copies the band to shared memory, whole lines of memory at a time, and its warps sum the open elements. So
// a line is read once for all open elements of its vectors; alone, each of them reads 32 bytes for every 8
// that it needs.
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/recombine/checked/checked.hpp"
#include "engines/cuda/recombine/checked/open_elements.cuh"

namespace kintsugi::core::cuda {

namespace {

constexpr int mask_rows = DeviceOpenElements::rows_per_mask;
constexpr int warps = adjacent_vectors_threads / warp_size;
constexpr int elements_of_warp = 8;  // elements that a warp sums at once
constexpr int elements_at_once = warps * elements_of_warp;
constexpr int queue_size = 1024;
constexpr int loads_of_chunk = band_chunk / warp_size;  // inner indices of a chunk that a lane has

// Open elements of the thread block. If there are more, the others are left open.
struct BandQueue {
  unsigned count;
  std::uint32_t
      elements[queue_size];  // vector of the part, times the vectors of a band, plus that of the band
};

// A band of one operand and a part of the other's vectors: `of_rows` is true for rows of A and columns of B,
// false for columns of B and rows of A. Vectors are counted in the whole operands.
struct Band {
  bool of_rows;
  OperandView<double> banded;
  OperandView<double> other;
  std::int64_t first;        // first vector of the band
  std::int64_t other_first;  // first vector of the part
  int others;                // vectors of the part

  __device__ int chunks() const {
    return static_cast<int>(divide_up(banded.columns, std::int64_t{band_chunk}));
  }
  __device__ std::int64_t row(std::uint32_t element) const {
    return of_rows ? first + element % band_vectors : other_first + element / band_vectors;
  }
  __device__ std::int64_t column(std::uint32_t element) const {
    return of_rows ? other_first + element / band_vectors : first + element % band_vectors;
  }
};

// Band and part of a thread block; there are `parts` parts of the other operand.
__device__ Band band_of_block(const DeviceTile& tile, bool of_rows, std::int64_t parts) {
  const std::int64_t band = blockIdx.x / parts;
  const std::int64_t vectors = of_rows ? tile.columns : tile.rows;
  const std::int64_t part_vectors = round_up(divide_up(vectors, parts), std::int64_t{mask_rows});
  const std::int64_t begin = blockIdx.x % parts * part_vectors;
  return {.of_rows = of_rows,
          .banded = operand_view<double>(of_rows ? tile.a : tile.b),
          .other = operand_view<double>(of_rows ? tile.b : tile.a),
          .first = (of_rows ? tile.first_row : tile.first_column) + band * band_vectors,
          .other_first = (of_rows ? tile.first_column : tile.first_row) + begin,
          .others = static_cast<int>(max(min(part_vectors, vectors - begin), std::int64_t{0}))};
}

// Mask number `i` of the band, which has `count` of them: its first row and its column, in the whole matrix.
struct MaskOfBand {
  std::int64_t row;
  std::int64_t column;

  __device__ static int count(const Band& band) {
    return band.of_rows ? band.others : divide_up(band.others, mask_rows) * band_vectors;
  }
  __device__ MaskOfBand(const Band& band, int i) {
    const int masks = divide_up(band.others, mask_rows);  // of a column of a band of columns
    row = band.of_rows ? band.first : band.other_first + i % masks * mask_rows;
    column = band.of_rows ? band.other_first + i : band.first + i / masks;
  }
};

__device__ std::int64_t mask_index(const DeviceTile& tile, const DeviceOpenElements& open, std::int64_t row,
                                   std::int64_t column) {
  return (row - tile.first_row) / mask_rows + (column - tile.first_column) * open.masks_per_column;
}

// Queues the band's open elements whose products can be summed in two doubles. All threads call it together.
__device__ void queue_elements(const DeviceTile& tile, const DeviceOpenElements& open, const Band& band,
                               BandQueue& queue) {
  if (threadIdx.x == 0) queue.count = 0;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < MaskOfBand::count(band); i += adjacent_vectors_threads) {
    const MaskOfBand mask(band, i);
    if (mask.column >= tile.first_column + tile.columns) continue;
    std::uint32_t rows = __ldcg(open.masks + mask_index(tile, open, mask.row, mask.column));
    for (; rows != 0; rows &= rows - 1) {
      const std::int64_t row = mask.row + __ffs(static_cast<int>(rows)) - 1;
      if (!can_use_own_arithmetic<double>(tile, row, mask.column)) continue;
      const std::int64_t of_band = (band.of_rows ? row : mask.column) - band.first;
      const std::int64_t of_part = (band.of_rows ? mask.column : row) - band.other_first;
      const unsigned place = atomicAdd(&queue.count, 1U);
      if (place < queue_size)
        queue.elements[place] = static_cast<std::uint32_t>(of_part * band_vectors + of_band);
    }
  }
  __syncthreads();
}

// Starts copies of a chunk of the band to shared memory, with zeros beyond the operand.
__device__ void start_loading_chunk(const Band& band, int chunk, double* target) {
  constexpr int chunk_vectors = sizeof(uint4) / sizeof(double);
  constexpr int threads_of_line = band_vectors / chunk_vectors;
  const int v = static_cast<int>(threadIdx.x) % threads_of_line * chunk_vectors;
  const std::int64_t stride = band.banded.column_stride;
  const double* source = band.banded.data + band.first + v;
  const std::int64_t vectors = std::min<std::int64_t>(band.banded.rows - band.first - v, chunk_vectors);
  const int bytes = vectors > 0 ? static_cast<int>(vectors * sizeof(double)) : 0;
  const bool aligned = reinterpret_cast<std::uintptr_t>(source) % sizeof(uint4) == 0 &&
                       stride % chunk_vectors == 0 && bytes % sizeof(uint4) == 0;
  for (int line = static_cast<int>(threadIdx.x) / threads_of_line; line < band_chunk;
       line += adjacent_vectors_threads / threads_of_line) {
    const std::int64_t p = std::int64_t{chunk} * band_chunk + line;
    double* place = target + line * band_pitch + v;
    const int existing = p < band.banded.columns ? bytes : 0;
    if (aligned) {
      copy_aligned(place, source + p * stride, existing);
    } else {
      copy_unaligned(place, source + p * stride, existing);
    }
  }
  commit_copies();
}

// Sums of a warp's elements. Each lane has its share of their products.
struct WarpSums {
  CompensatedSum sums[elements_of_warp];

  // Adds the products of a chunk. `elements` are the queue's from the warp's first on, every warps-th of
  // which is the warp's; `count` of them exist.
  __device__ void add_chunk(const Band& band, int chunk, const double* vectors, const std::uint32_t* elements,
                            int count) {
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    double y[elements_of_warp][loads_of_chunk];
#pragma unroll
    for (int e = 0; e < elements_of_warp; ++e) {
      if (e * warps >= count) break;
      const double* vector =
          band.other.data + (band.other_first + elements[e * warps] / band_vectors) * band.other.row_stride;
#pragma unroll
      for (int i = 0; i < loads_of_chunk; ++i) {
        const std::int64_t p = std::int64_t{chunk} * band_chunk + i * warp_size + lane;
        y[e][i] = p < band.other.columns ? __ldg(vector + p * band.other.column_stride) : 0;
      }
    }
#pragma unroll
    for (int e = 0; e < elements_of_warp; ++e) {
      if (e * warps >= count) break;
      const double* vector = vectors + elements[e * warps] % band_vectors;
#pragma unroll
      for (int i = 0; i < loads_of_chunk; ++i)
        sums[e].add_product(vector[(i * warp_size + lane) * band_pitch], y[e][i]);
    }
  }

  // Adds the lanes' sums. Lane e gets the sum of element e.
  __device__ CompensatedSum sum_of_lane() {
    CompensatedSum result;
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
#pragma unroll
    for (int e = 0; e < elements_of_warp; ++e) {
      for (int other = 1; other < warp_size; other <<= 1)
        sums[e].add(sums[e].exchanged([&](double x) { return __shfl_xor_sync(all_lanes, x, other); }));
      if (lane == e) result = sums[e];
    }
    return result;
  }
};

// Writes an element if the sum tells its rounded value, and removes it from the masks.
__device__ void write_if_certain(const DeviceTile& tile, const DeviceOpenElements& open, const Band& band,
                                 std::uint32_t element, const CompensatedSum& sum) {
  const Scalars<double> scalars(tile.scalars);
  const std::int64_t row = band.row(element);
  const std::int64_t column = band.column(element);
  double& target = view_of<double>(tile.c, tile.item)(row, column);
  const auto rounded = sum.rounded(products_of_sum(tile), scalars.alpha, scalars.beta,
                                   scalars.beta == 0 ? 0 : target, tile.scalars.rounding);
  if (!rounded.is_certain) return;
  target = rounded.value;
  atomicAnd(open.masks + mask_index(tile, open, row, column), ~(1U << (row - tile.first_row) % mask_rows));
}

// Sums the queue's elements from `first` on, at most elements_at_once of them. All threads call it together.
__device__ void sum_elements(const DeviceTile& tile, const DeviceOpenElements& open, const Band& band,
                             const BandQueue& queue, int first, double* shared) {
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const std::uint32_t* elements = queue.elements + first + warp;
  const int count = min(static_cast<int>(min(queue.count, queue_size)) - first, elements_at_once) - warp;
  const int chunks = band.chunks();
  const auto stage = [&](int chunk) { return shared + chunk % band_stages * band_chunk * band_pitch; };
  for (int chunk = 0; chunk < band_stages - 1; ++chunk) start_loading_chunk(band, chunk, stage(chunk));
  WarpSums sums;
#pragma unroll 1
  for (int chunk = 0; chunk < chunks; ++chunk) {
    await_copies_but<band_stages - 2>();
    __syncthreads();  // the chunk is there, and all warps have added the one before it
    start_loading_chunk(band, chunk + band_stages - 1, stage(chunk + band_stages - 1));
    sums.add_chunk(band, chunk, stage(chunk), elements, count);
  }
  const CompensatedSum sum = sums.sum_of_lane();
  if (lane < elements_of_warp && lane * warps < count)
    write_if_certain(tile, open, band, elements[lane * warps], sum);
  await_copies();
  __syncthreads();
}

}  // namespace

// The grid has a thread block for each part of each band: `parts` parts of the other operand's vectors.
extern "C" __global__ void __launch_bounds__(adjacent_vectors_threads, 2)
    recompute_adjacent_vectors_f64(const __grid_constant__ DeviceTile tile,
                                   const __grid_constant__ DeviceOpenElements open, bool of_rows,
                                   std::int64_t parts) {
  begin_dependent_kernel();
  const std::int64_t bands = gridDim.x / parts;
  if (__ldcg(&open.state->open) < static_cast<std::uint64_t>(least_open_elements_of_band * bands)) return;
  extern __shared__ __align__(sizeof(uint4)) double shared[];
  __shared__ BandQueue queue;
  const Band band = band_of_block(tile, of_rows, parts);
  queue_elements(tile, open, band, queue);
  const int count = static_cast<int>(min(queue.count, queue_size));
  for (int done = 0; done < count; done += elements_at_once)
    sum_elements(tile, open, band, queue, done, shared);
}

}  // namespace kintsugi::core::cuda

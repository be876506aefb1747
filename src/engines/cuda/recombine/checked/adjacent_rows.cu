// Sums of open FP64 elements in two doubles where many are open and the rows of A are adjacent in memory. A
// thread block has a band of rows, those of one mask, and a part of the columns of C. It copies the band to
// shared memory, whole lines of memory at a time, and its warps sum the open elements. So a line of A is read
// once for all open elements of its rows; alone, each of them reads 32 bytes for every 8 that it needs.
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/recombine/checked/adjacent_rows.hpp"
#include "engines/cuda/recombine/checked/pair_sums.cuh"

namespace kintsugi::core::cuda {

namespace {

constexpr int band_rows = DeviceOpenElements::rows_per_mask;
constexpr int warps = adjacent_rows_threads / warp_size;
constexpr int elements_of_warp = 8;  // elements that a warp sums at once
constexpr int elements_at_once = warps * elements_of_warp;
constexpr int queue_size = 1024;
constexpr int loads_of_chunk = band_chunk / warp_size;  // inner indices of a chunk that a lane has

// Open elements of the band in the thread block's columns. If there are more, the others are left open.
struct BandQueue {
  unsigned count;
  std::uint32_t elements[queue_size];  // column of the part, times the rows of a band, plus the row
};

// A band of rows of A, in a view of whole operands, and the block's columns of C.
struct Band {
  OperandView<double> a;
  OperandView<double> b;
  std::int64_t first_row;
  std::int64_t first_column;
  std::int64_t mask;              // index of the mask of the band's first column
  std::int64_t masks_per_column;  // distance of the masks of adjacent columns
  int columns;

  __device__ int chunks() const { return static_cast<int>(divide_up(a.columns, std::int64_t{band_chunk})); }
  __device__ std::int64_t row(std::uint32_t element) const { return first_row + element % band_rows; }
  __device__ std::int64_t column(std::uint32_t element) const { return first_column + element / band_rows; }
  __device__ std::int64_t mask_of(std::uint32_t element) const {
    return mask + element / band_rows * masks_per_column;
  }
};

// Queues the band's open elements whose products can be summed in two doubles. All threads call it together.
__device__ void queue_elements(const DeviceTile& tile, const DeviceOpenElements& open, const Band& band,
                               BandQueue& queue) {
  if (threadIdx.x == 0) queue.count = 0;
  __syncthreads();
  for (int column = static_cast<int>(threadIdx.x); column < band.columns; column += adjacent_rows_threads) {
    std::uint32_t rows = __ldcg(open.masks + band.mask + column * band.masks_per_column);
    for (; rows != 0; rows &= rows - 1) {
      const std::uint32_t element = column * band_rows + __ffs(static_cast<int>(rows)) - 1;
      if (!can_use_own_arithmetic<double>(tile, band.row(element), band.column(element))) continue;
      const unsigned place = atomicAdd(&queue.count, 1U);
      if (place < queue_size) queue.elements[place] = element;
    }
  }
  __syncthreads();
}

// Starts copies of a chunk of the band to shared memory, with zeros beyond the operand.
__device__ void start_loading_chunk(const Band& band, int chunk, double* target) {
  constexpr int chunk_rows = sizeof(uint4) / sizeof(double);
  constexpr int threads_of_line = band_rows / chunk_rows;
  const int row = static_cast<int>(threadIdx.x) % threads_of_line * chunk_rows;
  const std::int64_t stride = band.a.column_stride;
  const double* source = band.a.data + band.first_row + row;
  const std::int64_t rows = std::min<std::int64_t>(band.a.rows - band.first_row - row, chunk_rows);
  const int bytes = rows > 0 ? static_cast<int>(rows * sizeof(double)) : 0;
  const bool aligned = reinterpret_cast<std::uintptr_t>(source) % sizeof(uint4) == 0 &&
                       stride % chunk_rows == 0 && bytes % sizeof(uint4) == 0;
  for (int line = static_cast<int>(threadIdx.x) / threads_of_line; line < band_chunk;
       line += adjacent_rows_threads / threads_of_line) {
    const std::int64_t p = std::int64_t{chunk} * band_chunk + line;
    double* place = target + line * band_pitch + row;
    const int existing = p < band.a.columns ? bytes : 0;
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
  __device__ void add_chunk(const Band& band, int chunk, const double* rows, const std::uint32_t* elements,
                            int count) {
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    double y[elements_of_warp][loads_of_chunk];
#pragma unroll
    for (int e = 0; e < elements_of_warp; ++e) {
      if (e * warps >= count) break;
      const double* column = band.b.data + band.column(elements[e * warps]) * band.b.row_stride;
#pragma unroll
      for (int i = 0; i < loads_of_chunk; ++i) {
        const std::int64_t p = std::int64_t{chunk} * band_chunk + i * warp_size + lane;
        y[e][i] = p < band.b.columns ? __ldg(column + p * band.b.column_stride) : 0;
      }
    }
#pragma unroll
    for (int e = 0; e < elements_of_warp; ++e) {
      if (e * warps >= count) break;
      const double* row = rows + elements[e * warps] % band_rows;
#pragma unroll
      for (int i = 0; i < loads_of_chunk; ++i)
        sums[e].add_product(row[(i * warp_size + lane) * band_pitch], y[e][i]);
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
  double& target = view_of<double>(tile.c, tile.item)(band.row(element), band.column(element));
  const auto rounded =
      sum.rounded(products_of_sum(tile), scalars.alpha, scalars.beta, scalars.beta == 0 ? 0 : target);
  if (!rounded.is_certain) return;
  target = rounded.value;
  atomicAnd(open.masks + band.mask_of(element), ~(1U << element % band_rows));
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

// `parts`: parts of the columns; the grid has a thread block for each part of each band.
extern "C" __global__ void __launch_bounds__(adjacent_rows_threads, 2)
    recompute_adjacent_rows_f64(const __grid_constant__ DeviceTile tile,
                                const __grid_constant__ DeviceOpenElements open, std::int64_t parts) {
  begin_dependent_kernel();
  const std::int64_t bands = gridDim.x / parts;
  if (__ldcg(&open.state->open) < static_cast<std::uint64_t>(least_open_elements_of_band * bands)) return;
  extern __shared__ __align__(sizeof(uint4)) double shared[];
  __shared__ BandQueue queue;
  const std::int64_t index = blockIdx.x / parts;
  const std::int64_t part_columns = divide_up(tile.columns, parts);
  const std::int64_t first = blockIdx.x % parts * part_columns;
  const Band band{.a = operand_view<double>(tile.a),
                  .b = operand_view<double>(tile.b),
                  .first_row = tile.first_row + index * band_rows,
                  .first_column = tile.first_column + first,
                  .mask = index + first * open.masks_per_column,
                  .masks_per_column = open.masks_per_column,
                  .columns = static_cast<int>(min(part_columns, tile.columns - first))};
  queue_elements(tile, open, band, queue);
  const int count = static_cast<int>(min(queue.count, queue_size));
  for (int done = 0; done < count; done += elements_at_once)
    sum_elements(tile, open, band, queue, done, shared);
}

}  // namespace kintsugi::core::cuda

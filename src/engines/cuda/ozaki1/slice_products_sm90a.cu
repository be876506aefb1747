// Products of fp16 slices of Ozaki scheme I by TMA and wgmma. One launch computes all products of slices that
// a tile of C needs, in Algorithm 2's order, and adds them to the FP64 sums in memory; or it stores the
// products of one slice of B as 64-bit integers. Numbers of slices are read from device memory, so a tile
// ends after its own last product. Every accumulator holds an integer that FP32 represents.
#include "arith/weighted_sum.hpp"
#include "engines/cuda/gemm/warp_specialization.cuh"
#include "engines/cuda/ozaki1/sums.cuh"
#include "engines/cuda/ptx/wgmma.cuh"

namespace kintsugi::core::cuda {

namespace {

struct SliceConfig {
  // Registers per consumer thread. With those of the producer they fill the SM's register file.
  static constexpr int consumer_registers = 232;
  static constexpr int producer_registers = 504 - consumers * consumer_registers;
};

constexpr int sums_of_thread = SliceTile::rows / 2;
constexpr int pairs_of_thread = sums_of_thread / 4;  // pairs of adjacent rows of each of two vectors

// Numbers of products that a cluster's tile needs.
struct ProductCounts {
  std::int32_t most[max_successive_slices];    // products with slice q of B that some element needs
  std::int32_t fewest[max_successive_slices];  // products that all elements need
  std::int32_t slices_a;                       // slices of the tile's rows that are not zero
  std::int32_t slices_b;
  // Largest distance between the exponents of a row's slices, and of a vector's slices.
  std::int32_t depth_a;
  std::int32_t depth_b;
};

// Barriers of the pipeline stages. `full`: the slices of a stage have arrived. `free`: a stage may be filled
// again.
struct SliceSharedStorage {
  Mbarrier full[SliceTile::max_stages];
  Mbarrier free[SliceTile::max_stages];  // counts the cluster's warpgroups that multiplied the stage
  ProductCounts counts;
  // Places of the tile's rows (RowPlace). There are two arrays: a warp may write those of a product while
  // another one reads those of the product before.
  std::int32_t rows[consumers][2][SliceTile::rows];

  __device__ void initialise() {
    for (int stage = 0; stage < SliceTile::max_stages; ++stage) {
      full[stage].initialise(1);
      free[stage].initialise(SliceTile::cluster * consumers);
    }
    counts.slices_a = counts.slices_b = counts.depth_a = counts.depth_b = 0;
  }
};

// Pipeline state: stage index and mbarrier phase.
class SlicePipelineState {
 public:
  __device__ SlicePipelineState(SliceSharedStorage& shared, std::uint32_t tiles, bool carries)
      : shared_(shared), tiles_(tiles), stages_(SliceTile::stages(carries)) {}

  __device__ void advance() {
    if (++stage_ < stages_) return;
    stage_ = 0;
    parity_ ^= 1;
  }
  __device__ int stage() const { return stage_; }
  __device__ std::uint32_t rows() const { return tiles_ + stage_ * SliceTile::stage_bytes; }
  __device__ std::uint32_t vectors() const { return rows() + SliceTile::rows * SliceTile::block_k * 2; }
  __device__ Mbarrier& full() const { return shared_.full[stage_]; }
  __device__ void wait_full() const { full().wait(parity_); }
  __device__ void wait_free() const { shared_.free[stage_].wait(parity_ ^ 1); }
  // Frees a stage that this warpgroup has multiplied, in all thread blocks of the cluster.
  __device__ void release(int stage) const {
    const unsigned thread = threadIdx.x % warpgroup;
    if (thread < SliceTile::cluster) shared_.free[stage].arrive_remote(thread);
  }

 private:
  SliceSharedStorage& shared_;
  std::uint32_t tiles_;
  int stages_;
  int stage_ = 0;
  unsigned parity_ = 0;
};

// Finds the largest length and depth of vectors first ... end - 1.
__device__ void measure_vectors(const DeviceSliceExponents& exponents, int slices, std::int64_t first,
                                std::int64_t end, std::int32_t& most_slices, std::int32_t& depth) {
  for (std::int64_t v = first + threadIdx.x; v < end; v += SliceTile::threads) {
    atomicMax(&most_slices, min(exponents.lengths[v], slices));
    atomicMax(&depth, exponent_at(exponents, 0, v) - exponent_at(exponents, slices - 1, v));
  }
}

// Products with slice q of B that elements need in block i, j of C.
__device__ int products_of_block(const DeviceProductSums& sums, std::int64_t i, std::int64_t j, int q) {
  const DeviceBlockSliceCounts& blocks = sums.slice_counts;
  if (blocks.counts == nullptr) return SliceDepth{sums.slices, sums.slices, sums.fast}.products(q);
  return depth_of(blocks.counts[i + j * blocks.blocks_m], sums.slices, sums.fast).products(q);
}

// Block of C's columns that has vector v of the tile.
__device__ std::int64_t column_block(const DeviceProductSums& sums, std::int64_t v) {
  return (sums.tile.first_column * (sums.tile.c.complex() ? 2 : 1) + v) / sums.slice_counts.vectors;
}

// Returns a bit for each block of C's rows from that of `tile_row` on: whether it needs the product of slices
// p and q for vector v. A block has 64 rows or more, or is all of C (Ozaki1Parameters::block).
__device__ std::uint32_t blocks_that_need(const DeviceProductSums& sums, std::int64_t tile_row,
                                          std::int64_t v, int p, int q) {
  const std::int64_t first = (sums.tile.first_row + tile_row) / sums.slice_counts.rows;
  std::uint32_t result = 0;
  for (int b = 0; b < SliceTile::rows / 64 + 1 && first + b < sums.slice_counts.blocks_m; ++b)
    result |= products_of_block(sums, first + b, column_block(sums, v), q) > p ? 1U << b : 0;
  return result;
}

// Products with slice q of B that elements of the tile's blocks of C need: the most and the fewest of a
// block.
__device__ void count_products(const DeviceProductSums& sums, int q, std::int64_t first_row,
                               std::int64_t last_row, std::int64_t first_vector, std::int64_t last_vector,
                               std::int32_t& most, std::int32_t& fewest) {
  const std::int64_t rows = sums.slice_counts.rows;
  most = 0;
  fewest = max_successive_slices;
  for (std::int64_t j = column_block(sums, first_vector); j <= column_block(sums, last_vector); ++j) {
    for (std::int64_t i = (sums.tile.first_row + first_row) / rows;
         i <= (sums.tile.first_row + last_row) / rows; ++i) {
      const int products = products_of_block(sums, i, j, q);
      most = max(most, products);
      fewest = min(fewest, products);
    }
  }
}

// Counts the products of the cluster's tile. All threads must call it together.
__device__ void count_products_of_tile(const SliceProductsParams& params, const TileCoord& coord,
                                       ProductCounts& counts) {
  const DeviceProductSums& sums = params.sums;
  const std::int64_t vectors = sums.tile.columns * (sums.tile.c.complex() ? 2 : 1);
  const std::int64_t first_row = std::int64_t{coord.row} * SliceTile::rows;
  const std::int64_t end_row = min(first_row + SliceTile::rows, sums.tile.rows);
  const std::int64_t first_vector = std::int64_t{coord.column} * SliceTile::vectors;
  const std::int64_t end_vector = min(first_vector + SliceTile::vectors, vectors);
  measure_vectors(sums.row_exponents, sums.slices, first_row, end_row, counts.slices_a, counts.depth_a);
  measure_vectors(sums.vector_exponents, sums.slices, first_vector, end_vector, counts.slices_b,
                  counts.depth_b);
  __syncthreads();
  const auto q = static_cast<int>(threadIdx.x);
  if (q < sums.slices) {
    count_products(sums, q, first_row, end_row - 1, first_vector, end_vector - 1, counts.most[q],
                   counts.fewest[q]);
    counts.most[q] = q < counts.slices_b ? min(counts.most[q], counts.slices_a) : 0;
    // The first product begins the sums.
    if (q == 0 && params.groups.data == nullptr) counts.most[0] = max(counts.most[0], 1);
  }
  __syncthreads();
}

// Calls visit(p, q) for the products of slice p of A and slice q of B that the tile needs.
template <class Visit>
__device__ void for_each_product(const SliceProductsParams& params, const ProductCounts& counts,
                                 const Visit& visit) {
#pragma unroll 1
  for (int q = params.first_b; q < params.end_b; ++q) {
    const int end = min(counts.most[q], params.groups.first_a + params.groups.count);
#pragma unroll 1
    for (int p = params.groups.first_a; p < end; ++p) visit(p, q);
  }
}

// Loads the slices of all products. One thread of each thread block, the producer, must call it.
__device__ void load_slices(const TensorMap& a, const TensorMap& b, const SliceProductsParams& params,
                            const TileCoord& coord, SliceSharedStorage& shared, std::uint32_t tiles) {
  SlicePipelineState pipeline(shared, tiles, params.carries());
  constexpr int share = SliceTile::rows / SliceTile::cluster;
  const int rank = block_rank_in_cluster();
  const int row = coord.row * SliceTile::rows + rank * share;
  const int vector = coord.column * SliceTile::vectors + rank * SliceTile::block_vectors;
  for_each_product(params, shared.counts, [&](int p, int q) {
#pragma unroll 1
    for (int k_block = 0; k_block < params.k_blocks; ++k_block, pipeline.advance()) {
      const int k = k_block * SliceTile::block_k;
      pipeline.wait_free();
      pipeline.full().arrive_expect_tx(SliceTile::stage_bytes);
      tma_load_multicast(pipeline.rows() + rank * share * SliceTile::block_k * 2, a, pipeline.full(), k, row,
                         p, (1 << SliceTile::cluster) - 1);
      tma_load(pipeline.vectors(), b, pipeline.full(), k, vector, q);
    }
  });
}

// Issues the instructions of one k-block; `keep`: they add to `sums`.
__device__ void multiply_k_block(float (&sums)[sums_of_thread], const SlicePipelineState& pipeline,
                                 int consumer, bool keep) {
  const MatrixDescriptor rows(pipeline.rows());
  const MatrixDescriptor vectors(pipeline.vectors() +
                                 consumer * SliceTile::block_vectors / consumers * SliceTile::block_k * 2);
  pipeline.wait_full();
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < SliceTile::block_k * 2 / step_bytes; ++step)
    wgmma<FormatId::fp16, SliceTile::rows>(sums, vectors + step * step_bytes, rows + step * step_bytes,
                                           keep || step > 0);
  wgmma_commit_group();
}

// Multiplies `k_blocks` k-blocks; `keep`: their products are added to `sums`. The instructions of a k-block
// are issued while those of the previous k-block run. Then the stage of the previous k-block is freed.
__device__ void multiply_run(float (&sums)[sums_of_thread], SlicePipelineState& pipeline, int consumer,
                             int k_blocks, bool keep) {
  multiply_k_block(sums, pipeline, consumer, keep);
  int previous_stage = pipeline.stage();
  pipeline.advance();
#pragma unroll 1
  for (int left = k_blocks - 1; left > 0; --left, pipeline.advance()) {
    multiply_k_block(sums, pipeline, consumer, /*keep=*/true);
    wgmma_wait_group<1>();
    pipeline.release(previous_stage);
    previous_stage = pipeline.stage();
  }
  wgmma_wait_group<0>();
  warpgroup_fence_operand(sums);
  pipeline.release(previous_stage);
}

// First row and first vector of a thread's sums. The thread has pairs of adjacent rows, 8 rows apart, of two
// vectors, 8 apart.
struct ThreadPlace {
  int tile_row;  // first row of the tile
  int row;
  int vector;

  __device__ ThreadPlace(const TileCoord& coord, int consumer) {
    const int thread = thread_number() % warpgroup;
    tile_row = coord.row * SliceTile::rows;
    row = tile_row + thread % 4 * 2;
    vector = coord.column * SliceTile::vectors + block_rank_in_cluster() * SliceTile::block_vectors +
             consumer * SliceTile::block_vectors / consumers + thread / 32 * 16 + thread % 32 / 4;
  }
};

// A row of the tile: by how much the exponent of the product's slice lies below that of the row's first
// slice, and the row's block of C, counted from the block of the tile's first row.
class RowPlace {
 public:
  static constexpr int no_block = 31;

  __device__ static std::int32_t packed(int depth, int block) { return block << 16 | depth; }
  __device__ explicit RowPlace(std::int32_t packed_place) : place_(packed_place) {}
  __device__ int depth() const { return place_ & 0xffff; }
  __device__ int block() const { return place_ >> 16; }

 private:
  std::int32_t place_;
};

// Adds integer * 2^exponent to the sum, as running_term() does; here the exponent may be below that of
// doubles.
__device__ double add_deep_term(double sum, double integer, int exponent) {
  constexpr int step = 1000;
  const bool is_deep = exponent < -step;
  const double term = integer * power_of_two(max(is_deep ? exponent + step : exponent, -step));
  return sum + (is_deep ? term * power_of_two(-step) : term);
}

// Subtracts from each sum its nearest multiple of 2^carried_bits, and adds the multiples to the carries of
// the thread, or begins these. A word has the multiple of the first row of a pair, plus 2^16 times that of
// the second.
__device__ void carry(float (&sums)[sums_of_thread], std::int32_t* carries, bool begins) {
  constexpr float unit = 1 << SliceTile::carried_bits;
  constexpr float shift = 12582912;  // 1.5 * 2^23: floats from 2^23 to 2^24 are integers
  constexpr std::int32_t shift_bits = 0x4b400000;
#pragma unroll
  for (int i = 0; i < sums_of_thread / 2; ++i) {
    std::int32_t bits[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float& sum = sums[2 * i + e];
      const float shifted = __fmaf_rn(sum, 1 / unit, shift);
      sum = __fmaf_rn(shift - shifted, unit, sum);
      bits[e] = __float_as_int(shifted);
    }
    std::int32_t& target = carries[i * consumers * warpgroup];
    target = (begins ? 0 : target) + (bits[0] - shift_bits) + (bits[1] << 16);
  }
}

// Adds the product of slices p and q to the sums in memory, or begins these. `rows` has the places of the
// tile's rows, `carries` the thread's carries if there are any. `Plain`: all elements need the product, and
// no term is subnormal.
template <bool Plain, bool Carries>
__device__ void add_to_sums(const float (&integers)[sums_of_thread], const DeviceProductSums& sums,
                            const std::int32_t* rows, const std::int32_t* carries, const TileCoord& coord,
                            int consumer, int p, int q) {
  // Pairs that a thread loads before it adds to the first. Registers are what limits them.
  constexpr int pairs_at_once = !Plain ? 2 : Carries ? 4 : 8;
  const ThreadPlace place(coord, consumer);
  const bool begins = p == 0 && q == 0;
  const std::int64_t vectors = sums.tile.columns * (sums.tile.c.complex() ? 2 : 1);
  int exponents[2];         // of the vectors' terms, without the rows' depths
  std::uint32_t blocks[2];  // bit b: the row's block b of C needs the product for the vector
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    const int v = place.vector + 8 * c;
    exponents[c] = running_exponent;
    blocks[c] = 0;
    if (v >= vectors) continue;
    exponents[c] += exponent_at(sums.vector_exponents, q, v) - exponent_at(sums.vector_exponents, 0, v);
    if constexpr (!Plain) blocks[c] = blocks_that_need(sums, place.tile_row, v, p, q);
  }
  const auto added = [&](double old, auto integer, const RowPlace& row, int c) {
    const int exponent = exponents[c] - row.depth();
    if constexpr (Plain) {
      const double factor = __hiloint2double((exponent + 1023) << 20, 0);
      return __fma_rn(static_cast<double>(integer), factor, old);  // the product is exact
    } else {
      return (blocks[c] >> row.block() & 1) != 0 ? add_deep_term(old, integer, exponent) : old;
    }
  };
  double* target = &running_sum(sums, place.row, place.vector);
  const std::int64_t to_next_vector = 8 * sums.stride;
  const int2* row_pairs = reinterpret_cast<const int2*>(rows) + thread_number() % 4;
#pragma unroll
  for (int first = 0; first < pairs_of_thread; first += pairs_at_once) {
    double2 pairs[pairs_at_once][2];
    const auto is_stored = [&](int i, int c) {
      return place.row + 8 * (first + i) < sums.stride && place.vector + 8 * c < sums.columns;
    };
    const auto address = [&](int i, int c) {
      return reinterpret_cast<double2*>(target + 8 * (first + i) + c * to_next_vector);
    };
#pragma unroll
    for (int i = 0; i < pairs_at_once; ++i) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        pairs[i][c] = {0, 0};
        if (!begins && is_stored(i, c)) pairs[i][c] = __ldcg(address(i, c));
      }
    }
#pragma unroll
    for (int i = 0; i < pairs_at_once; ++i) {
      const int2 pair = row_pairs[4 * (first + i)];
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int index = 2 * (first + i) + c;
        if constexpr (Carries) {
          const std::int32_t carried = carries[index * consumers * warpgroup];
          const std::int32_t low = static_cast<std::int16_t>(carried);
          const std::int32_t of_first =
              __float2int_rn(integers[2 * index]) + (low << SliceTile::carried_bits);
          const std::int32_t of_second = __float2int_rn(integers[2 * index + 1]) + (carried - low);
          pairs[i][c].x = added(pairs[i][c].x, of_first, RowPlace(pair.x), c);
          pairs[i][c].y = added(pairs[i][c].y, of_second, RowPlace(pair.y), c);
        } else {
          pairs[i][c].x = added(pairs[i][c].x, integers[2 * index], RowPlace(pair.x), c);
          pairs[i][c].y = added(pairs[i][c].y, integers[2 * index + 1], RowPlace(pair.y), c);
        }
        if (is_stored(i, c)) __stcg(address(i, c), pairs[i][c]);
      }
    }
  }
}

// Stores a product as 64-bit integers, or adds it to those of earlier runs of k-blocks.
__device__ void store_product(const float (&integers)[sums_of_thread], const SliceProductsParams& params,
                              const TileCoord& coord, int consumer, int p, bool is_first_run) {
  const ThreadPlace place(coord, consumer);
  const DeviceProductSums& sums = params.sums;
  auto* target = reinterpret_cast<long long*>(params.groups.data) +
                 (p - params.groups.first_a) * params.groups.group_stride + place.vector * sums.stride +
                 place.row;
#pragma unroll
  for (int c = 0; c < 2; ++c, target += 8 * sums.stride) {
    if (place.vector + 8 * c >= sums.columns) continue;
#pragma unroll
    for (int i = 0; i < pairs_of_thread; ++i) {
      if (place.row + 8 * i >= sums.stride) continue;
      auto* pair = reinterpret_cast<longlong2*>(target + 8 * i);
      longlong2 result{__float2int_rn(integers[4 * i + 2 * c]), __float2int_rn(integers[4 * i + 2 * c + 1])};
      if (!is_first_run) {
        const longlong2 earlier = *pair;
        result.x += earlier.x;
        result.y += earlier.y;
      }
      __stcs(pair, result);
    }
  }
}

// Writes the places of the tile's rows for slice p of A. The threads of the warpgroup must call it together.
__device__ void find_row_places(const DeviceProductSums& sums, std::int64_t tile_row, int p, int consumer,
                                std::int32_t* rows) {
  const std::int64_t first = sums.tile.first_row + tile_row;
  for (int r = thread_number() % warpgroup; r < SliceTile::rows; r += warpgroup) {
    const std::int64_t i = tile_row + r;
    int depth = 0;
    int block = RowPlace::no_block;
    if (i < sums.tile.rows) {
      depth = exponent_at(sums.row_exponents, 0, i) - exponent_at(sums.row_exponents, p, i);
      block = static_cast<int>((first + r) / sums.slice_counts.rows - first / sums.slice_counts.rows);
    }
    rows[r] = RowPlace::packed(depth, block);
  }
  named_barrier_sync(first_warpgroup_barrier + consumer, warpgroup);
}

template <bool Carries>
__device__ void compute_products(const SliceProductsParams& params, const TileCoord& coord,
                                 SliceSharedStorage& shared, std::uint32_t tiles, unsigned char* memory) {
  const int consumer = uniform(static_cast<int>(threadIdx.x) / warpgroup - 1);
  SlicePipelineState pipeline(shared, tiles, Carries);
  const ProductCounts& counts = shared.counts;
  // The smallest term that is not zero is 2^(running_exponent - depth); it must not be subnormal.
  const bool is_shallow = counts.depth_a + counts.depth_b <= running_exponent + 1000;
  std::int32_t* carries = nullptr;
  if constexpr (Carries) {
    carries = reinterpret_cast<std::int32_t*>(memory + (tiles - shared_address(memory)) +
                                              SliceTile::stages(true) * SliceTile::stage_bytes) +
              threadIdx.x - warpgroup;
  }
  int parity = 0;
  for_each_product(params, counts, [&](int p, int q) {
    float sums[sums_of_thread];
    if (!Carries && params.groups.data != nullptr) {
#pragma unroll 1
      for (int k_block = 0; k_block < params.k_blocks; k_block += params.run_blocks) {
        multiply_run(sums, pipeline, consumer, min(params.run_blocks, params.k_blocks - k_block),
                     /*keep=*/false);
        store_product(sums, params, coord, consumer, p, k_block == 0);
      }
      return;
    }
    std::int32_t* rows = shared.rows[consumer][parity];
    parity ^= 1;
    find_row_places(params.sums, coord.row * SliceTile::rows, p, consumer, rows);
    multiply_run(sums, pipeline, consumer, min(params.run_blocks, params.k_blocks), /*keep=*/false);
    if constexpr (Carries) {
#pragma unroll 1
      for (int k_block = params.run_blocks; k_block < params.k_blocks; k_block += params.run_blocks) {
        carry(sums, carries, /*begins=*/k_block == params.run_blocks);
        warpgroup_fence_operand(sums);
        multiply_run(sums, pipeline, consumer, min(params.run_blocks, params.k_blocks - k_block),
                     /*keep=*/true);
      }
    }
    if (is_shallow && p < counts.fewest[q]) {
      add_to_sums<true, Carries>(sums, params.sums, rows, carries, coord, consumer, p, q);
    } else {
      add_to_sums<false, Carries>(sums, params.sums, rows, carries, coord, consumer, p, q);
    }
  });
}

}  // namespace

extern "C" __global__ void __cluster_dims__(SliceTile::cluster, 1, 1) __launch_bounds__(SliceTile::threads, 1)
    add_slice_products(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                       const __grid_constant__ SliceProductsParams params) {
  extern __shared__ unsigned char memory[];
  __shared__ SliceSharedStorage shared;
  const std::uint32_t tiles = aligned_tiles(memory);
  begin_cluster(shared);
  if (!holds(params.sums.tile.condition)) return;
  const TileSchedule schedule{.rows = params.tile_rows, .columns = params.tile_columns};
  const TileCoord coord = schedule.coord({.tile = static_cast<int>(blockIdx.x) / SliceTile::cluster});
  count_products_of_tile(params, coord, shared.counts);
  specialize_warpgroups<SliceConfig>(
      [&] {
        if (threadIdx.x == 0) load_slices(a, b, params, coord, shared, tiles);
      },
      [&] {
        if (params.carries()) {
          compute_products<true>(params, coord, shared, tiles, memory);
        } else {
          compute_products<false>(params, coord, shared, tiles, memory);
        }
      });
}

}  // namespace kintsugi::core::cuda

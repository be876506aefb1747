// FP32 products of different shapes in one launch: every thread block finds its tile's product in a table.
#include "engines/cuda/gemm/direct_group_params.hpp"
#include "engines/cuda/gemm/hopper/direct_wgmma.cuh"

namespace kintsugi::core::cuda {

namespace {

// Makes the matrix that of one item alone, and returns its address.
__device__ const void* take_item(DeviceMatrix& matrix, std::int64_t item) {
  const std::int64_t offset = matrix.batch_stride * item;
  const float* const data = matrix.pointers ? static_cast<const float* const*>(matrix.data)[item]
                                            : static_cast<const float*>(matrix.data) + offset;
  matrix.data = data;
  matrix.pointers = false;
  matrix.batch_stride = 0;
  return data;
}

// Sets the address at which a tensor map in global memory begins.
__device__ void set_address(TensorMap& map, const void* address) {
  asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(
                   __cvta_generic_to_global(&map)),
               "l"(address)
               : "memory");
}

template <class T>
__device__ void copy_words(T* target, const T& source) {
  static_assert(sizeof(T) % 4 == 0);
  for (unsigned i = threadIdx.x; i < sizeof(T) / 4; i += blockDim.x)
    reinterpret_cast<std::uint32_t*>(target)[i] = reinterpret_cast<const std::uint32_t*>(&source)[i];
}

// Index of the group that has the tile. The warp calls it together.
__device__ int group_of_tile(const DirectGroupTable& table, std::int32_t tile) {
  int begun = 0;
  for (int first = 0; first < table.group_count; first += 32) {
    const int g = first + threadIdx.x % 32;
    const bool begins = g < table.group_count && table.groups[g].first_tile <= tile;
    begun += __popc(__ballot_sync(~0U, begins));
  }
  return begun - 1;
}

// A tile of a thread block, which prepares it while it computes the tile before. So there are three of them.
struct GroupTile {
  const DirectProduct* product;
  int first_row;
  int first_column;
  int blocks;  // k-blocks, at least two: load_next() is two ahead; 0: there is no further tile
  std::uint32_t tile;
  std::uint32_t most;    // largest magnitude
  std::uint32_t unsafe;  // 1: an element may not be accepted
  std::uint32_t open;
  Mbarrier prepared;
  Mbarrier converted;  // the columns' largest magnitudes are complete
  Mbarrier finished;
};

template <class Config>
struct GroupShared {
  static constexpr int tiles = 3;

  Mbarrier rows_full[Config::consumers][Config::buffers];
  Mbarrier columns_full[Config::buffers];
  Mbarrier slices_full[Config::stages];
  Mbarrier slices_free[Config::stages];
  GroupTile tile[tiles];
  std::uint32_t largest[tiles][Config::rows + Config::columns];
  alignas(DirectParams) unsigned char params[tiles][sizeof(DirectParams)];

  __device__ DirectParams& params_of(int slot) { return *reinterpret_cast<DirectParams*>(params[slot]); }
};

// The loads of a warpgroup's operand: k-blocks of its tiles, one after the other. All its threads call
// load_next(). Side 0 has the tiles' rows.
template <class Config, int Side, bool AlongK, int Vectors>
class GroupLoads {
 public:
  __device__ GroupLoads(GroupShared<Config>& shared, int first_vector)
      : shared_(shared), first_vector_(first_vector) {}

  __device__ __forceinline__ void load_next(Mbarrier& full, std::uint32_t target) {
    if (block_ == blocks_) {
      if (ends_) return;
      slot_ = slot_ + 1 == GroupShared<Config>::tiles ? 0 : slot_ + 1;
      if (slot_ == 0) parity_ ^= 1;
      const GroupTile& tile = shared_.tile[slot_];
      tile.prepared.wait(parity_);
      block_ = 0;
      blocks_ = tile.blocks;
      ends_ = blocks_ == 0;
      if (ends_) return;
      if (is_first_of_group())
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(&tile.product->maps[Side])
                     : "memory");
    }
    const GroupTile& tile = shared_.tile[slot_];
    const DirectParams& params = shared_.params_of(slot_);
    const int vector = (Side == 0 ? tile.first_row : tile.first_column) + first_vector_;
    if (params.sides[Side].is_aligned == 0) [[unlikely]]
      load_by_copies<AlongK>(params, Side, full, target, Vectors, vector, block_ * direct_block);
    else if (is_first_of_group())
      load_by_tma<AlongK>(tile.product->maps[Side], params.sides[Side], full, target, Vectors, vector,
                          block_ * direct_block);
    else
      full.arrive();
    ++block_;
  }

 private:
  GroupShared<Config>& shared_;
  int first_vector_;
  int slot_ = -1;
  unsigned parity_ = 1;
  int block_ = 0;
  int blocks_ = 0;
  bool ends_ = false;
};

// The converter prepares the thread block's tile number `number`.
template <class Config>
__device__ __forceinline__ void prepare_tile(const DirectGroupTable& table, GroupShared<Config>& shared,
                                             int number) {
  const int slot = number % GroupShared<Config>::tiles;
  GroupTile& tile = shared.tile[slot];
  const int thread = threadIdx.x % 128;
  const std::int64_t index = blockIdx.x + std::int64_t{number} * gridDim.x;
  tile.finished.wait(number / GroupShared<Config>::tiles & 1 ^ 1);
  if (index < table.tiles) {
    const DirectGroup group = table.groups[group_of_tile(table, static_cast<std::int32_t>(index))];
    const std::uint32_t in_group = static_cast<std::uint32_t>(index - group.first_tile);
    const DirectProduct& product = table.products[group.first_product + in_group / group.tiles];
    const std::uint32_t in_product = in_group % group.tiles;
    const auto* const words = reinterpret_cast<const std::uint32_t*>(&product.params);
    for (unsigned i = thread; i < sizeof(DirectParams) / 4; i += 128)
      reinterpret_cast<std::uint32_t*>(shared.params[slot])[i] = words[i];
    for (int i = thread; i < Config::rows + Config::columns; i += 128) shared.largest[slot][i] = 0;
    named_barrier_sync(1 + Config::consumers, 128);
    const DirectParams& params = shared.params_of(slot);
    if (thread == 0) {
      std::uint32_t row_tile;
      const std::uint32_t column_tile = params.by_row_tiles.quotient(in_product, row_tile);
      tile.product = &product;
      tile.first_row = static_cast<int>(row_tile) * Config::rows;
      tile.first_column = static_cast<int>(column_tile) * Config::columns;
      tile.blocks = max(params.blocks, 2);
      tile.tile = in_product;
      tile.most = tile.unsafe = tile.open = 0;
    }
  } else if (thread == 0) {
    tile.blocks = 0;
  }
  __syncwarp();
  if (thread % 32 == 0) tile.prepared.arrive();
}

// Stores a tile's sums, all of them accepted or not. The consumers call it together, and no one else.
template <class Config>
__device__ __forceinline__ void finish_tile(GroupShared<Config>& shared, int slot, unsigned parity,
                                            float (&acc)[Config::columns / 2],
                                            const std::uint32_t (&row_largest)[2], std::uint32_t totals) {
  constexpr int consumer_threads = Config::consumers * 128;
  constexpr int barrier_of_consumers = 2 + Config::consumers;
  constexpr int fours = Config::columns / 8;
  GroupTile& tile = shared.tile[slot];
  const DirectParams& params = shared.params_of(slot);
  std::uint32_t* const largest = shared.largest[slot];
  const int first_row = tile.first_row;
  const int first_column = tile.first_column;
  const int rows[2] = {row_of_sum<Config>(threadIdx.x, 0), row_of_sum<Config>(threadIdx.x, 1)};
  std::uint32_t most = 0;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const std::uint32_t of_row = larger_half(row_largest[h]);
    atomicMax(&largest[rows[h]], of_row);
    most = max(most, of_row);
  }
  most = __reduce_max_sync(~0U, most);
  if (threadIdx.x % 32 == 0) atomicMax(&tile.most, most);
  tile.converted.wait(parity);
  named_barrier_sync(barrier_of_consumers, consumer_threads);
  most = tile.most;
  const DirectResult c(params, 0);
  const Scalars<float> scalars(params.tile.scalars);
  const OwnedUnits owned{0, Config::columns / 16};
  bool safe = true;
  if (most > __float_as_uint(direct_safe_largest)) {
    const bool has_row[2] = {first_row + rows[0] < c.rows, first_row + rows[1] < c.rows};
    const int columns_left =
        static_cast<int>(min(c.columns - first_column - threadIdx.x % 4 * 2, std::int64_t{Config::columns}));
#pragma unroll
    for (int f = 0; f < fours; ++f)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        safe =
            safe && (!has_row[e / 2] || 8 * f + e % 2 >= columns_left || accepts_up_to(most, acc[4 * f + e]));
    if (!safe) tile.unsafe = 1;
    named_barrier_sync(barrier_of_consumers, consumer_threads);
    safe = tile.unsafe == 0;
  }
  if (safe && scalars.alpha == 1.0F && scalars.beta == 0.0F) [[likely]] {
    store_plain<Config>(acc, owned, c, first_row, first_column, rows[0], rows[1], threadIdx.x % 4 * 2);
    return;
  }
  if (!safe) {
    find_tiny(params, 0, first_row, largest, Config::rows, consumer_threads / 32);
    find_tiny(params, 1, first_column, largest + Config::rows, Config::columns, consumer_threads / 32);
    named_barrier_sync(barrier_of_consumers, consumer_threads);
  }
  // Open elements are listed where the sums of segments were, which are finished.
  constexpr int summing_warps = (Config::tile_bytes - Config::open_bytes) / open_sum_bytes;
  const std::uint32_t segments = totals + Config::tile_bytes;
  const std::uint32_t place = totals + threadIdx.x * 16;
  const OpenElements open(tile.open, segments);
#pragma unroll
  for (int f = 0; f < fours; ++f)
    store4(place + f * 4096, __float_as_uint(acc[4 * f]), __float_as_uint(acc[4 * f + 1]),
           __float_as_uint(acc[4 * f + 2]), __float_as_uint(acc[4 * f + 3]));
  store_tested<Config>(params, c, owned, first_row, first_column, place, largest, open);
  named_barrier_sync(barrier_of_consumers, consumer_threads);
  if (tile.open > 0 && threadIdx.x < 32 * summing_warps)
    open.compute(params, first_row, first_column, segments + Config::open_bytes, summing_warps);
  named_barrier_sync(barrier_of_consumers, consumer_threads);
}

// Computes every gridDim.x-th tile. While consumers store a tile, the next one is loaded and converted.
template <class Config>
__device__ __forceinline__ void multiply_groups(const DirectGroupTable& table) {
  extern __shared__ unsigned char memory[];
  __shared__ GroupShared<Config> shared;
  constexpr int tiles = GroupShared<Config>::tiles;
  const std::uint32_t ring = (shared_address(memory) + 1023) & ~1023U;
  const std::uint32_t row_memory = ring + Config::stages * Config::slices * Config::slice_bytes;
  const std::uint32_t column_memory = row_memory + Config::buffers * Config::consumers * Config::row_bytes;
  const std::uint32_t totals = ring + Config::ring_bytes;
  const std::uint32_t segments = totals + Config::tile_bytes;
  if (threadIdx.x == 0) {
    for (int i = 0; i < Config::buffers; ++i) {
      for (auto& barriers : shared.rows_full) barriers[i].initialise(128);
      shared.columns_full[i].initialise(128);
    }
    for (Mbarrier& barrier : shared.slices_full) barrier.initialise(4);
    for (Mbarrier& barrier : shared.slices_free) barrier.initialise(4 * Config::consumers);
    for (GroupTile& tile : shared.tile) {
      tile.prepared.initialise(4);
      tile.converted.initialise(4);
      tile.finished.initialise(4 * Config::consumers);
    }
    Mbarrier::fence_initialisation();
  }
  launch_dependents();
  grid_dependency_wait();
  __syncthreads();
  const int group = threadIdx.x / 128;  // a consumer, or the converter
  const int thread = threadIdx.x % 128;
  unsigned block = 0;  // number of the k-block among those of all tiles
  if (group == Config::consumers) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 104;");
    GroupLoads<Config, 1, Config::columns_along_k, Config::columns> loads(shared, 0);
    prepare_tile<Config>(table, shared, 0);
#pragma unroll 1
    for (int i = 0; i < Config::buffers; ++i)
      loads.load_next(shared.columns_full[i], column_memory + i * Config::column_bytes);
#pragma unroll 1
    for (int number = 0;; ++number) {
      const int slot = number % tiles;
      if (shared.tile[slot].blocks == 0) return;
      prepare_tile<Config>(table, shared, number + 1);
      ColumnConverter<Config> converter;
#pragma unroll 1
      for (const unsigned end = block + shared.tile[slot].blocks; block < end; ++block) {
        const unsigned buffer = block % Config::buffers;
        const unsigned stage = block % Config::stages;
        shared.columns_full[buffer].wait(block / Config::buffers & 1);
        __syncwarp();
        converter.convert(
            column_memory + buffer * Config::column_bytes,
            ring + stage * Config::slices * Config::slice_bytes,
            [&] { shared.slices_free[stage].wait(block / Config::stages & 1 ^ 1); },
            [&] {
              named_barrier_sync(1 + Config::consumers, 128);
              loads.load_next(shared.columns_full[buffer], column_memory + buffer * Config::column_bytes);
            });
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (thread % 32 == 0) shared.slices_full[stage].arrive();
      }
      const std::uint32_t most =
          __reduce_max_sync(~0U, converter.finish(shared.largest[slot] + Config::rows));
      __syncwarp();
      if (thread % 32 == 0) {
        atomicMax(&shared.tile[slot].most, most);
        shared.tile[slot].converted.arrive();
      }
      if (thread == 0) report_items(shared.params_of(slot), shared.tile[slot].tile, 1);
    }
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 200;");
  constexpr int fours = Config::columns / 8;
  const std::uint32_t source = row_memory + group * Config::buffers * Config::row_bytes;
  const std::uint32_t place = threadIdx.x * 16;
  GroupLoads<Config, 0, Config::rows_along_k, 64> loads(shared, 64 * group);
#pragma unroll 1
  for (int i = 0; i < Config::buffers; ++i)
    loads.load_next(shared.rows_full[group][i], source + i * Config::row_bytes);
  float acc[Config::columns / 2];
  float sums[Config::columns / 2];
  RowSlices rows[2];
  std::uint32_t largest[2] = {};
  const auto add_shared = [&](std::uint32_t from) {
#pragma unroll
    for (int f = 0; f < fours; ++f) add_four(acc + 4 * f, load4(from + place + f * 4096));
  };
  const auto store_shared = [&](std::uint32_t to) {
#pragma unroll
    for (int f = 0; f < fours; ++f)
      store4(to + place + f * 4096, __float_as_uint(acc[4 * f]), __float_as_uint(acc[4 * f + 1]),
             __float_as_uint(acc[4 * f + 2]), __float_as_uint(acc[4 * f + 3]));
  };
  const auto convert_step = [&](unsigned of_block, int step) {
    const unsigned buffer = of_block % Config::buffers;
    if (step == 0) {
      shared.rows_full[group][buffer].wait(of_block / Config::buffers & 1);
      __syncwarp();
    }
    rows[step % 2] = convert_rows<Config>(source + buffer * Config::row_bytes, step, largest);
    if (step + 1 < block_steps) return;
    named_barrier_sync(1 + group, 128);
    loads.load_next(shared.rows_full[group][buffer], source + buffer * Config::row_bytes);
    __syncwarp();
  };
  int slot = 0;
  unsigned parity = 0;
  shared.tile[0].prepared.wait(0);
  int blocks = shared.tile[0].blocks;
  if (blocks == 0) return;
  convert_step(0, 0);
#pragma unroll 1
  for (;;) {
    const int next_slot = slot + 1 == tiles ? 0 : slot + 1;
    const unsigned next_parity = next_slot == 0 ? parity ^ 1 : parity;
    int next_blocks = 0;
    std::uint32_t row_largest[2];
#pragma unroll
    for (float& sum : acc) sum = 0;
      // The rows of a step are converted while the products of the one before it are under way.
#pragma unroll 1
    for (int b = 0; b < blocks; ++b, ++block) {
      const unsigned stage = block % Config::stages;
      const std::uint32_t slices = ring + stage * Config::slices * Config::slice_bytes;
      shared.slices_full[stage].wait(block / Config::stages & 1);
#pragma unroll
      for (int step = 0; step < block_steps; ++step) {
        issue_step<Config>(sums, rows[step % 2], slices + step * step_bytes);
        if (step + 1 < block_steps) {
          convert_step(block, step + 1);
        } else {
          bool has_next = true;
          if (b + 1 == blocks) {
            shared.tile[next_slot].prepared.wait(next_parity);
            next_blocks = shared.tile[next_slot].blocks;
            has_next = next_blocks > 0;
#pragma unroll
            for (int h = 0; h < 2; ++h) row_largest[h] = largest[h], largest[h] = 0;
          }
          if (has_next) convert_step(block + 1, 0);
        }
        wgmma_wait_group<0>();
        warpgroup_fence_operand(sums);
#pragma unroll
        for (int e = 0; e < Config::columns / 2; ++e) acc[e] += sums[e];
      }
      if (thread % 32 == 0) shared.slices_free[stage].arrive();
      const bool ends_k = b + 1 == blocks;
      if (b % leaf_blocks != leaf_blocks - 1 && !ends_k) continue;
      const int leaf = b / leaf_blocks;
      if (leaf % group_leaves != 0) add_shared(totals);
      if (leaf % group_leaves == group_leaves - 1 || ends_k) {
        if (leaf >= group_leaves) add_shared(segments);
        if (!ends_k) store_shared(segments);
      } else {
        store_shared(totals);
      }
      if (ends_k) continue;
#pragma unroll
      for (float& sum : acc) sum = 0;
    }
    finish_tile<Config>(shared, slot, parity, acc, row_largest, totals);
    __syncwarp();
    if (thread % 32 == 0) shared.tile[slot].finished.arrive();
    if (next_blocks == 0) return;
    blocks = next_blocks;
    slot = next_slot;
    parity = next_parity;
  }
}

}  // namespace

// A thread block for each item and group.
extern "C" __global__ void __launch_bounds__(preparing_threads)
    prepare_direct_products(const __grid_constant__ DirectPreparation groups) {
  launch_dependents();
  grid_dependency_wait();
  const std::uint32_t g = blockIdx.y;
  const auto item = static_cast<std::int32_t>(blockIdx.x);
  if (item >= groups.items[g]) return;
  DirectProduct& product = groups.table.products[groups.groups[g].first_product + item];
  copy_words(&product, groups.products[g]);
  if (item == 0) copy_words(groups.table.groups + groups.first_group + g, groups.groups[g]);
  __syncthreads();
  if (threadIdx.x > 0) return;
  DirectParams& params = product.params;
  const void* const a = take_item(params.tile.a.matrix, item);
  const void* const b = take_item(params.tile.b.matrix, item);
  for (int side = 0; side < 2; ++side) {
    const void* const data = (side == 0) != (params.swapped != 0) ? a : b;
    if (params.sides[side].is_aligned == 0) continue;
    if (reinterpret_cast<std::uintptr_t>(data) % 16 == 0)
      set_address(product.maps[side], data);
    else
      params.sides[side].is_aligned = 0;
  }
  DirectTarget& c = params.c;
  c.data = c.by_pointer != 0 ? static_cast<float**>(c.data)[item]
                             : static_cast<float*>(c.data) + c.item_stride * item;
  c.by_pointer = 0;
  asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
}

#define KINTSUGI_GROUPS(name, rows_along_k, columns_along_k, swapped)           \
  extern "C" __global__ void __launch_bounds__(wide_threads, 1)                 \
      name(const __grid_constant__ DirectGroupTable table) {                    \
    multiply_groups<WideConfig<rows_along_k, columns_along_k, swapped>>(table); \
  }
KINTSUGI_GROUPS(multiply_f32_direct_groups_kk, true, true, false)
KINTSUGI_GROUPS(multiply_f32_direct_groups_kn, true, false, false)
KINTSUGI_GROUPS(multiply_f32_direct_groups_mk, false, true, false)
KINTSUGI_GROUPS(multiply_f32_direct_groups_mn, false, false, false)
KINTSUGI_GROUPS(multiply_f32_direct_groups_swapped_kk, true, true, true)
KINTSUGI_GROUPS(multiply_f32_direct_groups_swapped_kn, true, false, true)
KINTSUGI_GROUPS(multiply_f32_direct_groups_swapped_mk, false, true, true)
KINTSUGI_GROUPS(multiply_f32_direct_groups_swapped_mn, false, false, true)
#undef KINTSUGI_GROUPS

}  // namespace kintsugi::core::cuda

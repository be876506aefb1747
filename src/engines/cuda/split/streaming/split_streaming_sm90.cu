// Splits FP64 operands with known ranges into residues of integers of up to 93 bits. Thread blocks go through
// tiles of the operand: while they write the slices of one tile, the next one is copied to shared memory.
// They exchange nothing, because a vector's scaling follows from its known range. Candidates of different
// numbers of moduli may share a launch.
#include "arith/residue/rounding_errors.hpp"
#include "engines/cuda/common/selected_moduli.cuh"
#include "engines/cuda/select/finish_range.cuh"
#include "engines/cuda/split/elements/elements.cuh"
#include "engines/cuda/split/streaming/stream_tiles.cuh"
#include "engines/cuda/split/streaming/warp_residues.cuh"

namespace kintsugi::core::cuda {

namespace {

// Part of the rule that differs between candidates.
struct StreamRule {
  int slices;
  int sum_bits;
  int top_exponent;
};

// Shared memory of a thread block besides the tiles.
struct StreamMemory {
  WeightsOfPairs weights;
  StreamRule rule;
  Scaling scalings[streaming_stages][scalings_of_tile];
};

// Finds the scalings of the vectors of a tile, or of the warp's part of it, and stores the scale with the
// range of those that begin in it. Thread blocks may read a range before or after its scale is stored: they
// do not use the stored scale.
template <class Tiles>
__device__ void find_scalings(const SplitTask& task, const StreamRule& stream_rule, const TilePosition& tile,
                              Scaling* scalings) {
  const int v = Tiles::scaled_vector();
  const int vector = tile.vector + v;
  if (vector >= task.vectors || !Tiles::has_vector(task, tile, v)) return;
  VectorRange& stored_range = range_of(task, vector);
  VectorRange range = stored_range;
  SplitRule rule = rule_of(task);
  rule.sum_bits = stream_rule.sum_bits;
  rule.top_exponent = stream_rule.top_exponent;
  scale_range(task, rule, vector, range);
  if (Tiles::begins(tile, v)) stored_range.scale = range.scale;
  scalings[Tiles::first_scaling() + v] =
      scaling_of(ElementKind::wide_residues, range, rule, task.largest_bound);
}

// Adds the rounding errors of a group of elements to those of its vector, if they are wanted. All threads of
// a warp must call this together.
__device__ __forceinline__ void add_rounding_errors(const SplitTask& task, const StreamGroup& group,
                                                    double errors) {
  if (task.magnitudes == nullptr) return;
  const bool exists = group.vector < task.vectors;
  VectorMagnitudes* sums = task.magnitudes + item_of_block() * task.item_ranges + group.vector;
  if (exists && group.element == 0) sums->counted = 1;
  if (!__any_sync(~0U, exists && errors != 0)) return;
  constexpr int bits = 24;  // a warp's sum, of up to 32 times 8 halves, has 32 bits in units of 2^-bits
  const std::uint32_t units = exists ? __double2uint_ru(errors * power_of_two(bits)) : 0;
  const auto add = [&](std::uint32_t number) {
    atomicAdd(reinterpret_cast<unsigned long long*>(&sums->errors),
              static_cast<unsigned long long>(number) << (VectorMagnitudes::error_bits - bits));
  };
  int is_one_vector = 0;
  __match_all_sync(~0U, group.vector, &is_one_vector);
  if (is_one_vector == 0) {
    if (units != 0) add(units);
    return;
  }
  const std::uint32_t sum = __reduce_add_sync(~0U, units);
  if (threadIdx.x % 32 == 0) add(sum);
}

// Writes the slices of a group of elements. Elements that are not finite count as zeros. All threads of a
// warp must call this together.
__device__ __forceinline__ void write_group(const SplitTask& task, StreamGroup& group,
                                            const TilePosition& tile, const Scaling* scalings,
                                            const StreamMemory& memory) {
  const bool exists = group.vector < task.vectors;  // else it is padding
  const bool in_slices = group.element < task.vector_stride;
  const std::int64_t offset = group.vector * task.vector_stride + group.element;
  Scaling scaling;
  if (exists) {
    scaling = scalings[group.vector - tile.vector];
    if (!scaling.plain) {
#pragma unroll
      for (double& x : group.x) x = x - x == 0 ? x : 0;
    }
  } else if (in_slices) {
    write_zeros<stream_group>(task, offset);
  }
  WideByteDigits digits[stream_group];
  double errors = 0;
  to_digits(scaling, group.x, digits, errors);
  __syncwarp();
  add_rounding_errors(task, group, errors);
  write_residue_pairs(std::make_integer_sequence<int, streaming_moduli / 2>{}, digits, memory.weights,
                      memory.rule.slices, task.slice_stride, slices_of(task) + offset, exists && in_slices);
}

// Splits the tiles of thread block `rank` of `ranks`.
template <class Tiles>
__device__ __forceinline__ void stream_operand(const SplitTask& task, std::uint32_t rank, std::uint32_t ranks,
                                               double* stages, StreamMemory& memory) {
  const Tiles tiles(task);
  TileSequence sequence = tiles.sequence(rank, ranks);
  TilePosition tile{.vector = -1, .element = 0};
  int stage = 0;
  int scaled_stage = 0;  // stage of the tile for which the present scalings were found
#pragma unroll 1
  for (;; sequence.next += sequence.step) {
    await_copies();
    Tiles::synchronise();  // all copies of this tile are complete, and all reads of the tile before
    const bool has_next = sequence.next < sequence.end;
    TilePosition next{};
    int next_scaled_stage = scaled_stage;
    if (has_next) {
      next = tiles.position(sequence.next);
      tiles.start_loading(next, stages + (stage ^ 1) * streaming_stage_elements);
      if (!tiles.has_scalings(next, tile)) {
        next_scaled_stage ^= 1;
        find_scalings<Tiles>(task, memory.rule, next, memory.scalings[next_scaled_stage]);
      }
    }
    if (tile.vector >= 0) {
      const Scaling* scalings = memory.scalings[scaled_stage] + Tiles::first_scaling();
#pragma unroll 1
      for (int number = 0; number < groups_of_thread; ++number) {
        StreamGroup group = tiles.read(tile, stages + stage * streaming_stage_elements, number);
        write_group(task, group, tile, scalings, memory);
      }
    }
    if (!has_next) break;
    tile = next;
    stage ^= 1;
    scaled_stage = next_scaled_stage;
  }
  __syncthreads();
}

// Rule of the selected candidate, which has `moduli` moduli; that of the task if moduli is 0.
__device__ StreamRule stream_rule(const SplitTask& task, const StreamRules& rules, int moduli) {
  if (moduli == 0) return {task.rule.slices, task.rule.sum_bits, task.rule.top_exponent};
  const int index = moduli - rules.selected.least;
  return {moduli, rules.sum_bits[index], rules.top_exponent[index]};
}

// Begins the kernel for candidates that share it. Returns false if none of them is selected; then the kernel
// must exit. Otherwise sets the number of moduli and waits for the kernels before it.
__device__ bool begin_selected(const SelectedModuli& selected, int& moduli) {
  launch_dependents();
  moduli = selected_moduli(selected);
  if (moduli == 0) {
    exit_in_stream_order();
    return false;
  }
  grid_dependency_wait();
  return true;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(streaming_threads, streaming_blocks)
    split_streaming_double_wide_residues(const __grid_constant__ SplitTasks tasks,
                                         const __grid_constant__ StreamRules rules) {
  extern __shared__ __align__(sizeof(uint4)) unsigned char dynamic_memory[];
  __shared__ StreamMemory memory;
  int moduli = 0;
  const bool shares = rules.selected.selection != nullptr;
  if (shares ? !begin_selected(rules.selected, moduli) : !begin_split(tasks)) return;
  auto* stages = reinterpret_cast<double*>(dynamic_memory);
  memory.weights.fill();
  std::uint32_t first = blockIdx.x;
#pragma unroll 1
  for (const SplitTask& task : tasks.task) {
    if (task.blocks == 0) break;
    if (threadIdx.x == 0) memory.rule = stream_rule(task, rules, moduli);
    __syncthreads();
    if (task.matrix.column_stride == 1) {
      stream_operand<TilesOfRows>(task, first, gridDim.x, stages, memory);
    } else {
      stream_operand<TilesOfColumns>(task, first, gridDim.x, stages, memory);
    }
    // The first of the next operand's tiles follows the last of this one's.
    first = (first + gridDim.x - static_cast<std::uint32_t>(task.blocks) % gridDim.x) % gridDim.x;
  }
}

}  // namespace kintsugi::core::cuda

// Splits FP64 operands with known ranges into residues of integers of up to 93 bits. Thread blocks go through
// tiles of the operand: while they write the slices of one tile, the next one is copied to shared memory.
// They exchange nothing, because a vector's scaling follows from its known range. Candidates of different
// numbers of moduli may share a launch.
#include "arith/residue/rounding_errors.hpp"
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/ptx/mma.cuh"
#include "engines/cuda/split/elements.cuh"
#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda {

// Tiles of operands that stream through shared memory: their order, their copies to shared memory, and reads
// of a thread's elements.

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

// Residues of integers of twelve digits by tensor cores (mma.sync): each lane of a warp has eight elements of
// a vector, and gets their residues.
//
// One instruction multiplies the digits of two elements of each lane by the weights of two moduli. Lane 4 g +
// j holds the j-th four of 16 bytes of rows g and g + 8 of the first factor, and again of the next 16 bytes:
// its two elements' digits 0 ... 3 and 4 ... 7. Columns 2 j and 2 j + 1 of the second factor have weights in
// the bytes of lane j, and zeros in those of the other lanes. Lane 4 g + j gets these two columns of rows g
// and g + 8: the sums of its own elements. So no lane needs another lane's digits or sums. A second
// instruction adds the products of digits 8 ... 11.

inline constexpr int elements_of_lane = 8;

// Weights of pairs of moduli as the lanes of a warp hold them, in shared memory.
class WeightsOfPairs {
 public:
  // All threads of the thread block must call this together, and wait for each other before they read.
  __device__ void fill() {
    for (int i = static_cast<int>(threadIdx.x); i < pairs * 32; i += static_cast<int>(blockDim.x)) {
      const int lane = i % 32;
      const int column = lane / 4;
      const WideFloatModulus& modulus = modulus_table.wide_moduli[i / 32 * 2 + column % 2];
      words_[i / 32][lane] =
          column / 2 == lane % 4 ? uint4{modulus.eight.low, modulus.eight.high, modulus.top, 0} : uint4{};
    }
  }
  // Weights for digits 0 ... 3, 4 ... 7 and 8 ... 11. Lane 4 n + j holds those in column n for the bytes of
  // lane j.
  __device__ uint4 of_lane(int pair) const { return words_[pair][threadIdx.x % 32]; }

 private:
  static constexpr int pairs = streaming_moduli / 2;
  uint4 words_[pairs][32];
};

// Adds to `sums` the product of 16 rows and 8 columns over 16 inner indices; elements are signed bytes.
__device__ inline void add_signed_bytes(std::int32_t (&sums)[4], const std::uint32_t (&a)[2],
                                        std::uint32_t b) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
}

// Stores the low byte of each integer if the condition holds, without a branch: after one the compiler would
// not let products of the next moduli begin early.
__device__ __forceinline__ void store_bytes_if(bool condition, std::byte* target,
                                               const std::uint32_t (&integers)[elements_of_lane]) {
  const std::uint32_t low = low_bytes({integers[0], integers[1], integers[2], integers[3]});
  const std::uint32_t high = low_bytes({integers[4], integers[5], integers[6], integers[7]});
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %0, 0;\n@p st.global.v2.b32 [%1], {%2, %3};\n}" ::"r"(
                   condition ? 1 : 0),
               "l"(target), "r"(low), "r"(high));
}

// Writes the lane's residues modulo moduli t and t + 1, those modulo t + 1 only if `writes_second` is true.
template <int t>
__device__ __forceinline__ void write_residue_pair(const WideByteDigits (&digits)[elements_of_lane],
                                                   const uint4& weights, std::byte* target,
                                                   std::int64_t slice_stride, bool writes_first,
                                                   bool writes_second) {
  constexpr FloatModulus pair[2] = {known_modulus<WideByteDigits, t>().eight,
                                    known_modulus<WideByteDigits, t + 1>().eight};
  constexpr std::int32_t start[4] = {pair[0].start, pair[1].start, pair[0].start, pair[1].start};
  std::uint32_t residues[2][elements_of_lane];
#pragma unroll
  for (int i = 0; i < elements_of_lane; i += 2) {
    const WideByteDigits& first = digits[i];
    const WideByteDigits& second = digits[i + 1];
    std::int32_t sums[4];  // of the first element for both moduli, then of the second
    mma_signed_bytes(sums, {first.low.low, second.low.low, first.low.high, second.low.high},
                     {weights.x, weights.y}, start);
    add_signed_bytes(sums, {first.top, second.top}, weights.z);
#pragma unroll
    for (int j = 0; j < 4; ++j) residues[j % 2][i + j / 2] = residue_by_float(sums[j], pair[j % 2]);
  }
  store_bytes_if(writes_first, target, residues[0]);
  store_bytes_if(writes_second, target + slice_stride, residues[1]);
}

// Writes the slices of the lane's elements from `target` on, if `writes` is true. All lanes of the warp must
// call it together. Instructions for `pairs` pairs of moduli have their constants; there are at most so many.
template <int... pairs>
__device__ __forceinline__ void write_residue_pairs(std::integer_sequence<int, pairs...>,
                                                    const WideByteDigits (&digits)[elements_of_lane],
                                                    const WeightsOfPairs& weights, int slices,
                                                    std::int64_t slice_stride, std::byte* target,
                                                    bool writes) {
  const auto write = [&]<int pair>(std::integral_constant<int, pair>) {
    constexpr int t = 2 * pair;
    if (t >= slices) return false;
    write_residue_pair<t>(digits, weights.of_lane(pair), target, slice_stride, writes,
                          writes && t + 1 < slices);
    target += 2 * slice_stride;
    return true;
  };
  (write(std::integral_constant<int, pairs>{}) && ...);
}

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
    split_f64_wide_residues_streaming(const __grid_constant__ SplitTasks tasks,
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

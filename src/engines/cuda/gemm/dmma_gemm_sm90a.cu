// FP64 and complex FP64 products on tensor cores, for device matrices of any layout. Sums are FP64, rounded
// to nearest. Their order depends on k alone; so the bits depend neither on tiles nor on layouts.
//
// Four producer warps copy operands into the pipeline's stages; the other warps multiply. A thread block
// computes tiles blockIdx.x, blockIdx.x + gridDim.x and so on of one batch item. While it writes the sums of
// a tile, it copies the operands of the next one.
#include "engines/cuda/gemm/dmma_sm90.cuh"
#include "engines/cuda/ptx/barriers.cuh"
#include "engines/cuda/ptx/griddepcontrol.cuh"

namespace kintsugi::core::cuda {

namespace {

// Pipeline stages in shared memory, and their barriers. A stage has k_tiles k-tiles of A and of B.
template <DmmaConfig Config>
struct Stages {
  static constexpr std::uint32_t k_tile_bytes = (Config.rows + Config.columns) * dmma_line_bytes;
  static constexpr std::uint32_t stage_bytes = k_tile_bytes * Config.k_tiles;
  static constexpr std::uint32_t b_bytes = Config.rows * dmma_line_bytes;  // offset of B in a k-tile

  unsigned char bytes[Config.stages * stage_bytes];
  Mbarrier full[Config.stages];
  Mbarrier empty[Config.stages];
};

// Pipeline state: stage index and mbarrier phase.
template <DmmaConfig Config>
struct PipelineState {
  int stage = 0;
  unsigned parity = 0;

  __device__ void advance() {
    if (++stage == Config.stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// Operands of the matrix unit for a region of C. `a` gives the unit's rows, `b` its columns. If the task is
// swapped, `a` is B, `b` is A, and `c` is the transpose of C.
template <class T>
struct DmmaProblem {
  MatrixView<const T> a;  // vectors x k
  MatrixView<const T> b;
  MatrixView<T> c;

  __device__ explicit DmmaProblem(const DmmaTask& task) {
    const DeviceTile& tile = task.tile;
    a = view_of<const T>(tile.a.matrix, tile.a.item + blockIdx.y)
            .block(tile.first_row, 0, tile.rows, k(task));
    b = view_of<const T>(tile.b.matrix, tile.b.item + blockIdx.y)
            .block(tile.first_column, 0, tile.columns, k(task));
    c = view_of<T>(tile.c, tile.item + blockIdx.y)
            .block(tile.first_row, tile.first_column, tile.rows, tile.columns);
    if (!task.swapped) return;
    const MatrixView<const T> a_as_called = a;
    a = b;
    b = a_as_called;
    c = {c.data, c.columns, c.rows, c.column_stride, c.row_stride, c.space};
  }
  __device__ static std::int64_t k(const DmmaTask& task) { return task.tile.a.matrix.columns; }
};

// First row and column of tile `index`. Tiles are counted column by column within groups of 1024 rows. So
// tiles that are computed at the same time share operands, which stay in L2.
template <DmmaConfig Config>
__device__ Position tile_position(const DmmaTask& task, int index) {
  constexpr int group = 1024 / Config.rows;  // number of rows of tiles in a group
  const int tiles_in_group = group * task.column_tiles;
  const int first_row = index / tiles_in_group * group;  // index of a row of tiles
  const int rows = min(task.row_tiles - first_row, group);
  const int index_in_group = index % tiles_in_group;
  return {(first_row + index_in_group % rows) * Config.rows, index_in_group / rows * Config.columns};
}

// Work of a thread block. Its producer warps call produce(), its consumer warps call consume().
template <class T, DmmaConfig Config, bool AlongK>
class DmmaBlock {
 public:
  using Tile = WarpTile<T, Config.warp_rows, Config.warp_columns, AlongK>;
  using Buffers = Stages<Config>;

  __device__ DmmaBlock(const DmmaTask& task, Buffers& buffers)
      : task_(task), buffers_(buffers), problem_(task), tiles_(task.row_tiles * task.column_tiles),
        steps_(static_cast<int>(divide_up(DmmaProblem<T>::k(task), dmma_depth<T> * Config.k_tiles))) {}

  // Initializes the barriers. All threads must call it together.
  __device__ static void initialise(Buffers& buffers) {
    if (threadIdx.x == 0) {
      for (int s = 0; s < Config.stages; ++s) {
        buffers.full[s].initialise(dmma_producers);
        buffers.empty[s].initialise(Config.consumer_warps());
      }
    }
    __syncthreads();
  }

  // Copies the operands of all tiles of the thread block.
  __device__ void produce() const {
    constexpr int depth = dmma_depth<T>;
    const int thread = static_cast<int>(threadIdx.x) - Config.consumer_warps() * warp_size;
    PipelineState<Config> state;
#pragma unroll 1
    for (int index = static_cast<int>(blockIdx.x); index < tiles_; index += static_cast<int>(gridDim.x)) {
      const Position first = tile_position<Config>(task_, index);
      OperandCopies<T, Config.rows, Tile::a_along_k> a(problem_.a, first.row, thread);
      OperandCopies<T, Config.columns, AlongK> b(problem_.b, first.column, thread);
      std::int64_t k_left = DmmaProblem<T>::k(task_);
#pragma unroll 1
      for (int step = 0; step < steps_; ++step) {
        buffers_.empty[state.stage].wait(state.parity ^ 1);
        std::uint32_t k_tile = shared_address(buffers_.bytes) + state.stage * Buffers::stage_bytes;
#pragma unroll 1
        for (int p = 0; p < Config.k_tiles; ++p, k_tile += Buffers::k_tile_bytes, k_left -= depth) {
          copy(a, k_tile, k_left);
          copy(b, k_tile + Buffers::b_bytes, k_left);
        }
        buffers_.full[state.stage].arrive_after_copies();
        state.advance();
      }
    }
    await_copies();
  }

  // Computes the warp's part of all tiles of the thread block.
  __device__ void consume() const {
    const int warp = static_cast<int>(threadIdx.x) / warp_size;
    constexpr int warps_along_rows = Config.rows / Config.warp_rows;
    const Position warp_tile{warp % warps_along_rows * Config.warp_rows,
                             warp / warps_along_rows * Config.warp_columns};
    Tile sums(buffers_.bytes, buffers_.bytes + Buffers::b_bytes, warp_tile.row, warp_tile.column);
    if constexpr (is_complex<T>)
      sums.set_conjugation(task_.tile.a.matrix.conjugated, task_.tile.b.matrix.conjugated);
    PipelineState<Config> state;
#pragma unroll 1
    for (int index = static_cast<int>(blockIdx.x); index < tiles_; index += static_cast<int>(gridDim.x)) {
      sums.clear();
      if (steps_ > 0) sum_up(sums, state);
      const Position first = tile_position<Config>(task_, index);
      write(sums, first.row + warp_tile.row, first.column + warp_tile.column);
    }
  }

 private:
  // Copies the next k-tile of an operand. `k_left` is the number of inner indices that are left.
  template <class Copies>
  __device__ static void copy(Copies& copies, std::uint32_t target, std::int64_t k_left) {
    if (copies.is_whole() && k_left >= dmma_depth<T>) {
      copies.template copy</*Whole=*/true>(target, dmma_depth<T>);
    } else {
      copies.template copy</*Whole=*/false>(target,
                                            static_cast<int>(std::min<std::int64_t>(k_left, dmma_depth<T>)));
    }
  }

  // Multiplies all k-tiles of a tile of C. Each fragment is loaded while the one before it is multiplied. A
  // fragment has half of a k-tile's inner indices, a k-half. A pipeline stage has `k_halves` fragments for
  // each of A's `rows` rows of fragments. They are multiplied k-half by k-half, and row by row within a
  // k-half; q counts them.
  __device__ void sum_up(Tile& sums, PipelineState<Config>& state) const {
    constexpr int rows = Tile::row_fragments;
    constexpr int k_halves = 2 * Config.k_tiles;
    buffers_.full[state.stage].wait(state.parity);
    load_b(sums, state.stage, /*k_half=*/0);
    load_a(sums, state.stage, /*q=*/0, /*k_half=*/0, /*row=*/0);
#pragma unroll 1
    for (int step = 1; step <= steps_; ++step) {
#pragma unroll
      for (int q = 0; q < rows * k_halves; ++q) {
        const int k_half = q / rows;
        const int row = q % rows;
        const int next = q + 1;
        if (next < rows * k_halves) {
          const int next_k_half = next / rows;
          if (row == 0 && k_half + 1 < k_halves) load_b(sums, state.stage, k_half + 1);
          load_a(sums, state.stage, next, next_k_half, next % rows);
        } else {
          __syncwarp();
          if (threadIdx.x % warp_size == 0) buffers_.empty[state.stage].arrive();
          state.advance();
          if (step < steps_) {
            buffers_.full[state.stage].wait(state.parity);
            load_b(sums, state.stage, /*k_half=*/0);
            load_a(sums, state.stage, /*q=*/0, /*k_half=*/0, /*row=*/0);
          }
        }
        sums.multiply(row, q % 2, k_half % 2);
      }
    }
  }
  // Loads all fragments of B in a k-half of a stage into one of two register buffers, which alternate by
  // k-half.
  __device__ static void load_b(Tile& sums, int stage, int k_half) {
    sums.load_b(k_half % 2, k_tile_offset(stage, k_half / 2), k_half % 2);
  }
  // Loads the fragment of A in a row and a k-half of a stage, the q-th of the stage, into one of two register
  // buffers, which alternate by q.
  __device__ static void load_a(Tile& sums, int stage, int q, int k_half, int row) {
    sums.load_a(q % 2, k_tile_offset(stage, k_half / 2), k_half % 2, row);
  }
  __device__ static std::uint32_t k_tile_offset(int stage, int k_tile) {
    return stage * Buffers::stage_bytes + k_tile * Buffers::k_tile_bytes;
  }

  // Writes the elements of the warp's tile, which begins at (row, column) of problem_.c.
  __device__ void write(const Tile& sums, std::int64_t row, std::int64_t column) const {
    const std::int64_t rows = std::min<std::int64_t>(Config.warp_rows, problem_.c.rows - row);
    const std::int64_t columns = std::min<std::int64_t>(Config.warp_columns, problem_.c.columns - column);
    if (rows <= 0 || columns <= 0) return;
    const Scalars<T> scalars(task_.tile.scalars);
    const MatrixView<T> c = problem_.c.block(row, column, rows, columns);
    const bool adds_c = scalars.beta != T(0);
    T* first_of_column = &c(Tile::row(0, 0), Tile::column(0, 0));
    const std::int64_t next_row = (Tile::row(0, 2) - Tile::row(0, 0)) * c.row_stride;
    const std::int64_t next_column = (Tile::column(0, 1) - Tile::column(0, 0)) * c.column_stride;
#pragma unroll
    for (int j = 0; j < Tile::column_fragments; ++j, first_of_column += 8 * c.column_stride) {
      T* element = first_of_column;
#pragma unroll
      for (int i = 0; i < Tile::row_fragments; ++i, element += 16 * c.row_stride) {
        asm volatile(""
                     : "+l"(element));  // keeps the compiler from computing addresses ahead, into registers
        T* const elements[4] = {element, element + next_column, element + next_row,
                                element + next_row + next_column};
        constexpr bool reads_ahead = !is_complex<T>;  // complex elements have too few registers for it
        T old[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (reads_ahead && adds_c && exists(c, i, j, e)) old[e] = *elements[e];
        }
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (!exists(c, i, j, e)) continue;
          if (!reads_ahead && adds_c) old[e] = *elements[e];
          const T product = times(scalars.alpha, sums.sum(i, j, e));
          *elements[e] = adds_c ? product + times(scalars.beta, old[e]) : product;
        }
      }
    }
  }
  // True if element e of fragment (i, j) is inside C.
  __device__ static bool exists(const MatrixView<T>& c, int i, int j, int e) {
    return Tile::row(i, e) < c.rows && Tile::column(j, e) < c.columns;
  }

  const DmmaTask& task_;
  Buffers& buffers_;
  DmmaProblem<T> problem_;
  int tiles_;  // number of tiles of the batch item
  int steps_;  // number of pipeline stages that the k of a tile fills
};

// Writes every tile of the thread block without a product; needs_no_product() must be true.
template <class T, DmmaConfig Config>
__device__ void write_tiles_without_product(const DmmaTask& task) {
  const Scalars<T> scalars(task.tile.scalars);
  const MatrixView<T> c = DmmaProblem<T>(task).c;
  for (int index = static_cast<int>(blockIdx.x); index < task.row_tiles * task.column_tiles;
       index += static_cast<int>(gridDim.x)) {
    const Position first = tile_position<Config>(task, index);
    const std::int64_t rows = std::min<std::int64_t>(Config.rows, c.rows - first.row);
    const std::int64_t columns = std::min<std::int64_t>(Config.columns, c.columns - first.column);
    write_without_product(task.tile.condition, scalars, c.block(first.row, first.column, rows, columns),
                          Config.threads());
  }
}

// Computes the tiles of the thread block. `AlongK` is the form in which shared memory stores the operand of
// the matrix unit's columns (dmma_sm90.cuh).
template <class T, DmmaConfig Config, bool AlongK>
__device__ void multiply_tiles(const DmmaTask& task) {
  const DeviceCondition& condition = task.tile.condition;
  launch_dependents();
  if (condition.selected_earlier && !holds(condition, blockIdx.y)) return exit_in_stream_order();
  grid_dependency_wait();
  if (!holds(condition, blockIdx.y)) return;
  if (needs_no_product(condition, Scalars<T>(task.tile.scalars)))
    return write_tiles_without_product<T, Config>(task);
  extern __shared__ __align__(128) unsigned char memory[];
  using Block = DmmaBlock<T, Config, AlongK>;
  auto& buffers = *reinterpret_cast<Stages<Config>*>(memory);
  Block::initialise(buffers);
  const Block block(task, buffers);
  constexpr int registers = Config.consumer_registers;
  constexpr int producer_registers = Config.producer_registers();
  // Registers per thread at the launch, summed over the warps: of a thread block of 8 + 4 warps, or of 4 + 4.
  constexpr int launch_registers = Config.consumer_warps() == 8 ? 168 * 12 : 128 * 8;
  static_assert(registers == 0 ||
                registers * Config.consumer_warps() + producer_registers * dmma_producer_warps <=
                    launch_registers);
  if (threadIdx.x >= Config.consumer_warps() * warp_size) {
    if constexpr (registers > 0)
      asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(producer_registers));
    block.produce();
  } else {
    if constexpr (registers > 0) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
    block.consume();
  }
}

constexpr bool along_k = true;
constexpr bool in_panels = false;

}  // namespace

// `blocks` is the least number of thread blocks per SM. The last argument is AlongK of multiply_tiles().
#define KINTSUGI_DMMA(name, T, config, blocks, storage)                    \
  extern "C" __global__ void __launch_bounds__((config).threads(), blocks) \
      name(const __grid_constant__ DmmaTask task) {                        \
    multiply_tiles<T, config, storage>(task);                              \
  }
KINTSUGI_DMMA(dmma_f64_128x128_k, double, dmma_configs_f64[0], 1, along_k)
KINTSUGI_DMMA(dmma_f64_128x64_k, double, dmma_configs_f64[1], 1, along_k)
KINTSUGI_DMMA(dmma_f64_64x64_k, double, dmma_configs_f64[2], 2, along_k)
KINTSUGI_DMMA(dmma_f64_32x32_k, double, dmma_configs_f64[3], 2, along_k)
KINTSUGI_DMMA(dmma_f64_128x128_n, double, dmma_configs_f64[0], 1, in_panels)
KINTSUGI_DMMA(dmma_f64_128x64_n, double, dmma_configs_f64[1], 1, in_panels)
KINTSUGI_DMMA(dmma_f64_64x64_n, double, dmma_configs_f64[2], 2, in_panels)
KINTSUGI_DMMA(dmma_f64_32x32_n, double, dmma_configs_f64[3], 2, in_panels)
KINTSUGI_DMMA(dmma_c64_128x64, Complex<double>, dmma_configs_c64[0], 1, along_k)
KINTSUGI_DMMA(dmma_c64_64x32, Complex<double>, dmma_configs_c64[1], 2, along_k)
KINTSUGI_DMMA(dmma_c64_32x32, Complex<double>, dmma_configs_c64[2], 2, along_k)
#undef KINTSUGI_DMMA

}  // namespace kintsugi::core::cuda

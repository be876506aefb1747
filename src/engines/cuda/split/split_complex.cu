// Splits of complex operands into residues of complex elements. The ranges are known. A thread block reads
// its vectors tile by tile.
#include <utility>

#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/split/elements.cuh"
#include "engines/cuda/split/integer_elements.hpp"
#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda {

namespace {

constexpr int moduli_count = residue_detail::complex_moduli.count;

struct ComplexModulusTable {
  ComplexFloatModulus float_moduli[moduli_count];
  ComplexByteModulus moduli[moduli_count];
};

__constant__ constexpr ComplexModulusTable complex_modulus_table = [] {
  ComplexModulusTable table{};
  for (int t = 0; t < moduli_count; ++t) {
    table.moduli[t] = complex_byte_modulus(residue_detail::complex_moduli.all[t],
                                           residue_detail::complex_constants.roots[t]);
    table.float_moduli[t] = complex_float_modulus(table.moduli[t]);
  }
  return table;
}();

// Constants of modulus `index` for integers with digits of type Digits.
template <class Digits>
__device__ const auto& complex_modulus(int index) {
  if constexpr (std::is_same_v<Digits, ByteDigits>) {
    return complex_modulus_table.float_moduli[index];
  } else {
    return complex_modulus_table.moduli[index];
  }
}

constexpr int elements_per_thread = 8;
constexpr int lanes_of_vector = complex_tile_length / elements_per_thread;
static_assert(lanes_of_vector * complex_tile_vectors == tile_threads);

// Layout of a tile in shared memory. Elements that follow each other in the operand do so in the tile, so
// that whole lines are copied. Every eight elements of a vector are followed by padding, and so is every
// vector that is contiguous: then neither copies nor reads of a warp meet in one bank.
struct TileLayout {
  __device__ explicit TileLayout(const DeviceMatrix& matrix)
      : along_k(abs(matrix.column_stride) <= abs(matrix.row_stride)) {}

  __device__ int offset(int v, int p) const {
    const int element = along_k ? v * complex_tile_pitch + p : v + p * complex_tile_vectors;
    return element + p / elements_per_thread;
  }
  // Distance from one element of a group of eight to the next.
  __device__ int step() const { return along_k ? 1 : complex_tile_vectors; }

  bool along_k;
};

// A tile in shared memory.
template <class Source>
struct Tile {
  Source elements[complex_tile_elements][2];
};

// First vector and first element of a tile.
struct TilePosition {
  int vector;
  int element;
};

// Copies an element to shared memory, or writes zeros.
template <class Source>
__device__ void copy_element(Source (&element)[2], const Source* source, bool is_aligned, bool exists) {
  const auto target = static_cast<std::uint32_t>(__cvta_generic_to_shared(&element));
  if constexpr (sizeof(Source) == 8) {
    if (is_aligned) return copy_16_bytes(target, source, exists);
    copy_8_bytes(target, source, exists);
    copy_8_bytes(target + 8, source + 1, exists);
  } else {
    if (is_aligned) return copy_8_bytes(target, source, exists);
    copy_4_bytes(target, source, exists);
    copy_4_bytes(target + 4, source + 1, exists);
  }
}

// Copies of a tile that a thread starts: elements_per_thread of them, each `step` elements from the one
// before. Neighboring threads copy along the smaller stride.
template <class Source>
struct TileCopies {
  static constexpr int length = complex_tile_length;
  static constexpr int vectors = complex_tile_vectors;
  static constexpr int vectors_step = tile_threads / length;  // from one copy of a thread to the next
  static constexpr int elements_step = tile_threads / vectors;
  static_assert(elements_step % elements_per_thread == 0);

  __device__ explicit TileCopies(const DeviceMatrix& matrix)
      : layout(matrix), v(static_cast<int>(layout.along_k ? threadIdx.x / length : threadIdx.x % vectors)),
        p(static_cast<int>(layout.along_k ? threadIdx.x % length : threadIdx.x / vectors)),
        step(layout.along_k ? vectors_step * matrix.row_stride : elements_step * matrix.column_stride),
        tile_step(layout.along_k ? layout.offset(vectors_step, 0) : layout.offset(0, elements_step)) {}

  // Number of copies whose elements exist, if the operand has so many vectors and elements from the tile on.
  __device__ int existing(std::int64_t existing_vectors, std::int64_t elements) const {
    if (existing_vectors <= v || elements <= p) return 0;
    return static_cast<int>(layout.along_k
                                ? divide_up(min(existing_vectors - v, complex_tile_vectors), vectors_step)
                                : divide_up(min(elements - p, complex_tile_length), elements_step));
  }

  TileLayout layout;
  int v;  // of the first copy
  int p;
  std::int64_t step;
  int tile_step;  // in shared memory
};

// Starts copies of a tile to shared memory, with zeros beyond the operand.
template <class Source>
__device__ void start_loading(const SplitTask& task, const TilePosition& position, Tile<Source>& tile) {
  const DeviceMatrix& matrix = task.matrix;
  const Source* start = reinterpret_cast<const Source*>(
      matrix_start<std::complex<Source>>(matrix, task.item + item_of_block()));
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(start) % (2 * sizeof(Source)) == 0;
  const TileCopies<Source> copies(matrix);
  const std::int64_t first = (task.first + position.vector + copies.v) * matrix.row_stride +
                             (position.element + copies.p) * matrix.column_stride;
  const std::int64_t vectors = task.vectors - position.vector;
  const std::int64_t elements = task.length - position.element;
  const Source* source = start + 2 * first;
  auto* target = &tile.elements[copies.layout.offset(copies.v, copies.p)];
  if (is_aligned && vectors >= complex_tile_vectors && elements >= complex_tile_length) {
#pragma unroll
    for (int i = 0; i < elements_per_thread; ++i, source += 2 * copies.step, target += copies.tile_step)
      copy_element(*target, source, /*is_aligned=*/true, /*exists=*/true);
    return;
  }
  const int count = copies.existing(vectors, elements);
#pragma unroll 1
  for (int i = 0; i < elements_per_thread; ++i, source += 2 * copies.step, target += copies.tile_step)
    copy_element(*target, i < count ? source : start, is_aligned, i < count);
}

// Digits of the scaled parts of the thread's elements: real parts, then imaginary ones.
template <class Digits>
using ElementDigits = Digits[2][elements_per_thread];

// Reads the thread's elements. NaN and infinities become zero.
template <class Digits, class Source>
__device__ void read_digits(const Tile<Source>& tile, int v, int p, const DeviceMatrix& matrix,
                            const Scaling& scaling, ElementDigits<Digits>& digits) {
  const TileLayout layout(matrix);
  const auto* element = &tile.elements[layout.offset(v, p)];
  const auto finite = [](Source x) { return x - x == 0 ? x : Source(0); };
#pragma unroll
  for (int i = 0; i < elements_per_thread; ++i, element += layout.step()) {
    const Source im = (*element)[1];
    const Source parts[2] = {finite((*element)[0]), finite(matrix.conjugated ? -im : im)};
    Digits of_element[2];
    to_digits(scaling, parts, of_element);
    digits[0][i] = of_element[0];
    digits[1][i] = of_element[1];
  }
}

// Finds the scalings of a tile's rows or columns of complex elements. Stores their scales in the ranges of
// all real vectors that stand for them (base/embedding.hpp), if they begin in the tile. The function is not
// inlined, since few tiles need it.
__device__ __noinline__ void find_scalings(const SplitTask& task, const TilePosition& tile,
                                           Scaling* scalings) {
  const int v = static_cast<int>(threadIdx.x);
  const std::int64_t vector = tile.vector + v;
  if (v >= complex_tile_vectors || vector >= task.vectors) return;
  const std::int64_t real_vectors = task.matrix.right ? 2 : 1;
  const bool stores = tile.element == 0;
  if (stores && real_vectors == 2) finish_range(task, task.kind, 2 * vector + 1, {});
  scalings[v] = finish_range(task, task.kind, real_vectors * vector, {}, stores);
}

// Writes the slices of a modulus: two if it has a root of -1, else three. Its constants become part of the
// instructions if `modulus` is known when they are compiled.
template <bool has_root, class Modulus, class Digits>
__device__ __forceinline__ void write_modulus(const Modulus& modulus, const ElementDigits<Digits>& digits,
                                              std::int64_t slice_stride, std::byte* target) {
  constexpr int slices = has_root ? 2 : 3;
  std::uint32_t integers[3][elements_per_thread];
#pragma unroll
  for (int i = 0; i < elements_per_thread; ++i) {
    std::uint32_t residues[3];
    complex_residues(digits[0][i], digits[1][i], modulus, has_root, residues);
#pragma unroll
    for (int s = 0; s < slices; ++s) integers[s][i] = residues[s];
  }
#pragma unroll
  for (int s = 0; s < slices; ++s) store_bytes(target + s * slice_stride, integers[s]);
}

// Writes the slices of the first `count` moduli, all of which have a root of -1.
template <int... index>
__device__ __forceinline__ void write_first_moduli(std::integer_sequence<int, index...>, int count,
                                                   const ElementDigits<ByteDigits>& digits,
                                                   std::int64_t slice_stride, std::byte* target) {
  const auto write = [&]<int t>(std::integral_constant<int, t>) {
    if (t >= count) return false;
    constexpr ComplexFloatModulus modulus = complex_float_modulus(complex_byte_modulus(
        residue_detail::complex_moduli.all[t], residue_detail::complex_constants.roots[t]));
    constexpr bool has_root = true;
    write_modulus<has_root>(modulus, digits, slice_stride, target);
    target += 2 * slice_stride;
    return true;
  };
  (write(std::integral_constant<int, index>{}) && ...);
}

// Writes all slices of the thread's elements.
template <class Digits>
__device__ void write_elements(const SplitTask& task, const ElementDigits<Digits>& digits,
                               std::int64_t offset) {
  constexpr int unrolled_moduli = residue_detail::complex_moduli.with_root;
  const ComplexBasis& basis = task.rule.complex_basis;
  std::byte* target = slices_of(task) + offset;
  if constexpr (std::is_same_v<Digits, ByteDigits>) {
    write_first_moduli(std::make_integer_sequence<int, unrolled_moduli>{}, basis.with_root, digits,
                       task.slice_stride, target);
    target += 2 * basis.with_root * task.slice_stride;
  } else {
#pragma unroll 1
    for (int t = 0; t < basis.with_root; ++t, target += 2 * task.slice_stride)
      write_modulus</*has_root=*/true>(complex_modulus<Digits>(basis.modulus_index(t)), digits,
                                       task.slice_stride, target);
  }
#pragma unroll 1
  for (int t = basis.with_root; t < basis.count(); ++t, target += 3 * task.slice_stride)
    write_modulus</*has_root=*/false>(complex_modulus<Digits>(basis.modulus_index(t)), digits,
                                      task.slice_stride, target);
}

// Writes the slices of the thread's elements of a tile.
template <class Digits, class Source>
__device__ __forceinline__ void split_tile(const SplitTask& task, const TilePosition& position,
                                           Tile<Source>& tile, const Scaling* scalings) {
  const int v = static_cast<int>(threadIdx.x) / lanes_of_vector;
  const int p = static_cast<int>(threadIdx.x) % lanes_of_vector * elements_per_thread;
  const std::int64_t vector = position.vector + v;
  const std::int64_t offset = vector * task.vector_stride + position.element + p;
  if (position.element + p >= task.vector_stride) return;  // the vectors end within the tile
  if (vector >= task.vectors) return write_zeros<elements_per_thread>(task, offset);
  ElementDigits<Digits> digits;
  read_digits(tile, v, p, task.matrix, scalings[v], digits);
  write_elements<Digits>(task, digits, offset);
}

// Position of a tile. Tiles of the same vectors follow each other.
__device__ TilePosition position_of(const SplitTask& task, std::uint32_t tile) {
  const auto tiles_of_vectors =
      static_cast<std::uint32_t>((task.vector_stride + complex_tile_length - 1) / complex_tile_length);
  const std::uint32_t vectors = tile / tiles_of_vectors;
  return {static_cast<int>(vectors * complex_tile_vectors),
          static_cast<int>((tile - vectors * tiles_of_vectors) * complex_tile_length)};
}

// Splits every gridDim.x-th tile. While a tile is split, the next one is copied.
template <class Digits, class Source>
__device__ void split_tiles(const SplitTask& task, Tile<Source>* tiles,
                            Scaling (&scalings)[2][complex_tile_vectors]) {
  TilePosition tile{.vector = -1, .element = 0};
  int current = 0;
  int scaled = 0;  // index of the scalings of the present tile
#pragma unroll 1
  for (std::uint32_t i = blockIdx.x;; i += gridDim.x) {
    await_copies();
    __syncthreads();  // all copies of this tile are complete, and all reads of the tile before
    const bool has_next = i < task.blocks;
    TilePosition next{};
    int next_scaled = scaled;
    if (has_next) {
      next = position_of(task, i);
      start_loading(task, next, tiles[current ^ 1]);
      if (next.vector != tile.vector) {
        next_scaled ^= 1;
        find_scalings(task, next, scalings[next_scaled]);
      }
    }
    if (tile.vector >= 0) split_tile<Digits>(task, tile, tiles[current], scalings[scaled]);
    if (!has_next) break;
    tile = next;
    current ^= 1;
    scaled = next_scaled;
  }
}

template <class Source>
__device__ void split_complex(const SplitTasks& tasks) {
  if (!begin_split(tasks)) return;
  extern __shared__ __align__(sizeof(uint4)) unsigned char memory[];
  __shared__ Scaling scalings[2][complex_tile_vectors];
  auto* tiles = reinterpret_cast<Tile<Source>*>(memory);
  const SplitTask& task = tasks.task[0];
  if (task.kind == ElementKind::wide_residues) {
    split_tiles<WideByteDigits>(task, tiles, scalings);
  } else {
    split_tiles<ByteDigits>(task, tiles, scalings);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(tile_threads, complex_tiles_blocks)
    split_c32_tiles(const __grid_constant__ SplitTasks tasks) {
  split_complex<float>(tasks);
}

extern "C" __global__ void __launch_bounds__(tile_threads, complex_tiles_blocks)
    split_c64_tiles(const __grid_constant__ SplitTasks tasks) {
  split_complex<double>(tasks);
}

}  // namespace kintsugi::core::cuda

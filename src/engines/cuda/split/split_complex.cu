// Splits of complex operands into residues of complex elements. The ranges are known. A thread block reads
// its vectors tile by tile.
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/finish_range.cuh"
#include "engines/cuda/split/elements/complex_elements.hpp"
#include "engines/cuda/split/elements/elements.cuh"

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

constexpr int elements_per_thread = 4;
constexpr int lanes_of_vector = tile_length / elements_per_thread;
static_assert(lanes_of_vector * tile_vectors == tile_threads);

// A tile in shared memory, as it is in the operand. Every group of elements that a thread writes is followed
// by the room of one element, and so is every vector: then neither copies nor reads of a warp meet in one
// bank.
template <class Source>
struct Tile {
  static constexpr int pitch = lanes_of_vector * (elements_per_thread + 1) + 1;

  Source elements[tile_vectors][pitch][2];

  __device__ Source (&element(int v, int p))[2] { return elements[v][p + p / elements_per_thread]; }
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

// Starts copies of a tile to shared memory, with zeros beyond the operand. Neighboring threads copy along the
// smaller stride.
template <class Source>
__device__ void start_loading(const SplitTask& task, std::int64_t first_vector, std::int64_t first_element,
                              Tile<Source>& tile) {
  const DeviceMatrix& matrix = task.matrix;
  const Source* start = reinterpret_cast<const Source*>(
      matrix_start<std::complex<Source>>(matrix, task.item + item_of_block()));
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(start) % (2 * sizeof(Source)) == 0;
  const bool along_k = abs(matrix.column_stride) <= abs(matrix.row_stride);
#pragma unroll
  for (int i = 0; i < elements_per_thread; ++i) {
    const int e = static_cast<int>(threadIdx.x) + i * static_cast<int>(tile_threads);
    const int v = along_k ? e / tile_length : e % tile_vectors;
    const int p = along_k ? e % tile_length : e / tile_vectors;
    const bool exists = first_vector + v < task.vectors && first_element + p < task.length;
    const std::int64_t element =
        (task.first + first_vector + v) * matrix.row_stride + (first_element + p) * matrix.column_stride;
    copy_element(tile.element(v, p), start + (exists ? 2 * element : 0), is_aligned, exists);
  }
}

// Reads the parts of the thread's elements. NaN and infinities become zero.
template <class Source>
__device__ void read_elements(Tile<Source>& tile, int v, int p, bool conjugated,
                              Source (&parts)[2][elements_per_thread]) {
  const auto finite = [](Source x) { return x - x == 0 ? x : Source(0); };
#pragma unroll
  for (int i = 0; i < elements_per_thread; ++i) {
    const auto& element = tile.element(v, p + i);
    parts[0][i] = finite(element[0]);
    parts[1][i] = finite(conjugated ? -element[1] : element[1]);
  }
}

// Returns the scaling of a row or column of complex elements. Stores its scale in the ranges of all real
// vectors that stand for it (base/embedding.hpp).
__device__ Scaling finish_ranges(const SplitTask& task, ElementKind kind, std::int64_t vector) {
  const std::int64_t real_vectors = task.matrix.right ? 2 : 1;
  for (std::int64_t other = 1; other < real_vectors; ++other)
    finish_range(task, kind, real_vectors * vector + other, {});
  return finish_range(task, kind, real_vectors * vector, {});
}

// Writes all slices of the thread's elements: two for a modulus with a root of -1, three for a modulus
// without one.
template <class Digits, class Source>
__device__ void write_elements(const SplitTask& task, const Scaling& scaling, std::int64_t offset,
                               const Source (&parts)[2][elements_per_thread]) {
  Digits digits[2][elements_per_thread];
  to_digits(scaling, parts[0], digits[0]);
  to_digits(scaling, parts[1], digits[1]);
  const ComplexBasis& basis = task.rule.complex_basis;
  std::byte* target = slices_of(task) + offset;
  for (int t = 0; t < basis.count(); ++t) {
    const auto& modulus = complex_modulus<Digits>(basis.modulus_index(t));
    const bool has_root = basis.has_root(t);
    std::uint32_t integers[3][elements_per_thread];
#pragma unroll
    for (int i = 0; i < elements_per_thread; ++i) {
      std::uint32_t residues[3];
      complex_residues(digits[0][i], digits[1][i], modulus, has_root, residues);
#pragma unroll
      for (int s = 0; s < 3; ++s) integers[s][i] = residues[s];
    }
    store_bytes(target, integers[0]);
    store_bytes(target + task.slice_stride, integers[1]);
    if (!has_root) store_bytes(target + 2 * task.slice_stride, integers[2]);
    target += (has_root ? 2 : 3) * task.slice_stride;
  }
}

template <class Source, class Digits>
__device__ void split_complex(const SplitTasks& tasks, ElementKind kind) {
  if (!begin_split(tasks)) return;
  __shared__ __align__(sizeof(uint4)) Tile<Source> tiles[2];  // one is copied while the other is split
  __shared__ Scaling scalings[tile_vectors];
  std::int64_t block = blockIdx.x;
  const SplitTask& task = enter_task(tasks, block);
  const TilesPart part(task, block);
  const std::int64_t first_vector = part.first_vector;
  const int v = static_cast<int>(threadIdx.x) / lanes_of_vector;
  const int p = static_cast<int>(threadIdx.x) % lanes_of_vector * elements_per_thread;
  const std::int64_t vector = first_vector + v;
  start_loading(task, first_vector, part.begin, tiles[0]);
  commit_copies();
  if (p == 0 && vector < task.vectors) scalings[v] = finish_ranges(task, kind, vector);
  int current = 0;
  for (std::int64_t begin = part.begin; begin < part.end; begin += tile_length, current ^= 1) {
    if (begin + tile_length < part.end)
      start_loading(task, first_vector, begin + tile_length, tiles[current ^ 1]);
    commit_copies();
    await_copies_but<1>();
    __syncthreads();
    const std::int64_t offset = vector * task.vector_stride + begin + p;
    if (vector < task.vectors) {
      Source parts[2][elements_per_thread];
      read_elements(tiles[current], v, p, task.matrix.conjugated, parts);
      write_elements<Digits>(task, scalings[v], offset, parts);
    } else {
      write_zeros<elements_per_thread>(task, offset);
    }
    __syncthreads();
  }
}

}  // namespace

#define KINTSUGI_SPLIT_COMPLEX(Source, kind, Digits)                              \
  extern "C" __global__ void __launch_bounds__(tile_threads, 3)                   \
      split_complex_##Source##_##kind(const __grid_constant__ SplitTasks tasks) { \
    split_complex<Source, Digits>(tasks, ElementKind::kind);                      \
  }
KINTSUGI_SPLIT_COMPLEX(float, residues, ByteDigits)
KINTSUGI_SPLIT_COMPLEX(float, wide_residues, WideByteDigits)
KINTSUGI_SPLIT_COMPLEX(double, residues, ByteDigits)
KINTSUGI_SPLIT_COMPLEX(double, wide_residues, WideByteDigits)
#undef KINTSUGI_SPLIT_COMPLEX

}  // namespace kintsugi::core::cuda

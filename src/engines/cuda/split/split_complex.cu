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

// Constants of modulus `index` for integers with such digits.
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

template <class Source>
struct Tile {
  Source re[tile_vectors][tile_length + 1];
  Source im[tile_vectors][tile_length + 1];
};

// Loads a tile. Elements beyond the operand, NaN and infinities become zero. Neighboring threads read along
// the smaller stride.
template <class Source>
__device__ void load_tile(const SplitTask& task, std::int64_t first_vector, std::int64_t first_element,
                          Tile<Source>& tile) {
  const DeviceMatrix& matrix = task.matrix;
  const Source* start = reinterpret_cast<const Source*>(
      matrix_start<std::complex<Source>>(matrix, task.item + item_of_block()));
  const bool along_k = abs(matrix.column_stride) <= abs(matrix.row_stride);
  const auto finite = [](Source x) { return x - x == 0 ? x : Source(0); };
#pragma unroll
  for (int i = 0; i < elements_per_thread; ++i) {
    const int e = static_cast<int>(threadIdx.x) + i * static_cast<int>(tile_threads);
    const int v = along_k ? e / tile_length : e % tile_vectors;
    const int p = along_k ? e % tile_length : e / tile_vectors;
    Source re = 0;
    Source im = 0;
    if (first_vector + v < task.vectors && first_element + p < task.length) {
      const Source* element = start + 2 * ((task.first + first_vector + v) * matrix.row_stride +
                                           (first_element + p) * matrix.column_stride);
      re = finite(element[0]);
      im = finite(element[1]);
    }
    tile.re[v][p] = re;
    tile.im[v][p] = matrix.conjugated ? -im : im;
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
                               const Source* re, const Source* im) {
  Source parts[2][elements_per_thread];
#pragma unroll
  for (int i = 0; i < elements_per_thread; ++i) {
    parts[0][i] = re[i];
    parts[1][i] = im[i];
  }
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
  __shared__ Tile<Source> tile;
  __shared__ Scaling scalings[tile_vectors];
  std::int64_t block = blockIdx.x;
  const SplitTask& task = enter_task(tasks, block);
  const TilesPart part(task, block);
  const std::int64_t first_vector = part.first_vector;
  const int v = static_cast<int>(threadIdx.x) / lanes_of_vector;
  const int p = static_cast<int>(threadIdx.x) % lanes_of_vector * elements_per_thread;
  const std::int64_t vector = first_vector + v;
  if (p == 0 && vector < task.vectors) scalings[v] = finish_ranges(task, kind, vector);
  for (std::int64_t begin = part.begin; begin < part.end; begin += tile_length) {
    load_tile(task, first_vector, begin, tile);
    __syncthreads();
    const std::int64_t offset = vector * task.vector_stride + begin + p;
    if (vector < task.vectors) {
      write_elements<Digits>(task, scalings[v], offset, &tile.re[v][p], &tile.im[v][p]);
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

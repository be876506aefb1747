// Splits of complex operands into residues of the seven operands of one step of Strassen's algorithm. The
// ranges are known. A thread reads a pair's elements of one group (complex_quads.cuh) into registers and
// writes four bytes of each slice.
#include "engines/cuda/common/items.hpp"
#include "engines/cuda/ptx/griddepcontrol.cuh"
#include "engines/cuda/select/finish_range.cuh"
#include "engines/cuda/split/elements/byte_elements.cuh"
#include "engines/cuda/split/strassen/complex_quads.cuh"
#include "engines/cuda/split/strassen/complex_strassen.hpp"

namespace kintsugi::core::cuda::strassen {

namespace {

constexpr int moduli_count = residue_detail::complex_moduli.count;

// Constants of the moduli for sums of up to four integers.
struct SumTable {
  ComplexFloatModulus moduli[moduli_count];
};
__constant__ constexpr SumTable sum_table = [] {
  SumTable table{};
  for (int t = 0; t < moduli_count; ++t)
    table.moduli[t] = complex_float_modulus(complex_byte_modulus(residue_detail::complex_moduli.all[t],
                                                                 residue_detail::complex_constants.roots[t]),
                                            max_strassen_terms);
  return table;
}();

// A thread's pair and group. `pair` is the index of a half vector, `vector` of the pair's first vector among
// those that are split, `element` of the group's first element.
struct Position {
  int pair;
  int group;
  std::int64_t vector;
  std::int64_t element;
};

// Neighboring threads of a warp read neighboring elements, of one vector or of several, and so do neighboring
// thread blocks.
__device__ Position position_of(const SplitTask& task, int block) {
  const bool along_k = abs(task.matrix.column_stride) <= abs(task.matrix.row_stride);
  const int lanes = along_k ? lanes_along_k : lanes_across;
  const int pairs = 32 / lanes;  // of a warp
  const int warp_pairs = complex_tile_pairs / pairs;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int groups = static_cast<int>(task.vector_stride) / group_length;
  const int tiles_along_k = divide_up(groups, complex_tile_groups);
  const int tiles_across = static_cast<int>(task.padded_vectors) / (2 * complex_tile_pairs);
  const int tile_of_pairs = along_k ? block / tiles_along_k : block % tiles_across;
  const int tile_of_groups = along_k ? block % tiles_along_k : block / tiles_across;
  Position position;
  position.pair = tile_of_pairs * complex_tile_pairs + warp % warp_pairs * pairs + lane / lanes;
  position.group = tile_of_groups * complex_tile_groups + warp / warp_pairs * lanes + lane % lanes;
  position.vector = position.pair / strassen_group * (2 * strassen_group) + position.pair % strassen_group;
  position.element = std::int64_t{position.group} * group_length;
  return position;
}

// Real and imaginary parts of a pair's elements in a group.
using PairElements = double2[2][group_length];

// Reads a pair's elements, and zeros beyond the operand.
__device__ void read_elements(const SplitTask& task, const Position& position, PairElements& elements) {
  const DeviceMatrix& matrix = task.matrix;
  const double* start = reinterpret_cast<const double*>(
      matrix_start<std::complex<double>>(matrix, task.item + item_of_block()));
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(start) % sizeof(double2) == 0;
  const auto read = [&](const auto& load) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      const std::int64_t vector = position.vector + v * strassen_group;
      const std::int64_t count = vector < task.vectors ? task.length - position.element : 0;
      const double* source =
          start + 2 * ((task.first + vector) * matrix.row_stride + position.element * matrix.column_stride);
#pragma unroll
      for (int i = 0; i < group_length; ++i, source += 2 * matrix.column_stride)
        elements[v][i] = i < count ? load(source) : double2{0, 0};
    }
  };
  if (is_aligned) {
    read([](const double* source) { return *reinterpret_cast<const double2*>(source); });
  } else {
    read([](const double* source) { return double2{source[0], source[1]}; });
  }
}

// Sets the digits of the scaled elements. Parts that are not finite count as zero.
__device__ void to_pair_digits(PairElements& elements, bool conjugated, const Scaling (&scalings)[2],
                               ComplexPairDigits& digits) {
#pragma unroll
  for (int v = 0; v < 2; ++v) {
    if (!scalings[v].plain) {
#pragma unroll
      for (double2& x : elements[v]) x = {x.x - x.x == 0 ? x.x : 0, x.y - x.y == 0 ? x.y : 0};
    }
#pragma unroll
    for (int i = 0; i < group_length; ++i) {
      const double2 element = elements[v][i];
      const double parts[2] = {element.x, conjugated ? -element.y : element.y};
      ByteDigits of_element[2];
      to_digits(scalings[v], parts, of_element);
      digits.re[v][i] = of_element[0];
      digits.im[v][i] = of_element[1];
    }
  }
}

template <bool right>
__device__ void write_slices(const SplitTask& task, const ComplexPairDigits& digits, std::int64_t offset) {
  const ComplexBasis& basis = task.rule.complex_basis;
  const std::int64_t slice_stride = task.slice_stride;
  const std::int64_t operand_stride = basis.slices() * slice_stride;
  std::byte* target = slices_of(task) + offset;
#pragma unroll 1
  for (int t = 0; t < basis.with_root; ++t, target += 2 * slice_stride)
    write_complex_modulus<right, /*has_root=*/true>(sum_table.moduli[basis.modulus_index(t)], digits,
                                                    slice_stride, operand_stride, target);
#pragma unroll 1
  for (int t = basis.with_root; t < basis.count(); ++t, target += 3 * slice_stride)
    write_complex_modulus<right, /*has_root=*/false>(sum_table.moduli[basis.modulus_index(t)], digits,
                                                     slice_stride, operand_stride, target);
}

// Writes four zeros to each slice.
__device__ void clear_slices(const SplitTask& task, std::int64_t offset) {
  std::byte* target = slices_of(task) + offset;
  for (int s = 0; s < task.rule.slices; ++s, target += task.slice_stride)
    *reinterpret_cast<std::uint32_t*>(target) = 0;
}

// Sets the scalings of the thread block's vectors and stores their scales in the ranges of all real vectors
// that stand for them (base/embedding.hpp).
__device__ void find_scalings(const SplitTask& task, std::int64_t first_vector,
                              Scaling (&scalings)[2 * complex_tile_pairs]) {
  if (threadIdx.x >= 2 * complex_tile_pairs) return;
  const std::int64_t vector = first_vector + threadIdx.x;
  scalings[threadIdx.x] = {.plain = true};  // of a vector that does not exist
  if (vector >= task.vectors) return;
  const std::int64_t real_vectors = task.matrix.right ? 2 : 1;
  for (std::int64_t other = 1; other < real_vectors; ++other)
    finish_range(task, ElementKind::residues, real_vectors * vector + other, {});
  scalings[threadIdx.x] = finish_range(task, ElementKind::residues, real_vectors * vector, {});
}

__device__ void split_tile(const SplitTask& task, int block) {
  __shared__ Scaling scalings[2 * complex_tile_pairs];
  const Position position = position_of(task, block);
  static_assert(complex_tile_pairs % strassen_group == 0);  // the tile's vectors are adjacent
  const std::int64_t first_vector = position.pair / complex_tile_pairs * (2 * complex_tile_pairs);
  PairElements elements;
  read_elements(task, position, elements);
  find_scalings(task, first_vector, scalings);
  __syncthreads();
  if (position.element >= task.vector_stride) return;
  const std::int64_t offset = position.pair * (task.vector_stride / 2) + position.group * strassen_group;
  if (position.vector >= task.vectors || position.element >= task.length) return clear_slices(task, offset);
  const auto v = position.vector - first_vector;
  const Scaling of_pair[2] = {scalings[v], scalings[v + strassen_group]};
  ComplexPairDigits digits;
  to_pair_digits(elements, task.matrix.conjugated, of_pair, digits);
  if (task.matrix.right) {
    write_slices<true>(task, digits, offset);
  } else {
    write_slices<false>(task, digits, offset);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(complex_tile_threads, 2)
    split_complex_strassen(const __grid_constant__ SplitTasks tasks) {
  if (!begin_split(tasks)) return;
  const SplitTask& task = tasks.task[0];
  for (int block = static_cast<int>(blockIdx.x); block < static_cast<int>(task.blocks);
       block += static_cast<int>(gridDim.x)) {
    split_tile(task, block);
    __syncthreads();  // all threads have read the scalings
  }
}

}  // namespace kintsugi::core::cuda::strassen

// Panels: vectors that are adjacent in memory, as many as 64 bytes hold elements (not the panels of MixPert's
// tiles). A thread block holds a part of a panel in shared memory and writes its slices transposed.
#pragma once

#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/split/elements/elements.cuh"

namespace kintsugi::core::cuda {

// Shape of a panel. Its elements of one inner index are contiguous, a line.
template <class Source>
struct Panel {
  static constexpr int width = panel_bytes / sizeof(Source);    // vectors
  static constexpr int chunk = sizeof(uint4) / sizeof(Source);  // elements that a thread reads at once
  static constexpr int lanes = width / chunk;                   // threads that read a line
  static constexpr int group_pitch = panel_group * width + panel_gap;

  // Offset of element p of vector v in shared memory.
  __device__ static int shared_offset(int v, int p) {
    return p / panel_group * group_pitch + p % panel_group * width + v;
  }
};

// Part of a panel that a thread block holds: `length` inner indices of all its vectors.
struct PanelPart {
  int first_vector;
  int first_element;
  int length;
};

// Starts copies of the thread block's part to shared memory, with zeros beyond the operand. All copies of a
// thread are of the same vectors.
template <class Shape, class Source>
__device__ void start_loading(const SplitTask& task, const PanelPart& part, Source* shared) {
  const int v = static_cast<int>(threadIdx.x) % Shape::lanes * Shape::chunk;
  const int step = static_cast<int>(blockDim.x) / Shape::lanes;
  const int first = static_cast<int>(threadIdx.x) / Shape::lanes;
  const std::int64_t stride = task.matrix.column_stride;
  const Source* source =
      matrix_start<Source>(task) + task.first + part.first_vector + v + (part.first_element + first) * stride;
  const std::int64_t vectors = std::min<std::int64_t>(task.vectors - part.first_vector - v, Shape::chunk);
  const int bytes = vectors > 0 ? static_cast<int>(vectors * sizeof(Source)) : 0;
  const bool aligned = reinterpret_cast<std::uintptr_t>(source) % sizeof(uint4) == 0 &&
                       stride % Shape::chunk == 0 && bytes % sizeof(uint4) == 0;
  // Inner indices of the part that the operand has.
  const auto existing =
      static_cast<int>(std::min<std::int64_t>(task.length - part.first_element, part.length));
  // A step is a multiple of panel_group elements, so that a thread keeps its offset within groups.
  const int shared_step = Shape::shared_offset(0, step);
  const std::int64_t source_step = step * stride;
  Source* target = shared + Shape::shared_offset(v, first);
  if (aligned) {
    for (int p = first; p < part.length; p += step, source += source_step, target += shared_step)
      copy_aligned(target, source, p < existing ? bytes : 0);
  } else {
    for (int p = first; p < part.length; p += step, source += source_step, target += shared_step)
      copy_unaligned(target, source, p < existing ? bytes : 0);
  }
}

// First of the vectors that this thread loaded.
template <class Shape>
__device__ int loaded_vector() {
  return static_cast<int>(threadIdx.x) % Shape::lanes * Shape::chunk;
}

// Calls visit(elements) for each inner index that this thread loaded, with an element of each of its vectors.
template <class Shape, class Source, class Visit>
__device__ void visit_part(int length, const Source* shared, const Visit& visit) {
  const int step = static_cast<int>(blockDim.x) / Shape::lanes;
  const int first = static_cast<int>(threadIdx.x) / Shape::lanes;
  const int shared_step = Shape::shared_offset(0, step);
  const Source* source = shared + Shape::shared_offset(loaded_vector<Shape>(), first);
  for (int p = first; p < length; p += step) {
    Source x[Shape::chunk];
    read_chunk(source, x);
    visit(x);
    source += shared_step;
  }
}

// Writes the part's slices. Four neighboring threads write the same group of elements of four vectors, and
// the next four threads the next group, so that a warp writes eight neighboring groups of a vector: for fp16
// a whole cache line.
template <class Shape, ElementKind kind, class Source>
__device__ void write_part(const SplitTask& task, const PanelPart& part, const Source* shared,
                           const Scaling* scalings) {
  constexpr int vectors_together = 4;
  constexpr int warps_across = Shape::width / vectors_together;  // a divisor of the number of warps
  constexpr int groups_of_warp = 32 / vectors_together;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int v = warp % warps_across * vectors_together + lane % vectors_together;
  const int first = warp / warps_across * groups_of_warp + lane / vectors_together;
  const int step = static_cast<int>(blockDim.x) / 32 / warps_across * groups_of_warp;
  const int groups = part.length / panel_group;
  const int vector = part.first_vector + v;
  if (vector < task.vectors && scalings[v].left_out) return;
  const VectorWriter<kind> writer(task, scalings[v], vector);
  for (int g = first; g < groups; g += step) {
    const int element = part.first_element + g * panel_group;
    if (vector < task.vectors) {
      writer.template write<panel_group, Shape::width>(shared + v + g * Shape::group_pitch, element);
    } else {
      write_zeros<panel_group>(task, std::int64_t{vector} * task.vector_stride + element);
    }
  }
}

}  // namespace kintsugi::core::cuda

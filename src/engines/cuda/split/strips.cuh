// Strips: vectors that are adjacent in memory, as many as 64 bytes hold elements. A thread block holds a part
// of a strip in shared memory and writes its slices transposed.
#pragma once

#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/split/elements.cuh"

namespace kintsugi::core::cuda {

// Shape of a strip. Its elements of one inner index are contiguous and are called a line.
template <class Source>
struct Strip {
  static constexpr int width = strip_bytes / sizeof(Source);    // vectors
  static constexpr int chunk = sizeof(uint4) / sizeof(Source);  // elements that a thread reads at once
  static constexpr int lanes = width / chunk;                   // threads that read a line
  static constexpr int group_pitch = strip_group * width + strip_gap;

  // Offset of element p of vector v in shared memory.
  __device__ static int shared_offset(int v, int p) {
    return p / strip_group * group_pitch + p % strip_group * width + v;
  }
};

// Part of a strip that a thread block holds: `length` inner indices of all vectors of the strip.
struct StripPart {
  int first_vector;
  int first_element;
  int length;
};

// Starts copies of the thread block's part to shared memory, with zeros beyond the operand. Each thread
// copies elements of the same vectors in every step.
template <class Shape, class Source>
__device__ void start_loading(const SplitTask& task, const StripPart& part, Source* shared) {
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
  // Number of inner indices of the part that the operand has.
  const auto existing =
      static_cast<int>(std::min<std::int64_t>(task.length - part.first_element, part.length));
  // A step is a multiple of strip_group elements; so a thread has the same offset in every group that it
  // copies.
  const int shared_step = Shape::shared_offset(0, step);
  const std::int64_t source_step = step * stride;
  Source* target = shared + Shape::shared_offset(v, first);
  if (aligned) {
#pragma unroll 4
    for (int p = first; p < part.length; p += step, source += source_step, target += shared_step)
      copy_aligned(target, source, p < existing ? bytes : 0);
  } else {
    for (int p = first; p < part.length; p += step, source += source_step, target += shared_step)
      copy_unaligned(target, source, p < existing ? bytes : 0);
  }
}

// First of the vectors whose elements this thread loaded.
template <class Shape>
__device__ int loaded_vector() {
  return static_cast<int>(threadIdx.x) % Shape::lanes * Shape::chunk;
}

// Calls visit(elements) for each inner index that this thread loaded; `elements` has one element of each of
// its vectors.
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

// visit_part() with the elements of several inner indices at a time, whose reads do not wait for each other:
// visit(elements) gets an array of the elements of each of the thread's vectors.
template <class Shape, class Source, class Visit>
__device__ void visit_part_by_groups(int length, const Source* shared, const Visit& visit) {
  constexpr int lines = 4;
  const int step = static_cast<int>(blockDim.x) / Shape::lanes;
  const int first = static_cast<int>(threadIdx.x) / Shape::lanes;
  const int shared_step = Shape::shared_offset(0, step);
  const Source* source = shared + Shape::shared_offset(loaded_vector<Shape>(), first);
  int p = first;
#pragma unroll 1
  for (; p + (lines - 1) * step < length; p += lines * step, source += lines * shared_step) {
    Source x[Shape::chunk][lines];
#pragma unroll
    for (int line = 0; line < lines; ++line) {
      Source elements[Shape::chunk];
      read_chunk(source + line * shared_step, elements);
#pragma unroll
      for (int i = 0; i < Shape::chunk; ++i) x[i][line] = elements[i];
    }
    visit(x);
  }
#pragma unroll 1
  for (; p < length; p += step, source += shared_step) {
    Source elements[Shape::chunk];
    read_chunk(source, elements);
    Source x[Shape::chunk][1];
#pragma unroll
    for (int i = 0; i < Shape::chunk; ++i) x[i][0] = elements[i];
    visit(x);
  }
}

// Writes the part's slices. Four neighboring threads write the same group of elements of four vectors, and
// the next four threads write the next group. So a warp writes eight neighboring groups of a vector, which
// for fp16 is a whole cache line.
template <class Shape, ElementKind kind, class Source>
__device__ void write_part(const SplitTask& task, const StripPart& part, const Source* shared,
                           const Scaling* scalings) {
  constexpr int vectors_together = 4;
  constexpr int warps_across = Shape::width / vectors_together;  // a divisor of the number of warps
  constexpr int groups_of_warp = 32 / vectors_together;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int v = warp % warps_across * vectors_together + lane % vectors_together;
  const int first = warp / warps_across * groups_of_warp + lane / vectors_together;
  const int step = static_cast<int>(blockDim.x) / 32 / warps_across * groups_of_warp;
  const int groups = part.length / strip_group;
  const int vector = part.first_vector + v;
  if (vector < task.vectors && scalings[v].left_out) return;
  const VectorWriter<kind> writer(task, scalings[v], vector);
  for (int g = first; g < groups; g += step) {
    const int element = part.first_element + g * strip_group;
    if (vector < task.vectors) {
      writer.template write<strip_group, Shape::width>(shared + v + g * Shape::group_pitch, element);
    } else {
      write_zeros<strip_group>(task, std::int64_t{vector} * task.vector_stride + element);
    }
  }
}

}  // namespace kintsugi::core::cuda

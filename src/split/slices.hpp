// Slices of one operand: K-major, so that every vector along k is contiguous, padded with zeros.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory.hpp"
#include "base/view.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// How the elements stand in memory: as the format's own patterns, or widened to fp32 for engines
// whose products take fp32 (the values are the format's either way).
enum class SliceStorage : std::uint8_t { packed, fp32 };

// Slice s, vector v, element p lies at element index s * slice_stride + v * vector_stride + p.
// Vectors vectors...padded_vectors - 1 and elements k...vector_stride - 1 are zero.
struct Slices {
  // Tile and k block of the engines divide these, so that they never meet a partial one.
  static constexpr std::int64_t vector_multiple = 128;
  static constexpr std::int64_t k_multiple = 64;

  std::byte* data = nullptr;
  const Format* format = nullptr;
  SliceStorage storage = SliceStorage::packed;
  int count = 0;
  std::int64_t vectors = 0;            // of this view
  std::int64_t allocated_vectors = 0;  // of each slice in memory, a multiple of vector_multiple
  std::int64_t k = 0;

  std::int64_t padded_vectors() const { return round_up(vectors, vector_multiple); }
  std::int64_t vector_stride() const { return round_up(k, k_multiple); }
  std::int64_t slice_stride() const { return allocated_vectors * vector_stride(); }
  std::size_t element_bytes() const {
    return storage == SliceStorage::fp32 ? sizeof(float) : static_cast<std::size_t>(format->storage_bytes);
  }
  std::size_t bytes() const {
    return array_bytes(count * allocated_vectors, vector_stride(), element_bytes());
  }

  // `number` vectors from `first` on, which is a multiple of vector_multiple.
  Slices block(std::int64_t first, std::int64_t number) const {
    Slices part = *this;
    part.data += static_cast<std::size_t>(first * vector_stride()) * element_bytes();
    part.vectors = number;
    return part;
  }

  template <class T>
  T* vector(int slice, std::int64_t v) const {
    return reinterpret_cast<T*>(data) + slice * slice_stride() + v * vector_stride();
  }
};

inline Slices make_slices(const Format& format, SliceStorage storage, int count, std::int64_t vectors,
                          std::int64_t k) {
  return {nullptr, &format, storage, count, vectors, round_up(vectors, Slices::vector_multiple), k};
}

}  // namespace kintsugi::core

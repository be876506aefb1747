// Slices of one operand: K-major, so that every vector along k is contiguous, padded with zeros.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory.hpp"
#include "base/view.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// Storage of elements: the format's own bit patterns, or the same values widened to fp32, for engines whose
// products take fp32.
enum class SliceStorage : std::uint8_t { packed, fp32 };

// Slices of an operand: element p of vector v of slice s has the index s * slice_stride + v * vector_stride +
// p. Vectors vectors...padded_vectors - 1 and elements k...vector_stride - 1 are zero.
struct Slices {
  // The engines' tiles and k-blocks divide these multiples, so that no tile or k-block is partial.
  static constexpr std::int64_t vector_multiple = 128;
  static constexpr std::int64_t k_multiple = 64;

  std::byte* data = nullptr;
  const Format* format = nullptr;
  SliceStorage storage = SliceStorage::packed;
  int count = 0;
  std::int64_t vectors = 0;            // in this view
  std::int64_t allocated_vectors = 0;  // in each slice in memory, a multiple of vector_multiple
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

  // View of `number` vectors from `first` on; `first` is a multiple of vector_multiple.
  Slices block(std::int64_t first, std::int64_t number) const {
    Slices selected = *this;
    selected.data += static_cast<std::size_t>(first * vector_stride()) * element_bytes();
    selected.vectors = number;
    return selected;
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

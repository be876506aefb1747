// Matrices and scalars of a call on a device. All pointers are device pointers unless a comment says
// otherwise.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "arith/range.hpp"
#include "arith/residue/norm_proof.hpp"
#include "split/acceptance.hpp"
#include "split/ranges.hpp"

namespace kintsugi::core {

struct VectorMagnitudes;  // arith/residue/rounding_errors.hpp

enum class ElementType : std::uint8_t { f32, f64, c32, c64 };

constexpr std::size_t element_bytes(ElementType type) {
  return type == ElementType::f32 ? 4 : type == ElementType::c64 ? 16 : 8;
}

// One matrix of each batch item.
struct DeviceMatrix {
  const void* data = nullptr;  // the matrix of item 0; if `pointers`, an array of all items' addresses
  bool pointers = false;
  ElementType type = ElementType::f32;
  std::int64_t batch_stride = 0;  // elements from an item to the next
  std::int64_t rows = 0;          // operand: vectors, which are rows of op(A) or columns of op(B); C: m
  std::int64_t columns = 0;       // operand: k; C: n
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
  // Complex operands are read as in base/embedding.hpp, where op(B) has two real vectors per column.
  bool right = false;  // the matrix is op(B)
  bool conjugated = false;

  constexpr bool complex() const { return type == ElementType::c32 || type == ElementType::c64; }
  // Number of real vectors of the operand, and their length.
  constexpr std::int64_t vectors() const { return complex() && right ? 2 * rows : rows; }
  constexpr std::int64_t length() const { return complex() ? 2 * columns : columns; }
};

// alpha and beta, of the matrices' type. They are read from device memory if the addresses are not null; else
// the values are used.
struct DeviceScalars {
  std::complex<double> alpha = 1;
  std::complex<double> beta = 0;
  const void* device_alpha = nullptr;
  const void* device_beta = nullptr;

  bool on_device() const { return device_alpha != nullptr; }
};

// RangeSummary of a batch item in device memory, into which many thread blocks merge (merge() in
// cuda/select/select_by_block.cuh). All words begin at zero and only grow. Both biased exponents are 0 while
// all vectors are zero.
struct MergedSummary {
  std::uint32_t dynamic_range = 0;
  std::uint32_t biased_largest = 0;      // exponent_bias + largest exponent
  std::uint32_t biased_smallest = 0;     // exponent_bias - smallest exponent
  std::uint32_t has_special = 0;         // 1 if a vector has NaN or infinities
  std::uint32_t elements_below_max = 0;  // INT_MAX - RangeSummary::min_elements
  std::uint32_t depth = 0;
};

// One operand of `items` batch items, from `item` on. `ranges` has one element per vector, contiguous for all
// items. Slices of successive items are slices.bytes() apart. A side with a single item serves all items of
// the other side. Only the steps for ranges, selection and splits take sides with several items.
struct DeviceSide {
  DeviceMatrix matrix;
  std::int64_t item = 0;
  VectorRange* ranges = nullptr;
  std::int64_t items = 1;
  VectorNorm* norms = nullptr;               // one for each vector, if scales or a selection depend on norms
  const MergedSummary* summaries = nullptr;  // one per item, if summarize() was called before
  // One for each vector, if find_scaling_norms() finds them. Without them rounding errors take another read.
  VectorMagnitudes* magnitudes = nullptr;
};

// A side without vectors, for steps that have nothing to do for one of the operands.
inline DeviceSide no_side(std::int64_t items) {
  DeviceSide side;
  side.items = items;
  return side;
}

}  // namespace kintsugi::core

// Executes Kintsugi's kernels for native products (multiply_*_simt_*, multiply_*_dmma_*) on the host.
#pragma once

#include <complex>
#include <string>
#include <type_traits>

#include "engines/cuda/step_data.hpp"

namespace kintsugi::fake {

template <class T>
T fake_scalar(const std::complex<double>& value, const void* on_device) {
  if (on_device != nullptr) return *static_cast<const T*>(on_device);
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value.real());
  } else {
    return T(value);
  }
}

// The element at (row, column) of a batch item's matrix.
template <class T>
T& fake_element(const core::DeviceMatrix& matrix, std::int64_t item, std::int64_t row, std::int64_t column) {
  T* const data = static_cast<T*>(const_cast<void*>(matrix.data));
  T* const start =
      matrix.pointers ? reinterpret_cast<T* const*>(data)[item] : data + item * matrix.batch_stride;
  return start[row * matrix.row_stride + column * matrix.column_stride];
}

template <class T>
T fake_factor(const core::DeviceMatrix& matrix, std::int64_t item, std::int64_t vector, std::int64_t p) {
  const T x = fake_element<T>(matrix, item, vector, p);
  if constexpr (std::is_floating_point_v<T>) {
    return x;
  } else {
    return matrix.conjugated ? std::conj(x) : x;
  }
}

template <class T>
void multiply_item_of(const core::DeviceTile& tile, std::int64_t item) {
  const T alpha = fake_scalar<T>(tile.scalars.alpha, tile.scalars.device_alpha);
  const T beta = fake_scalar<T>(tile.scalars.beta, tile.scalars.device_beta);
  for (std::int64_t j = tile.first_column; j < tile.first_column + tile.columns; ++j) {
    for (std::int64_t i = tile.first_row; i < tile.first_row + tile.rows; ++i) {
      T sum = 0;
      for (std::int64_t p = 0; p < tile.a.matrix.columns; ++p)
        sum += fake_factor<T>(tile.a.matrix, tile.a.item + item, i, p) *
               fake_factor<T>(tile.b.matrix, tile.b.item + item, j, p);
      T& element = fake_element<T>(tile.c, tile.item + item, i, j);
      element = beta == T(0) ? alpha * sum : alpha * sum + beta * element;
    }
  }
}

// True for kernels whose first argument is a tile, or begins with one.
inline bool multiplies_natively(const std::string& kernel) {
  return kernel.starts_with("multiply_") &&
         (kernel.find("_simt_") != std::string::npos || kernel.find("_dmma_") != std::string::npos);
}

// Executes `kernel` if it multiplies natively without a condition.
inline void multiply_by_kernel(const std::string& kernel, unsigned items, void** arguments) {
  if (!multiplies_natively(kernel)) return;
  const auto& tile = *static_cast<const core::DeviceTile*>(arguments[0]);
  if (tile.condition.selection != nullptr) return;
  for (std::int64_t item = 0; item < std::int64_t{items}; ++item) {
    switch (tile.c.type) {
      case core::ElementType::f32: multiply_item_of<float>(tile, item); break;
      case core::ElementType::f64: multiply_item_of<double>(tile, item); break;
      case core::ElementType::c32: multiply_item_of<std::complex<float>>(tile, item); break;
      case core::ElementType::c64: multiply_item_of<std::complex<double>>(tile, item); break;
    }
  }
}

}  // namespace kintsugi::fake

// Executes the kernels finish_native_* on the host, without recomputing elements.
#pragma once

#include <complex>
#include <string>

#include "engines/device.hpp"

namespace kintsugi::fake {

template <class T>
T fake_scalar(const std::complex<double>& value, const void* on_device) {
  if (on_device != nullptr) return *static_cast<const T*>(on_device);
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value.real());
  } else {
    return T(static_cast<typename T::value_type>(value.real()),
             static_cast<typename T::value_type>(value.imag()));
  }
}

template <class T>
void add_sums(const core::DeviceTile& tile, const core::DeviceMatrix& sums, std::int64_t item) {
  if (sums.data == tile.c.data) return;
  const T alpha = fake_scalar<T>(tile.scalars.alpha, tile.scalars.device_alpha);
  const T beta = fake_scalar<T>(tile.scalars.beta, tile.scalars.device_beta);
  const T* sum = static_cast<const T*>(sums.data) + item * sums.batch_stride;
  T* c = static_cast<T*>(const_cast<void*>(tile.c.data)) + (tile.item + item) * tile.c.batch_stride;
  for (std::int64_t j = 0; j < tile.columns; ++j) {
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      T& element =
          c[(tile.first_row + i) * tile.c.row_stride + (tile.first_column + j) * tile.c.column_stride];
      element = alpha * sum[i * sums.row_stride + j * sums.column_stride] + beta * element;
    }
  }
}

// Executes `kernel` and returns true if it is a kernel finish_native_*.
inline bool finish_native(const std::string& kernel, unsigned items, void** arguments) {
  if (!kernel.starts_with("finish_native_")) return false;
  const auto& tile = *static_cast<const core::DeviceTile*>(arguments[0]);
  const auto& sums = *static_cast<const core::DeviceMatrix*>(arguments[1]);
  for (std::int64_t item = 0; item < std::int64_t{items}; ++item) {
    switch (sums.type) {
      case core::ElementType::f32: add_sums<float>(tile, sums, item); break;
      case core::ElementType::f64: add_sums<double>(tile, sums, item); break;
      case core::ElementType::c32: add_sums<std::complex<float>>(tile, sums, item); break;
      case core::ElementType::c64: add_sums<std::complex<double>>(tile, sums, item); break;
    }
  }
  return true;
}

}  // namespace kintsugi::fake

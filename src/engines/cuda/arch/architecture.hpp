// The capability table of each GPU architecture: which kernels the engine has for it, their tiles, how its
// matrix units add, and what kernels cost. A new architecture is a table and a line of architectures.def
// (docs/ADDING-A-GPU.md).
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "engines/cuda/arch/costs.hpp"
#include "engines/cuda/gemm/dmma/dmma_kernels.hpp"
#include "engines/cuda/gemm/int8/int8_kernels.hpp"
#include "engines/cuda/gemm/multi_term/multi_term_kernels.hpp"
#include "engines/cuda/gemm/simt/simt_tiles.hpp"
#include "engines/device.hpp"

namespace kintsugi::core::cuda {

struct Architecture {
  static constexpr int any = -1;

  std::string_view name;
  // Compute capability of its devices.
  int major = any;
  int minor = any;

  // The device code that the product kernels lie in; a build for the GPUs of one machine may lack it. Empty:
  // cuBLAS multiplies all slices but 52-bit ones.
  std::string_view gemm_image = {};
  std::span<const MultiTermKernels> multi_term = {};
  const Int8Kernels* int8 = nullptr;
  // Thread blocks can share their memory as a cluster: a split then reads columns once.
  bool has_clusters = false;

  // How products of fp16 and bf16 slices are added, the preferred way first and cuBLAS's last.
  std::span<const Accumulator> half_accumulators;
  // Products of 52-bit slices per time, relative to native ones of FP32.
  double int52_rate = 0;

  // Tiles of the SIMT kernels by the elements' type, an ElementType; as many as there are kernels.
  std::array<std::span<const SimtTile>, 4> simt_tiles;

  // Products of FP64 elements on tensor cores, by the elements' type too; nullptr: by the SIMT kernels.
  std::array<const DmmaKernels*, 4> dmma = {};

  // Times hold for devices whose names end so; tiles are chosen by them on all devices of the architecture.
  const Costs* costs = nullptr;
  std::span<const std::string_view> measured_devices = {};
  DeviceThresholds thresholds = {};

  constexpr bool matches(int device_major, int device_minor) const {
    return (major == any || major == device_major) && (minor == any || minor == device_minor);
  }
  // Whether the library has its product kernels.
  bool has_gemm_kernels() const;
  // half_accumulators, without that of product kernels which the library lacks.
  std::span<const Accumulator> available_half_accumulators() const;
  bool is_measured(std::string_view device_name) const;
  // nullptr: there are none, or the library lacks them.
  const DmmaKernels* available_dmma(ElementType type) const;
};

// The first table of architectures.def that matches; the last one matches every device.
const Architecture& architecture_of(int major, int minor);

// That of the device that calls of this thread work on; without a device the last table.
const Architecture& current_architecture();

}  // namespace kintsugi::core::cuda

// Kernels of the LE-GEMM paper by name, and products by them on a device.
#pragma once

#include <string>
#include <vector>

#include "tools/measure/machine/device.hpp"
#include "tools/plan.hpp"

namespace kintsugi::lab {

enum class LeGemmScheme : std::uint8_t { wmma, markidis, ootomo, le_gemm };

// A kernel of kernels/le_gemm_wmma.cu.
struct LeGemmKernel {
  const char* name;
  LeGemmScheme scheme;
  int buffers;  // tiles in shared memory that take turns; 0: fragments come from global memory
  int rows;     // of C in a thread block
  int columns;
  int threads;

  int slices() const { return scheme == LeGemmScheme::wmma ? 1 : 2; }
  int products() const;
  // Returns the bytes that all thread blocks read from beyond shared memory (buffers = 0: that all warps
  // read), and those of C.
  double bytes(const tools::Shape& shape) const;
  int shared_bytes() const;
};

const std::vector<LeGemmKernel>& le_gemm_kernels();
const LeGemmKernel& le_gemm_kernel(const std::string& name);

// Operands of one shape on a device, and C.
class LeGemmProduct {
 public:
  LeGemmProduct(const measure::DeviceStream& stream, const tools::Shape& shape);

  // Splits both operands as the kernel's scheme does, and multiplies.
  void split(const LeGemmKernel& kernel) const;
  void multiply(const LeGemmKernel& kernel) const;
  // Returns the errors of elements of C against their exact values. Fails if one is beyond its bound.
  double checked_frobenius(const LeGemmKernel& kernel) const;

 private:
  const measure::DeviceStream& stream_;
  tools::Shape shape_;
  measure::DeviceMemory a_;
  measure::DeviceMemory b_;
  measure::DeviceMemory slices_;
  measure::DeviceMemory c_;
};

}  // namespace kintsugi::lab

// Square products with the bit-exact sums of other chips' matrix units, on a device of any kind.
#pragma once

#include <string>
#include <vector>

#include "tools/measure/machine/device.hpp"

namespace kintsugi::lab {

// A scheme of kernels/unit_sums.cu.
struct UnitScheme {
  const char* kernel;   // end of the kernel's name
  const char* library;  // the library's scheme, whose bits it has
  float scale;          // of the residual
  bool truncates;
  bool copies;
};

const std::vector<UnitScheme>& unit_schemes();

// A and B (n,n), row-major, on the device.
class UnitProduct {
 public:
  UnitProduct(const measure::DeviceStream& stream, std::int64_t n, const std::vector<float>& a,
              const std::vector<float>& b);

  // Returns C with the sums of `unit`, "a100" or "cdna2".
  std::vector<float> multiply(const std::string& unit, const UnitScheme& scheme) const;
  // Returns C with sequential FP32 sums.
  std::vector<float> sequential() const;

 private:
  std::vector<float> downloaded() const;

  const measure::DeviceStream& stream_;
  std::int64_t n_;
  measure::DeviceMemory a_;
  measure::DeviceMemory b_;
  measure::DeviceMemory slices_;
  measure::DeviceMemory c_;
};

}  // namespace kintsugi::lab

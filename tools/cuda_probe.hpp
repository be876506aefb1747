// What the NVIDIA driver says of this machine, asked through its library at run time.
#pragma once

#include <string>
#include <vector>

namespace kintsugi::tools {

struct CudaDevice {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
};

struct CudaProbe {
  bool driver = false;       // libcuda.so.1 could be opened
  std::string driver_error;  // why not
  int driver_version = 0;    // 13000 is CUDA 13.0
  std::string device_error;  // why there are no devices; "" when there are
  std::vector<CudaDevice> devices;
};

CudaProbe probe_cuda();

}  // namespace kintsugi::tools

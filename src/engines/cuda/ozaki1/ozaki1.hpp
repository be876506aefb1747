// Implementation of the steps of Ozaki scheme I.
#pragma once

#include "engines/device_ozaki1.hpp"

namespace kintsugi::core::cuda {

const DeviceOzaki1& ozaki1_kernels();

}  // namespace kintsugi::core::cuda

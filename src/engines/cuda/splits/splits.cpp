#include "engines/cuda/splits/splits.hpp"

namespace kintsugi::core::cuda {

void find_ranges(const Queue&, const DeviceSide&, const DeviceSide&, const DeviceScalars&) {}
void choose(const Queue&, const DeviceSide&, const DeviceSide&, const DeviceScalars&, const DeviceRungs&,
            DeviceChoice*, DeviceReport*) {}
void split(const Queue&, std::span<const DeviceSplit>, const DeviceCondition&) {}

}  // namespace kintsugi::core::cuda

// Products of slices without an error on a device. What the functions do stands in engines/device.hpp.
#pragma once

#include <span>

#include "engines/device_error_free.hpp"

namespace kintsugi::core::cuda {

void split_successively(const Queue& queue, std::span<const DeviceSuccessiveSplit> splits,
                        const DeviceCondition& condition);
void weigh_inner_indices(const Queue& queue, const DeviceSide& b, const DeviceSliceNeeds& needs,
                         double* weights, const DeviceCondition& condition);
void find_needs(const Queue& queue, const DeviceRowNeeds& rows, const DeviceCondition& condition);
void multiply_needed(const Queue& queue, const DeviceProductSums& sums, const Slices& a, const Slices& b,
                     const Accumulators& products, int first_a, int slice_b);
void add_products(const Queue& queue, const DeviceProductSums& sums, const Accumulators& products,
                  int first_a, int b);
void finish_sums(const Queue& queue, const DeviceProductSums& sums);
void settle(const Queue& queue, const DeviceSettlement& settlement);

}  // namespace kintsugi::core::cuda

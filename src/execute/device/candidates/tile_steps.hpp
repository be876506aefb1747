// Parts of the steps of a tile: its slices, its schedule and its recombination.
#pragma once

#include "engines/device_engine.hpp"
#include "execute/blocks.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// A tile whose products are in the queue and whose recombination is not yet.
struct UnfinishedTile {
  Accumulators sums;
  DeviceTile tile;
};

// Returns the vectors of the candidate's slices that belong to vectors of an operand.
Interval slices_of(const Candidate& candidate, const Interval& vectors);

// Returns the candidate's schedule. Groups whose weights the device sets, since it fits their residuals to
// the ranges, get the exponent fitted_exponent.
Schedule schedule_to_fit(const Candidate& candidate);

void recombine(const DeviceEngine& engine, const Queue& queue, const Candidate& candidate,
               const UnfinishedTile& unfinished);

}  // namespace kintsugi::core

// Data of the steps of a call on a device (engines/device_engine.hpp): operands, results and conditions, in
// one header per step. All pointers are device pointers unless a comment says otherwise.
#pragma once

#include "arith/residue/complex_residue.hpp"
#include "base/memory.hpp"
#include "base/queue.hpp"
#include "engines/device_operands.hpp"
#include "engines/device_products.hpp"
#include "engines/device_selection.hpp"
#include "engines/device_split.hpp"
#include "engines/device_times.hpp"
#include "recombine/accumulators.hpp"
#include "schedule/accumulator.hpp"

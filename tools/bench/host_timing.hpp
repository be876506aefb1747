// Timing by the host's clock.
#pragma once

#include <functional>

#include "bench/contestant.hpp"

namespace kintsugi::tools {

// Returns the fastest of the runs that fit into 10 ms.
Round time_on_host(const std::function<void()>& run);

}  // namespace kintsugi::tools

// Mutexes of the library. A thread that locks several of them locks them in this order.
#pragma once

#include "common/lock.hpp"

namespace kintsugi::blas {

extern drop_in::ForkSafeMutex sites_mutex;
extern drop_in::ForkSafeMutex decisions_mutex;
extern drop_in::ForkSafeMutex record_mutex;

}  // namespace kintsugi::blas

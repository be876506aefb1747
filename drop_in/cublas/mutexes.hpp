// Mutexes of the library. A thread that locks several of them locks them in this order.
#pragma once

#include "common/lock.hpp"

namespace kintsugi::cublas {

extern drop_in::ForkSafeMutex sites_mutex;
extern drop_in::ForkSafeMutex decisions_mutex;
extern drop_in::ForkSafeMutex pools_mutex;  // memory pools of devices
extern drop_in::ForkSafeMutex record_mutex;

}  // namespace kintsugi::cublas

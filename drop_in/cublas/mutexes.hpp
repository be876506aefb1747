// Mutexes of the library, in the order in which a thread that needs several locks them.
#pragma once

#include "common/lock.hpp"

namespace kintsugi::cublas {

extern drop_in::ForkSafeMutex sites_mutex;      // call sites
extern drop_in::ForkSafeMutex decisions_mutex;  // decisions
extern drop_in::ForkSafeMutex pools_mutex;      // memory pools
extern drop_in::ForkSafeMutex record_mutex;     // record of calls

}  // namespace kintsugi::cublas

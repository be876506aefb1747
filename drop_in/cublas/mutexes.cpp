#include "mutexes.hpp"

#include "cublas/record/record.hpp"

namespace kintsugi {

namespace cublas {

constinit drop_in::ForkSafeMutex sites_mutex;
constinit drop_in::ForkSafeMutex decisions_mutex;
constinit drop_in::ForkSafeMutex pools_mutex;
constinit drop_in::ForkSafeMutex record_mutex;

}  // namespace cublas

namespace drop_in {

std::span<ForkSafeMutex* const> fork_safe_mutexes() {
  static constexpr ForkSafeMutex* in_order[] = {&cublas::sites_mutex, &cublas::decisions_mutex,
                                                &cublas::pools_mutex, &cublas::record_mutex};
  return in_order;
}

void forget_record() { cublas::forget_record(); }

}  // namespace drop_in

}  // namespace kintsugi

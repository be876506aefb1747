#include "mutexes.hpp"

#include "report/record.hpp"

namespace kintsugi {

namespace blas {

constinit drop_in::ForkSafeMutex sites_mutex;
constinit drop_in::ForkSafeMutex decisions_mutex;
constinit drop_in::ForkSafeMutex record_mutex;

}  // namespace blas

namespace drop_in {

std::span<ForkSafeMutex* const> fork_safe_mutexes() {
  static constexpr ForkSafeMutex* in_order[] = {&blas::sites_mutex, &blas::decisions_mutex,
                                                &blas::record_mutex};
  return in_order;
}

void forget_record() { blas::forget_record(); }

}  // namespace drop_in

}  // namespace kintsugi

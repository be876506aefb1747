// Answer to a grouped batch: groups of products, of which each has its own shape and scalars.
#pragma once

#include <cstddef>
#include <vector>

#include "answer.hpp"

namespace kintsugi::cublas {

// Reference to a callable that calls the real function for `count` groups from group `first` on; it must
// outlive this object.
class ForwardGroups {
 public:
  template <class Callable>
  explicit ForwardGroups(const Callable& callable)
      : callable_(&callable), call_([](const void* pointer, std::size_t first, std::size_t count) {
          return (*static_cast<const Callable*>(pointer))(first, count);
        }) {}
  int operator()(std::size_t first, std::size_t count) const { return call_(callable_, first, count); }

 private:
  const void* callable_;
  int (*call_)(const void*, std::size_t first, std::size_t count);
};

// Answers the call and returns its status. Each group is a batch by pointers; groups that are not emulated
// go to cuBLAS in as few calls as their order allows, all of them in the caller's own call if none is
// emulated. Enqueues work in the handle's stream and never waits for the device.
int answer_groups(const Symbol& symbol, Handle handle, std::vector<Call>& groups,
                  const ForwardGroups& forward);

}  // namespace kintsugi::cublas

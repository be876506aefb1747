// Answer to a grouped batch. A grouped batch has groups of products; each group has its own shape and
// scalars.
#pragma once

#include <cstddef>
#include <vector>

#include "answer.hpp"

namespace kintsugi::cublas {

// Reference to a callable that calls the real function for `count` groups from group `first` on. The callable
// must outlive this object.
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

// Answers the call and returns its status. Each group is a batch by pointers. Groups that are not emulated go
// to cuBLAS in as few calls as the order of the groups allows. If no group is emulated, they go to cuBLAS in
// a single call. Enqueues work in the handle's stream and never waits for the device.
int answer_groups(const Symbol& symbol, Handle handle, std::vector<Call>& groups,
                  const ForwardGroups& forward);

}  // namespace kintsugi::cublas

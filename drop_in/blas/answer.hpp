// A call on its way: checked, decided, composed of products or forwarded.
#pragma once

#include <cstdint>
#include <vector>

#include "call.hpp"
#include "check.hpp"
#include "multiply.hpp"
#include "next_blas/next.hpp"

namespace kintsugi::blas {

// True if calls of this thread may be emulated now; else all go to the next BLAS, among them those that
// come from within a product of this library.
bool intercepts();

void answer(const Invocation& invocation, const Call& call, Forward forward);

// Products of one shape in a batch, `count` of them.
struct Group {
  Call product;  // the first one; where the group has pointers, without matrices
  std::int64_t count = 0;
  const void* const* a = nullptr;  // pointers to the matrices; nullptr: they are `stride` bytes apart
  const void* const* b = nullptr;
  void* const* c = nullptr;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;

  Call item(std::int64_t number) const;
};

// A call of gemm_batch or gemm_batch_strided.
struct Batch {
  Convention convention = Convention::fortran;
  Layout layout = Layout::column_major;
  std::vector<Group> groups = {};
  BadArgument bad = {};  // the first wrong argument

  // False if there is no memory for one more group, after which the batch can only be forwarded.
  bool add(const Group& group) noexcept;
  bool is_complete = true;
};

void answer(const Invocation& invocation, Batch batch, Forward forward);

}  // namespace kintsugi::blas

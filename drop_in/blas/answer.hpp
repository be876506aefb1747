// Answers a call: checks its arguments, then emulates it, computes it by several products, or forwards it.
#pragma once

#include <cstdint>
#include <vector>

#include "call.hpp"
#include "check.hpp"
#include "multiply.hpp"
#include "next_blas/next.hpp"

namespace kintsugi::blas {

// True if calls of this thread may be emulated now. False if the settings forward all calls. False, too,
// while this thread is inside a call of this library: then the call comes from the library's own native
// product.
bool intercepts();

void answer(const Invocation& invocation, const Call& call, Forward forward);

// `count` products of one shape in a batch.
struct Group {
  Call product;  // the first product; its matrices are unset if the group has pointers
  std::int64_t count = 0;
  const void* const* a = nullptr;  // pointers to the matrices; nullptr: the matrices are stride_a bytes apart
  const void* const* b = nullptr;
  void* const* c = nullptr;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;

  Call item(std::int64_t index) const;
};

// A call of gemm_batch or gemm_batch_strided.
struct Batch {
  Convention convention = Convention::fortran;
  Layout layout = Layout::column_major;
  std::vector<Group> groups = {};
  BadArgument bad = {};  // the first wrong argument

  // Returns false if there is no memory for one more group. The batch can then only be forwarded.
  bool add(const Group& group) noexcept;
  bool is_complete = true;  // false: add() has failed
};

void answer(const Invocation& invocation, Batch batch, Forward forward);

}  // namespace kintsugi::blas

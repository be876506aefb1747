// Answers a call: checks its arguments, then emulates it, computes it by several products, or forwards it.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "call.hpp"
#include "check.hpp"
#include "multiply.hpp"
#include "next_blas/next.hpp"
#include "sites/compiled_site.hpp"
#include "sites/native_sites.hpp"

namespace kintsugi::blas {

// Calls that may be emulated, as the settings have it.
enum class Interception : std::uint8_t {
  unknown,  // the settings have not been read
  none,
  by_site,  // those of sites that are not native; no call is recorded
  all,
};

namespace in_force {

extern constinit std::atomic<Interception> interception;

// Depth of nested calls of this library in this thread. Nested calls come from the next BLAS, or from the
// OpenBLAS of Kintsugi, which call routines by exported name. The variable is in static TLS, since every call
// reads it.
extern __attribute__((tls_model("initial-exec"))) constinit thread_local int calls_under_way;

// Reads the settings at the program's first call.
Interception read_interception();

}  // namespace in_force

class CallUnderWay {
 public:
  CallUnderWay() { ++in_force::calls_under_way; }
  ~CallUnderWay() { --in_force::calls_under_way; }
  CallUnderWay(const CallUnderWay&) = delete;
  CallUnderWay& operator=(const CallUnderWay&) = delete;
};

// True if a call of this thread that returns to `return_address` may be emulated now. False if the settings,
// or the rule of the call's site, forward it. False, too, while this thread is inside a call of this library:
// then the call comes from the library's own native product.
inline bool intercepts(const void* return_address) {
  if (in_force::calls_under_way != 0) return false;
  Interception interception = in_force::interception.load(std::memory_order_relaxed);
  if (interception == Interception::unknown) interception = in_force::read_interception();
  if (interception != Interception::by_site) return interception == Interception::all;
  const void* const compiled_site = announced_site();
  return !is_known_native(compiled_site != nullptr ? compiled_site : return_address);
}

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

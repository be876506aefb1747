// A call on its way: checked, decided, composed of products or forwarded.
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

// Calls of this library that the thread is in: what the library's own OpenBLAS, or the next BLAS, calls by
// name comes back here. Four bytes of static TLS, since every call reads them.
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

// True if a call of this thread from that place may be emulated now; else it goes to the next BLAS, as do
// those that come from within a product of this library.
inline bool intercepts(const void* return_address) {
  if (in_force::calls_under_way != 0) return false;
  Interception interception = in_force::interception.load(std::memory_order_relaxed);
  if (interception == Interception::unknown) interception = in_force::read_interception();
  if (interception != Interception::by_site) return interception == Interception::all;
  const void* const compiled_site = announced_site();
  return !is_known_native(compiled_site != nullptr ? compiled_site : return_address);
}

// Forwards a call that is not intercepted, before its arguments are looked at. Returns false if the call must
// be answered: it may be emulated, or the next BLAS lacks its name.
template <class Callable>
bool forwarded(const Invocation& invocation, const Callable& forward) {
  if (intercepts(invocation.return_address)) return false;
  const CallUnderWay under_way;
  return forward();
}

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

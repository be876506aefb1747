// Decides, before the arguments of a call are read, whether the call may be emulated or must be recorded.
// Other calls are forwarded at once.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace kintsugi::drop_in {

// Calls that may be emulated or must be recorded, as the settings have it.
enum class Interception : std::uint8_t {
  unknown,  // the settings have not been read
  none,
  by_site,  // those of sites that are not native; no call is recorded
  all,
};
extern constinit std::atomic<Interception> interception;
// Reads the settings, at the program's first call.
Interception read_interception();

// The following variables are in static TLS in the drop-in for BLAS, since each of its calls reads them: a
// read takes two instructions there. There is little static TLS for libraries that a program loads while it
// runs.
#ifdef KINTSUGI_STATIC_TLS
#define KINTSUGI_TLS_MODEL __attribute__((tls_model("initial-exec")))
#else
#define KINTSUGI_TLS_MODEL
#endif

// Depth of nested calls of this library in this thread. Nested calls come from the hidden library, or from
// the OpenBLAS of Kintsugi, which call routines by exported name.
extern KINTSUGI_TLS_MODEL constinit thread_local int calls_under_way;

class CallUnderWay {
 public:
  CallUnderWay() { ++calls_under_way; }
  ~CallUnderWay() { --calls_under_way; }
  CallUnderWay(const CallUnderWay&) = delete;
  CallUnderWay& operator=(const CallUnderWay&) = delete;
};

// Record of the compiler pass for the site from which this thread's next call comes; nullptr: none. A program
// that was compiled with the pass sets it before the call and unsets it after the call.
extern KINTSUGI_TLS_MODEL constinit thread_local const void* announced_site;
// Returns the record, and removes it. Must be called at the beginning of a call, before anything can fail.
// Otherwise the thread's next call would get this call's site.
inline const void* take_announced_site() { return std::exchange(announced_site, nullptr); }

// Most threads of the call under way, those that the hidden library would use for it; 0: it does not say.
extern KINTSUGI_TLS_MODEL constinit thread_local int call_threads;

// Addresses of call sites that are known to be native: return addresses, and records of the compiler pass. A
// hash table that is only added to, so that it is read without a lock. A site whose places are taken is not
// in it, and is looked up at every call.
class NativeSites {
 public:
  bool has(const void* address) const {
    for (std::size_t probe = 0; probe < most_probes; ++probe) {
      const void* const known = addresses_[place_of(address, probe)].load(std::memory_order_relaxed);
      if (known == address) return address != nullptr;
      if (known == nullptr) return false;
    }
    return false;
  }
  // The caller holds `sites_mutex`.
  void add(const void* address) {
    for (std::size_t probe = 0; probe < most_probes; ++probe) {
      std::atomic<const void*>& place = addresses_[place_of(address, probe)];
      if (place.load(std::memory_order_relaxed) != nullptr) continue;
      return place.store(address, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr std::size_t places = 1024, most_probes = 4;

  static std::size_t place_of(const void* address, std::size_t probe) {
    const auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
    return (static_cast<std::size_t>((number * 0x9e3779b97f4a7c15u) >> 32) + probe) % places;
  }

  std::array<std::atomic<const void*>, places> addresses_{};
};
extern constinit NativeSites native_sites;

// True if a call of this thread that returns to `return_address` may be emulated or must be recorded. False
// if the settings, or the rule of the call's site, forward it. False, too, while this thread is inside a call
// of this library: then the call comes from the library's own native product.
inline bool intercepts(const void* return_address) {
  if (calls_under_way != 0) return false;
  Interception now = interception.load(std::memory_order_relaxed);
  if (now == Interception::unknown) now = read_interception();
  if (now != Interception::by_site) return now == Interception::all;
  const void* const announced = announced_site;
  return !native_sites.has(announced != nullptr ? announced : return_address);
}

}  // namespace kintsugi::drop_in

// Addresses of call sites that are known to be native: return addresses, and records of the compiler pass.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace kintsugi::blas {

namespace in_force {

// A hash table that is only added to, so that it is read without a lock. A site whose places are taken is not
// in it, and is looked up at every call.
inline constexpr std::size_t native_places = 1024;
inline constexpr std::size_t most_probes = 4;
extern constinit std::array<std::atomic<const void*>, native_places> native_addresses;

inline std::size_t place_of(const void* address, std::size_t probe) {
  const auto hash =
      static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address)) * 0x9e3779b97f4a7c15u;
  return (static_cast<std::size_t>(hash >> 32) + probe) % native_places;
}

}  // namespace in_force

inline bool is_known_native(const void* address) {
  for (std::size_t probe = 0; probe < in_force::most_probes; ++probe) {
    const void* const known =
        in_force::native_addresses[in_force::place_of(address, probe)].load(std::memory_order_relaxed);
    if (known == address) return address != nullptr;
    if (known == nullptr) return false;
  }
  return false;
}

// Adds a site's address; the caller holds `sites_mutex`.
void note_native(const void* address);

}  // namespace kintsugi::blas

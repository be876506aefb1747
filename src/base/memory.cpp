#include "base/memory.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <atomic>
#include <cstdint>
#include <cstring>

namespace kintsugi::core {

void prefer_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::size_t least_bytes = std::size_t{4} << 20;
  if (bytes < least_bytes) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
  const auto last = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / page * page;
  ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);  // failure changes nothing
#endif
}

bool has_address_space(std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  void* const trial = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (trial == MAP_FAILED) return false;
  ::munmap(trial, bytes);
  return true;
}

namespace {

// Smaller blocks are left to malloc. It would give the pages of larger ones back, and the system would clear
// them for the next call: half of the time of an exact product with n = 64.
constexpr std::size_t least_kept_bytes = std::size_t{64} << 10;
constexpr std::size_t most_kept_bytes = std::size_t{1} << 30;

// The kept block. Its first bytes hold its size.
std::atomic<std::size_t*> kept_block = nullptr;

void delete_block(void* pointer) { ::operator delete (pointer, std::align_val_t{workspace_alignment}); }

}  // namespace

HostBlock allocate_block(std::size_t bytes) {
  if (bytes >= least_kept_bytes) {
    if (std::size_t* const kept = kept_block.exchange(nullptr)) {
      if (*kept >= bytes) return {kept, *kept};
      delete_block(kept);
    }
  }
  void* const pointer = ::operator new (bytes, std::align_val_t{workspace_alignment}, std::nothrow);
  if (pointer != nullptr) prefer_huge_pages(pointer, bytes);
  return {pointer, bytes};
}

void free_block(const HostBlock& block) {
  if (block.pointer == nullptr) return;
  if (block.bytes < least_kept_bytes || block.bytes > most_kept_bytes) return delete_block(block.pointer);
  auto* const kept = static_cast<std::size_t*>(block.pointer);
  *kept = block.bytes;
  if (std::size_t* const before = kept_block.exchange(kept)) delete_block(before);
}

void release_kept_block() {
  if (std::size_t* const kept = kept_block.exchange(nullptr)) delete_block(kept);
}

#if defined(__SSE2__)
namespace {

constexpr std::size_t line_bytes = 64;

void stream_line(std::byte* target, const std::byte* source) {
  constexpr std::size_t vectors = line_bytes / sizeof(__m128i);
  __m128i line[vectors];
  for (std::size_t v = 0; v < vectors; ++v)
    line[v] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source) + v);
  for (std::size_t v = 0; v < vectors; ++v) _mm_stream_si128(reinterpret_cast<__m128i*>(target) + v, line[v]);
}

}  // namespace

void streaming_copy(std::byte* target, const std::byte* source, std::size_t bytes) {
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(target) % line_bytes;
  const std::size_t before = misaligned == 0 ? 0 : line_bytes - misaligned;
  if (bytes < before + line_bytes) {
    std::memcpy(target, source, bytes);
    return;
  }
  std::memcpy(target, source, before);
  std::size_t done = before;
  for (; bytes - done >= line_bytes; done += line_bytes) stream_line(target + done, source + done);
  std::memcpy(target + done, source + done, bytes - done);
  _mm_sfence();  // streamed lines are visible before what the thread stores next
}
#else
void streaming_copy(std::byte* target, const std::byte* source, std::size_t bytes) {
  std::memcpy(target, source, bytes);
}
#endif

}  // namespace kintsugi::core

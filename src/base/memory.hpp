// Memory of a call: the caller's allocator or the library's, a workspace divided into arrays, and copies past
// the caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "base/status.hpp"

namespace kintsugi::core {

inline constexpr std::size_t workspace_alignment = 256;

constexpr std::size_t aligned_size(std::size_t bytes) {
  return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

// Bytes of rows * columns elements, rounded up to the alignment; fails if the number of bytes overflows.
inline std::size_t array_bytes(std::int64_t rows, std::int64_t columns, std::size_t element) {
  std::size_t count = 0;
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(rows), static_cast<std::size_t>(columns), &count) ||
      __builtin_mul_overflow(count, element, &bytes) || bytes > SIZE_MAX / 4) {
    fail(Status::out_of_memory, "an array of {} x {} elements of {} bytes does not fit the address space",
         rows, columns, element);
  }
  return aligned_size(bytes);
}

// The caller's functions; null functions stand for the library's own allocation.
struct Allocator {
  void* (*allocate)(void* user, std::size_t bytes, std::size_t alignment) = nullptr;
  void (*deallocate)(void* user, void* pointer, std::size_t bytes) = nullptr;
  void* user = nullptr;

  friend bool operator==(const Allocator&, const Allocator&) = default;
};

// Asks the system for pages of megabytes, where madvise() can do so. A workspace is written once per call,
// and each page of 4 KiB would cost a page fault: together up to a tenth of the time of a product with m = n
// = k = 2048.
void prefer_huge_pages(void* memory, std::size_t bytes);

// True if RLIMIT_AS leaves room for so many bytes more. Where it does not, OpenMP ends the program, and
// OpenBLAS ends it or never returns, so calls try beforehand.
bool has_address_space(std::size_t bytes);

// Large blocks of the library's own allocation. The last one that was freed is kept for the next call: new
// pages must be cleared by the system, which would take a quarter of a product with m = n = k = 1024.
// kintsugi_release_caches() frees it. (MADV_FREE for kept blocks made sandboxes clear the pages again.)
struct HostBlock {
  void* pointer = nullptr;
  std::size_t bytes = 0;  // at least those asked for
};
HostBlock allocate_block(std::size_t bytes);  // pointer is null if there is no memory
void free_block(const HostBlock& block);
void release_kept_block();

// Owned host memory; null if the allocator returned nothing.
class HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(const Allocator& allocator, std::size_t bytes) : allocator_(allocator), bytes_(bytes) {
    if (bytes == 0) return;
    if (allocator.allocate != nullptr) {
      pointer_ = allocator.allocate(allocator.user, bytes, workspace_alignment);
      return;
    }
    block_ = allocate_block(bytes);
    pointer_ = block_.pointer;
  }
  HostBuffer(HostBuffer&& other) noexcept
      : allocator_(other.allocator_), pointer_(std::exchange(other.pointer_, nullptr)), bytes_(other.bytes_),
        block_(other.block_) {}
  HostBuffer& operator=(HostBuffer&& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(pointer_, other.pointer_);
    std::swap(bytes_, other.bytes_);
    std::swap(block_, other.block_);
    return *this;
  }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  ~HostBuffer() {
    if (pointer_ == nullptr) return;
    if (allocator_.allocate != nullptr) {
      allocator_.deallocate(allocator_.user, pointer_, bytes_);
    } else {
      free_block(block_);
    }
  }

  void* pointer() const { return pointer_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Allocator allocator_;
  void* pointer_ = nullptr;
  std::size_t bytes_ = 0;
  HostBlock block_{};  // if there is no allocator
};

// Gives out aligned arrays of a workspace, from its beginning to its end. A counting workspace has no memory
// and gives out null pointers. Its taken() is the size of a workspace that serves the same calls.
class Workspace {
 public:
  Workspace(void* pointer, std::size_t bytes) : next_(static_cast<std::byte*>(pointer)), left_(bytes) {}

  static Workspace counting() {
    Workspace counter(nullptr, SIZE_MAX / 2);
    counter.counts_ = true;
    return counter;
  }

  std::byte* take(std::size_t bytes) {
    const std::size_t array_size = aligned_size(bytes);
    if (array_size > left_) {
      fail(Status::internal, "the plan's workspace size is too small: a step takes {} bytes, {} are left",
           array_size, left_);
    }
    left_ -= array_size;
    taken_ += array_size;
    return counts_ ? nullptr : std::exchange(next_, next_ + array_size);
  }

  // Returns an array of rows x columns elements.
  template <class T>
  T* take_array(std::int64_t rows, std::int64_t columns = 1) {
    return reinterpret_cast<T*>(take(array_bytes(rows, columns, sizeof(T))));
  }

  std::size_t taken() const { return taken_; }

 private:
  std::byte* next_;
  std::size_t left_;
  std::size_t taken_ = 0;
  bool counts_ = false;
};

template <class LayOut>
std::size_t bytes_of_layout(const LayOut& lay_out) {
  Workspace counter = Workspace::counting();
  lay_out(counter);
  return counter.taken();
}

// Copies like memcpy, but past the caches: the cache lines of the target are not read first. Four threads of
// a Xeon copy chunks of 2 MiB at 45 GB/s; with memcpy they reach 25 GB/s.
void streaming_copy(std::byte* target, const std::byte* source, std::size_t bytes);

}  // namespace kintsugi::core

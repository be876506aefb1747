#include "engines/cuda/common/memory_pool.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <numeric>
#include <set>
#include <thread>

#include "base/threads.hpp"
#include "engines/cuda/device.hpp"

namespace kintsugi::core::cuda {

namespace {

// The stream that may use a piece of memory. Threads share the handle of the per-thread default stream, which
// is another stream in each of them.
struct Owner {
  unsigned long long capture = 0;
  Stream stream = nullptr;
  std::thread::id thread;

  friend bool operator==(const Owner&, const Owner&) = default;
};

Owner owner_of(const CapturedStream& captured) {
  auto* const per_thread = reinterpret_cast<Stream>(2);  // CU_STREAM_PER_THREAD
  return {captured.capture, captured.stream,
          captured.stream == per_thread ? std::this_thread::get_id() : std::thread::id()};
}

// A piece of memory. The driver may set `is_retained` to false at any time.
struct Piece {
  DeviceContext context;
  std::size_t bytes = 0;
  Owner owner;
  Address address = 0;
  bool is_used = true;                    // by a call or an object of the library
  std::atomic<bool> is_retained = false;  // by a graph, or by an execution of it

  bool is_spare() const { return !is_used && !is_retained.load(std::memory_order_acquire); }
};

// All pieces, in a list, since the driver has their addresses. Never destroyed, since the driver may release
// graphs after static objects were destroyed. Locked by lock_shared_state().
std::list<Piece>& pieces() {
  static auto* instance = new std::list<Piece>;
  return *instance;
}
constinit std::atomic<int> used_pieces = 0;

// The driver calls this function, in any thread, when no graph retains the piece any more and all executions
// of these graphs have ended. It must not call the driver.
void note_release(void* piece) {
  static_cast<Piece*>(piece)->is_retained.store(false, std::memory_order_release);
}

// Keeps this library in memory, since the driver may call note_release() at any time.
void keep_library_loaded() {
  Dl_info library;
  if (::dladdr(reinterpret_cast<void*>(&note_release), &library) != 0)
    ::dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void set_used(Piece& piece, bool is_used) {
  if (piece.is_used != is_used) used_pieces += is_used ? 1 : -1;
  piece.is_used = is_used;
}

// Makes the graph retain the piece.
Result retain(Piece& piece, Graph graph) {
  const RelaxedCaptureMode relaxed;
  UserObject object = nullptr;
  piece.is_retained = true;
  Result result =
      driver().user_object_create(&object, &piece, note_release, 1, object_without_synchronization);
  if (result != 0) {
    piece.is_retained = false;
    return result;
  }
  result = driver().graph_retain_object(graph, object, 1, move_reference_to_graph);
  if (result != 0) driver().user_object_release(object, 1);  // calls note_release()
  return result;
}

// Moves spare pieces from the list to the returned one. `device`: number of their device; -1: any.
std::list<Piece> take_spare(int device) {
  std::list<Piece> spare;
  const auto lock = lock_shared_state();
  for (auto piece = pieces().begin(); piece != pieces().end();) {
    const auto next = std::next(piece);
    if (piece->is_spare() && (device < 0 || piece->context.device == device))
      spare.splice(spare.end(), pieces(), piece);
    piece = next;
  }
  return spare;
}

// Frees spare pieces; the list is not locked meanwhile, since the driver waits for the device. Memory of
// destroyed contexts is free already. Pieces that the driver does not free go back to the list. Returns false
// if there is no spare piece.
bool free_spare(int device) {
  std::list<Piece> spare = take_spare(device);
  if (spare.empty()) return false;
  {
    const RelaxedCaptureMode relaxed;
    spare.remove_if([](const Piece& piece) {
      const ContextScope scope(piece.context);
      return !scope.entered() || driver().memory_free(piece.address) == 0;
    });
  }
  const auto lock = lock_shared_state();
  pieces().splice(pieces().end(), spare);
  return true;
}

// Returns the smallest unused piece that has the bytes: one of the same captured stream, or a spare one of
// the context that is at most twice as large. Marks it as used. Returns nullptr if there is none.
Piece* take_piece(std::size_t bytes, const Owner& owner, const DeviceContext& context) {
  const auto lock = lock_shared_state();
  Piece* found = nullptr;
  for (Piece& piece : pieces()) {
    if (piece.is_used || piece.bytes < bytes || piece.context != context) continue;
    const bool is_spare = piece.is_spare();
    const bool fits = is_spare ? piece.bytes / 2 <= bytes : piece.owner == owner;
    if (fits && (found == nullptr || piece.bytes < found->bytes)) found = &piece;
  }
  if (found == nullptr) return nullptr;
  set_used(*found, true);
  found->owner = owner;
  return found;
}

void drop(const Piece* dropped) {
  const auto lock = lock_shared_state();
  --used_pieces;
  pieces().remove_if([&](const Piece& piece) { return &piece == dropped; });
}

// True if an eighth of the device's memory stays free when `bytes` are allocated.
bool leaves_memory_free(std::size_t bytes) {
  const RelaxedCaptureMode relaxed;
  std::size_t free = 0, all = 0;
  return driver().memory_info(&free, &all) == 0 && free >= bytes && free - bytes >= all / 8;
}

// Adds a piece without memory. Returns nullptr if the device's pieces would exceed `limit`, as
// allocate_for_graph() says, or if more than kept_bytes_of_pool are spare: then spare pieces should be freed
// first.
Piece* add_piece(std::size_t bytes, const Owner& owner, const DeviceContext& context, std::size_t limit) {
  const auto lock = lock_shared_state();
  std::size_t all = bytes, spare = 0;
  bool has_equal = false;
  std::set<std::size_t> sizes = {bytes};
  for (const Piece& piece : pieces()) {
    if (piece.context.device != context.device) continue;
    all += piece.bytes;
    sizes.insert(piece.bytes);
    if (piece.is_spare()) spare += piece.bytes;
    has_equal = has_equal || (piece.bytes == bytes && !piece.is_spare());
  }
  const std::size_t of_sizes = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  const bool is_beyond_limit = limit > 0 && all > limit;
  if (is_beyond_limit && !((has_equal || of_sizes <= limit) && leaves_memory_free(bytes))) return nullptr;
  if (spare > kept_bytes_of_pool) return nullptr;
  Piece& added = pieces().emplace_back();
  added.context = context;
  added.bytes = bytes;
  added.owner = owner;
  ++used_pieces;
  return &added;
}

// Allocates the memory of an added piece; drops the piece if there is none.
Result allocate(Piece& piece) {
  const RelaxedCaptureMode relaxed;
  Result result = driver().memory_allocate(&piece.address, piece.bytes);
  if (result == error_out_of_memory && free_spare(piece.context.device))
    result = driver().memory_allocate(&piece.address, piece.bytes);
  if (result != 0) drop(&piece);
  return result;
}

}  // namespace

CapturedStream captured_stream(Stream stream) {
  CapturedStream captured{.stream = stream};
  int status = 0;
  check(driver().stream_capture_info(stream, &status, &captured.capture, &captured.graph, nullptr, nullptr),
        "cuStreamGetCaptureInfo");
  if (status != active_capture) captured.graph = nullptr;
  return captured;
}

Result allocate_for_graph(Address* result, std::size_t bytes, const CapturedStream& captured,
                          std::size_t limit) {
  const DeviceContext context = current_context();
  const Owner owner = owner_of(captured);
  Piece* piece = take_piece(bytes, owner, context);
  if (piece == nullptr) {
    piece = add_piece(bytes, owner, context, limit);
    if (piece == nullptr && free_spare(context.device)) piece = add_piece(bytes, owner, context, limit);
    if (piece == nullptr) return error_out_of_memory;
    keep_library_loaded();
    if (const Result allocated = allocate(*piece); allocated != 0) return allocated;
  }
  *result = piece->address;
  // A piece that is retained already belongs to this captured stream.
  if (piece->is_retained) return 0;
  const Result retained = retain(*piece, captured.graph);
  if (retained != 0) deallocate_for_graph(piece->address);
  return retained;
}

bool deallocate_for_graph(Address address) noexcept {
  if (used_pieces == 0) return false;
  const auto lock = lock_shared_state();
  const auto found = std::ranges::find_if(
      pieces(), [&](const Piece& piece) { return piece.is_used && piece.address == address; });
  if (found == pieces().end()) return false;
  set_used(*found, false);
  return true;
}

void release_graph_memory() noexcept { free_spare(-1); }

}  // namespace kintsugi::core::cuda

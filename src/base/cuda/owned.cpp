#include "base/cuda/owned.hpp"

namespace kintsugi::core::cuda {

namespace {

Address address(const std::byte* pointer) { return reinterpret_cast<Address>(pointer); }

class OwnedEvent {
 public:
  OwnedEvent() { check(driver().event_create(&event_, 0), "cuEventCreate"); }
  ~OwnedEvent() { driver().event_destroy(event_); }
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;

  void record(Stream stream) const { check(driver().event_record(event_, stream), "cuEventRecord"); }
  double seconds_since(const OwnedEvent& start) const {
    float milliseconds = 0;
    check(driver().event_synchronize(event_), "cuEventSynchronize");
    check(driver().event_elapsed(&milliseconds, start.event_, event_), "cuEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  Event event_ = nullptr;
};

}  // namespace

OwnedMemory::OwnedMemory(std::size_t bytes) : bytes_(bytes) {
  ensure_context();
  if (bytes > 0) check(driver().memory_allocate(&address_, bytes), "cuMemAlloc");
}

OwnedMemory::~OwnedMemory() {
  if (address_ != 0) driver().memory_free(address_);
}

OwnedStream::OwnedStream() {
  constexpr unsigned non_blocking = 1;
  ensure_context();
  check(driver().stream_create(&stream_, non_blocking), "cuStreamCreate");
}

OwnedStream::~OwnedStream() { driver().stream_destroy(stream_); }

void OwnedStream::upload(std::byte* target, const void* host, std::size_t bytes) const {
  check(driver().copy_to_device_async(address(target), host, bytes, stream_), "cuMemcpyHtoDAsync");
}

void OwnedStream::download(void* host, const std::byte* source, std::size_t bytes) const {
  check(driver().copy_to_host_async(host, address(source), bytes, stream_), "cuMemcpyDtoHAsync");
}

void OwnedStream::copy(std::byte* target, const std::byte* source, std::size_t bytes) const {
  check(driver().copy_on_device_async(address(target), address(source), bytes, stream_), "cuMemcpyDtoDAsync");
}

void OwnedStream::fill(std::byte* target, unsigned char value, std::size_t bytes) const {
  check(driver().set_bytes_async(address(target), value, bytes, stream_), "cuMemsetD8Async");
}

void OwnedStream::synchronize() const { check(driver().stream_synchronize(stream_), "cuStreamSynchronize"); }

double OwnedStream::seconds_of(const std::function<void()>& enqueue,
                               const std::function<void()>& meanwhile) const {
  const OwnedEvent start;
  const OwnedEvent end;
  start.record(stream_);
  enqueue();
  end.record(stream_);
  if (meanwhile) meanwhile();
  return end.seconds_since(start);
}

OwnedGraph::OwnedGraph(const OwnedStream& stream, const std::function<void()>& enqueue) {
  constexpr int capture_mode_thread_local = 1;
  Graph captured = nullptr;
  check(driver().stream_begin_capture(stream.native(), capture_mode_thread_local), "cuStreamBeginCapture");
  try {
    enqueue();
  } catch (...) {  // a stream left in capture accepts no other work
    driver().stream_end_capture(stream.native(), &captured);
    if (captured != nullptr) driver().graph_destroy(captured);
    throw;
  }
  check(driver().stream_end_capture(stream.native(), &captured), "cuStreamEndCapture");
  const Result result = driver().graph_instantiate(&graph_, captured, 0);
  driver().graph_destroy(captured);
  check(result, "cuGraphInstantiateWithFlags");
}

OwnedGraph::~OwnedGraph() { driver().graph_exec_destroy(graph_); }

void OwnedGraph::launch(const OwnedStream& stream) const {
  check(driver().graph_launch(graph_, stream.native()), "cuGraphLaunch");
}

}  // namespace kintsugi::core::cuda

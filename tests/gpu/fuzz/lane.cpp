#include "gpu/fuzz/lane.hpp"

#include <cstring>
#include <new>

#include "tools/measure/machine/device.hpp"

namespace kintsugi::test {
namespace {

struct FreeAligned {
  void operator()(std::byte* pointer) const { ::operator delete(pointer, std::align_val_t(256)); }
};
using AlignedBytes = std::unique_ptr<std::byte, FreeAligned>;

AlignedBytes aligned_bytes(std::size_t bytes) {
  return AlignedBytes(static_cast<std::byte*>(::operator new(bytes, std::align_val_t(256))));
}

class HostLane : public Lane {
 public:
  std::byte* matrices() const override { return matrices_.get(); }
  std::byte* workspace() const override { return workspace_.get(); }
  std::byte* host_matrices() const override { return matrices_.get(); }
  kintsugi_queue queue() const override { return {KINTSUGI_QUEUE_HOST, 0, nullptr}; }
  void upload(std::byte* target, const void* source, std::size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }
  void download(void* target, const std::byte* source, std::size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }
  void fill(std::byte* target, unsigned char value, std::size_t bytes) const override {
    std::memset(target, value, bytes);
  }
  void synchronize() const override {}
  void replay(const std::function<void()>& enqueue, int launches,
              const std::function<void(int)>& before) const override {
    for (int launch = 0; launch < launches; ++launch) {
      before(launch);
      enqueue();
    }
  }

 private:
  AlignedBytes matrices_ = aligned_bytes(matrix_bytes);
  AlignedBytes workspace_ = aligned_bytes(workspace_bytes);
};

class DeviceLane : public Lane {
 public:
  std::byte* matrices() const override { return matrices_.data(); }
  std::byte* workspace() const override { return workspace_.data(); }
  std::byte* host_matrices() const override { return host_matrices_.get(); }
  kintsugi_queue queue() const override { return {KINTSUGI_QUEUE_CUDA, 0, stream_.native()}; }
  void upload(std::byte* target, const void* source, std::size_t bytes) const override {
    stream_.upload(target, source, bytes);
  }
  void download(void* target, const std::byte* source, std::size_t bytes) const override {
    stream_.download(target, source, bytes);
  }
  void fill(std::byte* target, unsigned char value, std::size_t bytes) const override {
    stream_.fill(target, value, bytes);
  }
  void synchronize() const override { stream_.synchronize(); }
  void replay(const std::function<void()>& enqueue, int launches,
              const std::function<void(int)>& before) const override {
    const measure::DeviceGraph graph(stream_, enqueue);
    for (int launch = 0; launch < launches; ++launch) {
      before(launch);
      graph.launch(stream_);
      stream_.synchronize();
    }
  }

 private:
  measure::DeviceStream stream_;
  measure::DeviceMemory matrices_{matrix_bytes};
  measure::DeviceMemory workspace_{workspace_bytes};
  AlignedBytes host_matrices_ = aligned_bytes(matrix_bytes);
};

}  // namespace

std::unique_ptr<Lane> make_host_lane() { return std::make_unique<HostLane>(); }
std::unique_ptr<Lane> make_device_lane() { return std::make_unique<DeviceLane>(); }

}  // namespace kintsugi::test

// Streams and captured calls of a device, for tests of whole calls.
#pragma once

#include "gpu/calls/device_gemm.hpp"

namespace kintsugi::test {

namespace cuda = core::cuda;

class Stream {
 public:
  Stream() {
    prepare_device();
    constexpr unsigned non_blocking = 1;
    cuda::check(cuda::driver().stream_create(&stream_, non_blocking), "cuStreamCreate");
  }
  ~Stream() { cuda::driver().stream_destroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  void wait() const { cuda::check(cuda::driver().stream_synchronize(stream_), "cuStreamSynchronize"); }
  kintsugi_queue queue() const { return {KINTSUGI_QUEUE_CUDA, 0, stream_}; }
  cuda::Stream get() const { return stream_; }

 private:
  cuda::Stream stream_ = nullptr;
};

// Waits for uploads in the default stream, for which work in other streams would not wait.
inline void wait_for_uploads() { cuda::check(cuda::driver().context_synchronize(), "cuCtxSynchronize"); }

// A captured execution of a plan, in the strictest capture mode.
class CapturedCall {
 public:
  CapturedCall(const Stream& stream, kintsugi_handle handle, kintsugi_plan plan,
               const kintsugi_operands& operands)
      : stream_(stream) {
    wait_for_uploads();
    constexpr int global_mode = 0;
    cuda::check(cuda::driver().stream_begin_capture(stream.get(), global_mode), "cuStreamBeginCapture");
    EXPECT_EQ(kintsugi_plan_execute(handle, plan, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
    cuda::check(cuda::driver().stream_end_capture(stream.get(), &graph_), "cuStreamEndCapture");
    cuda::check(cuda::driver().graph_instantiate(&exec_, graph_, 0), "cuGraphInstantiate");
  }
  ~CapturedCall() {
    cuda::driver().graph_exec_destroy(exec_);
    cuda::driver().graph_destroy(graph_);
  }
  CapturedCall(const CapturedCall&) = delete;
  CapturedCall& operator=(const CapturedCall&) = delete;
  // Launches the graph with the data uploaded until now, and waits for it.
  void replay() const {
    wait_for_uploads();
    cuda::check(cuda::driver().graph_launch(exec_, stream_.get()), "cuGraphLaunch");
    stream_.wait();
  }

 private:
  const Stream& stream_;
  cuda::Graph graph_ = nullptr;
  cuda::GraphExec exec_ = nullptr;
};

// Expects errors of at most `units` unit roundoffs of |A||B|.
template <class T>
void expect_accurate(GemmDataOf<T>& data, double units, const std::vector<T>& c_before = {}) {
  const double unit = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-53;
  for (const measure::ElementError& element : element_errors(data, c_before)) {
    ASSERT_LE(element.error, units * unit * element.absolute + 1e-300)
        << "element " << element.i << ", " << element.j;
  }
}

}  // namespace kintsugi::test

// Streams of a device, and what tests of whole calls share.
#pragma once

#include "gpu/calls/device_gemm.hpp"

namespace kintsugi::test {

namespace cuda = core::cuda;

class Stream {
 public:
  Stream() {
    device_engine();
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

// Work in a stream waits for nothing: what the default stream uploaded has to be there before.
inline void settle() { cuda::check(cuda::driver().context_synchronize(), "cuCtxSynchronize"); }

// A plan's execution, captured in the strictest mode.
class CapturedCall {
 public:
  CapturedCall(const Stream& stream, kintsugi_handle handle, kintsugi_plan plan,
               const kintsugi_operands& operands)
      : stream_(stream) {
    settle();
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
  // Once more, with what has been uploaded until now; returns when it is done.
  void replay() const {
    settle();
    cuda::check(cuda::driver().graph_launch(exec_, stream_.get()), "cuGraphLaunch");
    stream_.wait();
  }

 private:
  const Stream& stream_;
  cuda::Graph graph_ = nullptr;
  cuda::GraphExec exec_ = nullptr;
};

// Against the exact result: as a native product, whatever ran.
template <class T>
void expect_accurate(GemmDataOf<T>& data, double units) {
  const double unit = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-53;
  for (const lab::ElementError& element : element_errors(data)) {
    ASSERT_LE(element.error, units * unit * element.absolute + 1e-300)
        << "element " << element.i << ", " << element.j;
  }
}

}  // namespace kintsugi::test

// Contexts and captures of several fake devices, and the fixture of their tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "fakes/device_call.hpp"
#include "tests/support/c_objects.hpp"

namespace kintsugi::test {

using core::cuda::driver;

// The variable is set before the driver is opened, since the library counts devices once. Device 2 is for
// tests that need a device without loaded kernels.
inline const int three_devices = ::setenv("FAKE_CUDA_DEVICES", "3", 1);

// Makes a context the thread's current one for the lifetime of the object.
class CurrentContext {
 public:
  explicit CurrentContext(void* context) {
    EXPECT_EQ(driver().context_push(static_cast<core::cuda::Context>(context)), 0);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext() {
    core::cuda::Context popped = nullptr;
    driver().context_pop(&popped);
  }
};

inline void* primary_context(int device) {
  core::cuda::Context context = nullptr;
  EXPECT_EQ(driver().primary_context_retain(&context, core::cuda::device_at(device)), 0);
  return context;
}

class Capture {
 public:
  explicit Capture(const Stream& stream) : stream_(stream) {
    EXPECT_EQ(driver().stream_begin_capture(stream.get(), 0), 0);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    core::cuda::Graph graph = nullptr;
    EXPECT_EQ(driver().stream_end_capture(stream_.get(), &graph), 0) << "the capture was spoiled";
    if (graph != nullptr) driver().graph_destroy(graph);
  }

 private:
  const Stream& stream_;
};

class Contexts : public OverFakes {
 protected:
  static void expect_refused(Call& call, const testing::Matcher<std::string>& message) {
    fake_cuda_forget();
    EXPECT_EQ(call.execute(), KINTSUGI_INVALID_ARGUMENT);
    EXPECT_THAT(kintsugi_last_error(), message);
    EXPECT_THAT(events(), testing::IsEmpty());
  }
  static json described_engine() {
    const json document = Handle::text(kintsugi_describe_engines);
    for (const json& engine : document.at("engines")) {
      if (engine.at("name") == "cuda") return engine;
    }
    return {};
  }
};

}  // namespace kintsugi::test

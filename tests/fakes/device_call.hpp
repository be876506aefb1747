// Calls of the C ABI on matrices in the fake device's memory, which is host memory.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/cuda/cuda_driver.hpp"
#include "base/text/format_text.hpp"
#include "engines/cuda/common/launch.hpp"
#include "fakes/steering.hpp"
#include "kintsugi/kintsugi.h"

namespace kintsugi::test {

class Stream {
 public:
  Stream() { core::cuda::driver().stream_create(&stream_, 0); }
  ~Stream() { core::cuda::driver().stream_destroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  void* get() const { return stream_; }
  std::string text() const { return fmt::format("stream={}", stream_); }

 private:
  core::cuda::Stream stream_ = nullptr;
};

// Driver calls that wait for the device, or may wait: a call on a CUDA queue must make none of them. Memory
// for a graph is allocated by cuMemAlloc.
inline constexpr std::array waiting_functions{"cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize",
                                              "cuMemFree ", "cuMemFree\n"};

inline std::vector<std::string> events_with(const std::string& text) {
  std::vector<std::string> found;
  for (const std::string& event : events()) {
    if ((event + "\n").find(text) != std::string::npos) found.push_back(event);
  }
  return found;
}

// Returns the name of a launched kernel, or that of the function called.
inline std::string name_of(const std::string& event) {
  std::string name = event.substr(0, event.find(' '));
  if (name == "cuLaunchKernel")
    name = event.substr(name.size() + 1, event.find(' ', name.size() + 1) - name.size() - 1);
  return name;
}

// Returns the names of all events, without settings of cuBLAS and the loading of kernels.
inline std::vector<std::string> work() {
  std::vector<std::string> names;
  for (const std::string& event : events()) {
    const std::string name = name_of(event);
    if (name.find("cublasSet") != 0 && name.find("cuKernel") != 0 && name.find("cuLibrary") != 0)
      names.push_back(name);
  }
  return names;
}

inline void expect_no_waiting_in_capture() {
  for (const char* name : waiting_functions) EXPECT_THAT(events_with(name), testing::IsEmpty()) << name;
}

inline void expect_no_waiting() {
  expect_no_waiting_in_capture();
  EXPECT_THAT(events_with("cuMemAlloc "), testing::IsEmpty());
}

inline void expect_all_on(const Stream& stream) {
  for (const std::string& event : events_with("stream="))
    EXPECT_THAT(event, testing::HasSubstr(stream.text()));
}

// A product whose matrices the call takes for device memory.
struct Call {
  const Stream& stream;
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  kintsugi_handle handle = nullptr;
  kintsugi_plan plan = nullptr;
  std::vector<float> a, b, c;
  float alpha = 2;
  float beta = 0.5;
  struct Free {
    void operator()(void* pointer) const { std::free(pointer); }
  };
  std::unique_ptr<void, Free> workspace;

  Call(std::int64_t m, std::int64_t n, std::int64_t k, const Stream& on, bool is_executed = true)
      : stream(on) {
    problem.m = problem.lda = problem.ldc = m;
    problem.n = n;
    problem.k = problem.ldb = k;
    problem.memory = KINTSUGI_DEVICE;
    options.queue = {KINTSUGI_QUEUE_CUDA, 0, stream.get()};
    operands.alpha = &alpha;
    operands.beta = &beta;
    if (!is_executed) return;
    a.assign(static_cast<std::size_t>(m * k), 1);
    b.assign(static_cast<std::size_t>(k * n), 1);
    c.assign(static_cast<std::size_t>(m * n), 7);
    operands.a = a.data();
    operands.b = b.data();
    operands.c = c.data();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    kintsugi_plan_destroy(plan);
    kintsugi_destroy(handle);
  }

  void make_plan() {
    kintsugi_plan_destroy(plan);
    plan = nullptr;
    ASSERT_EQ(kintsugi_plan_create(handle, &problem, &options, &plan), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
  }
  void bring_workspace() {
    ASSERT_EQ(kintsugi_plan_workspace_size(plan, &operands.workspace_size), KINTSUGI_SUCCESS);
    workspace.reset(std::aligned_alloc(256, std::max<std::size_t>(operands.workspace_size, 256)));
    operands.workspace = workspace.get();
  }
  kintsugi_status execute() { return kintsugi_plan_execute(handle, plan, &operands); }

  // Executes the plan. The recorded events are those of the execution alone, which must neither wait nor use
  // another stream.
  void run() {
    fake_cuda_forget();
    ASSERT_EQ(execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
    expect_no_waiting();
    expect_all_on(stream);
  }
  void run_in_workspace() {
    make_plan();
    bring_workspace();
    run();
    EXPECT_THAT(events_with("Alloc"), testing::IsEmpty());
    EXPECT_THAT(events_with("Free"), testing::IsEmpty());
  }
};

// A product of which only the plan is made. It has no matrices: some tests plan gigabytes.
struct PlannedCall : Call {
  PlannedCall(std::int64_t m, std::int64_t n, std::int64_t k, const Stream& on) : Call(m, n, k, on, false) {}
};

// Prepares an operand of a call, which must have a plan, without copying it.
class Prepared {
 public:
  Prepared(const Call& call, kintsugi_side side) {
    EXPECT_EQ(kintsugi_prepare_borrowed(nullptr, call.plan, side,
                                        side == KINTSUGI_A ? call.operands.a : call.operands.b, &prepared_),
              KINTSUGI_SUCCESS)
        << kintsugi_last_error();
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  ~Prepared() { kintsugi_prepared_destroy(prepared_); }
  kintsugi_prepared get() const { return prepared_; }

 private:
  kintsugi_prepared prepared_ = nullptr;
};

class OverFakes : public testing::Test {
 protected:
  void SetUp() override {
    if (core::cuda::engine_images().empty()) GTEST_SKIP() << "built without device code";
    // Makes the engine do what it does once, so that its events are not those of a test.
    const Stream stream;
    Call first(8, 8, 8, stream);
    first.make_plan();
    fake_cuda_forget();
  }
};

}  // namespace kintsugi::test

// Tests several devices and several contexts of a device over the fakes: capability and profile of the
// current device, and which plans, streams and prepared operands a context accepts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engines/cuda/device.hpp"
#include "fakes/contexts.hpp"

namespace kintsugi::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Kernels of Hopper run on the Hopper device only, whether it is the first or the second.
TEST_F(Contexts, KernelsAreThoseOfTheCurrentDevice) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  for (const int hopper : {0, 1}) {
    const FakeVariable mixed("FAKE_CUDA_CAPABILITY", hopper == 0 ? "9.0,8.0" : "8.0,9.0");
    for (const int device : {0, 1}) {
      const CurrentContext current(primary_context(device));
      const Stream stream;
      for (const char* scheme : {"fp16x3", "int8x6"}) {
        Call call(300, 400, 256, stream);
        call.options.scheme = scheme;
        call.make_plan();
        call.run();
        EXPECT_EQ(events_with("_mma").empty(), device == hopper) << scheme << " on device " << device;
      }
    }
  }
}

// A device with the name of a measured one but another architecture does not get that profile.
TEST_F(Contexts, ProfilesAreThoseOfTheCurrentArchitecture) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  for (const int hopper : {0, 1}) {
    const FakeVariable mixed("FAKE_CUDA_CAPABILITY", hopper == 0 ? "9.0,10.0" : "10.0,9.0");
    for (const int device : {0, 1}) {
      const CurrentContext current(primary_context(device));
      const Stream stream;
      for (const kintsugi_type type : {KINTSUGI_F32, KINTSUGI_C32}) {
        Call call(4096, 4096, 4096, stream);
        call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = type;
        call.make_plan();
        const json plan = Handle::text(
            [&](char* b, size_t c, size_t* n) { return kintsugi_plan_describe(call.plan, b, c, n); });
        const bool is_predicted = plan.dump().find("not measured") != std::string::npos;
        EXPECT_EQ(is_predicted, device != hopper) << "device " << device << ": " << plan;
      }
    }
  }
}

TEST_F(Contexts, AvailabilityIsThatOfTheCurrentDevice) {
  for (const int old : {0, 1}) {
    const FakeVariable mixed("FAKE_CUDA_CAPABILITY", old == 0 ? "7.5,9.0" : "9.0,7.5");
    const std::string lack =
        fmt::format("device {} (NVIDIA Fake, compute capability 7.5): 8.0 or newer is needed", old);
    for (const int device : {0, 1}) {
      const CurrentContext current(primary_context(device));
      const Stream stream;
      Call call(8, 8, 8, stream);
      const kintsugi_status status = kintsugi_plan_create(nullptr, &call.problem, &call.options, &call.plan);
      EXPECT_EQ(status, device == old ? KINTSUGI_ENGINE_UNAVAILABLE : KINTSUGI_SUCCESS);
      if (device == old) {
        EXPECT_THAT(kintsugi_last_error(), HasSubstr(lack));
      }
      const json engine = described_engine();
      EXPECT_EQ(engine.at("available"), device != old);
      std::vector<std::string> lacks;
      for (const json& requirement : engine.at("requirements")) {
        if (!requirement.at("met").get<bool>()) lacks.push_back(requirement.at("reason"));
      }
      lacks.resize(1);  // further devices have the capability of the last
      EXPECT_EQ(lacks.front(), lack);
    }
  }
}

TEST_F(Contexts, PlansOfOtherDevicesAreRefused) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.make_plan();
  const CurrentContext current(primary_context(1));
  const auto message =
      AllOf(HasSubstr("the plan was made for device 0 (NVIDIA Fake, compute capability 9.0)"),
            HasSubstr("device 1 (NVIDIA Fake, compute capability 9.0) is current"));
  const Stream here;
  call.operands.queue = {KINTSUGI_QUEUE_CUDA, 0, here.get()};
  expect_refused(call, message);
  kintsugi_prepared prepared = nullptr;
  EXPECT_EQ(kintsugi_prepare(nullptr, call.plan, KINTSUGI_A, call.operands.a, &prepared),
            KINTSUGI_INVALID_ARGUMENT);
  EXPECT_THAT(kintsugi_last_error(), message);
  Call staged(40, 30, 100, stream);
  staged.problem.memory = KINTSUGI_HOST;
  staged.options.queue = {KINTSUGI_QUEUE_HOST, 0, nullptr};
  staged.options.engine = "cuda";
  staged.make_plan();
  const CurrentContext back(primary_context(0));
  expect_refused(staged, AllOf(HasSubstr("the plan was made for device 1"), HasSubstr("device 0 ")));
}

// The callback of an allocator multiplies on another device. Neither call takes the other's device.
TEST_F(Contexts, AllocatorsMayCallTheLibraryOnOtherDevices) {
  const CurrentContext current(primary_context(0));
  const Stream stream;
  Call call(300, 400, 256, stream);
  call.options.scheme = "fp16x3";
  struct Inner {
    int made = 0;
    static void multiply(void* user) {
      const CurrentContext other(primary_context(1));
      const Stream stream_of_other;
      Call inner(100, 200, 64, stream_of_other);
      inner.options.scheme = "fp16x3";
      inner.make_plan();
      EXPECT_EQ(inner.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
      EXPECT_EQ(core::cuda::current_context().device, 1);
      ++static_cast<Inner*>(user)->made;
    }
    static void* allocate(void* user, std::size_t bytes, std::size_t alignment) {
      multiply(user);
      return std::aligned_alloc(alignment, bytes);
    }
    static void deallocate(void* user, void* pointer, std::size_t) {
      multiply(user);
      std::free(pointer);
    }
  } inner;
  call.options.allocate = Inner::allocate;
  call.options.deallocate = Inner::deallocate;
  call.options.allocator_user = &inner;
  call.make_plan();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(inner.made, 8);
  EXPECT_EQ(core::cuda::current_context().device, 0);
}

TEST_F(Contexts, StreamsOfOtherContextsAreRefused) {
  const auto stream_in = [](void* context) {
    const CurrentContext current(context);
    return Stream();
  };
  const Stream on_device_1 = stream_in(primary_context(1));
  const Stream in_another_context = stream_in(fake_cuda_make_context(0, nullptr));
  Call call(40, 30, 100, on_device_1);
  call.options.policy = "emulate";
  call.make_plan();
  expect_refused(call, AllOf(HasSubstr("the stream belongs to device 1"), HasSubstr("and device 0 ")));
  call.operands.queue = {KINTSUGI_QUEUE_CUDA, 0, in_another_context.get()};
  expect_refused(call, HasSubstr("the stream belongs to another context of device 0"));
}

TEST_F(Contexts, PreparedOperandsOfOtherContextsAreRefused) {
  struct Place {
    void* context;
    std::string message;
  };
  for (const auto& [context, message] :
       {Place{primary_context(1),
              "prepared_a lies on device 0 (NVIDIA Fake, compute capability 9.0), and device 1 "},
        Place{fake_cuda_make_context(0, nullptr), "prepared_a lies in another context of device 0"}}) {
    const Stream stream;
    Call call(40, 30, 100, stream);
    call.options.policy = "emulate";
    call.make_plan();
    const Prepared prepared(call, KINTSUGI_A);
    const CurrentContext current(context);
    const Stream stream_there;
    Call call_there(40, 30, 100, stream_there);
    call_there.options.policy = "emulate";
    call_there.make_plan();
    call_there.operands.prepared_a = prepared.get();
    expect_refused(call_there, HasSubstr(message));
  }
}

// A green context is a part of the primary one: its streams take work from there, and memory is the same.
TEST_F(Contexts, GreenContextsWorkWithObjectsOfTheirPrimaryContext) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "emulate";
  call.make_plan();
  const Prepared prepared(call, KINTSUGI_A);
  const CurrentContext green(fake_cuda_make_context(0, primary_context(0)));
  const Stream green_stream;
  call.operands.queue = {KINTSUGI_QUEUE_CUDA, 0, green_stream.get()};
  call.operands.prepared_a = prepared.get();
  EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  const CurrentContext primary(primary_context(0));
  EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
}

TEST_F(Contexts, EveryContextHasItsCublasHandle) {
  for (void* context : {primary_context(0), fake_cuda_make_context(0, nullptr), primary_context(1)}) {
    const CurrentContext current(context);
    const Stream stream;
    Call call(40, 30, 100, stream);
    call.options.policy = "native";
    call.make_plan();
    call.run();
  }
}

// A plan of another context would have to make a cuBLAS handle during the capture, which spoils it.
TEST_F(Contexts, CapturesRefusePlansOfAnotherContext) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "native";
  call.make_plan();
  const CurrentContext current(fake_cuda_make_context(0, nullptr));
  const Stream here;
  call.operands.queue = {KINTSUGI_QUEUE_CUDA, 0, here.get()};
  {
    const Capture capture(here);
    expect_refused(call, HasSubstr("the plan was made in another context of device 0"));
  }
  EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
}

// Kernels compiled for sm_90a have griddepcontrol.wait, even if all others are compiled from PTX 8.0.
TEST_F(Contexts, OnlyKernelsThatCanWaitOverlap) {
  const FakeVariable older("FAKE_CUDA_PTX_VERSION", "80");
  const CurrentContext current(primary_context(2));
  const Stream stream;
  Call call(300, 400, 100, stream);
  call.options.policy = "emulate";
  call.make_plan();
  call.run();
  EXPECT_THAT(events_with("overlaps"),
              Each(AnyOf(HasSubstr(" multiply_f32_fp16x3_"), HasSubstr(" multiply_f32_bf16x6_"))));
  EXPECT_THAT(events_with("cuLaunchKernel"),
              Contains(AllOf(HasSubstr("multiply_f32_fp16x3_"), HasSubstr("overlaps"))));
  EXPECT_THAT(events_with("cuLaunchKernel select_candidate"),
              AllOf(Not(IsEmpty()), Each(Not(HasSubstr("overlaps")))));
}

}  // namespace
}  // namespace kintsugi::test

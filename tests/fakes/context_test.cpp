// Machines with several devices, and devices with several contexts, over the fakes: every object stays where
// it was made, and whoever comes from elsewhere hears of it before anything is put into a queue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "fakes/device_call.hpp"
#include "tests/support/c_objects.hpp"

namespace kintsugi::test {
namespace {

using core::cuda::driver;
using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Before the driver is opened, which counts its devices once. Device 2 is for tests that want one that nobody
// asked before.
const int three_devices = ::setenv("FAKE_CUDA_DEVICES", "3", 1);

// A context that is the thread's while this lives.
class Current {
 public:
  explicit Current(void* context) {
    EXPECT_EQ(driver().context_push(static_cast<core::cuda::Context>(context)), 0);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    core::cuda::Context left = nullptr;
    driver().context_pop(&left);
  }
};

void* primary_context(int device) {
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
    EXPECT_THAT(events(), IsEmpty());
  }
  static json described_engine() {
    const json document = Handle::text(kintsugi_describe_engines);
    for (const json& engine : document.at("engines")) {
      if (engine.at("name") == "cuda") return engine;
    }
    return {};
  }
};

// ---------------------------------------------------------------- capability

// Kernels of Hopper on Hopper alone, wherever the driver counts it.
TEST_F(Contexts, KernelsAreTheCurrentDevices) {
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  for (const int hopper : {0, 1}) {
    const Steered mixed("FAKE_CUDA_CAPABILITY", hopper == 0 ? "9.0,8.0" : "8.0,9.0");
    for (const int device : {0, 1}) {
      const Current current(primary_context(device));
      const Stream stream;
      for (const char* scheme : {"fp16x3", "int8x6"}) {
        Call call(300, 400, 256, stream);
        call.options.scheme = scheme;
        call.make_plan();
        call.run();
        EXPECT_EQ(events_with("cublasGemm").empty(), device == hopper) << scheme << " on device " << device;
      }
    }
  }
}

// Times were measured on one architecture: the name alone does not make a device of another one as quick.
TEST_F(Contexts, MeasuredTimesAreTheCurrentArchitectures) {
  const Steered measured("FAKE_CUDA_NAME", "NVIDIA H200");
  for (const int hopper : {0, 1}) {
    const Steered mixed("FAKE_CUDA_CAPABILITY", hopper == 0 ? "9.0,10.0" : "10.0,9.0");
    for (const int device : {0, 1}) {
      const Current current(primary_context(device));
      const Stream stream;
      for (const kintsugi_type type : {KINTSUGI_F32, KINTSUGI_C32}) {
        Call call(4096, 4096, 4096, stream);
        call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = type;
        call.make_plan();
        const json plan = Handle::text(
            [&](char* b, size_t c, size_t* n) { return kintsugi_plan_describe(call.plan, b, c, n); });
        EXPECT_EQ(plan.at("candidates").size() > 1, device == hopper) << "device " << device;
      }
    }
  }
}

TEST_F(Contexts, AvailabilityIsTheCurrentDevices) {
  for (const int old : {0, 1}) {
    const Steered mixed("FAKE_CUDA_CAPABILITY", old == 0 ? "7.5,9.0" : "9.0,7.5");
    const std::string lack =
        fmt::format("device {} (NVIDIA Fake, compute capability 7.5): 8.0 or newer is needed", old);
    for (const int device : {0, 1}) {
      const Current current(primary_context(device));
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
      lacks.resize(1);  // further devices are like the last
      EXPECT_EQ(lacks.front(), lack);
    }
  }
}

// ---------------------------------------------------------------- reports

TEST_F(Contexts, ReportsAreTheirDevicesOwn) {
  const Handle handle;
  for (const bool first : {true, false}) {
    for (const int device : {0, 1}) {
      const Current current(primary_context(device));
      const Stream stream;
      Call call(40, 30, 100, stream);
      call.options.policy = "emulate";
      ASSERT_EQ(kintsugi_plan_create(handle, &call.problem, &call.options, &call.plan), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      call.bring_workspace();
      call.alpha = 0;  // so that the report is cleared, which the fake does
      fake_cuda_forget();
      ASSERT_EQ(kintsugi_plan_execute(handle, call.plan, &call.operands), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      EXPECT_THAT(events_with("Alloc"), IsEmpty()) << "device " << device << ", first: " << first;
      const Current other(primary_context(1 - device));
      fake_cuda_forget();
      handle.report();
      EXPECT_THAT(events_with("cuCtxSynchronize"),
                  AllOf(Not(IsEmpty()), Each(fmt::format("cuCtxSynchronize device={}", device))));
    }
  }
}

// A garbage collector may destroy a handle while some stream is captured.
TEST_F(Contexts, HandlesGoWithoutTheDevice) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "emulate";
  ASSERT_EQ(kintsugi_create(&call.handle), KINTSUGI_SUCCESS);
  call.make_plan();
  {
    const Capture capture(stream);
    fake_cuda_forget();
    kintsugi_destroy(call.handle);
    EXPECT_THAT(events(), IsEmpty());
  }
  const int before = fake_cuda_allocations();
  ASSERT_EQ(kintsugi_create(&call.handle), KINTSUGI_SUCCESS);
  call.make_plan();
  EXPECT_EQ(fake_cuda_allocations(), before) << "the next handle has the memory";
  EXPECT_THAT(events_with("cuCtxSynchronize"), Not(IsEmpty())) << "when nobody writes to it any more";
}

TEST_F(Contexts, ReportsAreNotMadeInCaptures) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "emulate";
  const Handle other;
  ASSERT_EQ(kintsugi_plan_create(other, &call.problem, &call.options, &call.plan), KINTSUGI_SUCCESS);
  void* context = fake_cuda_make_context(0, nullptr);
  const Current current(context);
  const Stream own;
  Call here(40, 30, 100, own);
  here.options.policy = "emulate";
  here.make_plan();
  ASSERT_EQ(kintsugi_create(&here.handle), KINTSUGI_SUCCESS);
  {
    const Capture capture(own);
    expect_refused(here,
                   AllOf(HasSubstr("the stream is being captured"), HasSubstr("no report for device 0")));
  }
  EXPECT_EQ(here.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  const Capture capture(own);
  EXPECT_EQ(here.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
}

// The host knows what a native product did.
TEST_F(Contexts, NativeProductsNeedNoReport) {
  void* context = fake_cuda_make_context(0, nullptr);
  const Current current(context);
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "native";
  call.make_plan();
  ASSERT_EQ(kintsugi_create(&call.handle), KINTSUGI_SUCCESS);
  const Capture capture(stream);
  EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
}

// ---------------------------------------------------------------- plans, streams and prepared operands

TEST_F(Contexts, PlansOfOtherDevicesAreRefused) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.make_plan();
  const Current current(primary_context(1));
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
  const Current back(primary_context(0));
  expect_refused(staged, AllOf(HasSubstr("the plan was made for device 1"), HasSubstr("device 0 ")));
}

TEST_F(Contexts, StreamsOfOtherContextsAreRefused) {
  const auto stream_in = [](void* context) {
    const Current current(context);
    return Stream();
  };
  const Stream elsewhere = stream_in(primary_context(1));
  const Stream in_another = stream_in(fake_cuda_make_context(0, nullptr));
  Call call(40, 30, 100, elsewhere);
  call.options.policy = "emulate";
  call.make_plan();
  expect_refused(call, AllOf(HasSubstr("the stream belongs to device 1"), HasSubstr("and device 0 ")));
  call.operands.queue = {KINTSUGI_QUEUE_CUDA, 0, in_another.get()};
  expect_refused(call, HasSubstr("the stream belongs to another context of device 0"));
}

TEST_F(Contexts, PreparedOperandsOfOtherContextsAreRefused) {
  struct Place {
    void* context;
    std::string said;
  };
  for (const auto& [context, said] :
       {Place{primary_context(1),
              "prepared_a lies on device 0 (NVIDIA Fake, compute capability 9.0), and device 1 "},
        Place{fake_cuda_make_context(0, nullptr), "prepared_a lies in another context of device 0"}}) {
    const Stream stream;
    Call call(40, 30, 100, stream);
    call.options.policy = "emulate";
    call.make_plan();
    const Prepared prepared(call, KINTSUGI_A);
    const Current current(context);
    const Stream there_stream;
    Call there(40, 30, 100, there_stream);
    there.options.policy = "emulate";
    there.make_plan();
    there.operands.prepared_a = prepared.get();
    expect_refused(there, HasSubstr(said));
  }
}

// A green context is a part of the primary one: its streams take work from there, and memory is the same.
TEST_F(Contexts, GreenContextsAreOfTheirDevices) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "emulate";
  call.make_plan();
  const Prepared prepared(call, KINTSUGI_A);
  const Current green(fake_cuda_make_context(0, primary_context(0)));
  const Stream part;
  call.operands.queue = {KINTSUGI_QUEUE_CUDA, 0, part.get()};
  call.operands.prepared_a = prepared.get();
  EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  const Current whole(primary_context(0));
  EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
}

TEST_F(Contexts, PreparedOperandsAreFreedWhereTheyLie) {
  const int before = fake_cuda_allocations();
  kintsugi_prepared prepared = nullptr;
  {
    const Current current(primary_context(1));
    const Stream stream;
    Call call(40, 30, 100, stream);
    call.options.policy = "emulate";
    call.make_plan();
    ASSERT_EQ(kintsugi_prepare(nullptr, call.plan, KINTSUGI_A, call.operands.a, &prepared), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
  }
  EXPECT_GT(fake_cuda_allocations(), before);
  const Current other(primary_context(0));
  fake_cuda_forget();
  kintsugi_prepared_destroy(prepared);
  EXPECT_THAT(events_with("cuCtxSynchronize"), testing::ElementsAre("cuCtxSynchronize device=1"));
  EXPECT_EQ(fake_cuda_allocations(), before);
}

// ---------------------------------------------------------------- cuBLAS's handles, contexts that are gone

TEST_F(Contexts, HandlesOfCublasAreTheContexts) {
  for (void* context : {primary_context(0), fake_cuda_make_context(0, nullptr), primary_context(1)}) {
    const Current current(context);
    const Stream stream;
    Call call(40, 30, 100, stream);
    call.options.policy = "native";
    call.make_plan();
    call.run();
  }
}

// cuBLAS's handle would be made during the capture.
TEST_F(Contexts, CapturesTakePlansOfTheirContext) {
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.policy = "native";
  call.make_plan();
  const Current current(fake_cuda_make_context(0, nullptr));
  const Stream here;
  call.operands.queue = {KINTSUGI_QUEUE_CUDA, 0, here.get()};
  {
    const Capture capture(here);
    expect_refused(call, HasSubstr("the plan was made in another context of device 0"));
  }
  EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
}

TEST_F(Contexts, WhatIsOfAContextThatIsGoneDoesNoHarm) {
  void* gone = fake_cuda_make_context(0, nullptr);
  kintsugi_prepared prepared = nullptr;
  kintsugi_handle handle = nullptr;
  ASSERT_EQ(kintsugi_create(&handle), KINTSUGI_SUCCESS);
  const auto run = [&](Call& call) {
    ASSERT_EQ(kintsugi_plan_create(handle, &call.problem, &call.options, &call.plan), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    ASSERT_EQ(kintsugi_plan_execute(handle, call.plan, &call.operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
  };
  {
    const Current current(gone);
    const Stream stream;
    Call call(40, 30, 100, stream);
    call.options.scheme = "bf16x9";  // by cuBLAS
    call.options.accumulator = "cublas";
    run(call);
    ASSERT_EQ(kintsugi_prepare(nullptr, call.plan, KINTSUGI_A, call.operands.a, &prepared), KINTSUGI_SUCCESS);
  }
  fake_cuda_destroy_context(gone);
  EXPECT_EQ(kintsugi_report(handle, nullptr, 0, nullptr), KINTSUGI_DEVICE_ERROR);
  EXPECT_THAT(kintsugi_last_error(), AllOf(HasSubstr("device 0"), HasSubstr("is gone")));
  void* next = fake_cuda_make_context(0, nullptr);
  ASSERT_EQ(next, gone) << "another context at the same address";
  const Current current(next);
  const Stream stream;
  Call call(40, 30, 100, stream);
  call.options.scheme = "bf16x9";
  call.options.accumulator = "cublas";
  run(call);
  EXPECT_EQ(kintsugi_report(handle, nullptr, 0, nullptr), KINTSUGI_SUCCESS) << kintsugi_last_error();
  call.operands.prepared_a = prepared;
  expect_refused(call, HasSubstr("prepared_a lies in another context of device 0"));
  fake_cuda_forget();
  kintsugi_prepared_destroy(prepared);
  EXPECT_THAT(events(), IsEmpty()) << "its memory went with its context";
  kintsugi_destroy(handle);
}

// Objects of three contexts on two devices meet at random: what belongs together works, all else is refused,
// and the fake, which knows where everything lies, never has anything to object.
TEST_F(Contexts, ObjectsMeetAtRandom) {
  struct Place {
    void* context;
    int device;
  };
  const std::array places{Place{primary_context(0), 0}, Place{primary_context(1), 1},
                          Place{fake_cuda_make_context(0, nullptr), 0}};
  struct Objects {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Call> call;
    std::unique_ptr<Prepared> prepared;
  };
  std::mt19937 random(25);
  const auto one_of = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  std::array<Objects, places.size()> objects;
  std::vector<Handle> handles(4);
  const auto make = [&](std::size_t place) {
    Objects& made = objects[place];
    made.prepared.reset();  // whichever context is current
    const Current current(places[place].context);
    made.stream = std::make_unique<Stream>();
    made.call = std::make_unique<Call>(40, 30, 100, *made.stream);
    made.call->options.policy = one_of(4) == 0 ? "native" : "emulate";
    made.call->make_plan();
    made.prepared = std::make_unique<Prepared>(*made.call, KINTSUGI_A);
  };
  for (std::size_t place = 0; place < places.size(); ++place) make(place);
  int accepted = 0;
  for (int step = 0; step < 2000; ++step) {
    const auto likely = [&](std::size_t here) { return one_of(3) == 0 ? one_of(places.size()) : here; };
    const std::size_t here = one_of(places.size());
    const std::size_t stream = likely(here);
    const std::size_t prepared = one_of(2) == 0 ? places.size() : likely(here);
    const std::size_t plan = likely(here);
    const Current current(places[here].context);
    const Handle& handle = handles[one_of(handles.size())];
    Call& call = *objects[plan].call;
    kintsugi_operands operands = call.operands;
    operands.queue = {KINTSUGI_QUEUE_CUDA, 0, objects[stream].stream->get()};
    if (prepared < places.size()) operands.prepared_a = objects[prepared].prepared->get();
    const bool together = places[plan].device == places[here].device && stream == here &&
                          (prepared == here || prepared == places.size());
    const kintsugi_status status = kintsugi_plan_execute(handle, call.plan, &operands);
    ASSERT_EQ(status, together ? KINTSUGI_SUCCESS : KINTSUGI_INVALID_ARGUMENT)
        << kintsugi_last_error() << "; step " << step;
    accepted += together ? 1 : 0;
    const Current another(places[one_of(places.size())].context);
    if (one_of(4) == 0) handle.report();
    if (one_of(8) == 0) make(one_of(places.size()));
  }
  EXPECT_GT(accepted, 400);
  EXPECT_LT(accepted, 1600);
}

// ---------------------------------------------------------------- programmatic dependent launch

// Kernels of sm_90a have the wait whatever the others were compiled for.
TEST_F(Contexts, OnlyKernelsWithTheWaitOverlap) {
  const Steered older("FAKE_CUDA_PTX_VERSION", "80");
  const Current current(primary_context(2));
  const Stream stream;
  Call call(300, 400, 100, stream);
  call.options.policy = "emulate";
  call.make_plan();
  call.run();
  EXPECT_THAT(events_with("overlaps"), Each(AnyOf(HasSubstr(" fp16_"), HasSubstr(" bf16_"))));
  EXPECT_THAT(events_with("cuLaunchKernel"), Contains(AllOf(HasSubstr("fp16_"), HasSubstr("overlaps"))));
  EXPECT_THAT(events_with("cuLaunchKernel select_candidate"),
              AllOf(Not(IsEmpty()), Each(Not(HasSubstr("overlaps")))));
}

}  // namespace
}  // namespace kintsugi::test

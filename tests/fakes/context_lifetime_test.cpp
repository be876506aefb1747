// Tests objects of several contexts over the fakes: their memory is freed in the right context, also after a
// context was destroyed, and random mixtures of them work or are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fakes/contexts.hpp"

namespace kintsugi::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(Contexts, PreparedOperandsAreFreedInTheirContext) {
  const int before = fake_cuda_allocations();
  kintsugi_prepared prepared = nullptr;
  {
    const CurrentContext current(primary_context(1));
    const Stream stream;
    Call call(40, 30, 100, stream);
    call.options.policy = "emulate";
    call.make_plan();
    ASSERT_EQ(kintsugi_prepare(nullptr, call.plan, KINTSUGI_A, call.operands.a, &prepared), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
  }
  EXPECT_GT(fake_cuda_allocations(), before);
  const CurrentContext other(primary_context(0));
  fake_cuda_forget();
  kintsugi_prepared_destroy(prepared);
  EXPECT_THAT(events_with("cuCtxSynchronize"), testing::ElementsAre("cuCtxSynchronize device=1"));
  EXPECT_EQ(fake_cuda_allocations(), before);
}

TEST_F(Contexts, ObjectsOfADestroyedContextAreRefusedOrFreed) {
  void* destroyed = fake_cuda_make_context(0, nullptr);
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
    const CurrentContext current(destroyed);
    const Stream stream;
    Call call(40, 30, 100, stream);
    call.options.scheme = "bf16x9";  // by cuBLAS
    call.options.accumulator = "cublas";
    run(call);
    ASSERT_EQ(kintsugi_prepare(nullptr, call.plan, KINTSUGI_A, call.operands.a, &prepared), KINTSUGI_SUCCESS);
  }
  fake_cuda_destroy_context(destroyed);
  EXPECT_EQ(kintsugi_report(handle, nullptr, 0, nullptr), KINTSUGI_DEVICE_ERROR);
  EXPECT_THAT(kintsugi_last_error(), AllOf(HasSubstr("device 0"), HasSubstr("is gone")));
  void* next = fake_cuda_make_context(0, nullptr);
  ASSERT_EQ(next, destroyed) << "another context at the same address";
  const CurrentContext current(next);
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
  EXPECT_THAT(events(), IsEmpty()) << "the memory was freed with its context";
  kintsugi_destroy(handle);
}

// Objects of three contexts on two devices, and calls that take them at random.
class MixedObjects {
 public:
  MixedObjects() {
    for (std::size_t index = 0; index < contexts_.size(); ++index) make(index);
  }

  // Executes a plan with a stream, a prepared operand and a handle, drawn at random. The call must succeed if
  // they belong together, and be refused otherwise. Returns whether they belong together.
  bool call() {
    const std::size_t here = one_of(contexts_.size());
    const std::size_t stream = probably(here);
    const std::size_t prepared = one_of(2) == 0 ? contexts_.size() : probably(here);
    const std::size_t plan = probably(here);
    const CurrentContext current(contexts_[here].context);
    handle_ = one_of(handles_.size());
    const Call& call = *objects_[plan].call;
    kintsugi_operands operands = call.operands;
    operands.queue = {KINTSUGI_QUEUE_CUDA, 0, objects_[stream].stream->get()};
    if (prepared < contexts_.size()) operands.prepared_a = objects_[prepared].prepared->get();
    const bool belongs_together = contexts_[plan].device == contexts_[here].device && stream == here &&
                                  (prepared == here || prepared == contexts_.size());
    EXPECT_EQ(kintsugi_plan_execute(handles_[handle_], call.plan, &operands),
              belongs_together ? KINTSUGI_SUCCESS : KINTSUGI_INVALID_ARGUMENT)
        << kintsugi_last_error();
    return belongs_together;
  }

  // Sometimes reads the report of the last call, and sometimes makes the objects of a context again.
  void change() {
    const CurrentContext another(contexts_[one_of(contexts_.size())].context);
    if (one_of(4) == 0) handles_[handle_].report();
    if (one_of(8) == 0) make(one_of(contexts_.size()));
  }

 private:
  struct ContextOfDevice {
    void* context;
    int device;
  };
  struct Objects {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Call> call;
    std::unique_ptr<Prepared> prepared;
  };

  std::size_t one_of(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  std::size_t probably(std::size_t here) { return one_of(3) == 0 ? one_of(contexts_.size()) : here; }

  void make(std::size_t index) {
    Objects& made = objects_[index];
    made.prepared.reset();  // while any context is current
    const CurrentContext current(contexts_[index].context);
    made.stream = std::make_unique<Stream>();
    made.call = std::make_unique<Call>(40, 30, 100, *made.stream);
    made.call->options.policy = one_of(4) == 0 ? "native" : "emulate";
    made.call->make_plan();
    made.prepared = std::make_unique<Prepared>(*made.call, KINTSUGI_A);
  }

  const std::array<ContextOfDevice, 3> contexts_{ContextOfDevice{primary_context(0), 0},
                                                 ContextOfDevice{primary_context(1), 1},
                                                 ContextOfDevice{fake_cuda_make_context(0, nullptr), 0}};
  std::mt19937 random_{25};
  std::array<Objects, 3> objects_;
  std::vector<Handle> handles_{4};
  std::size_t handle_ = 0;
};

// Objects of one context work together and all others are refused; the fake driver, which tracks the context
// of every object, reports no misuse.
TEST_F(Contexts, RandomMixturesOfObjectsWorkOrAreRefused) {
  MixedObjects objects;
  int accepted = 0;
  for (int step = 0; step < 2000 && !HasFailure(); ++step) {
    SCOPED_TRACE(step);
    accepted += objects.call() ? 1 : 0;
    objects.change();
  }
  EXPECT_GT(accepted, 400);
  EXPECT_LT(accepted, 1600);
}

}  // namespace
}  // namespace kintsugi::test

// Objects of contexts that change or end, over the fakes: their memory is freed in the right context, and
// random mixtures of them are refused or work.
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

TEST_F(Contexts, ObjectsOfADestroyedContextDoNoHarm) {
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

// Objects of three contexts on two devices, and calls that take them at random.
class MixedObjects {
 public:
  MixedObjects() {
    for (std::size_t place = 0; place < places_.size(); ++place) make(place);
  }

  // Executes a plan with a stream, a prepared operand and a handle. Returns whether they belong together:
  // then the call must succeed, otherwise it must be refused.
  bool call() {
    const std::size_t here = one_of(places_.size());
    const std::size_t stream = likely(here);
    const std::size_t prepared = one_of(2) == 0 ? places_.size() : likely(here);
    const std::size_t plan = likely(here);
    const Current current(places_[here].context);
    handle_ = one_of(handles_.size());
    const Call& call = *objects_[plan].call;
    kintsugi_operands operands = call.operands;
    operands.queue = {KINTSUGI_QUEUE_CUDA, 0, objects_[stream].stream->get()};
    if (prepared < places_.size()) operands.prepared_a = objects_[prepared].prepared->get();
    const bool together = places_[plan].device == places_[here].device && stream == here &&
                          (prepared == here || prepared == places_.size());
    EXPECT_EQ(kintsugi_plan_execute(handles_[handle_], call.plan, &operands),
              together ? KINTSUGI_SUCCESS : KINTSUGI_INVALID_ARGUMENT)
        << kintsugi_last_error();
    return together;
  }

  // Sometimes reads the report of the last call, and sometimes makes the objects of a place again.
  void change() {
    const Current another(places_[one_of(places_.size())].context);
    if (one_of(4) == 0) handles_[handle_].report();
    if (one_of(8) == 0) make(one_of(places_.size()));
  }

 private:
  struct Place {
    void* context;
    int device;
  };
  struct Objects {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Call> call;
    std::unique_ptr<Prepared> prepared;
  };

  std::size_t one_of(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  std::size_t likely(std::size_t here) { return one_of(3) == 0 ? one_of(places_.size()) : here; }

  void make(std::size_t place) {
    Objects& made = objects_[place];
    made.prepared.reset();  // whichever context is current
    const Current current(places_[place].context);
    made.stream = std::make_unique<Stream>();
    made.call = std::make_unique<Call>(40, 30, 100, *made.stream);
    made.call->options.policy = one_of(4) == 0 ? "native" : "emulate";
    made.call->make_plan();
    made.prepared = std::make_unique<Prepared>(*made.call, KINTSUGI_A);
  }

  const std::array<Place, 3> places_{Place{primary_context(0), 0}, Place{primary_context(1), 1},
                                     Place{fake_cuda_make_context(0, nullptr), 0}};
  std::mt19937 random_{25};
  std::array<Objects, 3> objects_;
  std::vector<Handle> handles_{4};
  std::size_t handle_ = 0;
};

// Objects of one context work together and all others are refused; the fake driver, which tracks the context
// of every object, reports no misuse.
TEST_F(Contexts, ObjectsMeetAtRandom) {
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

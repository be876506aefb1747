// Tests over the fakes that captured calls put no memory nodes into a graph, and that the memory which they
// allocate instead lives as long as the graph. The fake driver refuses memory nodes in every capture.
#include "engines/cuda/common/memory_pool.hpp"

#include <functional>
#include <memory>
#include <thread>

#include "fakes/contexts.hpp"
#include "fakes/device_call.hpp"

extern "C" kintsugi::core::cuda::Result cuGraphAddChildGraphNode(kintsugi::core::cuda::GraphNode* node,
                                                                 kintsugi::core::cuda::Graph graph,
                                                                 const kintsugi::core::cuda::GraphNode*,
                                                                 std::size_t count,
                                                                 kintsugi::core::cuda::Graph child);

namespace kintsugi::test {
namespace {

using core::cuda::Event;
using core::cuda::Graph;
using core::cuda::GraphExec;
using core::cuda::GraphNode;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Captures the work that a function enqueues. The graph is destroyed by the object, or before by destroy().
class CapturedGraph {
 public:
  CapturedGraph(const Stream& stream, const std::function<void()>& enqueue) {
    EXPECT_EQ(driver().stream_begin_capture(stream.get(), 0), 0);
    enqueue();
    EXPECT_EQ(driver().stream_end_capture(stream.get(), &graph_), 0) << "the capture was spoiled";
  }
  CapturedGraph(const Stream& stream, Call& call)
      : CapturedGraph(stream, [&] { EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error(); }) {
  }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  ~CapturedGraph() { destroy(); }

  void destroy() {
    if (graph_ != nullptr) driver().graph_destroy(graph_);
    graph_ = nullptr;
  }
  Graph get() const { return graph_; }
  GraphExec executable() const {
    GraphExec exec = nullptr;
    EXPECT_EQ(driver().graph_instantiate(&exec, graph_, 0), 0);
    return exec;
  }

 private:
  Graph graph_ = nullptr;
};

// A product that is emulated, with its plan.
struct EmulatedCall : Call {
  EmulatedCall(const Stream& on, std::int64_t m = 40) : Call(m, 30, 100, on) {
    options.policy = "emulate";
    make_plan();
  }
};

std::size_t allocations_for_graphs() { return events_with("cuMemAlloc ").size(); }

class GraphMemory : public OverFakes {
 protected:
  void SetUp() override {
    OverFakes::SetUp();
    if (IsSkipped()) return;
    kintsugi_release_caches();
    fake_cuda_forget();
    before_ = fake_cuda_allocations();
  }
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_EQ(kept(), 0) << "a test's graphs are destroyed";
  }
  // Pieces of memory that are left after spare ones were freed.
  int kept() const {
    kintsugi_release_caches();
    return fake_cuda_allocations() - before_;
  }

 private:
  int before_ = 0;
};

TEST_F(GraphMemory, LivesAsLongAsTheGraphItsClonesAndExecutableGraphs) {
  const Stream stream;
  EmulatedCall call(stream);
  CapturedGraph captured(stream, call);
  EXPECT_THAT(events_with("AllocFromPool"), IsEmpty());
  EXPECT_EQ(allocations_for_graphs(), 1U);
  EXPECT_EQ(kept(), 1);
  Graph parent = nullptr;
  ASSERT_EQ(driver().graph_create(&parent, 0), 0);
  GraphNode nodes[2] = {};
  ASSERT_EQ(cuGraphAddChildGraphNode(&nodes[0], parent, nullptr, 0, captured.get()), 0);
  ASSERT_EQ(cuGraphAddChildGraphNode(&nodes[1], parent, nodes, 1, captured.get()), 0) << "a second time";
  captured.destroy();
  EXPECT_EQ(kept(), 1);
  GraphExec exec = nullptr;
  ASSERT_EQ(driver().graph_instantiate(&exec, parent, 0), 0);
  driver().graph_destroy(parent);
  EXPECT_EQ(kept(), 1);
  EXPECT_EQ(driver().graph_launch(exec, stream.get()), 0);
  driver().graph_exec_destroy(exec);
  EXPECT_EQ(kept(), 0);
}

TEST_F(GraphMemory, CallsInOneStreamShareItAndALargerOneAddsMemory) {
  const Stream stream;
  EmulatedCall small(stream), large(stream, 3000);
  const CapturedGraph captured(stream, [&] {
    for (Call* call : {static_cast<Call*>(&small), static_cast<Call*>(&small), static_cast<Call*>(&large),
                       static_cast<Call*>(&small), static_cast<Call*>(&large)})
      EXPECT_EQ(call->execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  });
  EXPECT_EQ(allocations_for_graphs(), 2U);
  EXPECT_EQ(kept(), 2);
}

// The other branch may run at the same time, and another graph too.
TEST_F(GraphMemory, BranchesAndOtherGraphsDoNotShareIt) {
  const Stream first, second;
  EmulatedCall on_first(first), on_second(second);
  Event fork = nullptr, join = nullptr;
  driver().event_create(&fork, 0);
  driver().event_create(&join, 0);
  const CapturedGraph captured(first, [&] {
    EXPECT_EQ(on_first.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
    driver().event_record(fork, first.get());
    driver().stream_wait_event(second.get(), fork, 0);
    EXPECT_EQ(on_second.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
    EXPECT_EQ(on_first.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
    driver().event_record(join, second.get());
    driver().stream_wait_event(first.get(), join, 0);
  });
  EXPECT_EQ(allocations_for_graphs(), 2U);
  const CapturedGraph other(first, on_first);
  EXPECT_EQ(allocations_for_graphs(), 3U);
  EXPECT_EQ(kept(), 3);
}

TEST_F(GraphMemory, DoesNotGrowWithGraphsThatAreDestroyed) {
  const Stream stream;
  EmulatedCall call(stream);
  for (int round = 0; round < 200; ++round) {
    const CapturedGraph captured(stream, call);
    driver().graph_exec_destroy(captured.executable());
  }
  EXPECT_EQ(allocations_for_graphs(), 1U);
  expect_no_waiting_in_capture();
}

// Freeing memory waits for the device. So memory that fits no later capture is freed only when it is much.
TEST_F(GraphMemory, OfDestroyedGraphsIsFreedIfItIsMoreThanAPoolKeeps) {
  const Stream stream;
  std::vector<float> matrix(100);  // nothing is computed
  const auto capture = [&](std::int64_t m) {
    PlannedCall call(m, 30, 100, stream);
    call.options.policy = "emulate";
    call.operands.a = call.operands.b = call.operands.c = matrix.data();
    call.make_plan();
    const int before = fake_cuda_allocations();
    const CapturedGraph captured(stream, call);
    return fake_cuda_allocations() - before;
  };
  EXPECT_EQ(capture(300'000), 1);
  EXPECT_EQ(capture(1'000'000), 1) << "beside 120 MB that are spare";
  EXPECT_EQ(capture(300'000), 0) << "the same memory again";
  EXPECT_THAT(events_with("cuMemFree\n"), IsEmpty());
  EXPECT_EQ(capture(400), 1 - 2) << "beside 520 MB";
}

TEST_F(GraphMemory, AllGraphsShareTheLimit) {
  const Stream stream;
  EmulatedCall first(stream);
  std::size_t bytes = 0;
  ASSERT_EQ(kintsugi_plan_workspace_size(first.plan, &bytes), KINTSUGI_SUCCESS);
  first.options.workspace_limit = static_cast<std::int64_t>(bytes + bytes / 2);
  first.make_plan();
  CapturedGraph captured(stream, first);
  EmulatedCall refused(stream, 55);
  refused.options.workspace_limit = first.options.workspace_limit;
  refused.make_plan();
  const CapturedGraph other(stream, [&] {
    EXPECT_EQ(refused.execute(), KINTSUGI_OUT_OF_MEMORY);
    EXPECT_THAT(kintsugi_last_error(), AllOf(HasSubstr("the stream is being captured"),
                                             HasSubstr(std::to_string(first.options.workspace_limit)),
                                             HasSubstr("workspace_limit")));
    Call native(40, 30, 100, stream);
    native.options.policy = "native";
    native.options.workspace_limit = first.options.workspace_limit;
    native.make_plan();
    EXPECT_EQ(native.execute(), KINTSUGI_SUCCESS) << "without workspace: " << kintsugi_last_error();
  });
  EXPECT_EQ(first.execute(), KINTSUGI_SUCCESS) << "not captured: " << kintsugi_last_error();
  captured.destroy();
  EmulatedCall larger(stream, 55);
  larger.options.workspace_limit = first.options.workspace_limit;
  larger.make_plan();
  const CapturedGraph later(stream, larger);
  EXPECT_THAT(events_with("cuMemFree\n"), SizeIs(1)) << "memory of the destroyed graph";
}

// Each captured call takes a quarter of the limit at most, so that four different ones have their graphs.
TEST_F(GraphMemory, LargeCallsTakeAQuarterOfTheLimit) {
  const Stream stream;
  const auto large_call = [&](std::int64_t m, std::int64_t limit) {
    auto call = std::make_unique<Call>(m, 2000, 2000, stream);
    call->options.policy = "emulate";
    call->options.workspace_limit = limit;
    call->make_plan();
    return call;
  };
  std::size_t bytes = 0;
  ASSERT_EQ(kintsugi_plan_workspace_size(large_call(3000, 0)->plan, &bytes), KINTSUGI_SUCCESS);
  const std::size_t limit = 2 * bytes;
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<std::unique_ptr<CapturedGraph>> graphs;
  for (int i = 0; i < 4; ++i) {
    Call& call = *calls.emplace_back(large_call(3000 - 100 * i, static_cast<std::int64_t>(limit)));
    graphs.push_back(std::make_unique<CapturedGraph>(stream, call));
    graphs.push_back(std::make_unique<CapturedGraph>(stream, call));
  }
  const std::vector<std::string> allocations = events_with("cuMemAlloc ");
  ASSERT_THAT(allocations, SizeIs(8));
  for (std::size_t i = 0; i < 8; ++i) {
    const std::size_t taken = std::stoull(allocations[i].substr(allocations[i].rfind(' ')));
    EXPECT_LE(taken, limit / 4);
    EXPECT_GT(taken, limit / 16);
    if (i % 2 == 1) EXPECT_EQ(allocations[i], allocations[i - 1]) << "the same call, captured again";
  }
  fake_cuda_forget();
  EXPECT_EQ(calls[0]->execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_THAT(events_with("AllocFromPool"), ElementsAre(HasSubstr(std::to_string(bytes)))) << "not captured";
}

// XLA updates an executable graph by another capture of the same call, while the first one exists.
TEST_F(GraphMemory, TheSameCallIsCapturedAgainBeyondTheLimit) {
  const Stream stream;
  EmulatedCall call(stream);
  std::size_t bytes = 0;
  ASSERT_EQ(kintsugi_plan_workspace_size(call.plan, &bytes), KINTSUGI_SUCCESS);
  call.options.workspace_limit = static_cast<std::int64_t>(bytes + bytes / 2);
  call.make_plan();
  const CapturedGraph first(stream, call), second(stream, call);
  EXPECT_EQ(allocations_for_graphs(), 2U);
  const FakeVariable nearly_full("FAKE_CUDA_MEMORY", std::to_string(bytes));
  const CapturedGraph third(stream, [&] { EXPECT_EQ(call.execute(), KINTSUGI_OUT_OF_MEMORY); });
}

// Without a limit a device that is full gives smaller blocks of C, as without a capture.
TEST_F(GraphMemory, AFullDeviceGivesSmallerBlocks) {
  const Stream stream;
  EmulatedCall call(stream, 9000);
  const FakeVariable steered("FAKE_CUDA_FAIL_ALLOCATION", "1");
  const CapturedGraph captured(stream, call);
  EXPECT_EQ(allocations_for_graphs(), 2U);
}

TEST_F(GraphMemory, OutlivesTheThreadThatCaptured) {
  const Stream stream;
  EmulatedCall call(stream, 300), larger(stream, 3000);
  std::unique_ptr<CapturedGraph> captured;
  std::thread([&] {
    core::cuda::ensure_context();
    captured = std::make_unique<CapturedGraph>(stream, call);
  }).join();
  const GraphExec exec = captured->executable();
  captured.reset();
  fake_cuda_forget();
  larger.run();
  EXPECT_THAT(events_with("cuMemFree\n"), IsEmpty());
  EXPECT_EQ(allocations_for_graphs(), 0U) << "a call outside captures has its workspace from the pool";
  EXPECT_EQ(kept(), 1);
  EXPECT_EQ(driver().graph_launch(exec, stream.get()), 0);
  driver().graph_exec_destroy(exec);
}

// Calls that follow in the stream must not write to the slices of a prepared operand.
TEST_F(GraphMemory, PreparedOperandsShareItWithNoCall) {
  const Stream stream;
  EmulatedCall call(stream);
  std::unique_ptr<Prepared> prepared;
  CapturedGraph captured(stream, [&] {
    prepared = std::make_unique<Prepared>(call, KINTSUGI_A);
    call.operands.prepared_a = prepared->get();
    for (int round = 0; round < 2; ++round)
      EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  });
  EXPECT_EQ(allocations_for_graphs(), 2U);
  captured.destroy();
  EXPECT_EQ(kept(), 1) << "the operand's memory";
}

TEST_F(GraphMemory, ACallFailsIfTheGraphRetainsNothing) {
  const Stream stream;
  EmulatedCall call(stream);
  const CapturedGraph captured(stream, [&] {
    const FakeVariable steered("FAKE_CUDA_NO_OBJECTS", "1");
    EXPECT_EQ(call.execute(), KINTSUGI_DEVICE_ERROR);
    EXPECT_THAT(kintsugi_last_error(), HasSubstr("memory for a captured graph"));
  });
  EXPECT_EQ(kept(), 0);
}

TEST_F(GraphMemory, EndsWithItsContext) {
  void* context = fake_cuda_make_context(0, nullptr);
  std::unique_ptr<CapturedGraph> captured;
  {
    const CurrentContext current(context);
    const Stream stream;
    EmulatedCall call(stream);
    captured = std::make_unique<CapturedGraph>(stream, call);
  }
  fake_cuda_destroy_context(context);
  captured.reset();
  fake_cuda_forget();
  kintsugi_release_caches();
  EXPECT_THAT(events_with("cuMemFree\n"), IsEmpty()) << "the driver has freed it";
}

}  // namespace
}  // namespace kintsugi::test

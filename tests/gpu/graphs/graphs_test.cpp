// Tests captured calls without a workspace in the ways in which programs use graphs: as child graphs, in
// branches, updated, and after the thread that captured them has ended. CUDA refuses a child graph with
// memory nodes, so that the first test fails if a call allocates in stream order.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu/calls/planned.hpp"

namespace kintsugi::test {
namespace {

// A function of the driver that the library does not need.
template <class Function>
Function* driver_function(const char* name) {
  auto* function = reinterpret_cast<Function*>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), name));
  EXPECT_NE(function, nullptr) << name;
  return function;
}

using AddChild = cuda::Result(cuda::GraphNode*, cuda::Graph, const cuda::GraphNode*, std::size_t,
                              cuda::Graph);
using UpdateChild = cuda::Result(cuda::GraphExec, cuda::GraphNode, cuda::Graph);

class CapturedWork {
 public:
  CapturedWork(const Stream& stream, const std::function<void()>& enqueue) {
    constexpr int global_mode = 0;
    cuda::check(cuda::driver().stream_begin_capture(stream.get(), global_mode), "cuStreamBeginCapture");
    enqueue();
    cuda::check(cuda::driver().stream_end_capture(stream.get(), &graph_), "cuStreamEndCapture");
  }
  CapturedWork(const CapturedWork&) = delete;
  CapturedWork& operator=(const CapturedWork&) = delete;
  ~CapturedWork() { cuda::driver().graph_destroy(graph_); }
  cuda::Graph get() const { return graph_; }

 private:
  cuda::Graph graph_ = nullptr;
};

class Executable {
 public:
  explicit Executable(cuda::Graph graph) {
    cuda::check(cuda::driver().graph_instantiate(&exec_, graph, 0), "cuGraphInstantiate");
  }
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  ~Executable() { cuda::driver().graph_exec_destroy(exec_); }
  cuda::GraphExec get() const { return exec_; }
  void launch(const Stream& stream) const {
    cuda::check(cuda::driver().graph_launch(exec_, stream.get()), "cuGraphLaunch");
    stream.wait();
  }

 private:
  cuda::GraphExec exec_ = nullptr;
};

// A product on a stream without a workspace, and the bits that it must have.
class Product {
 public:
  Product(const GemmCase& test, const Stream& stream, std::int64_t workspace_limit = 0)
      : test_(test), bits_(device_bits<float>(test)), data_(test), device_(data_, {.queue = stream.queue()}),
        planned_(device_.problem(), options(workspace_limit)), operands_(device_.operands()) {
    wait_for_uploads();
  }

  kintsugi_status enqueue() const { return kintsugi_plan_execute(nullptr, planned_.plan, &operands_); }
  void enqueue_well() const { EXPECT_EQ(enqueue(), KINTSUGI_SUCCESS) << kintsugi_last_error(); }
  std::size_t workspace() const { return planned_.workspace; }
  // Checks C, and poisons it for the next time.
  void check(const char* what) {
    GemmDataOf<float> result(test_);
    result.raw_c() = device_.c().host();
    EXPECT_TRUE(bits_of(result.result()) == bits_) << what << ": " << describe(test_);
    core::cuda::copy_to_device({}, device_.c().data(), data_.raw_c().data(),
                               data_.raw_c().size() * sizeof(float));
    wait_for_uploads();
  }

 private:
  kintsugi_options options(std::int64_t workspace_limit) const {
    kintsugi_options options = device_.options();
    options.workspace_limit = workspace_limit;
    return options;
  }

  GemmCase test_;
  std::vector<std::uint32_t> bits_;
  GemmDataOf<float> data_;
  DeviceGemm<float> device_;
  Planned planned_;
  kintsugi_operands operands_;
};

const GemmCase small{.m = 130, .n = 70, .k = 300, .policy = "emulate"};

std::vector<GemmCase> cases_of_schemes() {
  std::vector<GemmCase> cases(4, small);
  cases[1].accuracy = "exact";
  cases[2].scheme = "fp16x3";
  cases[3].scheme = "ozaki2:moduli=7";
  cases[2].policy = cases[3].policy = "";
  return cases;
}

// A graph whose nodes are a captured graph twice, one after the other.
class ParentGraph {
 public:
  explicit ParentGraph(cuda::Graph child) {
    cuda::check(cuda::driver().graph_create(&graph_, 0), "cuGraphCreate");
    const auto add = driver_function<AddChild>("cuGraphAddChildGraphNode");
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      cuda::check(add(&nodes_[i], graph_, nodes_.data(), i, child), "cuGraphAddChildGraphNode");
  }
  ParentGraph(const ParentGraph&) = delete;
  ParentGraph& operator=(const ParentGraph&) = delete;
  ~ParentGraph() { cuda::driver().graph_destroy(graph_); }
  cuda::Graph get() const { return graph_; }
  const std::array<cuda::GraphNode, 2>& nodes() const { return nodes_; }

 private:
  cuda::Graph graph_ = nullptr;
  std::array<cuda::GraphNode, 2> nodes_{};
};

TEST(DeviceGraphs, CapturedCallsAreChildGraphsInSmallCases) {
  for (const GemmCase& test : cases_of_schemes()) {
    const Stream stream;
    Product product(test, stream);
    std::unique_ptr<Executable> executable;
    {
      const CapturedWork captured(stream, [&] {
        product.enqueue_well();
        product.enqueue_well();
      });
      executable = std::make_unique<Executable>(ParentGraph(captured.get()).get());
    }
    kintsugi_release_caches();
    for (int replay = 0; replay < 3; ++replay) {
      executable->launch(stream);
      product.check("child graph");
    }
  }
}

// XLA updates the child graphs of an executable graph if its buffers have other addresses.
TEST(DeviceGraphs, ChildGraphsAreUpdatedInSmallCases) {
  for (const GemmCase& test : cases_of_schemes()) {
    const Stream stream;
    Product first(test, stream), second(test, stream);
    const CapturedWork captured(stream, [&] { first.enqueue_well(); });
    const ParentGraph parent(captured.get());
    const Executable executable(parent.get());
    executable.launch(stream);
    first.check("child graph");
    {
      const CapturedWork later(stream, [&] { second.enqueue_well(); });
      const auto update = driver_function<UpdateChild>("cuGraphExecChildGraphNodeSetParams");
      for (const cuda::GraphNode node : parent.nodes())
        cuda::check(update(executable.get(), node, later.get()), "cuGraphExecChildGraphNodeSetParams");
    }
    executable.launch(stream);
    second.check("updated child graph");
  }
}

TEST(DeviceGraphs, BranchesHaveTheirOwnMemoryInSmallCases) {
  const Stream first, second;
  GemmCase other = small;
  other.seed = small.seed + 1;
  other.k = 500;
  Product on_first(small, first), on_second(other, second);
  cuda::Event fork = nullptr, join = nullptr;
  cuda::check(cuda::driver().event_create(&fork, 0), "cuEventCreate");
  cuda::check(cuda::driver().event_create(&join, 0), "cuEventCreate");
  const CapturedWork captured(first, [&] {
    cuda::check(cuda::driver().event_record(fork, first.get()), "cuEventRecord");
    cuda::check(cuda::driver().stream_wait_event(second.get(), fork, 0), "cuStreamWaitEvent");
    for (int call = 0; call < 4; ++call) {
      on_first.enqueue_well();
      on_second.enqueue_well();
    }
    cuda::check(cuda::driver().event_record(join, second.get()), "cuEventRecord");
    cuda::check(cuda::driver().stream_wait_event(first.get(), join, 0), "cuStreamWaitEvent");
  });
  const Executable executable(captured.get());
  for (int replay = 0; replay < 10; ++replay) {
    executable.launch(first);
    on_first.check("first branch");
    on_second.check("second branch");
  }
  cuda::driver().event_destroy(fork);
  cuda::driver().event_destroy(join);
}

// The driver may release a destroyed graph later. So some graphs may have memory at the same time.
TEST(DeviceGraphs, DestroyedGraphsLeaveNoMemoryBehind) {
  const Stream stream;
  Product product({.m = 4096, .n = 4096, .k = 2048, .policy = "emulate"}, stream);
  ASSERT_GT(product.workspace(), std::size_t{8} << 20);
  const auto free_bytes = [] {
    std::size_t free = 0, all = 0;
    cuda::check(cuda::driver().memory_info(&free, &all), "cuMemGetInfo");
    return free;
  };
  std::size_t before = 0;
  for (int round = 0; round < 200; ++round) {
    const CapturedWork captured(stream, [&] { product.enqueue_well(); });
    const Executable executable(captured.get());
    executable.launch(stream);
    if (round == 0) before = free_bytes();
  }
  EXPECT_LT(before - std::min(before, free_bytes()), 20 * product.workspace());
  product.check("last graph");
}

// Memory of a destroyed graph is freed during the capture, where the default mode forbids that.
TEST(DeviceGraphs, MemoryOfDestroyedGraphsMakesRoomWithinTheLimit) {
  const Stream stream;
  const GemmCase test{.m = 1024, .n = 1024, .k = 1024, .policy = "emulate"};
  GemmCase larger = test;
  larger.m = larger.n = 1536;
  const auto limit = static_cast<std::int64_t>(Product(larger, stream).workspace());
  Product first(test, stream, limit), second(larger, stream, limit);
  auto captured = std::make_unique<CapturedWork>(stream, [&] { first.enqueue_well(); });
  auto executable = std::make_unique<Executable>(captured->get());
  executable->launch(stream);
  first.check("first graph");
  const CapturedWork refused(stream, [&] {
    EXPECT_EQ(second.enqueue(), KINTSUGI_OUT_OF_MEMORY);
    EXPECT_NE(std::string(kintsugi_last_error()).find("workspace_limit"), std::string::npos);
  });
  captured.reset();
  executable.reset();
  kintsugi_status status = KINTSUGI_OUT_OF_MEMORY;
  for (int tenths = 0; tenths < 50 && status == KINTSUGI_OUT_OF_MEMORY; ++tenths) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    captured = std::make_unique<CapturedWork>(stream, [&] { status = second.enqueue(); });
  }
  ASSERT_EQ(status, KINTSUGI_SUCCESS) << kintsugi_last_error();
  Executable(captured->get()).launch(stream);
  second.check("second graph");
}

TEST(DeviceGraphs, OutliveTheirThreadAndLargerCallsInSmallCases) {
  const Stream stream;
  Product product(small, stream), larger({.m = 400, .n = 500, .k = 600, .policy = "emulate"}, stream);
  std::unique_ptr<Executable> executable;
  std::thread([&] {
    prepare_device();
    const CapturedWork captured(stream, [&] { product.enqueue_well(); });
    executable = std::make_unique<Executable>(captured.get());
  }).join();
  larger.enqueue_well();
  stream.wait();
  larger.check("larger call");
  kintsugi_release_caches();
  executable->launch(stream);
  product.check("graph of an ended thread");
}

}  // namespace
}  // namespace kintsugi::test

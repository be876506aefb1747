// Tests over the fakes that the launches of repeated calls go to the device as one graph, with the call's own
// grids and arguments, and that they are made one by one where that is not possible.
#include "engines/cuda/common/launch_graph.hpp"

#include <numeric>

#include "fakes/contexts.hpp"
#include "fakes/device_call.hpp"

namespace kintsugi::test {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Launches without what names a graph's first kernel apart: its dependency on earlier work.
std::vector<std::string> launches() {
  std::vector<std::string> found = events_with("cuLaunchKernel");
  if (found.empty()) return found;
  const std::string overlaps = " overlaps";
  const std::size_t at = found.front().find(overlaps);
  if (at != std::string::npos) found.front().erase(at, overlaps.size());
  return found;
}

class LaunchGraphs : public OverFakes {
 protected:
  void SetUp() override {
    OverFakes::SetUp();
    if (IsSkipped()) return;
    core::cuda::release_graphs();
    fake_cuda_forget();
  }
};

TEST_F(LaunchGraphs, RepeatedCallsAreOneGraph) {
  const Stream stream;
  Call call(300, 200, 400, stream);
  call.options.policy = "emulate";
  call.make_plan();
  call.run();
  EXPECT_THAT(events_with("cuGraph"), IsEmpty()) << "first";
  const std::vector<std::string> expected = launches();
  ASSERT_GT(expected.size(), 3U);
  call.run();
  EXPECT_THAT(events_with("cuGraph"), IsEmpty()) << "second";
  call.run();
  EXPECT_THAT(events_with("cuGraphInstantiate"), SizeIs(1)) << "third";
  EXPECT_THAT(events_with("cuGraphLaunch"), SizeIs(1));
  EXPECT_THAT(launches(), ElementsAreArray(expected));
  call.run();
  EXPECT_THAT(events_with("cuGraphInstantiate"), IsEmpty()) << "fourth";
  EXPECT_THAT(events_with("cuGraphLaunch"), SizeIs(1));
  EXPECT_THAT(launches(), ElementsAreArray(expected));
}

// Calls of other sizes that have the same kernels use the same graph, each with its own grids.
TEST_F(LaunchGraphs, AGraphServesOtherShapes) {
  const Stream stream;
  std::vector<std::unique_ptr<Call>> calls;
  for (const std::int64_t m : {4096, 5120, 6144}) {
    calls.push_back(std::make_unique<Call>(m, 4096, 64, stream));
    calls.back()->options.policy = "emulate";
    calls.back()->make_plan();
  }
  std::vector<std::vector<std::string>> expected;
  ASSERT_EQ(::setenv("FAKE_CUDA_NO_GRAPHS", "1", 1), 0);
  for (const auto& call : calls) {
    call->run();
    expected.push_back(launches());
  }
  EXPECT_THAT(events_with("cuGraph"), IsEmpty());
  ::unsetenv("FAKE_CUDA_NO_GRAPHS");
  core::cuda::release_graphs();
  int built = 0;
  int launched = 0;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      calls[i]->run();
      built += static_cast<int>(events_with("cuGraphInstantiate").size());
      launched += static_cast<int>(events_with("cuGraphLaunch").size());
      EXPECT_THAT(launches(), ElementsAreArray(expected[i])) << "round " << round << ", call " << i;
    }
  }
  EXPECT_EQ(built, 1);
  EXPECT_EQ(launched, 7) << "of nine calls, all but the first two";
}

TEST_F(LaunchGraphs, StreamsHaveTheirOwn) {
  const Stream first;
  const Stream second;
  for (const Stream* stream : {&first, &second}) {
    Call call(300, 200, 400, *stream);
    call.options.policy = "emulate";
    call.make_plan();
    call.run();
    call.run();
    EXPECT_THAT(events_with("cuGraph"), IsEmpty());
    call.run();
    EXPECT_THAT(events_with("cuGraphInstantiate"), SizeIs(1));
  }
}

TEST_F(LaunchGraphs, AStreamInCaptureGetsSingleLaunches) {
  const Stream stream;
  Call call(300, 200, 400, stream);
  call.options.policy = "emulate";
  call.make_plan();
  call.bring_workspace();
  for (int round = 0; round < 3; ++round) call.run();
  EXPECT_THAT(events_with("cuGraphLaunch"), SizeIs(1));
  ASSERT_EQ(core::cuda::driver().stream_begin_capture(stream.get(), 0), 0);
  call.run();
  EXPECT_THAT(events_with("cuGraph"), IsEmpty());
  EXPECT_THAT(events_with("cuLaunchKernel"), Not(IsEmpty()));
  core::cuda::Graph graph = nullptr;
  ASSERT_EQ(core::cuda::driver().stream_end_capture(stream.get(), &graph), 0);
  core::cuda::driver().graph_destroy(graph);
}

// Old graphs are freed when others need their place, and all of them on request.
TEST_F(LaunchGraphs, AreLimitedInNumberAndReleased) {
  std::vector<std::unique_ptr<Stream>> streams;
  constexpr int count = 70;
  int built = 0;
  int destroyed = 0;
  for (int i = 0; i < count; ++i) {
    streams.push_back(std::make_unique<Stream>());
    Call call(300, 200, 400, *streams.back());
    call.options.policy = "emulate";
    call.make_plan();
    for (int round = 0; round < 3; ++round) {
      call.run();
      built += static_cast<int>(events_with("cuGraphInstantiate").size());
      destroyed += static_cast<int>(events_with("cuGraphExecDestroy").size());
    }
  }
  EXPECT_EQ(built, count);
  EXPECT_EQ(destroyed, count - 64);
  fake_cuda_forget();
  EXPECT_EQ(kintsugi_release_caches(), KINTSUGI_SUCCESS);
  EXPECT_THAT(events_with("cuGraphExecDestroy"), SizeIs(64));
}

TEST_F(LaunchGraphs, ADriverThatBuildsNoneGetsSingleLaunches) {
  ASSERT_EQ(::setenv("FAKE_CUDA_NO_GRAPHS", "1", 1), 0);
  const Stream stream;
  Call call(300, 200, 400, stream);
  call.options.policy = "emulate";
  call.make_plan();
  call.run();
  const std::vector<std::string> expected = launches();
  for (int round = 0; round < 4; ++round) {
    call.run();
    EXPECT_THAT(events_with("cuGraphLaunch"), IsEmpty());
    EXPECT_THAT(launches(), ElementsAreArray(expected));
  }
  ::unsetenv("FAKE_CUDA_NO_GRAPHS");
}

// A stream of a part of the device must not run kernels of the whole device, as a graph's would be.
TEST_F(LaunchGraphs, GreenContextsGetSingleLaunches) {
  void* green = fake_cuda_make_context(0, primary_context(0));
  {
    const CurrentContext current(green);
    const Stream stream;
    Call call(300, 200, 400, stream);
    call.options.policy = "emulate";
    call.make_plan();
    for (int round = 0; round < 4; ++round) {
      call.run();
      EXPECT_THAT(events_with("cuGraph"), IsEmpty());
      EXPECT_THAT(events_with("cuLaunchKernel"), Not(IsEmpty()));
    }
  }
  fake_cuda_destroy_context(green);
}

}  // namespace
}  // namespace kintsugi::test

// Tests calls of the driver over the fakes: their order, and that its errors become the library's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/cuda/cuda_driver.hpp"
#include "base/status.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/cublas.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/split/split_task.hpp"
#include "engines/registry.hpp"
#include "fakes/steering.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

TEST(FakeDriver, EngineIsAvailable) {
  EXPECT_TRUE(core::cuda::driver().complete);
  EXPECT_EQ(core::cuda::driver().reason, "");
  EXPECT_EQ(core::cuda::cublas().reason, "");
  EXPECT_EQ(core::cuda::driver().version_text(), "13.0");
}

// A child of a process that has used CUDA gets an error that says so, and calls no function of the driver.
TEST(FakeDriver, IsAnErrorInAForkedChild) {
  core::cuda::prepare_device();
  std::byte* memory = core::cuda::allocate({core::QueueKind::cuda, nullptr}, 8, 0);
  fake_cuda_forget();
  const pid_t child = ::fork();
  if (child == 0) {
    const core::Engine& engine = *core::find_engine("cuda");
    bool error_is_right = false;
    try {
      core::cuda::allocate({core::QueueKind::cuda, nullptr}, 8, 0);
    } catch (const core::Error& error) {
      error_is_right =
          error.status() == core::Status::engine_unavailable &&
          std::string(error.what()).find("was forked by one that uses CUDA") != std::string::npos;
    }
    core::cuda::deallocate({core::QueueKind::cuda, nullptr}, memory);
    const bool unavailable = !engine.unavailable_reason().empty() && !engine.requirements().empty();
    ::_exit(error_is_right && unavailable && events().empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(core::cuda::driver().reason, "") << "in the parent";
  core::cuda::deallocate({core::QueueKind::cuda, nullptr}, memory);
}

TEST(FakeDriver, CopiesToTheDeviceAndBackKeepValues) {
  core::cuda::prepare_device();
  const core::Queue queue{core::QueueKind::cuda, nullptr};
  const int before = fake_cuda_allocations();
  const double value = 6.75;
  double copied_back = 0;
  fake_cuda_forget();
  std::byte* memory = core::cuda::allocate(queue, sizeof value, 0);
  EXPECT_EQ(fake_cuda_allocations(), before + 1);
  core::cuda::copy_to_device(queue, memory, &value, sizeof value);
  core::cuda::copy_to_host(queue, &copied_back, memory, sizeof value);
  core::cuda::synchronize(queue);
  core::cuda::deallocate(queue, memory);
  EXPECT_EQ(copied_back, value);
  EXPECT_EQ(fake_cuda_allocations(), before);
  EXPECT_THAT(events(),
              testing::ElementsAre(HasSubstr("cuMemAllocFromPoolAsync 8 "), HasSubstr("cuMemcpyHtoDAsync 8 "),
                                   HasSubstr("cuMemcpyDtoHAsync 8 "), HasSubstr("cuStreamSynchronize "),
                                   HasSubstr("cuMemFreeAsync ")));
}

TEST(FakeDriver, FailedAllocationReturnsNull) {
  core::cuda::prepare_device();
  const FakeVariable steered("FAKE_CUDA_FAIL_ALLOCATION", "1,2");
  fake_cuda_forget();
  EXPECT_EQ(core::cuda::allocate({core::QueueKind::cuda, nullptr}, 8, 0), nullptr);
  EXPECT_THAT(events(),
              testing::ElementsAre(HasSubstr("cuMemAllocFromPoolAsync 8 "), HasSubstr("cuMemPoolTrimTo 0, "),
                                   HasSubstr("cuMemAllocFromPoolAsync 8 ")))
      << "pieces that the pool keeps may be in the way";
}

TEST(FakeDriver, UnknownKernelIsNamed) {
  if (core::cuda::engine_images().empty()) GTEST_SKIP() << "built without device code";
  const core::cuda::KernelName kernel{core::cuda::engine_images().front().name, "no_such_kernel"};
  try {
    kernel.get();
    FAIL() << "a kernel that does not exist was found";
  } catch (const core::Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("no_such_kernel"), HasSubstr("CUDA_ERROR_NOT_FOUND")));
  }
}

TEST(FakeDriver, FailedLaunchNamesTheKernel) {
  if (core::cuda::engine_images().empty()) GTEST_SKIP() << "built without device code";
  core::cuda::prepare_device();
  const core::cuda::KernelName kernel{"selector", "select_candidate"};
  const core::Queue queue{core::QueueKind::cuda, nullptr};
  core::cuda::launch(kernel, {2, 3, 1}, 128, 64, queue, 1);
  EXPECT_THAT(events(),
              testing::Contains(HasSubstr("cuLaunchKernel select_candidate 2x3x1 threads=128 shared=64 ")));
  const FakeVariable steered("FAKE_CUDA_FAIL_LAUNCH", "2");
  core::cuda::launch(kernel, {}, 128, 0, queue, 1);
  try {
    core::cuda::launch(kernel, {4, 1, 1}, 128, 0, queue, 1);
    FAIL() << "the launch did not fail";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.status(), core::Status::device_error);
    EXPECT_THAT(error.what(), HasSubstr("select_candidate, 4 x 1 x 1 blocks of 128 threads"));
    EXPECT_THAT(error.what(), HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
  }
}

TEST(FakeDriver, KernelsThatWaitForEarlierOnesMayOverlap) {
  if (core::cuda::engine_images().empty()) GTEST_SKIP() << "built without device code";
  core::cuda::prepare_device();
  const core::Queue queue{core::QueueKind::cuda, nullptr};
  const core::cuda::KernelName waits{"selector", "select_candidate", core::cuda::waits_for_grid_dependency};
  const core::cuda::KernelName does_not_wait{"scale", "scale_real"};
  core::cuda::launch(waits, {5, 1, 1}, 128, 0, queue, 1);
  core::cuda::launch(does_not_wait, {6, 1, 1}, 128, 0, queue, 1);
  const auto launch_of = [](const std::string& blocks) {
    for (const std::string& event : events()) {
      if (event.find(blocks) != std::string::npos) return event;
    }
    return std::string();
  };
  EXPECT_THAT(launch_of("select_candidate 5x1x1"), testing::EndsWith(" overlaps"));
  EXPECT_THAT(launch_of("scale_real 6x1x1"), testing::Not(testing::EndsWith(" overlaps")));
  const FakeVariable older("FAKE_CUDA_CAPABILITY", "8.0");
  core::cuda::launch(waits, {7, 1, 1}, 128, 0, queue, 1);
  EXPECT_THAT(launch_of("select_candidate 7x1x1"), testing::Not(testing::EndsWith(" overlaps")));
}

// The PTX version of the loaded kernel decides, not the device: PTX of 8.0 that the driver compiled for
// Hopper has no grid-dependency wait either.
TEST(FakeDriver, KernelsCompiledFromOldPtxDoNotOverlap) {
  if (core::cuda::engine_images().empty()) GTEST_SKIP() << "built without device code";
  core::cuda::prepare_device();
  const core::Queue queue{core::QueueKind::cuda, nullptr};
  const FakeVariable older("FAKE_CUDA_PTX_VERSION", "80");
  const core::cuda::KernelName generic{"selector", "select_candidate", core::cuda::waits_for_grid_dependency};
  const core::cuda::KernelName hopper{"int8_sm90a", "multiply_int8_residues",
                                      core::cuda::waits_for_grid_dependency};
  core::cuda::launch(generic, {}, 128, 0, queue, 1);
  EXPECT_THAT(events().back(), AllOf(HasSubstr("select_candidate"), testing::Not(HasSubstr("overlaps"))));
  core::cuda::launch(hopper, {}, 128, 0, queue, 1);
  EXPECT_THAT(events().back(), AllOf(HasSubstr("multiply_int8_residues"), HasSubstr("overlaps")));
}

TEST(FakeDriver, AttributesAreReadOnceForEachDevice) {
  core::cuda::prepare_device();
  const auto major_capability = [] {
    return core::cuda::device_attribute(core::cuda::compute_capability_major, core::cuda::current_device());
  };
  EXPECT_EQ(major_capability(), 9);
  const int asked = fake_cuda_questions();
  EXPECT_EQ(major_capability(), 9);
  EXPECT_EQ(fake_cuda_questions(), asked);
  const FakeVariable older("FAKE_CUDA_CAPABILITY", "8.9");
  EXPECT_EQ(major_capability(), 8) << "another device is asked again";
  EXPECT_EQ(fake_cuda_questions(), asked + 1);
}

TEST(FakeDriver, LargeSharedMemoryIsRequestedByAnAttribute) {
  if (core::cuda::engine_images().empty()) GTEST_SKIP() << "built without device code";
  core::cuda::prepare_device();
  const core::cuda::KernelName kernel{"selector", "select_candidate"};
  const core::Queue queue{core::QueueKind::cuda, nullptr};
  core::cuda::launch(kernel, {}, 128, 100 * 1024, queue, 1);
  EXPECT_THAT(events(), testing::Contains("cuKernelSetAttribute select_candidate 8 102400"));
  EXPECT_THROW(core::cuda::launch(kernel, {}, 128, 300 * 1024, queue, 1), core::Error);
}

// A kernel's own static shared memory, 1072 bytes here, counts too.
TEST(FakeDriver, StaticSharedMemoryCountsForTheRequest) {
  if (core::cuda::engine_images().empty()) GTEST_SKIP() << "built without device code";
  core::cuda::prepare_device();
  const core::cuda::KernelName kernel{"split_columns_clusters", "split_f32_fp16_with_depth_columns"};
  const core::Queue queue{core::QueueKind::cuda, nullptr};
  for (const std::int64_t bytes : {1024, 47 * 1024, 48 * 1024 - 640, 48 * 1024, 48 * 1024 - 640})
    EXPECT_NO_THROW(core::cuda::launch(kernel, {}, 128, bytes, queue, core::cuda::SplitTasks{})) << bytes;
}

TEST(FakeDriver, SharedMemoryCarveoutIsSetOnceForEachDevice) {
  if (core::cuda::engine_images().empty()) GTEST_SKIP() << "built without device code";
  core::cuda::prepare_device();
  const core::cuda::KernelName kernel{"selector", "select_candidate"};
  const core::Queue queue{core::QueueKind::cuda, nullptr};
  const auto times_asked = [&] {
    fake_cuda_forget();
    for (int launch = 0; launch < 3; ++launch) core::cuda::launch(kernel, {}, 128, 0, queue, 1);
    const std::vector<std::string> all = events();
    return std::count(all.begin(), all.end(), "cuKernelSetAttribute select_candidate 9 100");
  };
  EXPECT_EQ(times_asked(), 1);
  EXPECT_EQ(times_asked(), 0);
  const FakeVariable older("FAKE_CUDA_CAPABILITY", "8.0");
  EXPECT_EQ(times_asked(), 1) << "another device";
}

TEST(FakeDriver, WaitingInACaptureIsAnErrorAndSpoilsIt) {
  core::cuda::prepare_device();
  core::cuda::Stream stream = nullptr;
  core::cuda::Graph graph = nullptr;
  ASSERT_EQ(core::cuda::driver().stream_create(&stream, 0), 0);
  ASSERT_EQ(core::cuda::driver().stream_begin_capture(stream, 0), 0);
  EXPECT_THROW(core::cuda::synchronize(core::Queue{core::QueueKind::cuda, stream}), core::Error);
  EXPECT_THROW(core::cuda::synchronize(), core::Error);
  ASSERT_NE(core::cuda::driver().stream_end_capture(stream, &graph), 0) << "the capture was not spoiled";
  EXPECT_NO_THROW(core::cuda::synchronize(core::Queue{core::QueueKind::cuda, stream}));
  ASSERT_EQ(core::cuda::driver().stream_destroy(stream), 0);
}

}  // namespace
}  // namespace kintsugi::test

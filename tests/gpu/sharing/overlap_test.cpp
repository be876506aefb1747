// Tests programmatic dependent launch: a kernel may begin before the one in front of it has ended, and then
// waits itself. Must pass in builds for any architectures: with -DCMAKE_CUDA_ARCHITECTURES=80 the generic
// kernels have no such wait, and they run between kernels of sm_90a, which let the next kernel begin early.
#include "engines/cuda/common/launch.hpp"
#include "gpu/calls/device_stream.hpp"

namespace kintsugi::test {
namespace {

// C = A (A (... (A B))) / 16^length: each product reads what the one before it wrote. With
// `synchronizes_each`, the host waits for each product before it enqueues the next.
std::vector<float> multiply_chain(const Stream& stream, std::int64_t n, int length, bool synchronizes_each) {
  GemmData data(GemmCase{.m = n, .n = n, .k = n, .policy = "emulate"});
  const DeviceArray<float> a(data.raw_a());
  const DeviceArray<float> first(data.raw_b());
  const DeviceArray<float> second(data.raw_b());
  wait_for_uploads();
  kintsugi_problem problem = data.problem();
  problem.memory = KINTSUGI_DEVICE;
  kintsugi_options options = data.options();
  options.queue = stream.queue();
  kintsugi_plan plan = nullptr;
  EXPECT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  const float alpha = 0.0625F;
  const float beta = 0;
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  operands.alpha = &alpha;
  operands.beta = &beta;
  operands.a = a.data();
  for (int i = 0; i < length; ++i) {
    operands.b = (i % 2 == 0 ? first : second).data();
    operands.c = (i % 2 == 0 ? second : first).data();
    EXPECT_EQ(kintsugi_plan_execute(nullptr, plan, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
    if (synchronizes_each) stream.wait();
  }
  stream.wait();
  kintsugi_plan_destroy(plan);
  return (length % 2 == 0 ? first : second).host();
}

TEST(DeviceOverlap, ChainsHaveTheBitsOfSingleProducts) {
  const Stream stream;
  for (const std::int64_t n : {96, 300, 1024}) {
    const std::vector<float> expected = multiply_chain(stream, n, 20, true);
    for (int repetition = 0; repetition < 20; ++repetition)
      ASSERT_EQ(bits_of(multiply_chain(stream, n, 20, false)), bits_of(expected)) << "n = " << n;
  }
}

TEST(DeviceOverlap, OnlyKernelsWithTheWaitMayOverlap) {
  prepare_device();
  const cuda::KernelName kernel{"selector", "select_candidate", cuda::waits_for_grid_dependency};
  int version = 0;
  cuda::check(cuda::driver().kernel_attribute(&version, cuda::function_ptx_version, kernel.get(),
                                              cuda::current_device()),
              "cuKernelGetAttribute");
  EXPECT_EQ(kernel.may_overlap(), version >= 90);
  RecordProperty("ptx_version", version);
}

}  // namespace
}  // namespace kintsugi::test

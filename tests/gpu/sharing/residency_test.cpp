// Products that have only some SMs of a device end, and have the same bits as on all of them.
#include <chrono>
#include <thread>

#include "gpu/sharing/sm_share.hpp"

namespace kintsugi::test {

bool ends_within(cuda::Stream stream, double seconds) {
  const auto query = driver_function<int (*)(cuda::Stream)>("cuStreamQuery");
  const auto begin = std::chrono::steady_clock::now();
  while (query(stream) != 0) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    if (passed.count() > seconds) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

namespace {

constexpr double max_seconds = 6;

// A product for each kind of kernel: tiles that are cut along k, wide and narrow ones, several segments of k,
// columns that clusters split, residues, error-free sums.
std::vector<GemmCase> single_cases() {
  return {
      {.m = 2048, .n = 6400, .k = 2048, .policy = "emulate", .accuracy = "fp32"},
      {.m = 1024, .n = 1024, .k = 1024, .policy = "emulate", .accuracy = "fp32"},
      {.m = 2048, .n = 2048, .k = 2048, .op_a = KINTSUGI_OP_T, .scheme = "fp16x3"},
      {.m = 2304, .n = 2100, .k = 9000, .op_b = KINTSUGI_OP_T, .scheme = "fp16x3-wide"},
      {.m = 1100, .n = 900, .k = 20000, .scheme = "bf16x6"},
      {.m = 64, .n = 2000, .k = 12000, .scheme = "fp16x3"},
      {.m = 1024, .n = 1024, .k = 1024, .distribution = "phi:4", .policy = "emulate", .accuracy = "fp32"},
  };
}
std::vector<GemmCase> double_cases() {
  return {
      {.m = 1024, .n = 1024, .k = 1024, .distribution = "phi:0.5", .policy = "emulate", .accuracy = "fp64"},
      {.m = 512, .n = 512, .k = 9000, .op_a = KINTSUGI_OP_T, .accuracy = "exact"},
      // cuBLAS 13.0 hangs by itself beside 100 held SMs of an H100 where it multiplies fp16, bf16 or tf32
      // matrices of 500 squared; larger ones end.
      {.m = 1000, .n = 1000, .k = 500, .scheme = "ozaki-fp16"},
  };
}

// Runs the case on all SMs, then in a stream that has only some: run_on_share(run) has to call `run` while
// the SMs are limited. Returns false if that run does not end.
template <class T, class RunOnShare>
bool ends_with_the_same_bits(const GemmCase& test, const kintsugi_queue& queue, cuda::Stream stream,
                             const RunOnShare& run_on_share) {
  GemmDataOf<T> data_on_all_sms(test);
  DeviceGemm<T> on_all_sms(data_on_all_sms);
  EXPECT_EQ(on_all_sms.run(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  wait_for_uploads();
  GemmDataOf<T> data(test);
  DeviceGemm<T> on_share(data, {.queue = queue});
  wait_for_uploads();
  bool ended = false;
  run_on_share([&] {
    EXPECT_EQ(on_share.run(), KINTSUGI_SUCCESS) << kintsugi_last_error();
    ended = ends_within(stream, max_seconds);
  });
  EXPECT_TRUE(ended) << describe(test) << " did not end";
  if (!ended) return false;
  EXPECT_TRUE(bits_of(on_share.c().host()) == bits_of(on_all_sms.c().host())) << describe(test);
  return true;
}

template <class Visit>
void for_each_case(const Visit& visit) {
  for (const GemmCase& test : single_cases()) {
    if (!visit.template operator()<float>(test)) return;
  }
  for (const GemmCase& test : double_cases()) {
    if (!visit.template operator()<double>(test)) return;
  }
}

TEST(Residency, ProductsEndWhileAnotherKernelHoldsSms) {
  prepare_device();
  const int sm_count = cuda::device_attribute(cuda::sm_count_attribute, cuda::current_device());
  for (const int held : {sm_count / 2, sm_count - 32}) {
    SCOPED_TRACE(std::to_string(held) + " SMs held");
    const Stream stream;
    for_each_case([&]<class T>(const GemmCase& test) {
      return ends_with_the_same_bits<T>(test, stream.queue(), stream.get(), [&](const auto& run) {
        HeldSms holder(held);
        run();
      });
    });
  }
}

TEST(Residency, ProductsEndInGreenContexts) {
  for (const unsigned sms : {8U, 16U, 32U, 64U, 104U}) {
    SCOPED_TRACE(std::to_string(sms) + " SMs");
    const GreenStream stream(sms);
    if (!stream.exists()) GTEST_SKIP() << "the driver makes no green contexts here";
    for_each_case([&]<class T>(const GemmCase& test) {
      return ends_with_the_same_bits<T>(test, stream.queue(), stream.get(), [](const auto& run) { run(); });
    });
  }
}

// While a product runs, the product of the other priority takes SMs from it or leaves some to it.
TEST(Residency, ProductsOfDifferentPrioritiesEnd) {
  const GemmCase test{.m = 2048, .n = 2048, .k = 2048, .scheme = "fp16x3"};
  const auto bits = device_bits<float>(test);
  const PriorityStream streams[2]{PriorityStream(PriorityStream::Priority::lowest),
                                  PriorityStream(PriorityStream::Priority::highest)};
  GemmDataOf<float> data[2]{GemmDataOf<float>(test), GemmDataOf<float>(test)};
  DeviceGemm<float> products[2]{DeviceGemm<float>(data[0], {.queue = streams[0].queue()}),
                                DeviceGemm<float>(data[1], {.queue = streams[1].queue()})};
  wait_for_uploads();
  for (int turn = 0; turn < 100; ++turn) {
    for (auto& product : products) ASSERT_EQ(product.run(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  }
  for (int s = 0; s < 2; ++s) {
    ASSERT_TRUE(ends_within(streams[s].get(), max_seconds));
    products[s].fetch();
    EXPECT_EQ(bits_of(data[s].result()), bits);
  }
}

}  // namespace
}  // namespace kintsugi::test

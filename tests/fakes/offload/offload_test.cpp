// Tests offloaded products over the fakes, whose cuBLAS computes them: shapes, layouts and scalars in strips
// of every kind, failures in the middle, and what the report says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <random>
#include <string>

#include "fakes/contexts.hpp"
#include "support/effort.hpp"

namespace kintsugi::test {
namespace {

using testing::AllOf;
using testing::DoubleNear;
using testing::Ge;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Lt;
using testing::Ne;
using testing::Pointwise;

class OffloadedCalls : public Contexts {
 protected:
  OffloadedCalls() { kintsugi_set(handle, "offload", "force"); }
  void limit_memory(int bytes) const {
    kintsugi_set(handle, "offload_memory", bytes == 0 ? nullptr : std::to_string(bytes).c_str());
  }

  json offload_of_report() const { return handle.report().at("offload"); }

  // Scheme native is cuBLAS's product alone, which the fake computes.
  static GemmCase native_case(std::int64_t m, std::int64_t n, std::int64_t k) {
    GemmCase test{.m = m, .n = n, .k = k, .alpha = 1.5, .beta = -0.5};
    test.scheme = "native";
    test.threads = 4;
    return test;
  }

  // Runs the case on devices and on the reference engine, and compares both.
  template <class T>
  void expect_right(const GemmCase& test) {
    GemmDataOf<T> offloaded(test);
    ASSERT_EQ(offloaded.run(handle), KINTSUGI_SUCCESS) << kintsugi_last_error();
    GemmCase on_host = test;
    on_host.engine = "reference";
    GemmDataOf<T> expected(on_host);
    ASSERT_EQ(expected.run(), KINTSUGI_SUCCESS) << kintsugi_last_error();
    const double unit = sizeof(core::RealOf<T>) == 4 ? 1e-5 : 1e-13;
    double largest = 0;
    const std::vector<T> found = offloaded.result();
    const std::vector<T> wanted = expected.result();
    for (std::size_t e = 0; e < found.size(); ++e) {
      const double difference = std::abs(found[e] - wanted[e]);
      if (!(difference <= largest)) largest = difference;
    }
    EXPECT_LE(largest, unit * static_cast<double>(test.k + 8));
  }

  const FakeVariable computing{"FAKE_CUDA_MULTIPLY", "1"};
  const Handle handle;
};

class RandomOffloads : public OffloadedCalls {
 protected:
  std::int64_t below(std::int64_t bound) {
    return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random);
  }
  double scalar() {
    constexpr std::array values{0.0, 1.0, -0.5, 2.0};
    return values[static_cast<std::size_t>(below(values.size()))];
  }

  GemmCase next_case() {
    GemmCase test = native_case(1 + below(140), 1 + below(140), 1 + below(90));
    if (below(5) == 0) test = native_case(1 + below(60), 1 + below(60), 400 + below(600));  // k may be cut
    const std::int64_t kind = below(8);
    if (kind < 2) {  // several devices
      test.m = 1 + test.m % 50;
      test.n = 1100 + below(100);
    }
    if (kind == 2) {
      test.batch = 2 + below(9);
      test.gap = below(4);
      test.m = 1 + below(90);
    }
    test.op_a = static_cast<kintsugi_op>(below(3));
    test.op_b = static_cast<kintsugi_op>(below(3));
    test.layout = below(2) == 0 ? KINTSUGI_COLUMN_MAJOR : KINTSUGI_ROW_MAJOR;
    test.pad_a = below(5);
    test.pad_b = below(5);
    test.pad_c = below(5);
    test.alpha = 1 + scalar();
    test.beta = scalar();
    test.alpha_im = scalar();
    test.beta_im = scalar();
    test.seed = static_cast<std::uint64_t>(below(1 << 20));
    constexpr std::array limits{0, 1 << 20, 600'000, 400'000, 100'000};
    limit = limits[static_cast<std::size_t>(below(limits.size()))];
    limit_memory(limit);
    return test;
  }

  std::mt19937_64 random{7};
  int limit = 0;
};

TEST_F(RandomOffloads, AreThoseOfTheHost) {
  int devices = 0;
  int cuts_of_k = 0;
  int on_host = 0;
  constexpr int calls = thorough ? 80 : 20;
  for (int number = 0; number < calls; ++number) {
    const GemmCase test = next_case();
    SCOPED_TRACE(fmt::format("case {}: m {} n {} k {} ops {} {} layout {} limit {}", number, test.m, test.n,
                             test.k, static_cast<int>(test.op_a), static_cast<int>(test.op_b),
                             static_cast<int>(test.layout), limit));
    switch (number % 4) {
      case 0: expect_right<float>(test); break;
      case 1: expect_right<double>(test); break;
      case 2: expect_right<std::complex<float>>(test); break;
      default: expect_right<std::complex<double>>(test); break;
    }
    const json report = handle.report();
    if (report.at("offload").is_null()) continue;  // alpha = 0: nothing to multiply
    devices += report.at("offload").at("devices") > 1 ? 1 : 0;
    cuts_of_k += report.at("offload").at("inner_parts") > 1 ? 1 : 0;
    on_host += report.at("engine") == "cpu" ? 1 : 0;
  }
  EXPECT_GE(devices, calls / 20) << "calls on several devices";
  EXPECT_GE(cuts_of_k, calls / 20) << "calls with parts of k";
  // The first 20 calls happen to have 12 that do not fit.
  if (thorough) {
    EXPECT_LT(on_host, calls / 2) << "calls that do not fit the limit";
  }
}

// A C of 300 x 300 in strips of 128: nine products, whose operands are copied again.
TEST_F(OffloadedCalls, UseStripsThatFitTheLimit) {
  GemmCase test = native_case(300, 300, 200);
  expect_right<double>(test);
  EXPECT_EQ(offload_of_report().at("products"), 1);
  EXPECT_EQ(offload_of_report().at("uploaded_bytes"), 8 * (2 * 300 * 200 + 300 * 300));
  limit_memory(1'700'000);
  expect_right<double>(test);
  const json offload = offload_of_report();
  EXPECT_EQ(offload.at("products"), 9);
  EXPECT_EQ(offload.at("inner_parts"), 1);
  EXPECT_THAT(offload.at("uploaded_bytes"), Gt(8 * (2 * 300 * 200 + 300 * 300)));
  EXPECT_EQ(offload.at("downloaded_bytes"), 8 * 300 * 300);
  EXPECT_THAT(offload.at("device_bytes"), Lt(1'700'000));
  EXPECT_EQ(offload.at("host_elements"), 0);
  EXPECT_TRUE(offload.at("host_reason").is_null());
}

TEST_F(OffloadedCalls, CutKOnlyForTheAccuracyOfAType) {
  GemmCase test = native_case(64, 64, 3000);
  limit_memory(400'000);
  expect_right<double>(test);
  EXPECT_THAT(offload_of_report().at("inner_parts"), Gt(1));
  test.scheme = {};
  test.policy = "native";
  test.accuracy = "1e-9";
  expect_right<double>(test);
  EXPECT_THAT(std::string(offload_of_report().at("host_reason")), HasSubstr("too few for strips"));
}

// Whatever fails first, C is right: the host computes what was not written.
TEST_F(OffloadedCalls, ContinueOnTheHostAfterAFailedAllocation) {
  int failures = 0;
  for (int number = 1; number < 60; ++number) {
    kintsugi_release_caches();  // or no pinned memory would be allocated
    const std::string tried_twice = std::to_string(number) + "," + std::to_string(number + 1);
    const FakeVariable failing("FAKE_CUDA_FAIL_ALLOCATION", tried_twice);
    expect_right<double>(native_case(40, 1100, 30));
    const json offload = offload_of_report();
    if (offload.at("host_reason").is_null()) break;
    EXPECT_THAT(std::string(offload.at("host_reason")), HasSubstr("out_of_memory"));
    EXPECT_THAT(offload.at("host_elements"), Gt(0));
    ++failures;
  }
  EXPECT_THAT(failures, AllOf(Gt(2), Lt(59)));
}

TEST_F(OffloadedCalls, ContinueOnTheHostAfterAFailedProduct) {
  GemmCase test = native_case(300, 300, 200);
  limit_memory(1'700'000);
  for (const int number : a_part_of({1, 8, 10, 2, 3, 4, 5, 6, 7, 9})) {
    const FakeVariable failing("FAKE_CUDA_FAIL_PRODUCT", std::to_string(number));
    expect_right<double>(test);
    const json report = handle.report();
    const json offload = report.at("offload");
    if (number == 10) {
      EXPECT_EQ(offload.at("host_elements"), 0);
      continue;
    }
    EXPECT_THAT(std::string(offload.at("host_reason")), HasSubstr("cublas"));
    EXPECT_THAT(offload.at("host_elements"), Gt(0));
    if (number > 6) {
      EXPECT_THAT(offload.at("host_elements"), Lt(300 * 300)) << number;
    }
    EXPECT_EQ(report.at("engine"), offload.at("host_elements") == 300 * 300 ? "cpu" : "cuda");
    kintsugi_report_summary summary = KINTSUGI_REPORT_SUMMARY_INIT;
    ASSERT_EQ(kintsugi_report_summarize(handle, &summary), KINTSUGI_SUCCESS);
    EXPECT_EQ(summary.offload_obstacle, std::string(offload.at("host_reason")));
    EXPECT_EQ(summary.offload_devices, offload.at("devices"));
    const std::vector<std::string> multiplied = candidates(report);
    EXPECT_EQ(summary.scheme, multiplied.empty() ? "" : multiplied.front());
  }
}

// Nine items on three devices, in strips that hold an item each, two, or a part of one.
TEST_F(OffloadedCalls, MultiplyBatches) {
  GemmCase test = native_case(60, 50, 40);
  test.batch = 9;
  for (const int bytes : {0, 700'000, 250'000}) {
    SCOPED_TRACE(bytes);
    limit_memory(bytes);
    expect_right<double>(test);
    const json offload = offload_of_report();
    EXPECT_THAT(offload.at("devices"), Gt(1));
    EXPECT_EQ(offload.at("downloaded_bytes"), 8 * 9 * 60 * 50);
    EXPECT_EQ(offload.at("host_elements"), 0);
  }
  EXPECT_THAT(offload_of_report().at("products"), Ge(9));
}

TEST_F(OffloadedCalls, MultiplyBatchesOfPointers) {
  GemmCase test = native_case(33, 20, 40);
  test.batch = 5;
  GemmDataOf<float> strided(test);
  strided.run_well(handle);
  GemmDataOf<float> data(test);
  std::vector<const float*> a, b;
  std::vector<float*> c;
  for (std::int64_t item : {3, 0, 4, 1, 2}) {
    a.push_back(data.a(item).data);
    b.push_back(data.b(item).data);
    c.push_back(data.c(item).data);
  }
  kintsugi_problem problem = data.problem();
  problem.batch_kind = KINTSUGI_BATCH_POINTERS;
  problem.stride_a = problem.stride_b = problem.stride_c = 0;
  kintsugi_operands operands = data.operands();
  operands.a = a.data();
  operands.b = b.data();
  operands.c = c.data();
  const kintsugi_options options = data.options();
  ASSERT_EQ(kintsugi_gemm(handle, &problem, &options, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(offload_of_report().at("host_elements"), 0);
  EXPECT_EQ(data.result(), strided.result());
}

TEST_F(OffloadedCalls, ContinueOnTheHostAfterAFailedProductOfABatch) {
  GemmCase test = native_case(60, 50, 40);
  test.batch = 12;
  limit_memory(250'000);
  for (int number = 1; number <= 9; number += 4) {
    const FakeVariable failing("FAKE_CUDA_FAIL_PRODUCT", std::to_string(number));
    expect_right<double>(test);
    EXPECT_THAT(offload_of_report().at("host_elements"), Gt(0));
  }
}

// A matrix that the caller says it does not change is copied once, until the caches are released.
TEST_F(OffloadedCalls, KeepOperandsWhereTheCallerSaysSo) {
  const GemmCase test = native_case(50, 60, 70);
  constexpr int bytes_a = 8 * 50 * 70, bytes_b = 8 * 70 * 60, bytes_c = 8 * 50 * 60;
  GemmDataOf<double> data(test);
  const auto uploaded = [&](const char* kept) {
    kintsugi_set(handle, "offload_keep", kept);
    data.run_well(handle);
    return offload_of_report().at("uploaded_bytes").get<int>();
  };
  EXPECT_EQ(uploaded("none"), bytes_a + bytes_b + bytes_c);
  EXPECT_EQ(uploaded("none"), bytes_a + bytes_b + bytes_c);
  EXPECT_EQ(uploaded("b"), bytes_a + bytes_b + bytes_c);
  EXPECT_EQ(uploaded("b"), bytes_a + bytes_c);
  EXPECT_EQ(uploaded("ab"), bytes_a + bytes_c);
  EXPECT_EQ(uploaded("ab"), bytes_c);
  EXPECT_EQ(uploaded("a"), bytes_b + bytes_c);
  kintsugi_release_caches();
  EXPECT_EQ(uploaded("ab"), bytes_a + bytes_b + bytes_c);
  GemmDataOf<double> other(test);
  other.run_well(handle);
  EXPECT_EQ(offload_of_report().at("uploaded_bytes"), bytes_a + bytes_b + bytes_c) << "at another address";
  kintsugi_release_caches();
}

// Kept operands change no result, and a call that does not fit beside them releases them.
TEST_F(OffloadedCalls, AreRightWithKeptOperands) {
  kintsugi_set(handle, "offload_keep", "ab");
  GemmCase test = native_case(70, 1100, 50);
  test.beta = 0;
  GemmDataOf<double> data(test);
  data.run_well(handle);
  const std::vector<double> first = data.result();
  std::fill_n(data.c().data, 70, 7.0);
  data.run_well(handle);
  EXPECT_EQ(data.result(), first);
  EXPECT_EQ(offload_of_report().at("uploaded_bytes"), 0);
  limit_memory(400'000);
  data.run_well(handle);
  EXPECT_THAT(data.result(), Pointwise(DoubleNear(1e-13), first)) << "sums over parts of k are rounded";
  kintsugi_release_caches();
}

TEST_F(OffloadedCalls, LeaveNothingOnTheDevice) {
  expect_right<float>(native_case(50, 60, 70));
  const int before = fake_cuda_allocations();
  expect_right<float>(native_case(50, 60, 70));
  EXPECT_EQ(fake_cuda_allocations(), before);
}

// The caller's own pinned memory is copied without a detour.
TEST_F(OffloadedCalls, CopyPinnedMemoryDirectly) {
  constexpr std::int64_t order = 64;
  void* memory = nullptr;
  {
    const CurrentContext context(primary_context(0));
    ASSERT_EQ(driver().host_allocate(&memory, 3 * order * order * sizeof(double), 0), 0);
  }
  auto* a = static_cast<double*>(memory);
  std::fill_n(a, 3 * order * order, 0.5);
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  problem.m = problem.n = problem.k = problem.lda = problem.ldb = problem.ldc = order;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = KINTSUGI_F64;
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.scheme = "native";
  kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  const double one = 1;
  operands.alpha = operands.beta = &one;
  operands.a = a;
  operands.b = a + order * order;
  operands.c = a + 2 * order * order;
  ASSERT_EQ(kintsugi_gemm(handle, &problem, &options, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(a[3 * order * order - 1], 0.25 * order + 0.5);
  driver().host_free(memory);
}

TEST_F(OffloadedCalls, AreNotMadeForWhatDevicesLack) {
  GemmCase named = native_case(8, 8, 8);
  named.engine = "cpu";
  GemmCase reproducible = native_case(8, 8, 8);
  reproducible.scheme = {};
  reproducible.accuracy = "reproducible";
  for (const GemmCase& test : {named, reproducible}) {
    GemmDataOf<double> data(test);
    ASSERT_EQ(data.run(handle), KINTSUGI_SUCCESS) << kintsugi_last_error();
    EXPECT_TRUE(handle.report().at("offload").is_null());
    EXPECT_EQ(handle.report().at("engine"), "cpu");
  }
}

// Expected times choose: a large product is worth its copies, a small one is not. The device's time is that
// of its plan's first program: a card for graphics is slower than many cores by native FP64, and faster by
// emulation.
TEST_F(OffloadedCalls, UnderAutoAreLargeOnes) {
  const auto is_offloaded = [&](std::int64_t order, int threads) {
    kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
    problem.m = problem.n = problem.k = problem.lda = problem.ldb = problem.ldc = order;
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = KINTSUGI_F64;
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    options.threads = threads;
    kintsugi_plan plan = nullptr;
    EXPECT_EQ(kintsugi_plan_create(handle, &problem, &options, &plan), KINTSUGI_SUCCESS);
    const json description =
        Handle::text([&](char* b, size_t c, size_t* n) { return kintsugi_plan_describe(plan, b, c, n); });
    kintsugi_plan_summary summary = KINTSUGI_PLAN_SUMMARY_INIT;
    EXPECT_EQ(kintsugi_plan_summarize(plan, &summary), KINTSUGI_SUCCESS);
    EXPECT_EQ(summary.is_offloaded != 0, description.at("offloaded").get<bool>());
    EXPECT_THAT(description.at("words").dump(), HasSubstr(summary.offload));
    EXPECT_THAT(summary.offload, HasSubstr("Offload auto"));
    kintsugi_plan_destroy(plan);
    return description.at("offloaded").get<bool>();
  };
  {
    const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
    kintsugi_set(handle, "offload", "auto");
    EXPECT_FALSE(is_offloaded(64, 1));
    EXPECT_TRUE(is_offloaded(4096, 1));
  }
  KINTSUGI_SKIP_WITHOUT_CODE_FOR_80();
  const FakeVariable capability("FAKE_CUDA_CAPABILITY", "8.9");
  const FakeVariable name("FAKE_CUDA_NAME", "NVIDIA GeForce RTX 4090");
  EXPECT_TRUE(is_offloaded(8192, 64));
  kintsugi_set(handle, "policy", "native");
  EXPECT_FALSE(is_offloaded(8192, 64));
}

}  // namespace
}  // namespace kintsugi::test

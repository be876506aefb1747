// How calls on device memory run: shapes and strides, streams, graphs, batches, limits, prepared operands, reports.
#include <algorithm>
#include <random>
#include <thread>

#include "gpu/device_gemm.hpp"

namespace kintsugi::test {
namespace {

namespace cuda = core::cuda;

class Stream {
 public:
  Stream() {
    device_engine();
    constexpr unsigned non_blocking = 1;
    cuda::check(cuda::driver().stream_create(&stream_, non_blocking), "cuStreamCreate");
  }
  ~Stream() { cuda::driver().stream_destroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  void wait() const { cuda::check(cuda::driver().stream_synchronize(stream_), "cuStreamSynchronize"); }
  kintsugi_queue queue() const { return {KINTSUGI_QUEUE_CUDA, 0, stream_}; }
  cuda::Stream get() const { return stream_; }

 private:
  cuda::Stream stream_ = nullptr;
};

// Work in a stream waits for nothing: what the default stream uploaded has to be there before.
void settle() { cuda::check(cuda::driver().context_synchronize(), "cuCtxSynchronize"); }

template <class T>
std::vector<std::string> fast_schemes() {
  if (std::is_same_v<T, float>)
    return {"fp16x3", "fp16x3-wide", "bf16x6", "tf32x3", "int8x6", "ozaki2:moduli=7"};
  return {"ozaki2:moduli=15", "ozaki-int8:slices=7"};
}

// Against the exact result: as a native product, whatever ran.
template <class T>
void expect_accurate(GemmDataOf<T>& data, double units) {
  const double unit = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-53;
  for (const lab::EntryError& entry : entry_errors(data)) {
    ASSERT_LE(entry.error, units * unit * entry.absolute + 1e-300) << "entry " << entry.i << ", " << entry.j;
  }
}

// ------------------------------------------------------------------ shapes and strides

template <class T>
void expect_all_shapes(const std::string& scheme, const std::string& policy) {
  std::mt19937_64 random(std::random_device{}());
  for (std::int64_t size = 1; size <= 130; size += 1 + static_cast<std::int64_t>(random() % 9)) {
    for (int op = 0; op < 4; ++op) {
      GemmCase test{.m = size,
                    .n = 131 - size,
                    .k = 1 + static_cast<std::int64_t>(random() % 130),
                    .op_a = static_cast<kintsugi_op>(op % 2),
                    .op_b = static_cast<kintsugi_op>(op / 2)};
      test.layout = static_cast<kintsugi_layout>(random() % 2);
      test.pad_a = test.pad_b = test.pad_c = static_cast<std::int64_t>(random() % 4);
      test.scheme = scheme;
      test.policy = policy;
      SCOPED_TRACE(describe(test));
      GemmDataOf<T> data(test);
      DeviceGemm<T>(data, {.offset = random() % 2}).run_well();
      expect_accurate(data, static_cast<double>(test.k) + 40);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(DeviceShapes, SmallFp16x3) { expect_all_shapes<float>("fp16x3-wide", ""); }
TEST(DeviceShapes, SmallNative) {
  expect_all_shapes<float>("", "native");
  expect_all_shapes<double>("", "native");
}
TEST(DeviceShapes, SmallOzaki2) { expect_all_shapes<double>("ozaki2:moduli=16", ""); }

// One more and one less than the engine's tile.
TEST(DeviceShapes, AroundTheTile) {
  for (const std::int64_t size : {4095, 4096, 4097}) {
    for (const bool wide : {false, true}) {
      GemmCase test{.m = wide ? 130 : size, .n = wide ? size : 67, .k = 70, .pad_c = 1, .scheme = "fp16x3"};
      SCOPED_TRACE(describe(test));
      GemmDataOf<float> data(test);
      DeviceGemm<float>(data).run_well();
      expect_accurate(data, 120);
    }
  }
}

TEST(DeviceShapes, NothingToDo) {
  for (const std::string policy : {"native", "emulate"}) {
    for (GemmCase test : {GemmCase{.m = 0, .n = 5, .k = 4}, GemmCase{.m = 5, .n = 0, .k = 4},
                          GemmCase{.m = 3, .n = 4, .k = 5, .batch = 0}}) {
      test.policy = policy;
      GemmDataOf<float> data(test);
      DeviceGemm<float>(data).run_well();
    }
    for (const double beta : {0.0, 1.0, 0.5}) {
      GemmCase test{.m = 7, .n = 3, .k = 0, .batch = 2, .beta = beta, .policy = policy};
      for (const bool by_alpha : {false, true}) {
        if (by_alpha) {
          test.k = 9;
          test.alpha = 0;
          test.distribution = "uniform";
        }
        for (const bool device_scalars : {false, true}) {
          if (by_alpha && device_scalars && policy == "native") continue;  // the vendor's: A and B are read
          GemmDataOf<float> data(test);
          if (by_alpha)
            std::fill(data.raw_a().begin(), data.raw_a().end(), std::numeric_limits<float>::quiet_NaN());
          const auto before = data.result();
          DeviceGemm<float>(data, {.device_scalars = device_scalars}).run_well();
          const auto after = data.result();
          for (std::size_t i = 0; i < before.size(); ++i)
            ASSERT_EQ(after[i], beta == 0 ? 0.0F : static_cast<float>(beta) * before[i]) << describe(test);
        }
      }
    }
  }
}

// Leading dimensions that take a stride over 2^31 elements; two columns of each matrix are all there is of them.
TEST(DeviceShapes, StridesOverTwoToThe31) {
  constexpr std::int64_t ld = (std::int64_t{1} << 31) + 13;
  for (const char* policy : {"emulate", "native"}) {
    kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
    problem.m = 5;
    problem.n = 2;
    problem.k = 2;
    problem.lda = problem.ldb = problem.ldc = ld;
    problem.memory = KINTSUGI_DEVICE;
    const std::size_t count = static_cast<std::size_t>(ld) + 5;
    const DeviceArray<float> a(count);
    const DeviceArray<float> b(count);
    const DeviceArray<float> c(count);
    const std::vector<float> first{1, 2, 3, 4, 5};
    for (const auto* array : {&a, &b}) {
      device_engine().copy_to_device({}, array->data(), first.data(), 5 * sizeof(float));
      device_engine().copy_to_device({}, array->data() + ld, first.data(), 5 * sizeof(float));
    }
    kintsugi_options options = KINTSUGI_OPTIONS_INIT;
    options.policy = policy;
    const float alpha = 1, beta = 0;
    kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
    operands.alpha = &alpha;
    operands.beta = &beta;
    operands.a = a.data();
    operands.b = b.data();
    operands.c = c.data();
    ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    for (const std::int64_t column : {std::int64_t{0}, ld}) {
      std::vector<float> result(5);
      device_engine().copy_to_host({}, result.data(), c.data() + column, 5 * sizeof(float));
      device_engine().synchronize(core::Queue{});
      EXPECT_EQ(result, (std::vector<float>{3, 6, 9, 12, 15})) << policy;  // b is (1, 2) in both columns
    }
  }
}

// ------------------------------------------------------------------ bits

TEST(DeviceBits, SmallAreThoseOfEveryRunStreamAndBatchPosition) {
  for (const std::string& scheme : fast_schemes<float>()) {
    GemmCase test{.m = 97, .n = 130, .k = 211, .distribution = "phi:1", .scheme = scheme};
    SCOPED_TRACE(scheme);
    const auto bits = device_bits<float>(test);
    EXPECT_EQ(device_bits<float>(test), bits) << "another run";
    const Stream stream;
    GemmDataOf<float> data(test);
    DeviceGemm<float> on_stream(data, {.queue = stream.queue()});
    settle();
    ASSERT_EQ(on_stream.run(), KINTSUGI_SUCCESS) << kintsugi_last_error();
    stream.wait();
    on_stream.fetch();
    EXPECT_EQ(bits_of(data.result()), bits) << "another stream";
    for (const bool pointers : {false, true}) {
      GemmCase batch = test;
      batch.batch = 5;
      GemmDataOf<float> batched(batch);
      DeviceGemm<float>(batched, {.pointers = pointers}).run_well();
      for (std::int64_t t = 0; t < batch.batch; ++t) {
        GemmCase single = test;
        single.seed = test.seed + static_cast<std::uint64_t>(t);
        const auto alone = device_bits<float>(single);
        const auto all = bits_of(batched.result());
        EXPECT_TRUE(
            std::equal(alone.begin(), alone.end(), all.begin() + static_cast<std::ptrdiff_t>(t * 97 * 130)))
            << "batch position " << t << (pointers ? " by pointers" : " strided");
      }
    }
  }
}

TEST(DeviceBits, AreThoseOfAnyWorkspaceLimit) {
  for (const std::string scheme : {"fp16x3-wide:block=1024", "bf16x6", "ozaki2:moduli=7"}) {
    GemmCase test{.m = 8300, .n = 4200, .k = 130, .op_a = KINTSUGI_OP_T, .scheme = scheme};
    const auto bits = device_bits<float>(test);
    std::size_t unlimited = 0;
    for (const double share : {0.9, 0.7, 0.55}) {
      GemmDataOf<float> data(test);
      if (unlimited == 0) {
        DeviceGemm<float> device(data);
        const auto problem = device.problem();
        const auto options = device.options();
        kintsugi_plan plan = nullptr;
        ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &plan), KINTSUGI_SUCCESS)
            << kintsugi_last_error();
        kintsugi_plan_workspace_size(plan, &unlimited);
        kintsugi_plan_destroy(plan);
      }
      GemmCase limited = test;
      limited.workspace_limit = static_cast<std::int64_t>(share * static_cast<double>(unlimited));
      GemmDataOf<float> other(limited);
      DeviceGemm<float> device(other);
      const kintsugi_status status = device.run();
      if (status == KINTSUGI_WORKSPACE_TOO_SMALL) continue;
      ASSERT_EQ(status, KINTSUGI_SUCCESS) << kintsugi_last_error();
      device.fetch();
      EXPECT_EQ(bits_of(other.result()), bits)
          << scheme << " with " << limited.workspace_limit << " of " << unlimited;
    }
  }
}

TEST(DeviceBits, SmallAreThoseOfConcurrentThreads) {
  GemmCase test{.m = 300, .n = 257, .k = 500, .scheme = "fp16x3"};
  const auto bits = device_bits<float>(test);
  std::vector<std::thread> threads;
  std::array<bool, 4> equal{};
  for (std::size_t t = 0; t < equal.size(); ++t) {
    threads.emplace_back([&, t] {
      GemmDataOf<float> data(test);
      const Stream stream;
      DeviceGemm<float> device(data, {.queue = stream.queue()});
      settle();
      bool all = true;
      for (int run = 0; run < 5; ++run) {
        all = all && device.run() == KINTSUGI_SUCCESS;
        stream.wait();
        device.fetch();
        all = all && bits_of(data.result()) == bits;
      }
      equal[t] = all;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(std::all_of(equal.begin(), equal.end(), [](bool same) { return same; }))
      << kintsugi_last_error();
}

// ------------------------------------------------------------------ graphs, workspaces, prepared operands

struct Planned {
  Planned(const kintsugi_problem& problem, const kintsugi_options& options,
          kintsugi_handle handle = nullptr) {
    EXPECT_EQ(kintsugi_plan_create(handle, &problem, &options, &plan), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    EXPECT_EQ(kintsugi_plan_workspace_size(plan, &workspace), KINTSUGI_SUCCESS);
  }
  ~Planned() { kintsugi_plan_destroy(plan); }
  kintsugi_plan plan = nullptr;
  std::size_t workspace = 0;
};

TEST(DeviceGraph, SmallReplaysTheCapturedCall) {
  for (const std::string how : {"fp16x3", "ozaki2:moduli=7", "emulate", "native"}) {
    for (const bool own_workspace : {true, false}) {
      const bool named = how != "emulate" && how != "native";
      GemmCase test{
          .m = 130, .n = 70, .k = 300, .beta = 0.5, .scheme = named ? how : "", .policy = named ? "" : how};
      SCOPED_TRACE(how);
      const auto bits = device_bits<float>(test);
      const Handle handle;
      const Stream stream;
      GemmDataOf<float> data(test);
      DeviceGemm<float> device(data, {.device_scalars = true, .queue = stream.queue()});
      const Planned planned(device.problem(), device.options(), handle);
      const DeviceArray<unsigned char> workspace(planned.workspace);
      kintsugi_operands operands = device.operands();
      if (own_workspace) {
        operands.workspace = workspace.data();
        operands.workspace_size = planned.workspace;
      }
      settle();
      cuda::Graph graph = nullptr;
      cuda::GraphExec exec = nullptr;
      constexpr int thread_local_mode = 1;
      cuda::check(cuda::driver().stream_begin_capture(stream.get(), thread_local_mode),
                  "cuStreamBeginCapture");
      EXPECT_EQ(kintsugi_plan_execute(handle, planned.plan, &operands), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      cuda::check(cuda::driver().stream_end_capture(stream.get(), &graph), "cuStreamEndCapture");
      cuda::check(cuda::driver().graph_instantiate(&exec, graph, 0), "cuGraphInstantiate");
      for (int replay = 0; replay < 3; ++replay) {
        device_engine().copy_to_device({}, device.c().data(), data.raw_c().data(),
                                       data.raw_c().size() * sizeof(float));
        settle();
        cuda::check(cuda::driver().graph_launch(exec, stream.get()), "cuGraphLaunch");
        stream.wait();
        GemmDataOf<float> result(test);
        result.raw_c() = device.c().host();
        EXPECT_EQ(bits_of(result.result()), bits) << "replay " << replay;
      }
      if (how != "native") {
        EXPECT_EQ(handle.report()["rungs"][0]["entries"], 1) << handle.report();
      }
      cuda::driver().graph_exec_destroy(exec);
      cuda::driver().graph_destroy(graph);
    }
  }
}

TEST(DeviceWorkspace, SmallIsExact) {
  GemmCase test{.m = 140, .n = 131, .k = 260, .scheme = "bf16x6"};
  const auto bits = device_bits<float>(test);
  GemmDataOf<float> data(test);
  DeviceGemm<float> device(data);
  const Planned planned(device.problem(), device.options());
  const DeviceArray<unsigned char> workspace(planned.workspace);
  kintsugi_operands operands = device.operands();
  operands.workspace = workspace.data();
  operands.workspace_size = planned.workspace - 1;
  EXPECT_EQ(kintsugi_plan_execute(nullptr, planned.plan, &operands), KINTSUGI_WORKSPACE_TOO_SMALL);
  operands.workspace_size = planned.workspace;
  ASSERT_EQ(kintsugi_plan_execute(nullptr, planned.plan, &operands), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  device.fetch();
  workspace.host();  // its guards
  EXPECT_EQ(bits_of(data.result()), bits);
}

template <class T>
void expect_prepared_bits(const GemmCase& test, bool borrow) {
  SCOPED_TRACE(describe(test));
  const auto bits = device_bits<T>(test);
  GemmDataOf<T> data(test);
  DeviceGemm<T> device(data);
  const Planned planned(device.problem(), device.options());
  kintsugi_operands operands = device.operands();
  const auto prepare = borrow ? kintsugi_prepare_borrowed : kintsugi_prepare;
  kintsugi_prepared a = nullptr, b = nullptr;
  ASSERT_EQ(prepare(nullptr, planned.plan, KINTSUGI_A, operands.a, &a), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  ASSERT_EQ(prepare(nullptr, planned.plan, KINTSUGI_B, operands.b, &b), KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  for (const int which : {1, 2, 3}) {
    GemmDataOf<T> fresh(test);
    device_engine().copy_to_device({}, device.c().data(), fresh.raw_c().data(),
                                   fresh.raw_c().size() * sizeof(T));
    operands.prepared_a = (which & 1) != 0 ? a : nullptr;
    operands.prepared_b = (which & 2) != 0 ? b : nullptr;
    ASSERT_EQ(kintsugi_plan_execute(nullptr, planned.plan, &operands), KINTSUGI_SUCCESS)
        << kintsugi_last_error();
    fresh.raw_c() = device.c().host();
    EXPECT_EQ(bits_of(fresh.result()), bits) << "prepared: " << which;
  }
  kintsugi_prepared_destroy(a);
  kintsugi_prepared_destroy(b);
}

TEST(DevicePrepared, SmallKeepTheBits) {
  for (const bool borrow : {false, true}) {
    for (const std::int64_t batch : {1, 3}) {
      expect_prepared_bits<float>(
          {.m = 70, .n = 131, .k = 99, .pad_a = 2, .batch = batch, .beta = -1, .scheme = "fp16x3"}, borrow);
      expect_prepared_bits<double>(
          {.m = 70, .n = 31, .k = 99, .op_b = KINTSUGI_OP_T, .batch = batch, .scheme = "ozaki2:moduli=15"},
          borrow);
      expect_prepared_bits<float>(
          {.m = 70, .n = 131, .k = 99, .op_a = KINTSUGI_OP_T, .batch = batch, .policy = "emulate"}, borrow);
      expect_prepared_bits<double>(
          {.m = 33, .n = 31, .k = 99, .layout = KINTSUGI_ROW_MAJOR, .batch = batch, .policy = "native"},
          borrow);
    }
  }
}

// ------------------------------------------------------------------ choices and reports

TEST(DeviceLadder, SmallTakesTheRungThatTheDataAskFor) {
  const struct {
    const char* distribution;
    bool emulated;
  } cases[] = {{"language-model", true}, {"graded-inner:60", false}};
  for (const auto& [distribution, emulated] : cases) {
    GemmCase test{.m = 100, .n = 90, .k = 600, .batch = 2, .distribution = distribution, .policy = "emulate"};
    SCOPED_TRACE(describe(test));
    const Handle handle;
    GemmDataOf<float> data(test);
    DeviceGemm<float>(data).run_well(handle);
    const json report = handle.report();
    ASSERT_EQ(report["rungs"].size(), 1U) << report;
    EXPECT_EQ(report["rungs"][0]["scheme"] != "native", emulated) << report;
    EXPECT_EQ(report["rungs"][0]["entries"], 2) << report;
    expect_accurate(data, static_cast<double>(test.k) + 8);
  }
}

TEST(DeviceLadder, SmallReportsSpecialValuesAndWhatItRefuses) {
  GemmCase test{.m = 9, .n = 8, .k = 7, .batch = 3, .scheme = "h2sgemm"};
  const Handle handle;
  GemmDataOf<float> data(test);
  data.a(1)(2, 3) = std::numeric_limits<float>::infinity();
  data.a(2)(0, 0) = 0x1p20F;
  DeviceGemm<float>(data).run_well(handle);
  const json report = handle.report();
  EXPECT_EQ(report["entries_with_special_values"], 1) << report;
  EXPECT_EQ(report["entries_unreachable"], 1) << report;
  EXPECT_TRUE(std::isfinite(data.c(0)(0, 0)));
  for (std::int64_t j = 0; j < test.n; ++j) {
    for (std::int64_t i = 0; i < test.m; ++i) EXPECT_TRUE(std::isnan(data.c(2)(i, j)));
  }
}

// Host matrices on the engine by name.
TEST(DeviceStaging, SmallHostMatrices) {
  for (const char* scheme : {"fp16x3", "h2sgemm", "h2sgemm:sb=eq6", "h2sgemm-element", "ozaki2:moduli=7"}) {
    GemmCase test{.m = 65,
                  .n = 33,
                  .k = 130,
                  .op_a = KINTSUGI_OP_T,
                  .layout = KINTSUGI_ROW_MAJOR,
                  .pad_a = 1,
                  .pad_c = 3,
                  .batch = 2,
                  .alpha = 0.5,
                  .beta = 2,
                  .scheme = scheme,
                  .engine = "cuda"};
    SCOPED_TRACE(describe(test));
    GemmDataOf<float> data(test);
    const Handle handle;
    const std::vector<float> before = data.raw_c();
    data.run_well(handle);
    for (const lab::EntryError& entry : entry_errors(data, before))
      ASSERT_LE(entry.error, 0x1p-15 * (entry.absolute + 2));
    EXPECT_EQ(handle.report()["rungs"][0]["entries"], 2) << handle.report();
  }
}

}  // namespace
}  // namespace kintsugi::test

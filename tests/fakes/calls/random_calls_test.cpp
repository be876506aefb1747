// Random calls over the fakes: each puts its launches into the queue, or is refused with a message. Nothing
// is computed. Grids, clusters and memory follow from extents by arithmetic that chosen shapes do not cover.
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "fakes/device_call.hpp"

namespace kintsugi::test {
namespace {

class RandomCalls : public OverFakes {
 protected:
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return *std::next(values.begin(), static_cast<std::ptrdiff_t>(random_() % values.size()));
  }
  // An extent of up to `most`: half of them are as often of two digits as of three. One in 32 is 0.
  std::int64_t extent(double most) {
    if (random_() % 32 == 0) return 0;
    const double share = static_cast<double>(random_() >> 11) * 0x1p-53;
    return static_cast<std::int64_t>(random_() % 2 == 0 ? share * most : std::exp(share * std::log(most)));
  }

  // Draws a call. Its matrices are `memory`, which no fake reads or writes.
  void draw(Call& call, std::vector<double>& memory) {
    kintsugi_problem& problem = call.problem;
    problem.m = extent(2000);
    problem.n = extent(2000);
    problem.k = extent(20000);
    problem.type_a = problem.type_b = problem.type_c = problem.type_scalar =
        one_of({KINTSUGI_F32, KINTSUGI_F64, KINTSUGI_F64, KINTSUGI_C32, KINTSUGI_C64});
    problem.layout = one_of({KINTSUGI_COLUMN_MAJOR, KINTSUGI_ROW_MAJOR});
    problem.op_a = one_of({KINTSUGI_OP_N, KINTSUGI_OP_T, KINTSUGI_OP_C});
    problem.op_b = one_of({KINTSUGI_OP_N, KINTSUGI_OP_T, KINTSUGI_OP_C});
    const std::int64_t longest = std::max({problem.m, problem.n, problem.k, std::int64_t{1}});
    problem.lda = longest + extent(9);
    problem.ldb = longest + extent(9);
    problem.ldc = longest + extent(9);
    if (random_() % 4 == 0) {
      problem.batch_count = extent(9);
      problem.stride_a = one_of<std::int64_t>({0, problem.lda * longest});
      problem.stride_b = one_of<std::int64_t>({0, problem.ldb * longest});
      problem.stride_c = problem.ldc * longest;
    }
    call.operands.a = call.operands.b = call.operands.c = memory.data();
    call.operands.alpha = &alpha_;
    call.operands.beta = &beta_;
    set_scalar(alpha_, problem.type_scalar, one_of({1.0, -1.0, 0.7, 0.0}));
    set_scalar(beta_, problem.type_scalar, one_of({0.0, 1.0, -1.0, 0.3}));
    call.options.policy = one_of<const char*>({nullptr, "auto", "emulate", "emulate", "native"});
    call.options.accuracy = one_of<const char*>({nullptr, nullptr, "fp64", "exact", "1e-10", "reproducible"});
    call.options.workspace_limit = random_() % 4 == 0 ? std::int64_t{1} << (20 + random_() % 10) : 0;
  }

  static void set_scalar(double (&scalar)[2], std::int32_t type, double value) {
    scalar[0] = value;
    scalar[1] = 0;
    if (type == KINTSUGI_F32 || type == KINTSUGI_C32) {
      const float parts[2]{static_cast<float>(value), 0};
      std::copy_n(reinterpret_cast<const char*>(parts), sizeof parts, reinterpret_cast<char*>(scalar));
    }
  }

  std::mt19937_64 random_{3131};
  double alpha_[2];
  double beta_[2];
};

std::string text_of(const Call& call) {
  const kintsugi_problem& p = call.problem;
  const auto name = [](const char* text) { return text == nullptr ? "-" : text; };
  return fmt::format(
      "{} x {} x {}, type {}, layout {}, ops {} {}, batch {}, policy {}, accuracy {}, limit {}", p.m, p.n,
      p.k, p.type_a, p.layout, p.op_a, p.op_b, p.batch_count, name(call.options.policy),
      name(call.options.accuracy), call.options.workspace_limit);
}

TEST_F(RandomCalls, AreLaunchedOrRefusedWithAMessage) {
  const FakeVariable measured("FAKE_CUDA_NAME", "NVIDIA H200");
  const Stream stream;
  std::vector<double> memory(1024);
  int launched = 0;
  constexpr int calls = 2000;
  for (int i = 0; i < calls; ++i) {
    PlannedCall call(1, 1, 1, stream);
    draw(call, memory);
    SCOPED_TRACE(text_of(call));
    fake_cuda_forget();
    const kintsugi_status status = kintsugi_gemm(nullptr, &call.problem, &call.options, &call.operands);
    if (status == KINTSUGI_SUCCESS) {
      launched += events().empty() ? 0 : 1;
      continue;
    }
    ASSERT_NE(status, KINTSUGI_INTERNAL) << kintsugi_last_error();
    ASSERT_NE(status, KINTSUGI_DEVICE_ERROR) << kintsugi_last_error();
    ASSERT_STRNE(kintsugi_last_error(), "");
  }
  EXPECT_GT(launched, calls / 2);
}

}  // namespace
}  // namespace kintsugi::test

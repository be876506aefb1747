// Tests that bad arguments give their status and a message with the values, and leave C untouched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/gemm_case.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

struct Mistake {
  const char* name;
  std::function<void(kintsugi_problem&, kintsugi_options&, kintsugi_operands&)> make;
  kintsugi_status status;
  std::string message;
};

#define MISTAKE(name, statement, status, message)                            \
  Mistake {                                                                  \
    name,                                                                    \
        [](kintsugi_problem& p, kintsugi_options& o, kintsugi_operands& x) { \
          (void)p, (void)o, (void)x;                                         \
          statement;                                                         \
        },                                                                   \
        status, message                                                      \
  }

const Mistake mistakes[] = {
    MISTAKE("negative_m", p.m = -1, KINTSUGI_INVALID_ARGUMENT, "m = -1 is negative"),
    MISTAKE("negative_n", p.n = -2, KINTSUGI_INVALID_ARGUMENT, "n = -2 is negative"),
    MISTAKE("negative_k", p.k = -3, KINTSUGI_INVALID_ARGUMENT, "k = -3 is negative"),
    MISTAKE("small_lda", p.lda = 3, KINTSUGI_INVALID_ARGUMENT, "lda = 3 is less than m = 4"),
    MISTAKE("small_lda_transposed", (p.op_a = KINTSUGI_OP_T, p.lda = 5), KINTSUGI_INVALID_ARGUMENT,
            "lda = 5 is less than k = 6"),
    MISTAKE("small_ldb", p.ldb = 0, KINTSUGI_INVALID_ARGUMENT, "ldb = 0 is less than k = 6"),
    MISTAKE("small_ldc", p.ldc = -7, KINTSUGI_INVALID_ARGUMENT, "ldc = -7 is less than m = 4"),
    MISTAKE("small_ldc_row_major", (p.layout = KINTSUGI_ROW_MAJOR, p.lda = p.ldb = 6, p.ldc = 4),
            KINTSUGI_INVALID_ARGUMENT, "ldc = 4 is less than n = 5"),
    MISTAKE("huge_m", p.m = INT64_MAX, KINTSUGI_INVALID_ARGUMENT,
            "m = 9223372036854775807 is more than 2^48"),
    MISTAKE("reserved_options", o.reserved = 1, KINTSUGI_INVALID_ARGUMENT, "options.reserved = 1"),
    MISTAKE("reserved_queue", o.queue.reserved = 2, KINTSUGI_INVALID_ARGUMENT, "options.queue.reserved = 2"),
    MISTAKE("garbage_struct_size", x.struct_size = 123456789, KINTSUGI_INVALID_ARGUMENT,
            "struct_size = 123456789"),
    MISTAKE("zero_ld", (p.m = 0, p.lda = 0), KINTSUGI_INVALID_ARGUMENT, "lda = 0 is less than 1"),
    MISTAKE("huge_ld", p.lda = INT64_MAX / 2, KINTSUGI_INVALID_ARGUMENT, "does not fit 64 bits"),
    MISTAKE("unknown_op", p.op_b = 3, KINTSUGI_INVALID_ARGUMENT,
            "op_b = 3 is not in 0...2: KINTSUGI_OP_N is 0, KINTSUGI_OP_T 1, KINTSUGI_OP_C 2"),
    MISTAKE(
        "op_of_cblas", p.op_a = 111, KINTSUGI_INVALID_ARGUMENT,
        "op_a = 111 is not in 0...2: KINTSUGI_OP_N is 0, KINTSUGI_OP_T 1, KINTSUGI_OP_C 2; 111 is CBLAS's "
        "CblasNoTrans"),
    MISTAKE("letter_of_blas", p.op_a = 'T', KINTSUGI_INVALID_ARGUMENT,
            "KINTSUGI_OP_C 2; 84 is the letter 'T' of BLAS"),
    MISTAKE("unknown_type", p.type_a = 9, KINTSUGI_INVALID_ARGUMENT,
            "type_a = 9 is not in 0...4: KINTSUGI_F32 is 0, KINTSUGI_F64 1, KINTSUGI_C32 2, KINTSUGI_C64 3, "
            "KINTSUGI_DD 4"),
    MISTAKE("unknown_layout", p.layout = 102, KINTSUGI_INVALID_ARGUMENT,
            "layout = 102 is not in 0...1: KINTSUGI_COLUMN_MAJOR is 0, KINTSUGI_ROW_MAJOR 1; 102 is CBLAS's "
            "CblasColMajor"),
    MISTAKE("half_prepared", p.prepared_b = 2, KINTSUGI_INVALID_ARGUMENT,
            "prepared_b = 2 is neither 0 nor 1"),
    MISTAKE("half_added", p.adds_to_c = 2, KINTSUGI_INVALID_ARGUMENT, "adds_to_c = 2 is neither 0 nor 1"),
    MISTAKE("half_elsewhere", p.native_elsewhere = -1, KINTSUGI_INVALID_ARGUMENT,
            "native_elsewhere = -1 is neither 0 nor 1"),
    MISTAKE("mixed_types", p.type_b = KINTSUGI_F64, KINTSUGI_NOT_SUPPORTED, "type_b = f64"),
    MISTAKE("real_scalars", p.type_a = p.type_b = p.type_c = KINTSUGI_C32, KINTSUGI_NOT_SUPPORTED,
            "type_c = c32, type_scalar = f32"),
    MISTAKE("device_memory", (p.memory = KINTSUGI_DEVICE, o.engine = "cpu"), KINTSUGI_NOT_SUPPORTED,
            "engine cpu works on the host's memory"),
    MISTAKE("device_scalars", p.pointer_mode = KINTSUGI_SCALARS_ON_DEVICE, KINTSUGI_INVALID_ARGUMENT,
            "pointer_mode = KINTSUGI_SCALARS_ON_DEVICE with memory = KINTSUGI_HOST"),
    MISTAKE("queue_of_operands", x.queue.kind = KINTSUGI_QUEUE_CUDA, KINTSUGI_INVALID_ARGUMENT,
            "queue.kind = KINTSUGI_QUEUE_CUDA with memory = KINTSUGI_HOST"),
    MISTAKE("reserved_queue_of_operands", x.queue.reserved = 1, KINTSUGI_INVALID_ARGUMENT,
            "operands.queue.reserved = 1"),
    MISTAKE("negative_batch", p.batch_count = -1, KINTSUGI_INVALID_ARGUMENT, "batch_count = -1 is negative"),
    MISTAKE("negative_stride", p.stride_b = -1, KINTSUGI_INVALID_ARGUMENT, "stride_b = -1 is negative"),
    MISTAKE("results_in_one_place", (p.batch_count = 2, p.stride_c = 0), KINTSUGI_INVALID_ARGUMENT,
            "stride_c = 0 would write all batch_count"),
    MISTAKE("huge_stride", p.stride_a = INT64_MAX / 2, KINTSUGI_INVALID_ARGUMENT, "is more than 2^48"),
    MISTAKE("huge_batch", p.batch_count = p.stride_a = std::int64_t{1} << 40, KINTSUGI_INVALID_ARGUMENT,
            "does not fit 64 bits"),
    MISTAKE("null_a", x.a = nullptr, KINTSUGI_INVALID_ARGUMENT, "a is null"),
    MISTAKE("null_b", x.b = nullptr, KINTSUGI_INVALID_ARGUMENT, "b is null"),
    MISTAKE("null_c", x.c = nullptr, KINTSUGI_INVALID_ARGUMENT, "c is null"),
    MISTAKE("null_alpha", x.alpha = nullptr, KINTSUGI_INVALID_ARGUMENT, "alpha is null"),
    MISTAKE("null_beta", x.beta = nullptr, KINTSUGI_INVALID_ARGUMENT, "beta is null"),
    MISTAKE("no_init_problem", p.struct_size = 0, KINTSUGI_INVALID_ARGUMENT, "problem: struct_size = 0"),
    MISTAKE("no_init_options", o.struct_size = 8, KINTSUGI_INVALID_ARGUMENT, "options: struct_size = 8"),
    MISTAKE("no_init_operands", x.struct_size = 1, KINTSUGI_INVALID_ARGUMENT, "operands: struct_size = 1"),
    MISTAKE(
        "half_an_allocator", o.allocate = [](void*, size_t, size_t) -> void* { return nullptr; },
        KINTSUGI_INVALID_ARGUMENT, "only one is given"),
    MISTAKE("cuda_queue", o.queue.kind = KINTSUGI_QUEUE_CUDA, KINTSUGI_INVALID_ARGUMENT,
            "queue.kind = KINTSUGI_QUEUE_CUDA with memory = KINTSUGI_HOST"),
    MISTAKE("unknown_queue", o.queue.kind = 5, KINTSUGI_INVALID_ARGUMENT,
            "options.queue.kind = 5 is not in 0...1: KINTSUGI_QUEUE_HOST is 0, KINTSUGI_QUEUE_CUDA 1"),
    MISTAKE("unknown_pointer_mode", p.pointer_mode = 2, KINTSUGI_INVALID_ARGUMENT,
            "pointer_mode = 2 is not in 0...1: KINTSUGI_SCALARS_ON_HOST is 0"),
    MISTAKE("unknown_memory", p.memory = 3, KINTSUGI_INVALID_ARGUMENT,
            "memory = 3 is not in 0...2: KINTSUGI_HOST is 0, KINTSUGI_DEVICE 1"),
    MISTAKE("unknown_batch_kind", p.batch_kind = -1, KINTSUGI_INVALID_ARGUMENT,
            "batch_kind = -1 is not in 0...1: KINTSUGI_BATCH_STRIDED is 0"),
    MISTAKE("engine_by_another_name", o.engine = "gpu", KINTSUGI_BAD_SETTING,
            "no engine \"gpu\"; did you mean cuda? The engines are auto"),
    MISTAKE("accuracy_by_another_name", o.accuracy = "float64", KINTSUGI_BAD_SETTING,
            "accuracy = \"float64\" is not accepted; did you mean fp64?"),
    MISTAKE("misspelt_policy", o.policy = "emulated", KINTSUGI_BAD_SETTING,
            "policy = \"emulated\" is not accepted; did you mean emulate?"),
    MISTAKE("unknown_scheme", o.scheme = "fp17", KINTSUGI_BAD_SETTING,
            "no scheme \"fp17\"; did you mean fp16? The schemes are fp16, bf16"),
    MISTAKE("misspelt_scheme_with_a_parameter", o.scheme = "h2sgem:sb=6", KINTSUGI_BAD_SETTING,
            "no scheme \"h2sgem:sb=6\"; did you mean h2sgemm? The schemes are fp16, bf16"),
    MISTAKE("unknown_accumulator", (o.scheme = "fp16", o.accumulator = "abacus"), KINTSUGI_BAD_SETTING,
            "no accumulator \"abacus\"; the accumulators are fp32"),
    MISTAKE("accumulator_of_another_format",
            (o.engine = "reference", o.scheme = "fp16", o.accumulator = "amx-bf16"), KINTSUGI_NOT_SUPPORTED,
            "does not add fp16 products as \"amx-bf16\"; it offers h200"),
    MISTAKE("unknown_policy", o.policy = "maybe", KINTSUGI_BAD_SETTING,
            "policy = \"maybe\" is not accepted; accepted: auto"),
    MISTAKE("malformed_accuracy", o.accuracy = "very", KINTSUGI_BAD_SETTING, "accuracy = \"very\""),
    MISTAKE("negative_threads", o.threads = -2, KINTSUGI_BAD_SETTING, "threads = \"-2\""),
    MISTAKE("negative_limit", o.workspace_limit = -5, KINTSUGI_BAD_SETTING, "workspace_limit = \"-5\""),
    MISTAKE("fp32_scheme_for_doubles",
            (o.scheme = "fp16x3", p.type_a = p.type_b = p.type_c = p.type_scalar = KINTSUGI_F64),
            KINTSUGI_NOT_SUPPORTED, "scheme fp16x3 does not take fp64 operands"),
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, GiveAMessageWithTheirValuesAndLeaveCUntouched) {
  GemmData data(GemmCase{.m = 4, .n = 5, .k = 6});
  auto problem = data.problem();
  auto options = data.options();
  auto operands = data.operands();
  GetParam().make(problem, options, operands);
  const auto before = bits_of(data.raw_c());
  EXPECT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), GetParam().status);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr(GetParam().message));
  EXPECT_THAT(kintsugi_last_error(), testing::Not(HasSubstr("\n")));
  EXPECT_EQ(bits_of(data.raw_c()), before);
}

INSTANTIATE_TEST_SUITE_P(All, Mistakes, testing::ValuesIn(mistakes),
                         [](const auto& test) { return test.param.name; });

TEST(NullPointers, AreErrorsEverywhere) {
  EXPECT_EQ(kintsugi_create(nullptr), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_EQ(kintsugi_set(nullptr, "scheme", "fp16"), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_EQ(kintsugi_set_log(nullptr, nullptr, nullptr), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_EQ(kintsugi_gemm(nullptr, nullptr, nullptr, nullptr), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_STREQ(kintsugi_last_error(), "problem is null");
  EXPECT_EQ(kintsugi_plan_create(nullptr, nullptr, nullptr, nullptr), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_EQ(kintsugi_plan_read(nullptr, nullptr, nullptr, nullptr), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_EQ(kintsugi_plan_execute(nullptr, nullptr, nullptr), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_EQ(kintsugi_plan_workspace_size(nullptr, nullptr), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_EQ(kintsugi_plan_describe(nullptr, nullptr, 0, nullptr), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_EQ(kintsugi_prepare(nullptr, nullptr, KINTSUGI_A, nullptr, nullptr), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_EQ(kintsugi_report(nullptr, nullptr, 0, nullptr), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_EQ(kintsugi_plan_summarize(nullptr, nullptr), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_EQ(kintsugi_report_summarize(nullptr, nullptr), KINTSUGI_INVALID_ARGUMENT);
  kintsugi_destroy(nullptr);
  kintsugi_plan_destroy(nullptr);
  kintsugi_prepared_destroy(nullptr);
}

TEST(Settings, HandlesCheckTheirSettingsImmediately) {
  kintsugi_handle handle = nullptr;
  ASSERT_EQ(kintsugi_create(&handle), KINTSUGI_SUCCESS);
  EXPECT_EQ(kintsugi_set(handle, "colour", "red"), KINTSUGI_BAD_SETTING);
  EXPECT_EQ(kintsugi_set(handle, "policy", "red"), KINTSUGI_BAD_SETTING);
  EXPECT_EQ(kintsugi_set(handle, nullptr, "red"), KINTSUGI_INVALID_ARGUMENT);
  EXPECT_EQ(kintsugi_set(handle, "cpu_blas", "libblas.so"), KINTSUGI_BAD_SETTING);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("set the environment variable KINTSUGI_CPU_BLAS instead"));
  kintsugi_destroy(handle);
}

TEST(StructSize, NewerCallersAreAcceptedIfExtraMembersAreZero) {
  struct Newer {
    kintsugi_problem problem;
    std::int64_t extra;
  };
  GemmData data(GemmCase{.m = 2, .n = 2, .k = 2});
  Newer newer{data.problem(), 0};
  newer.problem.struct_size = sizeof(Newer);
  const auto operands = data.operands();
  EXPECT_EQ(kintsugi_gemm(nullptr, &newer.problem, nullptr, &operands), KINTSUGI_SUCCESS);
  newer.extra = 1;
  EXPECT_EQ(kintsugi_gemm(nullptr, &newer.problem, nullptr, &operands), KINTSUGI_NOT_SUPPORTED);
}

TEST(LastError, BelongsToItsThread) {
  kintsugi_gemm(nullptr, nullptr, nullptr, nullptr);
  EXPECT_STREQ(kintsugi_last_error(), "problem is null");
  EXPECT_STREQ(kintsugi_version(), "0.2.0");
}

TEST(Sgemm, IsTheBlasCall) {
  const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
  float c[] = {1, 1, 1, 1};
  ASSERT_EQ(kintsugi_sgemm(nullptr, KINTSUGI_ROW_MAJOR, KINTSUGI_OP_N, KINTSUGI_OP_T, 2, 2, 2, 2, a, 2, b, 2,
                           3, c, 2),
            KINTSUGI_SUCCESS);
  EXPECT_THAT(c, testing::ElementsAre(2 * 17 + 3, 2 * 23 + 3, 2 * 39 + 3, 2 * 53 + 3));
  EXPECT_EQ(kintsugi_sgemm(nullptr, KINTSUGI_ROW_MAJOR, KINTSUGI_OP_N, KINTSUGI_OP_T, 2, 2, 2, 2, a, 1, b, 2,
                           3, c, 2),
            KINTSUGI_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace kintsugi::test

// The layout of the C ABI's structs on LP64, and the numbers of its enums: neither may ever change.
#include <gtest/gtest.h>

#include <cstddef>

#include "base/status.hpp"
#include "kintsugi/kintsugi.h"

namespace {

static_assert(sizeof(void*) == 8 && sizeof(long) == 8, "these numbers are those of LP64");

// ----------------------------------------------------------------- problem
static_assert(sizeof(kintsugi_problem) == 144 && alignof(kintsugi_problem) == 8);
static_assert(offsetof(kintsugi_problem, struct_size) == 0);
static_assert(offsetof(kintsugi_problem, m) == 8);
static_assert(offsetof(kintsugi_problem, n) == 16);
static_assert(offsetof(kintsugi_problem, k) == 24);
static_assert(offsetof(kintsugi_problem, lda) == 32);
static_assert(offsetof(kintsugi_problem, ldb) == 40);
static_assert(offsetof(kintsugi_problem, ldc) == 48);
static_assert(offsetof(kintsugi_problem, batch_count) == 56);
static_assert(offsetof(kintsugi_problem, stride_a) == 64);
static_assert(offsetof(kintsugi_problem, stride_b) == 72);
static_assert(offsetof(kintsugi_problem, stride_c) == 80);
static_assert(offsetof(kintsugi_problem, op_a) == 88);
static_assert(offsetof(kintsugi_problem, op_b) == 92);
static_assert(offsetof(kintsugi_problem, type_a) == 96);
static_assert(offsetof(kintsugi_problem, type_b) == 100);
static_assert(offsetof(kintsugi_problem, type_c) == 104);
static_assert(offsetof(kintsugi_problem, type_scalar) == 108);
static_assert(offsetof(kintsugi_problem, layout) == 112);
static_assert(offsetof(kintsugi_problem, pointer_mode) == 116);
static_assert(offsetof(kintsugi_problem, memory) == 120);
static_assert(offsetof(kintsugi_problem, batch_kind) == 124);
static_assert(offsetof(kintsugi_problem, prepared_a) == 128);
static_assert(offsetof(kintsugi_problem, prepared_b) == 132);
static_assert(offsetof(kintsugi_problem, adds_to_c) == 136);
static_assert(offsetof(kintsugi_problem, native_elsewhere) == 140);

static_assert(sizeof(kintsugi_dd) == 16 && offsetof(kintsugi_dd, hi) == 0 && offsetof(kintsugi_dd, lo) == 8);

// ----------------------------------------------------------------- options
static_assert(sizeof(kintsugi_queue) == 16);
static_assert(offsetof(kintsugi_queue, kind) == 0);
static_assert(offsetof(kintsugi_queue, reserved) == 4);
static_assert(offsetof(kintsugi_queue, stream) == 8);

static_assert(sizeof(kintsugi_options) == 104 && alignof(kintsugi_options) == 8);
static_assert(offsetof(kintsugi_options, struct_size) == 0);
static_assert(offsetof(kintsugi_options, accuracy) == 8);
static_assert(offsetof(kintsugi_options, scheme) == 16);
static_assert(offsetof(kintsugi_options, engine) == 24);
static_assert(offsetof(kintsugi_options, policy) == 32);
static_assert(offsetof(kintsugi_options, accumulator) == 40);
static_assert(offsetof(kintsugi_options, workspace_limit) == 48);
static_assert(offsetof(kintsugi_options, threads) == 56);
static_assert(offsetof(kintsugi_options, reserved) == 60);
static_assert(offsetof(kintsugi_options, allocate) == 64);
static_assert(offsetof(kintsugi_options, deallocate) == 72);
static_assert(offsetof(kintsugi_options, allocator_user) == 80);
static_assert(offsetof(kintsugi_options, queue) == 88);

// ---------------------------------------------------------------- operands
static_assert(sizeof(kintsugi_operands) == 96 && alignof(kintsugi_operands) == 8);
static_assert(offsetof(kintsugi_operands, struct_size) == 0);
static_assert(offsetof(kintsugi_operands, alpha) == 8);
static_assert(offsetof(kintsugi_operands, a) == 16);
static_assert(offsetof(kintsugi_operands, b) == 24);
static_assert(offsetof(kintsugi_operands, beta) == 32);
static_assert(offsetof(kintsugi_operands, c) == 40);
static_assert(offsetof(kintsugi_operands, prepared_a) == 48);
static_assert(offsetof(kintsugi_operands, prepared_b) == 56);
static_assert(offsetof(kintsugi_operands, workspace) == 64);
static_assert(offsetof(kintsugi_operands, workspace_size) == 72);
static_assert(offsetof(kintsugi_operands, queue) == 80);

// --------------------------------------------------------------- summaries
static_assert(sizeof(kintsugi_plan_summary) == 56 && alignof(kintsugi_plan_summary) == 8);
static_assert(offsetof(kintsugi_plan_summary, struct_size) == 0);
static_assert(offsetof(kintsugi_plan_summary, is_native) == 8);
static_assert(offsetof(kintsugi_plan_summary, may_be_native) == 12);
static_assert(offsetof(kintsugi_plan_summary, is_offloaded) == 16);
static_assert(offsetof(kintsugi_plan_summary, reserved) == 20);
static_assert(offsetof(kintsugi_plan_summary, candidates) == 24);
static_assert(offsetof(kintsugi_plan_summary, reason) == 32);
static_assert(offsetof(kintsugi_plan_summary, offload) == 40);
static_assert(offsetof(kintsugi_plan_summary, native_seconds) == 48);

static_assert(sizeof(kintsugi_report_summary) == 48 && alignof(kintsugi_report_summary) == 8);
static_assert(offsetof(kintsugi_report_summary, struct_size) == 0);
static_assert(offsetof(kintsugi_report_summary, scheme) == 8);
static_assert(offsetof(kintsugi_report_summary, offload_obstacle) == 16);
static_assert(offsetof(kintsugi_report_summary, recomputed_elements) == 24);
static_assert(offsetof(kintsugi_report_summary, items_with_special_values) == 32);
static_assert(offsetof(kintsugi_report_summary, offload_devices) == 40);
static_assert(offsetof(kintsugi_report_summary, reserved) == 44);

// ------------------------------------------------------------------- enums
template <class Enum>
constexpr int number(Enum value) {
  return static_cast<int>(value);
}

TEST(Header, EnumNumbersNeverChange) {
  EXPECT_EQ(KINTSUGI_OP_N, 0);
  EXPECT_EQ(KINTSUGI_OP_T, 1);
  EXPECT_EQ(KINTSUGI_OP_C, 2);
  EXPECT_EQ(KINTSUGI_F32, 0);
  EXPECT_EQ(KINTSUGI_F64, 1);
  EXPECT_EQ(KINTSUGI_C32, 2);
  EXPECT_EQ(KINTSUGI_C64, 3);
  EXPECT_EQ(KINTSUGI_DD, 4);
  EXPECT_EQ(KINTSUGI_COLUMN_MAJOR, 0);
  EXPECT_EQ(KINTSUGI_ROW_MAJOR, 1);
  EXPECT_EQ(KINTSUGI_SCALARS_ON_HOST, 0);
  EXPECT_EQ(KINTSUGI_SCALARS_ON_DEVICE, 1);
  EXPECT_EQ(KINTSUGI_HOST, 0);
  EXPECT_EQ(KINTSUGI_DEVICE, 1);
  EXPECT_EQ(KINTSUGI_ANY_MEMORY, 2);
  EXPECT_EQ(KINTSUGI_BATCH_STRIDED, 0);
  EXPECT_EQ(KINTSUGI_BATCH_POINTERS, 1);
  EXPECT_EQ(KINTSUGI_QUEUE_HOST, 0);
  EXPECT_EQ(KINTSUGI_QUEUE_CUDA, 1);
  EXPECT_EQ(KINTSUGI_REPLACED, 0);
  EXPECT_EQ(KINTSUGI_LEFT_TO_BLAS, 1);
  EXPECT_EQ(KINTSUGI_REPLACEMENT_FAILED, 2);
  EXPECT_EQ(KINTSUGI_A, 0);
  EXPECT_EQ(KINTSUGI_B, 1);
}

TEST(Header, StatusNumbersEqualTheLibrarysOwn) {
  using kintsugi::core::Status;
  EXPECT_EQ(KINTSUGI_SUCCESS, number(Status::success));
  EXPECT_EQ(KINTSUGI_INVALID_ARGUMENT, number(Status::invalid_argument));
  EXPECT_EQ(KINTSUGI_NOT_SUPPORTED, number(Status::not_supported));
  EXPECT_EQ(KINTSUGI_ENGINE_UNAVAILABLE, number(Status::engine_unavailable));
  EXPECT_EQ(KINTSUGI_OUT_OF_MEMORY, number(Status::out_of_memory));
  EXPECT_EQ(KINTSUGI_WORKSPACE_TOO_SMALL, number(Status::workspace_too_small));
  EXPECT_EQ(KINTSUGI_CONTRACT_UNREACHABLE, number(Status::contract_unreachable));
  EXPECT_EQ(KINTSUGI_BAD_SETTING, number(Status::bad_setting));
  EXPECT_EQ(KINTSUGI_DEVICE_ERROR, number(Status::device_error));
  EXPECT_EQ(KINTSUGI_INTERNAL, number(Status::internal));
  EXPECT_EQ(KINTSUGI_INTERNAL, 9);
}

TEST(Header, EveryStatusHasItsName) {
  for (int status = 0; status <= KINTSUGI_INTERNAL; ++status) {
    EXPECT_STREQ(kintsugi_status_name(static_cast<kintsugi_status>(status)),
                 kintsugi::core::status_name(static_cast<kintsugi::core::Status>(status)));
    EXPECT_STRNE(kintsugi_status_name(static_cast<kintsugi_status>(status)), "unknown");
  }
  EXPECT_STREQ(kintsugi_status_name(static_cast<kintsugi_status>(KINTSUGI_INTERNAL + 1)), "unknown");
}

TEST(Header, InitMacrosDescribeOneColumnMajorFp32ProductWithoutOptions) {
  const kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  EXPECT_EQ(problem.struct_size, sizeof problem);
  EXPECT_EQ(problem.batch_count, 1);
  EXPECT_EQ(problem.type_c, KINTSUGI_F32);
  EXPECT_EQ(problem.layout, KINTSUGI_COLUMN_MAJOR);
  const kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  EXPECT_EQ(options.struct_size, sizeof options);
  EXPECT_EQ(options.scheme, nullptr);
  const kintsugi_operands operands = KINTSUGI_OPERANDS_INIT;
  EXPECT_EQ(operands.struct_size, sizeof operands);
  EXPECT_EQ(operands.c, nullptr);
}

}  // namespace

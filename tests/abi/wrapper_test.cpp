// kintsugi.hpp: all of its functions give the products of the C ABI, and every failure throws an Error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "kintsugi/kintsugi.hpp"

namespace {

using kintsugi::Error;
using kintsugi::Layout;
using kintsugi::Op;
using kintsugi::Problem;
using kintsugi::Status;
using ::testing::HasSubstr;
using Matrix = std::vector<float>;

static_assert(!std::is_copy_constructible_v<kintsugi::Plan> &&
              std::is_nothrow_move_constructible_v<kintsugi::Plan>);
static_assert(!std::is_copy_constructible_v<kintsugi::Handle>);
static_assert(!std::is_copy_constructible_v<kintsugi::Prepared>);

constexpr std::int64_t m = 7, n = 5, k = 11;

// Small integers: every scheme and engine must give them exactly, so the tests compare with ==.
Matrix integers(std::int64_t elements, int seed) {
  Matrix matrix(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    matrix[i] = static_cast<float>((static_cast<int>(i) * 37 + seed * 101) % 19 - 9);
  }
  return matrix;
}

struct Strides {
  std::int64_t row, column;
};

Strides strides(Layout layout, Op op, std::int64_t ld) {
  const bool unit_row_stride = (layout == Layout::column_major) == (op == Op::N);
  return unit_row_stride ? Strides{1, ld} : Strides{ld, 1};
}

// C becomes alpha * op(A) * op(B) + beta * C, by a loop.
void multiply_by_loop(Layout layout, Op op_a, Op op_b, float alpha, const float* a, std::int64_t lda,
                      const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  const Strides sa = strides(layout, op_a, lda), sb = strides(layout, op_b, ldb),
                sc = strides(layout, Op::N, ldc);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += a[i * sa.row + l * sa.column] * b[l * sb.row + j * sb.column];
      }
      float& element = c[i * sc.row + j * sc.column];
      element = alpha * sum + beta * element;
    }
  }
}

template <class Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return {Status::success, "nothing was thrown"};
}

TEST(Wrapper, EveryTransposeAndLayoutIsMultiplied) {
  const std::int64_t ld = 13;  // more than any line has elements
  const Matrix a = integers(ld * ld, 1), b = integers(ld * ld, 2), c = integers(ld * ld, 3);
  for (const Layout layout : {Layout::column_major, Layout::row_major}) {
    for (const Op op_a : {Op::N, Op::T, Op::C}) {
      for (const Op op_b : {Op::N, Op::T, Op::C}) {
        Matrix result = c, expected = c;
        kintsugi::gemm(layout, op_a, op_b, m, n, k, 2, a.data(), ld, b.data(), ld, -3, result.data(), ld);
        multiply_by_loop(layout, op_a, op_b, 2, a.data(), ld, b.data(), ld, -3, expected.data(), ld);
        EXPECT_EQ(result, expected) << static_cast<int>(layout) << static_cast<int>(op_a)
                                    << static_cast<int>(op_b);
      }
    }
  }
}

TEST(Wrapper, DefaultLayoutIsColumnMajor) {
  const Matrix a = integers(m * k, 1), b = integers(k * n, 2);
  Matrix result(m * n), expected(m * n);
  kintsugi::gemm(Op::N, Op::N, m, n, k, 1, a.data(), m, b.data(), k, 0, result.data(), m);
  multiply_by_loop(Layout::column_major, Op::N, Op::N, 1, a.data(), m, b.data(), k, 0, expected.data(), m);
  EXPECT_EQ(result, expected);
}

TEST(Wrapper, DenseProblemHasTheSmallestLeadingDimensions) {
  const Problem p = Problem::dense<double>(Op::T, Op::N, m, n, k);
  EXPECT_EQ(p.lda, k);
  EXPECT_EQ(p.ldb, k);
  EXPECT_EQ(p.ldc, m);
  EXPECT_EQ(p.type_c, kintsugi::Type::f64);
  const Problem q = Problem::dense<float>(Op::T, Op::N, m, n, k, Layout::row_major);
  EXPECT_EQ(q.lda, m);
  EXPECT_EQ(q.ldb, n);
  EXPECT_EQ(q.ldc, n);
  EXPECT_EQ(Problem::dense<float>(Op::N, Op::N, 0, 0, 0).lda, 1);
}

TEST(Wrapper, EveryMemberOfTheOptionsReachesTheCAbi) {
  int user = 0;
  const kintsugi::Options options{
      .accuracy = "fp32",
      .scheme = "fp16",
      .engine = "reference",
      .policy = "emulate",
      .accumulator = "h200",
      .workspace_limit = 4096,
      .threads = 3,
      .allocate = [](void*, std::size_t, std::size_t) -> void* { return nullptr; },
      .deallocate = [](void*, void*, std::size_t) {},
      .allocator_user = &user};
  const kintsugi_options o = options.to_c();
  EXPECT_STREQ(o.accuracy, "fp32");
  EXPECT_STREQ(o.scheme, "fp16");
  EXPECT_STREQ(o.engine, "reference");
  EXPECT_STREQ(o.policy, "emulate");
  EXPECT_STREQ(o.accumulator, "h200");
  EXPECT_EQ(o.workspace_limit, 4096);
  EXPECT_EQ(o.threads, 3);
  EXPECT_EQ(o.allocator_user, &user);
  EXPECT_NE(o.allocate, nullptr);
  EXPECT_NE(o.deallocate, nullptr);
  EXPECT_EQ(kintsugi::Options{}.to_c().scheme, nullptr);
}

TEST(Wrapper, StrideZeroSharesAnInputInABatch) {
  constexpr std::int64_t count = 3;
  const Matrix a = integers(m * k, 1), b = integers(count * k * n, 2);
  Matrix result(count * m * n), expected(count * m * n);
  kintsugi::gemm_strided_batch(Op::N, Op::N, m, n, k, 1, a.data(), m, 0, b.data(), k, k * n, 0, result.data(),
                               m, m * n, count);
  for (std::int64_t t = 0; t < count; ++t) {
    multiply_by_loop(Layout::column_major, Op::N, Op::N, 1, a.data(), m, b.data() + t * k * n, k, 0,
                     expected.data() + t * m * n, m);
  }
  EXPECT_EQ(result, expected);
}

TEST(Wrapper, ComplexElementsAndScalarsAreMultiplied) {
  using Element = std::complex<double>;
  const std::vector<Element> a{{1, 2}, {3, -1}}, b{{0, 1}, {2, 5}};  // 2 x 1 each
  const Element alpha(0, 2), beta(1, 1);
  Element c(3, 4);
  // conj(a)^T b = (1 - 2i) i + (3 + i) (2 + 5i) = 3 + 18i
  kintsugi::gemm(Op::C, Op::N, 1, 1, 2, alpha, a.data(), 2, b.data(), 2, beta, &c, 1, {.accuracy = "exact"});
  EXPECT_EQ(c, Element(-36 - 1, 6 + 7));
  const kintsugi::Plan plan(Problem::dense<std::complex<float>>(Op::N, Op::N, 1, 1, 1));
  EXPECT_EQ(error_of([&] { plan.execute(alpha, &c, &c, beta, &c); }).status(), Status::invalid_argument);
}

TEST(Wrapper, PointerBatchIsMultiplied) {
  const Matrix a = integers(m * k, 1), b = integers(k * n, 2), other_b = integers(k * n, 3);
  Matrix first(m * n), second(m * n), expected(m * n);
  const std::array<const float*, 2> as{a.data(), a.data()}, bs{b.data(), other_b.data()};
  const std::array<float*, 2> cs{first.data(), second.data()};
  kintsugi::gemm_pointer_batch(Op::N, Op::N, m, n, k, 1, as.data(), m, bs.data(), k, 0, cs.data(), m, 2);
  multiply_by_loop(Layout::column_major, Op::N, Op::N, 1, a.data(), m, b.data(), k, 0, expected.data(), m);
  EXPECT_EQ(first, expected);
  multiply_by_loop(Layout::column_major, Op::N, Op::N, 1, a.data(), m, other_b.data(), k, 0, expected.data(),
                   m);
  EXPECT_EQ(second, expected);
}

TEST(Wrapper, GroupsAreMultiplied) {
  const Matrix a = integers(m * k, 1), b = integers(k * n, 2);
  Matrix small(2 * 3), large(m * n), expected_small(2 * 3), expected_large(m * n);
  const kintsugi::Group<float> groups[] = {{.problem = Problem::dense<float>(Op::N, Op::N, 2, 3, 4),
                                            .a = a.data(),
                                            .b = b.data(),
                                            .c = small.data()},
                                           {.problem = Problem::dense<float>(Op::N, Op::N, m, n, k),
                                            .alpha = 2,
                                            .a = a.data(),
                                            .b = b.data(),
                                            .c = large.data()}};
  kintsugi::gemm_grouped<float>(groups);
  kintsugi::gemm(Op::N, Op::N, 2, 3, 4, 1, a.data(), 2, b.data(), 4, 0, expected_small.data(), 2);
  multiply_by_loop(Layout::column_major, Op::N, Op::N, 2, a.data(), m, b.data(), k, 0, expected_large.data(),
                   m);
  EXPECT_EQ(small, expected_small);
  EXPECT_EQ(large, expected_large);
}

TEST(Wrapper, ThreadsShareAPlanWithPreparedOperands) {
  const Matrix a = integers(m * k, 1), b = integers(k * n, 2);
  Matrix expected(m * n);
  multiply_by_loop(Layout::column_major, Op::N, Op::N, 1, a.data(), m, b.data(), k, 0, expected.data(), m);

  kintsugi::Plan made(Problem::dense<float>(Op::N, Op::N, m, n, k), {.scheme = "fp16x3"});
  const kintsugi::Plan plan = std::move(made);
  EXPECT_EQ(plan.problem().k, k);
  EXPECT_EQ(plan.workspace_size() % 256, 0u);
  Matrix copy_of_b = b;
  const kintsugi::Prepared prepared_a = plan.prepare(kintsugi::Side::A, a.data());
  const kintsugi::Prepared prepared_b = plan.prepare(kintsugi::Side::B, copy_of_b.data());
  copy_of_b.clear();

  struct alignas(256) Line {
    std::byte bytes[256];
  };
  std::vector<std::thread> threads;
  std::array<Matrix, 4> results;
  for (Matrix& result : results) {
    threads.emplace_back([&] {
      result.assign(m * n, -1);
      std::vector<Line> workspace(plan.workspace_size() / sizeof(Line));
      plan.execute(1, prepared_a, prepared_b, 0, result.data(), std::as_writable_bytes(std::span(workspace)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Matrix& result : results) EXPECT_EQ(result, expected);
  Matrix in_one_call(m * n);
  kintsugi::gemm(plan.problem(), 1, a.data(), prepared_b, 0, in_one_call.data(), {.scheme = "fp16x3"});
  EXPECT_EQ(in_one_call, expected);
}

TEST(Wrapper, APlanThatIsReadBackGivesTheSameBits) {
  const Matrix a = integers(m * k, 1), b = integers(k * n, 2);
  const kintsugi::Plan plan(Problem::dense<float>(Op::N, Op::N, m, n, k), {.scheme = "fp16x3-wide"});
  const kintsugi::Plan again = kintsugi::Plan::read(plan.describe());
  EXPECT_EQ(again.problem().k, plan.problem().k);
  EXPECT_THAT(again.describe(), HasSubstr("fp16x3-wide"));
  Matrix first(m * n), second(m * n, -1);
  plan.execute(1, a.data(), b.data(), 0, first.data());
  again.execute(1, a.data(), b.data(), 0, second.data());
  EXPECT_EQ(first, second);
  EXPECT_EQ(error_of([] { kintsugi::Plan::read("no plan"); }).status(), Status::invalid_argument);
}

TEST(Wrapper, AlphaZeroReadsNoOperand) {
  Matrix c = integers(m * n, 3), expected = c;
  kintsugi::gemm(Problem::dense<float>(Op::N, Op::N, m, n, k), 0, nullptr, nullptr, 2, c.data());
  for (float& element : expected) element *= 2;
  EXPECT_EQ(c, expected);
}

TEST(Wrapper, ErrorHasStatusAndValues) {
  Matrix c(m * n, -1);
  const Error error = error_of(
      [&] { kintsugi::gemm(Op::N, Op::N, m, n, k, 1, c.data(), m - 1, c.data(), k, 0, c.data(), m); });
  EXPECT_EQ(error.status(), Status::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr(std::to_string(m - 1)));
  EXPECT_EQ(c, Matrix(m * n, -1));
  EXPECT_STREQ(kintsugi::status_name(error.status()), "invalid_argument");
}

TEST(Wrapper, UnknownNamesAreRefused) {
  const Problem problem = Problem::dense<float>(Op::N, Op::N, m, n, k);
  const Error scheme = error_of([&] { kintsugi::Plan(problem, {.scheme = "fp17"}); });
  EXPECT_EQ(scheme.status(), Status::bad_setting);
  EXPECT_THAT(scheme.what(), HasSubstr("fp17"));
  const Error engine = error_of([&] { kintsugi::Plan(problem, {.engine = "abacus"}); });
  EXPECT_EQ(engine.status(), Status::bad_setting);
  const Error empty = error_of([&] { kintsugi::Plan(problem, {.scheme = ""}); });
  EXPECT_EQ(empty.status(), Status::bad_setting);
  kintsugi::Handle handle;
  EXPECT_EQ(error_of([&] { handle.set("colour", "blue"); }).status(), Status::bad_setting);
}

TEST(Wrapper, DataOfAnotherTypeOrBatchKindThanThePlansAreRefused) {
  const kintsugi::Plan plan(Problem::dense<float>(Op::N, Op::N, 1, 1, 1));
  double c = 0;
  double* pointers[] = {&c};
  float f = 0;
  float* float_pointers[] = {&f};
  const Error type = error_of([&] { plan.execute(1, &c, &c, 0, &c); });
  EXPECT_EQ(type.status(), Status::invalid_argument);
  EXPECT_STREQ(type.what(), "the problem is of type f32, the data are of type f64");
  EXPECT_EQ(error_of([&] { plan.execute(1, pointers, pointers, 0, pointers); }).status(),
            Status::invalid_argument);
  const Error batch = error_of([&] { plan.execute(1, float_pointers, float_pointers, 0, float_pointers); });
  EXPECT_EQ(batch.status(), Status::invalid_argument);
  EXPECT_THAT(batch.what(), HasSubstr("strided"));
}

TEST(Wrapper, AMovedFromPlanIsAnErrorNotACrash) {
  kintsugi::Plan plan(Problem::dense<float>(Op::N, Op::N, 1, 1, 1));
  const kintsugi::Plan other = std::move(plan);
  float c = 0;
  EXPECT_EQ(error_of([&] { plan.execute(1, &c, &c, 0, &c); }).status(), Status::invalid_argument);
  EXPECT_EQ(error_of([&] { plan.describe(); }).status(), Status::invalid_argument);
}

TEST(Wrapper, DescriptionsAreJson) {
  using nlohmann::json;
  kintsugi::Handle handle;
  handle.set("scheme", "markidis");
  const std::string set = kintsugi::settings(handle), unset = kintsugi::settings();
  EXPECT_TRUE(json::accept(set));
  EXPECT_TRUE(json::accept(unset));
  EXPECT_THAT(set, HasSubstr("markidis"));
  EXPECT_TRUE(json::accept(kintsugi::schemes()));
  EXPECT_THAT(kintsugi::schemes(), HasSubstr("fp16x3-wide"));
  EXPECT_TRUE(json::accept(kintsugi::engines()));
  EXPECT_THAT(kintsugi::engines(), HasSubstr("reference"));
  const kintsugi::Plan plan(Problem::dense<float>(Op::N, Op::N, m, n, k), {}, &handle);
  EXPECT_TRUE(json::accept(plan.describe()));
  EXPECT_THAT(plan.describe(), HasSubstr("markidis"));
  handle.unset("scheme");
  EXPECT_EQ(kintsugi::settings(handle), unset);
}

TEST(Wrapper, TheReportNamesTheEngineThatRan) {
  kintsugi::Handle handle;
  handle.set("engine", "reference");
  const Matrix a = integers(m * k, 1), b = integers(k * n, 2);
  Matrix c(m * n);
  kintsugi::gemm(Op::N, Op::N, m, n, k, 1, a.data(), m, b.data(), k, 0, c.data(), m, {.scheme = "fp16"},
                 &handle);
  const std::string report = kintsugi::report(handle);
  EXPECT_TRUE(nlohmann::json::accept(report));
  EXPECT_THAT(report, HasSubstr("reference"));
}

TEST(Wrapper, TheLogSinkMayMoveAndMayThrow) {
  kintsugi::Handle handle;
  handle.set("log", "debug");
  int lines = 0;
  handle.set_log([&lines](kintsugi::LogLevel, std::string_view) {
    ++lines;
    throw std::runtime_error("a sink that throws");
  });
  kintsugi::Handle moved = std::move(handle);
  const Matrix a = integers(m * k, 1), b = integers(k * n, 2);
  Matrix c(m * n);
  kintsugi::gemm(Op::N, Op::N, m, n, k, 1, a.data(), m, b.data(), k, 0, c.data(), m, {}, &moved);
  EXPECT_GT(lines, 0);
  const int before = lines;
  moved.set_log({});
  kintsugi::gemm(Op::N, Op::N, m, n, k, 1, a.data(), m, b.data(), k, 0, c.data(), m, {}, &moved);
  EXPECT_EQ(lines, before);
}

TEST(Wrapper, CallsAfterReleasingCachesGiveTheSameBits) {
  const Matrix a = integers(m * k, 1);
  const Matrix b = integers(k * n, 2);
  Matrix c(m * n);
  kintsugi::gemm(Op::N, Op::N, m, n, k, 1, a.data(), m, b.data(), k, 0, c.data(), m);
  kintsugi::release_caches();
  Matrix again(m * n);
  kintsugi::gemm(Op::N, Op::N, m, n, k, 1, a.data(), m, b.data(), k, 0, again.data(), m);
  EXPECT_EQ(c, again);
}

TEST(Wrapper, TheVersionIsTheHeaders) {
  EXPECT_EQ(kintsugi::version(), std::to_string(KINTSUGI_VERSION_MAJOR) + "." +
                                     std::to_string(KINTSUGI_VERSION_MINOR) + "." +
                                     std::to_string(KINTSUGI_VERSION_PATCH));
}

// The text grows between the call that asks for its size and the call that reads it.
TEST(Wrapper, ATextThatGrowsMeanwhileIsReadCompletely) {
  std::size_t size = 3;
  const std::string text =
      kintsugi::detail::read_text([&](char* buffer, std::size_t capacity, std::size_t* needed) {
        const std::string current(size, 'x');
        *needed = size + 1;
        if (capacity > 0) {
          const std::size_t fits = std::min(capacity - 1, size);
          std::memcpy(buffer, current.data(), fits);
          buffer[fits] = 0;
        }
        if (size < 20) size += 5;
        return KINTSUGI_SUCCESS;
      });
  EXPECT_EQ(text, std::string(23, 'x'));
}

}  // namespace

// Tests kintsugi_gemm_grouped: which groups share a launch, errors, and what it launches, over the fakes.
#include "fakes/device_plan.hpp"

namespace kintsugi::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class Groups : public DevicePlan {
 protected:
  struct Shape {
    std::int64_t m, n, k;
  };

  kintsugi_status run(const std::vector<Shape>& shapes) {
    calls_.clear();
    for (const Shape& shape : shapes)
      calls_.push_back(std::make_unique<Call>(shape.m, shape.n, shape.k, stream_));
    return run();
  }
  kintsugi_status run() {
    std::vector<kintsugi_problem> problems;
    std::vector<kintsugi_operands> operands;
    for (const auto& call : calls_) {
      problems.push_back(call->problem);
      operands.push_back(call->operands);
    }
    options_.queue = {KINTSUGI_QUEUE_CUDA, 0, stream_.get()};
    fake_cuda_forget();
    return kintsugi_gemm_grouped(handle_, static_cast<std::int64_t>(problems.size()), problems.data(),
                                 &options_, operands.data());
  }
  std::vector<std::string> products() {
    std::vector<std::string> found;
    for (const std::string& name : work())
      if (name.find("multiply_") == 0) found.push_back(name);
    return found;
  }
  void expect_error(kintsugi_status status, kintsugi_status expected, const std::string& text) {
    EXPECT_EQ(status, expected);
    EXPECT_THAT(kintsugi_last_error(), HasSubstr(text));
    EXPECT_THAT(products(), testing::IsEmpty());
  }

  const FakeVariable measured_{"FAKE_CUDA_NAME", "NVIDIA H200"};
  const Handle handle_;
  std::vector<std::unique_ptr<Call>> calls_;
  kintsugi_options options_ = KINTSUGI_OPTIONS_INIT;
};

TEST_F(Groups, OfDifferentShapesAreOneLaunch) {
  options_.scheme = "bf16x6-direct";
  const std::vector<Shape> shapes{
      {300, 500, 256}, {17, 500, 256}, {2, 500, 256}, {700, 500, 256}, {64, 500, 300}};
  ASSERT_EQ(run(shapes), KINTSUGI_SUCCESS) << kintsugi_last_error();
  ASSERT_EQ(run(shapes), KINTSUGI_SUCCESS) << kintsugi_last_error();  // with kept plans and report
  EXPECT_THAT(work(), Contains("prepare_direct_products").Times(2));
  EXPECT_THAT(products(), ElementsAre(HasSubstr("multiply_f32_direct_groups_")));
  expect_all_on(stream_);
  expect_no_waiting();
}

// A launch for each pair of contiguous extents; a product whose C is only scaled has a launch of its own.
TEST_F(Groups, OfOtherLayoutsHaveLaunchesOfTheirOwn) {
  options_.scheme = "bf16x6-direct";
  calls_.clear();
  for (int i = 0; i < 4; ++i) calls_.push_back(std::make_unique<Call>(256, 256, 256, stream_));
  calls_[1]->problem.op_a = KINTSUGI_OP_T;
  calls_[3]->alpha = 0;
  ASSERT_EQ(run(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_THAT(products(), SizeIs(2));
  EXPECT_THAT(work(), Contains(HasSubstr("scale")));
}

// Under auto the launch is taken if it is expected to be quicker than each product by itself; with a scheme
// of its own a product of the policy emulate keeps its bits.
TEST_F(Groups, PoliciesShareWhereThatIsQuicker) {
  const std::vector<Shape> experts(12, {400, 1024, 1024});
  ASSERT_EQ(run(experts), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_THAT(products(), ElementsAre(HasSubstr("direct_groups"))) << "auto";
  options_.policy = "emulate";
  std::vector<Shape> mixed = experts;
  mixed.push_back({3000, 3000, 1024});
  ASSERT_EQ(run(mixed), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_THAT(products(), Contains(HasSubstr("direct_groups")).Times(1)) << "emulate";
  EXPECT_THAT(products(), Contains(HasSubstr("fp16x3"))) << "the large one";
  options_.policy = "native";
  ASSERT_EQ(run(experts), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_THAT(work(), Contains(HasSubstr("cublas")).Times(12)) << "native";
}

TEST_F(Groups, OneProductIsASingleCall) {
  options_.scheme = "bf16x6-direct";
  ASSERT_EQ(run({{300, 300, 300}}), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_THAT(products(), ElementsAre(Not(HasSubstr("groups"))));
  EXPECT_EQ(run(std::vector<Shape>{}), KINTSUGI_SUCCESS);
}

TEST_F(Groups, LongSumsAndOlderFamiliesAreSingleCalls) {
  options_.scheme = "bf16x6-direct";
  ASSERT_EQ(run({{30, 30, 20000}, {40, 30, 20000}}), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_THAT(products(), SizeIs(2));
  const FakeVariable forced("KINTSUGI_ARCH", "sm80");
  ASSERT_EQ(run({{300, 300, 300}, {40, 30, 200}}), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_THAT(products(), SizeIs(2));
}

TEST_F(Groups, ErrorsNameTheGroupAndComeBeforeTheFirstProduct) {
  options_.scheme = "bf16x6-direct";
  const auto two = [&] {
    calls_.clear();
    for (int i = 0; i < 2; ++i) calls_.push_back(std::make_unique<Call>(100, 100, 100, stream_));
  };
  two();
  calls_[1]->problem.lda = 99;
  expect_error(run(), KINTSUGI_INVALID_ARGUMENT, "group 1: lda = 99");
  two();
  calls_[1]->operands.b = nullptr;
  expect_error(run(), KINTSUGI_INVALID_ARGUMENT, "group 1: ");
  two();
  options_.scheme = "no-such-scheme";
  expect_error(run(), KINTSUGI_BAD_SETTING, "group 0: ");
  expect_error(kintsugi_gemm_grouped(nullptr, -3, nullptr, nullptr, nullptr), KINTSUGI_INVALID_ARGUMENT,
               "-3");
  expect_error(kintsugi_gemm_grouped(nullptr, 1, nullptr, nullptr, nullptr), KINTSUGI_INVALID_ARGUMENT,
               "problems is null");
}

}  // namespace
}  // namespace kintsugi::test

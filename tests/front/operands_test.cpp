// Tests products on the host's engines for shapes whose strides are ambiguous, and with operands that were
// prepared for another layout or batch.
#include <gtest/gtest.h>

#include "engines/registry.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/integer_case.hpp"

namespace kintsugi::test {
namespace {

template <class T>
class HostOperands : public testing::Test {};
using Elements = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(HostOperands, Elements);

TYPED_TEST(HostOperands, GiveTheExactProducts) {
  for (const core::Engine* engine : core::all_engines()) {
    if (!engine->unavailable_reason().empty()) continue;
    for (const char* policy : {"native", "emulate"}) {
      Place host;
      const std::string name(engine->name());
      host.engine = name.c_str();
      host.policy = policy;
      for (std::uint64_t seed = 0; seed < (thorough ? 100 : 25); ++seed) {
        IntegerCase<TypeParam> test(seed);
        // same_values() has no rule for complex infinities; native_special_test.cpp tests them.
        if (seed % 5 == 0 && !core::is_complex<TypeParam>) test.make_special(seed);
        SCOPED_TRACE(fmt::format("{} {} seed {}: {}", name, policy, seed, test.text()));
        const std::vector<TypeParam> expected = test.expected();
        ASSERT_EQ(test.run(host), KINTSUGI_SUCCESS) << kintsugi_last_error();
        ASSERT_TRUE(same_values(test.result(), expected));
      }
    }
  }
}

// A prepared operand's copy must have the original's layout, else native sums may have another order.
TYPED_TEST(HostOperands, PreparedOperandsKeepTheBitsOfNativeProducts) {
  for (const core::Engine* engine : core::all_engines()) {
    if (!engine->unavailable_reason().empty() || engine->is_device()) continue;
    for (std::uint64_t seed = 0; seed < (thorough ? 400 : 100); ++seed) {
      Draws draws(seed);
      GemmCase test{
          .m = draws.length(), .n = draws.length(), .k = draws.once_in(2) ? 1 : draws.between(2, 40)};
      test.op_a = draws.op();
      test.op_b = draws.op();
      test.layout = draws.layout();
      test.pad_a = draws.once_in(3) ? 2 : 0;
      test.pad_b = draws.once_in(3) ? 2 : 0;
      test.alpha = 0.3;
      test.seed = seed;
      test.engine = engine->name();
      test.policy = "native";
      GemmDataOf<TypeParam> data(test);
      data.run_well();
      GemmDataOf<TypeParam> prepared(test);
      const PlanOf plan(prepared);
      kintsugi_operands operands = prepared.operands();
      ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_A, operands.a, &operands.prepared_a),
                KINTSUGI_SUCCESS);
      ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_B, operands.b, &operands.prepared_b),
                KINTSUGI_SUCCESS);
      ASSERT_EQ(kintsugi_plan_execute(nullptr, plan.plan, &operands), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      EXPECT_EQ(bits_of(prepared.result()), bits_of(data.result()))
          << test.engine << " m " << test.m << " n " << test.n << " k " << test.k << " ops " << test.op_a
          << test.op_b << " layout " << test.layout << " pads " << test.pad_a << test.pad_b;
      kintsugi_prepared_destroy(operands.prepared_a);
      kintsugi_prepared_destroy(operands.prepared_b);
    }
  }
}

}  // namespace
}  // namespace kintsugi::test

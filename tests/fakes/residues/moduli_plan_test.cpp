// Numbers of moduli of the candidates of FP64 plans, over the fakes.
#include "fakes/device_plan.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

// The first candidate has as many moduli as uniform numbers need. Candidates with every greater number follow
// that is expected to be faster than native; they share kernels. Complex elements, and vectors that are too
// short for these kernels, have few candidates, the more the longer a product. The native kernel takes all
// other operands.
TEST_F(DevicePlan, Fp64BeginsWithFewModuli) {
  Call call(64, 64, 8192, stream_);
  call.options.policy = "emulate";
  using Case = CaseOfModuli;
  for (const Case& test :
       {Case{KINTSUGI_F64, 1290, 1290, {15}}, Case{KINTSUGI_F64, 1536, 1536, {15}},
        Case{KINTSUGI_F64, 1920, 1920, {15, 16}}, Case{KINTSUGI_F64, 2048, 2048, {15, 16, 17}},
        Case{KINTSUGI_F64, 2560, 2560, {15, 16, 17, 18, 19}},
        Case{KINTSUGI_F64, 4096, 4096, {15, 16, 17, 18, 19, 20}},
        Case{KINTSUGI_F64, 16384, 512, {15, 16, 17}},
        Case{KINTSUGI_F64, 8192, 8192, {15, 16, 17, 18, 19, 20}}, Case{KINTSUGI_F64, 16384, 256, {15, 17}},
        Case{KINTSUGI_F64, 65536, 192, {15, 17, 19}}, Case{KINTSUGI_C64, 1290, 1290, {15, 17}},
        Case{KINTSUGI_C64, 2048, 2048, {15, 17}}, Case{KINTSUGI_C64, 4096, 4096, {15, 17, 19}},
        Case{KINTSUGI_F64, 64, 8192, {15}}}) {
    test.set(call.problem);
    Names names = test.names(":scale=norm");
    names.push_back("native");
    EXPECT_EQ(schemes(planned(call)), names) << test.size << ", k = " << test.k;
  }
  const json plan = planned(call);
  EXPECT_THAT(plan.at("words").dump(),
              HasSubstr("the norms of A's rows and B's columns prove every element"));
  // Neither prepared operands nor leading dimensions may change the bits of C.
  Case{KINTSUGI_F64, 2048, 2048, {}}.set(call.problem);
  const Names unprepared = schemes(planned(call));
  EXPECT_EQ(unprepared.size(), 4U);
  call.problem.prepared_a = 1;
  EXPECT_EQ(schemes(planned(call)), unprepared);
  call.problem.prepared_a = 0;
  call.problem.lda = call.problem.ldb = 2049;
  EXPECT_EQ(schemes(planned(call)), unprepared);
  Case{KINTSUGI_F64, 64, 8192, {}}.set(call.problem);
  // The plan has as many moduli as the contract needs for any operands.
  call.options.accuracy = "fp32";
  EXPECT_EQ(schemes(planned(call)).front(), "ozaki2:moduli=8:scale=norm");
}

}  // namespace
}  // namespace kintsugi::test

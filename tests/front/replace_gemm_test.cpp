// kintsugi_replace_gemm: products in place of a call of BLAS, with BLAS's letters and numbers.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/kintsugi.h"

namespace kintsugi::test {
namespace {

constexpr std::int32_t row_major = 101, column_major = 102;

// C = A op(B) with A = (1 2; 3 4) and B = (5 6; 7 8), stored by rows.
struct Product {
  std::vector<double> a{1, 2, 3, 4}, b{5, 6, 7, 8}, c{-1, -1, -1, -1};
  std::int64_t m = 2, lda = 2;

  kintsugi_replacement run(const kintsugi_options* options, std::int32_t op_b,
                           std::int32_t layout = row_major) {
    const double one = 1, zero = 0;
    return kintsugi_replace_gemm(options, KINTSUGI_F64, layout, 'N', op_b, m, 2, 2, &one, a.data(), lda,
                                 b.data(), 2, &zero, c.data(), 2);
  }
  bool is_unchanged() const { return c == std::vector<double>{-1, -1, -1, -1}; }
};

kintsugi_options options_of(const char* accuracy, const char* scheme, const char* policy) {
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.accuracy = accuracy;
  options.scheme = scheme;
  options.policy = policy;
  return options;
}

TEST(ReplaceGemm, TakesLettersAndNumbersOfBlas) {
  const kintsugi_options exact = options_of("exact", nullptr, nullptr);
  const std::vector<double> plain{19, 22, 43, 50}, transposed{17, 23, 39, 53};
  for (const std::int32_t op_b :
       {int{'N'}, int{'n'}, 111, int{'T'}, int{'t'}, 112, int{'C'}, int{'c'}, 113}) {
    Product product;
    ASSERT_EQ(product.run(&exact, op_b), KINTSUGI_REPLACED) << kintsugi_last_error();
    const bool is_plain = op_b == 'N' || op_b == 'n' || op_b == 111;
    EXPECT_EQ(product.c, is_plain ? plain : transposed) << op_b;
  }
  Product columns;
  ASSERT_EQ(columns.run(&exact, 'N', column_major), KINTSUGI_REPLACED);
  EXPECT_EQ(columns.c, (std::vector<double>{23, 34, 31, 46}));
}

TEST(ReplaceGemm, LeavesWrongArgumentsToBlas) {
  const kintsugi_options exact = options_of("exact", nullptr, nullptr);
  for (const std::int32_t op_b : {0, 1, 114, int{'X'}, -1}) {
    Product product;
    EXPECT_EQ(product.run(&exact, op_b), KINTSUGI_LEFT_TO_BLAS) << op_b;
    EXPECT_TRUE(product.is_unchanged());
  }
  for (const std::int32_t layout : {0, 1, 100, 103}) {
    Product product;
    EXPECT_EQ(product.run(&exact, 'N', layout), KINTSUGI_LEFT_TO_BLAS) << layout;
  }
  Product negative, narrow;
  negative.m = -1;
  narrow.lda = 1;
  EXPECT_EQ(negative.run(&exact, 'N'), KINTSUGI_LEFT_TO_BLAS);
  EXPECT_EQ(narrow.run(&exact, 'N'), KINTSUGI_LEFT_TO_BLAS);
}

TEST(ReplaceGemm, LeavesNativeProductsOfAutoToBlas) {
  const kintsugi_options automatic = options_of(nullptr, nullptr, "auto");
  Product product;
  EXPECT_EQ(product.run(&automatic, 'N'), KINTSUGI_LEFT_TO_BLAS);
  EXPECT_TRUE(product.is_unchanged());
  const kintsugi_options emulated = options_of(nullptr, nullptr, "emulate");
  EXPECT_EQ(product.run(&emulated, 'N'), KINTSUGI_REPLACED);
  EXPECT_EQ(product.c, (std::vector<double>{19, 22, 43, 50}));
}

TEST(ReplaceGemm, SaysWhyALevelFailed) {
  const kintsugi_options single = options_of(nullptr, "fp16x3", nullptr);
  Product product;
  EXPECT_EQ(product.run(&single, 'N'), KINTSUGI_REPLACEMENT_FAILED);
  EXPECT_NE(std::string(kintsugi_last_error()).find("fp16x3"), std::string::npos) << kintsugi_last_error();
  const kintsugi_options unknown = options_of(nullptr, "fp16x4", nullptr);
  EXPECT_EQ(product.run(&unknown, 'N'), KINTSUGI_REPLACEMENT_FAILED);
  kintsugi_options unset = options_of("exact", nullptr, nullptr);
  unset.struct_size = 0;
  EXPECT_EQ(product.run(&unset, 'N'), KINTSUGI_REPLACEMENT_FAILED);
  EXPECT_TRUE(product.is_unchanged());
}

}  // namespace
}  // namespace kintsugi::test

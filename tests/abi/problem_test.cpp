// Tests that a problem of the C++ wrapper has the same members as one of the C ABI.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "kintsugi/kintsugi.hpp"

namespace kintsugi::test {
namespace {

using kintsugi::Layout;
using kintsugi::Op;
using kintsugi::Problem;

TEST(Wrapper, EveryMemberOfAProblemReachesTheCAbi) {
  const Problem p{.m = 1,
                  .n = 2,
                  .k = 3,
                  .op_a = Op::T,
                  .op_b = Op::C,
                  .lda = 4,
                  .ldb = 5,
                  .ldc = 6,
                  .layout = Layout::row_major,
                  .type_a = kintsugi::Type::f64,
                  .type_b = kintsugi::Type::c32,
                  .type_c = kintsugi::Type::c64,
                  .type_scalar = kintsugi::Type::f64,
                  .batch_count = 7,
                  .stride_a = 8,
                  .stride_b = 9,
                  .stride_c = 10,
                  .batch_kind = kintsugi::BatchKind::pointers,
                  .pointer_mode = kintsugi::PointerMode::device,
                  .memory = kintsugi::Memory::device,
                  .prepared_b = true,
                  .native_elsewhere = true};
  const kintsugi_problem c = p.to_c();
  const std::array got{c.m, c.n, c.k, c.lda, c.ldb, c.ldc, c.batch_count, c.stride_a, c.stride_b, c.stride_c};
  EXPECT_EQ(got, (std::array<std::int64_t, 10>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  const std::array words{c.op_a,        c.op_b,       c.type_a,       c.type_b,          c.type_c,
                         c.type_scalar, c.layout,     c.pointer_mode, c.memory,          c.batch_kind,
                         c.prepared_a,  c.prepared_b, c.adds_to_c,    c.native_elsewhere};
  EXPECT_EQ(words, (std::array<std::int32_t, 14>{1, 2, 1, 2, 3, 1, 1, 1, 1, 1, 0, 1, 0, 1}));
  const Problem back = Problem::from_c(c);
  EXPECT_TRUE(back.prepared_b && back.native_elsewhere && !back.prepared_a && !back.adds_to_c);
  EXPECT_EQ(c.struct_size, sizeof c);
}

}  // namespace
}  // namespace kintsugi::test

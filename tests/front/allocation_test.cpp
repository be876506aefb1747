// Tests that a call with a workspace allocates nothing on the engines that work on host memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "engines/registry.hpp"
#include "schemes/program.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/gemm_case.hpp"

#if !defined(__SANITIZE_ADDRESS__)  // the sanitizer replaces operator new itself

namespace {
thread_local long allocations = 0;
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* pointer = std::malloc(bytes > 0 ? bytes : 1)) return pointer;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  ++allocations;
  const auto unit = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
}
// The functions are not inlined, since GCC would warn that free() gets memory of operator new.
[[gnu::noinline]] void operator delete(void* pointer) noexcept { std::free(pointer); }
[[gnu::noinline]] void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }
[[gnu::noinline]] void operator delete(void* pointer, std::align_val_t) noexcept { std::free(pointer); }

namespace kintsugi::test {
namespace {

TEST(Allocations, CallsWithAWorkspaceMakeNone) {
  for (const core::Engine* engine : core::all_engines()) {
    if (!engine->unavailable_reason().empty()) continue;
    for (const core::Scheme* scheme : core::all_schemes()) {
      GemmData data(GemmCase{.m = 140,
                             .n = 20,
                             .k = 90,
                             .batch = 2,
                             .distribution = "special:0.001",
                             .scheme = std::string(scheme->name),
                             .engine = std::string(engine->name()),
                             .threads = 1});
      const auto problem = data.problem();
      const auto options = data.options();
      kintsugi_handle handle = nullptr;
      kintsugi_plan plan = nullptr;
      ASSERT_EQ(kintsugi_create(&handle), KINTSUGI_SUCCESS);
      ASSERT_EQ(kintsugi_plan_create(handle, &problem, &options, &plan), KINTSUGI_SUCCESS)
          << kintsugi_last_error();
      std::size_t bytes = 0;
      kintsugi_plan_workspace_size(plan, &bytes);
      auto operands = data.operands();
      operands.workspace = std::aligned_alloc(256, bytes);
      operands.workspace_size = bytes;
      const long before = allocations;
      const auto status = kintsugi_plan_execute(handle, plan, &operands);
      EXPECT_EQ(allocations, before) << scheme->name << " on " << engine->name();
      EXPECT_EQ(status, KINTSUGI_SUCCESS);
      std::free(operands.workspace);
      operands.workspace = nullptr;
      operands.workspace_size = 0;
      kintsugi_release_caches();  // a workspace that an earlier call left
      EXPECT_EQ(kintsugi_plan_execute(handle, plan, &operands), KINTSUGI_SUCCESS);
      EXPECT_GT(allocations, before) << "without a workspace the counter must see allocations";
      kintsugi_plan_destroy(plan);
      kintsugi_destroy(handle);
    }
  }
}

}  // namespace
}  // namespace kintsugi::test

#endif

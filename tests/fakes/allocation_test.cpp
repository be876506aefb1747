// Tests that a planned call on a device with a workspace allocates no host memory (on the host:
// tests/front/allocation_test.cpp).
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "fakes/device_call.hpp"

#if !defined(__SANITIZE_ADDRESS__)  // the sanitizer replaces operator new itself

extern "C" const char __executable_start, etext;  // of this program, which contains the library

namespace {
thread_local long allocations = 0;

// Counts what the library allocates, and not what the fake driver does, which has a file of its own.
void count(const void* caller) {
  if (caller >= &__executable_start && caller < &etext) ++allocations;
}
}  // namespace

void* operator new(std::size_t bytes) {
  count(__builtin_return_address(0));
  if (void* pointer = std::malloc(bytes > 0 ? bytes : 1)) return pointer;
  throw std::bad_alloc();
}
// The functions are not inlined, since GCC would warn that free() gets memory of operator new.
[[gnu::noinline]] void operator delete(void* pointer) noexcept { std::free(pointer); }
[[gnu::noinline]] void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }

namespace kintsugi::test {
namespace {

struct Example {
  kintsugi_type type;
  std::int64_t m, n, k;
  const char* accuracy;
  const char* scheme;
  std::int64_t batch = 1;
  std::int64_t limit = 0;
};

class Allocations : public OverFakes {};

TEST_F(Allocations, PlannedCallsOnADeviceMakeNone) {
  const Example examples[] = {
      {KINTSUGI_F32, 1024, 1024, 1024, nullptr, "fp16x3"},
      {KINTSUGI_F32, 1024, 1024, 1024, nullptr, nullptr},
      {KINTSUGI_F32, 100, 30, 5000, nullptr, nullptr},
      {KINTSUGI_F32, 64, 64, 64, nullptr, nullptr, 5},
      {KINTSUGI_F32, 3000, 2000, 1000, nullptr, nullptr, 1, 32 << 20},
      {KINTSUGI_F32, 20000, 64, 64, nullptr, nullptr},
      {KINTSUGI_F64, 300, 200, 1000, nullptr, nullptr},
      {KINTSUGI_F64, 2048, 2048, 2048, nullptr, nullptr},
      {KINTSUGI_F64, 2048, 2048, 2048, nullptr, nullptr, 1, 64 << 20},
      {KINTSUGI_F64, 8192, 8192, 8192, nullptr, nullptr},
      {KINTSUGI_F64, 1024, 1024, 1024, "exact", nullptr},
      {KINTSUGI_F64, 1024, 1024, 1024, "1.2e-16", nullptr},
      {KINTSUGI_F32, 1024, 1024, 1024, "exact", nullptr},
      {KINTSUGI_C32, 256, 256, 256, nullptr, nullptr},
      {KINTSUGI_C64, 256, 256, 256, "exact", nullptr},
      {KINTSUGI_F32, 1024, 1024, 1024, nullptr, "mixpert-1"},
      {KINTSUGI_F64, 300, 300, 300, nullptr, "ozaki-fp16"},
      {KINTSUGI_F64, 300, 300, 300, nullptr, "ozaki-fp16:mode=cr"},
      {KINTSUGI_F64, 300, 300, 300, nullptr, "ozaki2:moduli=15"},
      {KINTSUGI_F64, 300, 300, 300, nullptr, "int52"},
      {KINTSUGI_F32, 300, 300, 300, nullptr, "ootomo"},
      {KINTSUGI_F32, 300, 300, 300, nullptr, "native"},
  };
  for (const Example& example : examples) {
    const std::string name = std::to_string(&example - examples);
    const Stream stream;
    PlannedCall call(example.m, example.n, example.k, stream);
    call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = example.type;
    call.problem.batch_count = example.batch;
    call.problem.stride_a = call.problem.stride_b = call.problem.stride_c = example.m * example.k;
    call.options.accuracy = example.accuracy;
    call.options.scheme = example.scheme;
    call.options.policy = example.scheme == nullptr && example.accuracy == nullptr ? "emulate" : nullptr;
    call.options.workspace_limit = example.limit;
    const double scalars[] = {1, 0, 0, 0};
    const float single[] = {1, 0, 0, 0};
    const bool is_single = example.type == KINTSUGI_F32 || example.type == KINTSUGI_C32;
    call.operands.alpha = is_single ? static_cast<const void*>(single) : scalars;
    call.operands.beta = is_single ? static_cast<const void*>(single + 2) : scalars + 2;
    ASSERT_EQ(kintsugi_plan_create(call.handle, &call.problem, &call.options, &call.plan), KINTSUGI_SUCCESS)
        << name << kintsugi_last_error();
    std::size_t bytes = 0;
    kintsugi_plan_workspace_size(call.plan, &bytes);
    // The fake driver clears parts of the workspace, and reads no matrix. Memory that is not written is not
    // taken.
    const std::size_t mapped = bytes + 4096;
    void* const memory =
        ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    call.operands.a = call.operands.b = call.operands.c = memory;
    call.operands.workspace = bytes == 0 ? nullptr : memory;
    call.operands.workspace_size = bytes;
    // The first calls load kernels, make tables and, the third one, a graph.
    for (int i = 0; i < 4; ++i) ASSERT_EQ(call.execute(), KINTSUGI_SUCCESS) << name << kintsugi_last_error();
    const long before = allocations;
    EXPECT_EQ(call.execute(), KINTSUGI_SUCCESS);
    EXPECT_EQ(allocations, before) << "in the call of example " << name;
    ::munmap(memory, mapped);
  }
  const long before = allocations;
  const std::vector<int> allocated(100);
  EXPECT_GT(allocations, before) << "the counter must see allocations";
}

}  // namespace
}  // namespace kintsugi::test

#endif

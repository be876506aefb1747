// The question where pointers point, in a program that loads the driver late: a stand-in under its name.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/cuda/cuda_driver.hpp"

namespace kintsugi::core::cuda {
namespace {

template <class Function>
Function* function_of(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

// Returns the number of the first expectation that fails; 0 if none does.
int failed_expectation() {
  float on_host = 0;
  if (is_driver_loaded()) return 1;
  if (::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) != nullptr) return 2;  // the question has loaded none
  void* const library = ::dlopen(KINTSUGI_FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 3;
  if (!is_driver_loaded()) return 4;
  if (location_of(&on_host).on_device) return 5;
  Context context = nullptr;
  Address address = 0;
  function_of<Result(Context*, Device)>(library, "cuDevicePrimaryCtxRetain")(&context, 90);
  function_of<Result(Context)>(library, "cuCtxSetCurrent")(context);
  if (function_of<Result(Address*, std::size_t)>(library, "cuMemAlloc_v2")(&address, 256) != 0) return 6;
  const PointerLocation inside = location_of(reinterpret_cast<const char*>(address) + 255);
  if (!inside.on_device || inside.managed || inside.device != 0 || inside.context != context) return 7;
  if (location_of(reinterpret_cast<const char*>(address) + 256).on_device) return 8;
  const ::pid_t child = ::fork();
  if (child == 0) ::_exit(is_driver_loaded() ? 1 : 0);  // it must not ask
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) return 9;
  ::setenv("FAKE_CUDA_INIT", "3", 1);
  return location_of(reinterpret_cast<const void*>(address)).on_device ? 10 : 0;
}

// The death test runs in a process of its own, since the driver stays loaded.
TEST(PointerLocation, DriversThatAreLoadedLaterAreAsked) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(::_exit(failed_expectation()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace kintsugi::core::cuda

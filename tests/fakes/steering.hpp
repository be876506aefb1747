// Sets the fakes' environment variables, and reads their events.
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/common/launch.hpp"
#include "fakes/libraries/fake_cuda.hpp"

namespace kintsugi::test {

// Sets a variable of fake_cuda.hpp for its lifetime, and clears events and counts.
class FakeVariable {
 public:
  FakeVariable(const char* variable, const std::string& value) : variable_(variable) {
    ::setenv(variable, value.c_str(), 1);
    fake_cuda_forget();
    core::cuda::reread_family_setting();  // which is read once, and a device's profile is looked up once
    core::cuda::reread_profiles();
  }
  FakeVariable(const FakeVariable&) = delete;
  FakeVariable& operator=(const FakeVariable&) = delete;
  ~FakeVariable() {
    ::unsetenv(variable_);
    core::cuda::reread_family_setting();
    core::cuda::reread_profiles();
  }

 private:
  const char* variable_;
};

// Makes the fakes' devices those of a family without product kernels, for its lifetime.
struct GenericDevices {
  FakeVariable capability;
  FakeVariable family{"KINTSUGI_ARCH", "generic"};

  explicit GenericDevices(const std::string& compute_capability)
      : capability("FAKE_CUDA_CAPABILITY", compute_capability) {}
};

// Skips a test of a device of compute capability 8.0 if device code was not built for it.
#define KINTSUGI_SKIP_WITHOUT_CODE_FOR_80()      \
  if (!core::cuda::engine_build().runs_on(8, 0)) \
  GTEST_SKIP() << "device code was not built for compute capability 8.0"

inline std::vector<std::string> events() {
  std::vector<std::string> lines;
  std::istringstream text(fake_cuda_events());
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

}  // namespace kintsugi::test

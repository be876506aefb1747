// The floating-point environment of a call.
#pragma once

#include <cfenv>

namespace kintsugi::core {

// Sets round to nearest, no flush-to-zero and no traps during its lifetime, and then restores the caller's
// environment, exception flags included. Every thread of a parallel region needs its own: threads of a pool
// keep the environment of the thread that created them.
class FloatingEnvironment {
 public:
  FloatingEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatingEnvironment() { std::fesetenv(&saved_); }
  FloatingEnvironment(const FloatingEnvironment&) = delete;
  FloatingEnvironment& operator=(const FloatingEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace kintsugi::core

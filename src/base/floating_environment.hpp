// The floating-point environment of a call.
#pragma once

#include <cfenv>

namespace kintsugi::core {

// Round to nearest, no flush-to-zero, no traps while it lives; the caller's environment, its
// exception flags included, comes back at the end. Every thread of a parallel region needs its
// own: pool threads keep what the thread that made them had.
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

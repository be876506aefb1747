// Context, handles and streams of a program that calls cuBLAS.
#pragma once

#include <string>

#include "tests/drop_in/cublas/entries.hpp"

namespace kintsugi::test {

// Makes the context of the first fake device and makes it current in this thread.
void make_context_current();

// A handle of cuBLAS with a stream of its own.
class ProgramHandle {
 public:
  ProgramHandle();
  ~ProgramHandle();
  ProgramHandle(const ProgramHandle&) = delete;
  ProgramHandle& operator=(const ProgramHandle&) = delete;

  BlasHandle get() const { return handle_; }
  void* stream() const { return stream_; }
  void set_pointer_mode(int mode);
  void set_math_mode(int mode);

 private:
  BlasHandle handle_ = nullptr;
  void* stream_ = nullptr;
};

// Products that the real cuBLAS, here the fake one, has been asked for since the last call of this function,
// but for those of cublasLtMatmul with k = 4, by which the library has cuBLAS apply an epilogue.
long new_real_products();

// Prints a failed check and counts it.
class Checks {
 public:
  void check(bool holds, const std::string& text);
  int failures() const { return failures_; }

 private:
  int failures_ = 0;
};

}  // namespace kintsugi::test

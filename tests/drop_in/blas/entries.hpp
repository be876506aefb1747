// Every exported name of gemm, called through one type of arguments.
#pragma once

#include <cstdint>
#include <span>

namespace kintsugi::test {

struct GemmArguments {
  bool row_major = false;       // of CBLAS names alone
  char op_a = 'N', op_b = 'N';  // letters of BLAS, in CBLAS calls too
  std::int64_t m = 0, n = 0, k = 0;
  const void* alpha = nullptr;
  const void* a = nullptr;
  std::int64_t lda = 1;
  const void* b = nullptr;
  std::int64_t ldb = 1;
  const void* beta = nullptr;
  void* c = nullptr;
  std::int64_t ldc = 1;
  // A number for layout in place of CblasRowMajor or CblasColMajor; 0: none.
  int raw_layout = 0;
};

struct Entry {
  const char* name;
  const char* routine;  // gemm or gemm3m
  char type;            // s, d, c or z
  bool is_cblas;
  void (*call)(const GemmArguments&);
};

std::span<const Entry> entries();

}  // namespace kintsugi::test

// Every exported name, called through one type of arguments.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kintsugi::test {

// Letters are those of BLAS, in CBLAS calls too. C is the matrix that is written: B of trmm and trsm. Vectors
// have the increment in place of the leading dimension: x and y are b and c of gemv, symv and hemv, a and b
// of ger and dot. c is the result of dot, beta the number that sdsdot adds.
struct Arguments {
  bool row_major = false;  // of CBLAS names alone
  char side = 'L', uplo = 'L', op_a = 'N', op_b = 'N', diag = 'N';
  std::int64_t m = 0, n = 0, k = 0;
  const void* alpha = nullptr;
  const void* a = nullptr;
  std::int64_t lda = 1;
  const void* b = nullptr;
  std::int64_t ldb = 1;
  const void* beta = nullptr;
  void* c = nullptr;
  std::int64_t ldc = 1;
  // Number of matrices of a batch, and for gemm_batch_strided the numbers of elements between them.
  std::int64_t count = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  // A number for layout in place of CblasRowMajor or CblasColMajor; 0: none.
  int raw_layout = 0;
};

// A call of gemm_batch. Scalars are of the name's type, one for each group; groups' own matrices do not
// count.
struct BatchArguments {
  bool row_major = false;
  std::int64_t group_count = 0;
  std::vector<Arguments> groups = {};
  const void* alpha = nullptr;
  const void* beta = nullptr;
  std::vector<const void*> a = {}, b = {};
  std::vector<void*> c = {};
  int raw_layout = 0;
};

struct Entry {
  const char* name;
  const char* routine;  // gemm, gemm3m, gemmt, ...
  char type;            // s, d, c or z
  bool is_cblas;
  void (*call)(const Arguments&);             // nullptr: a name of gemm_batch
  void (*call_batch)(const BatchArguments&);  // of gemm_batch alone

  bool is(std::string_view other) const { return routine == other; }
};

// Names of level 3, and of the routines with vectors that are answered under an accuracy.
std::span<const Entry> entries();
std::span<const Entry> vector_entries();

}  // namespace kintsugi::test

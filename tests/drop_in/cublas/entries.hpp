// The names that libkintsugi_cublas exports, and one way to call them all.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kintsugi::test {

using BlasHandle = void*;

enum class Family : std::uint8_t {
  gemm,
  typed,
  ex,
  strided,
  strided_ex,
  batched,
  batched_ex,
  grouped,
  grouped_ex,
  matmul
};

struct Entry {
  const char* name;
  Family family;
  std::optional<kintsugi_type> type;  // nothing: the call's arguments name it
  bool has_64_bit_integers;

  bool is_strided() const {
    return family == Family::strided || family == Family::strided_ex || family == Family::matmul;
  }
  bool is_grouped() const { return family == Family::grouped || family == Family::grouped_ex; }
  bool has_pointers() const {
    return family == Family::batched || family == Family::batched_ex || is_grouped();
  }
  bool has_compute_type() const {
    return family == Family::ex || family == Family::strided_ex || family == Family::batched_ex;
  }
};

const std::vector<Entry>& entries();

// Arguments of a product by the names of cuBLAS's reference. Functions use those that they have.
struct Arguments {
  BlasHandle handle = nullptr;
  int op_a = 0, op_b = 0;
  std::int64_t m = 0, n = 0, k = 0;
  const void* alpha = nullptr;
  const void* a = nullptr;  // of functions with pointers the array of pointers, like b and c
  std::int64_t lda = 1;
  const void* b = nullptr;
  std::int64_t ldb = 1;
  const void* beta = nullptr;
  void* c = nullptr;
  std::int64_t ldc = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0, count = 1;
  kintsugi_type type = KINTSUGI_F32;
  int compute = 68;  // cublasComputeType_t
  int algorithm = -1;
  const void* bias = nullptr;  // of cublasLtMatmul: added to every column of A B
  int activation = 0;          // of cublasLtMatmul: 0, 2 (ReLU) or 32 (GELU)
};

// Calls the function that a program which is linked to the drop-in and to cuBLAS would call.
int call(const Entry& entry, const Arguments& arguments);
// Calls a function of grouped batches with these groups, each a batch by pointers.
int call_groups(const Entry& entry, const std::vector<Arguments>& groups);

// Number of cudaDataType_t.
int data_type_of(kintsugi_type type);

// The address of a function of that name in the program's search order.
void* function_of(const char* name);

}  // namespace kintsugi::test

// A call of gemm as the caller wrote it, whatever its convention and type of integers.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstdint>

namespace kintsugi::blas {

enum class Convention : std::uint8_t { fortran, cblas };

// `extension` is conjugation without transposition ('R', CblasConjNoTrans), which OpenBLAS has and the
// reference BLAS has not.
enum class Op : std::uint8_t { n, t, c, extension, invalid };

enum class Layout : std::uint8_t { column_major, row_major, invalid };

struct GemmCall {
  kintsugi_type type = KINTSUGI_F64;
  Convention convention = Convention::fortran;
  Layout layout = Layout::column_major;
  Op op_a = Op::n, op_b = Op::n;
  std::int64_t m = 0, n = 0, k = 0;
  const void* alpha = nullptr;
  const void* a = nullptr;
  std::int64_t lda = 1;
  const void* b = nullptr;
  std::int64_t ldb = 1;
  const void* beta = nullptr;
  void* c = nullptr;
  std::int64_t ldc = 1;
  // The enumerators of a CBLAS call as they came, for messages.
  int raw_layout = 0, raw_op_a = 0, raw_op_b = 0;
};

// The letters of BLAS; anything else is `invalid`.
constexpr Op op_of_letter(char letter) {
  switch (letter) {
    case 'N':
    case 'n': return Op::n;
    case 'T':
    case 't': return Op::t;
    case 'C':
    case 'c': return Op::c;
    case 'R':
    case 'r': return Op::extension;
    default: return Op::invalid;
  }
}

// The numbers of CBLAS_TRANSPOSE and CBLAS_LAYOUT.
constexpr Op op_of_number(int number) {
  switch (number) {
    case 111: return Op::n;
    case 112: return Op::t;
    case 113: return Op::c;
    case 114: return Op::extension;
    default: return Op::invalid;
  }
}
constexpr Layout layout_of_number(int number) {
  return number == 101 ? Layout::row_major : number == 102 ? Layout::column_major : Layout::invalid;
}

}  // namespace kintsugi::blas

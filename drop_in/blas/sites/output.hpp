// The last C of a call site, written as a .npy file.
#pragma once

#include <string>
#include <vector>

#include "blas/call.hpp"

namespace kintsugi::blas {

class SiteOutput {
 public:
  // Copies C after a call. If the routine writes one triangle, the other triangle of the copy is zero.
  void save(const Call& call);
  bool is_empty() const { return rows_ == 0 || columns_ == 0; }
  // Returns the contents of a .npy file, version 1, in Fortran's order.
  std::string npy() const;

 private:
  void clear_other_triangle(Uplo uplo);

  kintsugi_type type_ = KINTSUGI_F64;
  std::int64_t rows_ = 0, columns_ = 0;
  std::vector<char> elements_;  // C, or its transpose if `is_transposed_`; column-major, contiguous
  bool is_transposed_ = false;  // true for row-major calls
};

}  // namespace kintsugi::blas

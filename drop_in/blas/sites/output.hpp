// The last C of a call site, as a file of numpy.
#pragma once

#include <string>
#include <vector>

#include "blas/call.hpp"

namespace kintsugi::blas {

class SiteOutput {
 public:
  // Copies C of a call that has ended. If the routine writes one triangle, the copy has zeros in the other
  // one.
  void save(const Call& call);
  bool is_empty() const { return rows_ == 0 || columns_ == 0; }
  // Returns the contents of a .npy file, version 1, in Fortran's order.
  std::string npy() const;

 private:
  void clear_other_triangle(Uplo uplo);

  kintsugi_type type_ = KINTSUGI_F64;
  std::int64_t rows_ = 0, columns_ = 0;
  std::vector<char> elements_;  // column-major, contiguous; of a row-major call C's transpose
  bool is_transposed_ = false;
};

}  // namespace kintsugi::blas

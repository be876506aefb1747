// A copy of C, from which C can be restored.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "call.hpp"

namespace kintsugi::blas {

class SavedMatrix {
 public:
  explicit SavedMatrix(const Call& call) : call_(call) {
    saved_.resize(static_cast<std::size_t>(lines()) * line_bytes());
    for (std::int64_t line = 0; line < lines(); ++line)
      std::memcpy(saved_.data() + static_cast<std::size_t>(line) * line_bytes(), place(line), line_bytes());
  }

  void restore() const {
    for (std::int64_t line = 0; line < lines(); ++line)
      std::memcpy(place(line), saved_.data() + static_cast<std::size_t>(line) * line_bytes(), line_bytes());
  }

 private:
  bool is_row_major() const { return call_.layout == Layout::row_major; }
  // Number of rows if C is row-major, else of columns.
  std::int64_t lines() const {
    if (call_.m == 0 || call_.n == 0) return 0;
    return is_row_major() ? call_.m : call_.n;
  }
  std::size_t element_bytes() const {
    return (is_single(call_.type) ? sizeof(float) : sizeof(double)) * (is_complex(call_.type) ? 2 : 1);
  }
  std::size_t line_bytes() const {
    return static_cast<std::size_t>(is_row_major() ? call_.n : call_.m) * element_bytes();
  }
  char* place(std::int64_t line) const {
    return static_cast<char*>(call_.c) + static_cast<std::size_t>(line * call_.ldc) * element_bytes();
  }

  const Call& call_;
  std::vector<char> saved_;
};

}  // namespace kintsugi::blas

#include "output.hpp"

#include <cstring>

#include "region.hpp"

namespace kintsugi::blas {

namespace {

const char* numpy_type(kintsugi_type type) {
  switch (type) {
    case KINTSUGI_F32: return "<f4";
    case KINTSUGI_F64: return "<f8";
    case KINTSUGI_C32: return "<c8";
    default: return "<c16";
  }
}

}  // namespace

void SiteOutput::save(const Call& written) {
  const Call call = as_column_major(written);
  const Region region = output_of(written);
  is_transposed_ = written.layout == Layout::row_major;
  type_ = call.type;
  rows_ = call.m;
  columns_ = call.n;
  elements_.resize(region.is_empty() ? 0 : static_cast<std::size_t>(region.lines * region.line_bytes));
  if (region.is_empty()) return;
  for (std::int64_t line = 0; line < region.lines; ++line)
    std::memcpy(elements_.data() + line * region.line_bytes, region.first + line * region.stride,
                static_cast<std::size_t>(region.line_bytes));
  if (has_uplo(call.routine) && !has_side(call.routine)) clear_other_triangle(call.uplo);
}

void SiteOutput::clear_other_triangle(Uplo uplo) {
  const std::int64_t bytes = element_bytes(type_);
  for (std::int64_t column = 0; column < columns_; ++column) {
    char* const first = elements_.data() + column * rows_ * bytes;
    const std::int64_t begin = uplo == Uplo::upper ? column + 1 : 0;
    const std::int64_t end = uplo == Uplo::upper ? rows_ : column;
    if (begin < end) std::memset(first + begin * bytes, 0, static_cast<std::size_t>((end - begin) * bytes));
  }
}

std::string SiteOutput::npy() const {
  const std::int64_t rows = is_transposed_ ? columns_ : rows_, columns = is_transposed_ ? rows_ : columns_;
  std::string header = std::string("{'descr': '") + numpy_type(type_) +
                       "', 'fortran_order': " + (is_transposed_ ? "False" : "True") + ", 'shape': (" +
                       std::to_string(rows) + ", " + std::to_string(columns) + "), }";
  constexpr std::size_t preamble = 10, alignment = 64;
  header.append(alignment - (preamble + header.size() + 1) % alignment, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() % 256);
  file += static_cast<char>(header.size() / 256);
  file += header;
  file.append(elements_.data(), elements_.size());
  return file;
}

}  // namespace kintsugi::blas

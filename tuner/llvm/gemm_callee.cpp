#include "gemm_callee.hpp"

namespace kintsugi::pass {

namespace {

using llvm::StringRef;

constexpr GemmCallee fortran{.library = Library::blas,
                             .a = 6,
                             .b = 8,
                             .beta = 10,
                             .c = 11,
                             .arguments = 13,
                             .beta_is_reference = true};
constexpr GemmCallee cblas{.library = Library::cblas,
                           .a = 7,
                           .b = 9,
                           .beta = 11,
                           .c = 12,
                           .arguments = 14,
                           .beta_is_reference = false};
constexpr GemmCallee cublas{.library = Library::cublas,
                            .a = 7,
                            .b = 9,
                            .beta = 11,
                            .c = 12,
                            .arguments = 14,
                            .beta_is_reference = true};
constexpr GemmCallee cublas_ex{.library = Library::cublas,
                               .a = 7,
                               .b = 10,
                               .beta = 13,
                               .c = 14,
                               .arguments = 19,
                               .beta_is_reference = true};
constexpr GemmCallee cublas_strided{.library = Library::cublas,
                                    .a = 7,
                                    .b = 10,
                                    .beta = 13,
                                    .c = 14,
                                    .arguments = 18,
                                    .beta_is_reference = true};
constexpr GemmCallee cublas_strided_ex{.library = Library::cublas,
                                       .a = 7,
                                       .b = 11,
                                       .beta = 15,
                                       .c = 16,
                                       .arguments = 22,
                                       .beta_is_reference = true};

// Removes the first letter of `text` if it is one of `letters`; else returns false.
bool consume_letter(StringRef& text, StringRef letters) {
  if (text.empty() || !letters.contains(text.front())) return false;
  text = text.drop_front();
  return true;
}

std::optional<GemmCallee> cublas_callee(StringRef name) {
  name.consume_back("_64");
  if (name == "GemmEx") return cublas_ex;
  if (name == "GemmStridedBatchedEx") return cublas_strided_ex;
  if (!consume_letter(name, "SDCZ")) return std::nullopt;
  if (name == "gemm_v2") return cublas;
  if (name == "gemmStridedBatched") return cublas_strided;
  return std::nullopt;
}

}  // namespace

std::optional<GemmCallee> gemm_callee(StringRef symbol) {
  StringRef name = symbol;
  if (name.consume_front("cublas")) return cublas_callee(name);
  GemmCallee callee = name.consume_front("cblas_") ? cblas : fortran;
  const bool is_cblas = callee.library == Library::cblas;
  if (name.empty()) return std::nullopt;
  callee.type = name.front();
  if (!consume_letter(name, "sdcz") || !name.consume_front("gemm")) return std::nullopt;
  callee.has_64_bit_integers = name.contains("64");
  const bool is_known = is_cblas ? name.empty() || name == "_64" || name == "64_"
                                 : name == "_" || name == "_64_" || name == "64_";
  if (!is_known) return std::nullopt;
  if (is_cblas) callee.beta_is_reference = callee.type == 'c' || callee.type == 'z';
  return callee;
}

}  // namespace kintsugi::pass

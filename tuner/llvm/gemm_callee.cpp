#include "gemm_callee.hpp"

namespace kintsugi::pass {

namespace {

using llvm::StringRef;

constexpr GemmCallee fortran{.a = 6, .b = 8, .beta = 10, .c = 11, .arguments = 13, .beta_is_reference = true};
constexpr GemmCallee cblas{.a = 7, .b = 9, .beta = 11, .c = 12, .arguments = 14, .beta_is_reference = false};
constexpr GemmCallee cublas{.a = 7, .b = 9, .beta = 11, .c = 12, .arguments = 14, .beta_is_reference = true};
constexpr GemmCallee cublas_ex{
    .a = 7, .b = 10, .beta = 13, .c = 14, .arguments = 19, .beta_is_reference = true};
constexpr GemmCallee cublas_strided{
    .a = 7, .b = 10, .beta = 13, .c = 14, .arguments = 18, .beta_is_reference = true};
constexpr GemmCallee cublas_strided_ex{
    .a = 7, .b = 11, .beta = 15, .c = 16, .arguments = 22, .beta_is_reference = true};

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
  const bool is_cblas = name.consume_front("cblas_");
  const bool is_complex = name.startswith("c") || name.startswith("z");
  if (!consume_letter(name, "sdcz") || !name.consume_front("gemm")) return std::nullopt;
  if (!is_cblas)
    return name == "_" || name == "_64_" || name == "64_" ? std::optional(fortran) : std::nullopt;
  if (!name.empty() && name != "_64" && name != "64_") return std::nullopt;
  GemmCallee callee = cblas;
  callee.beta_is_reference = is_complex;
  return callee;
}

}  // namespace kintsugi::pass

#include "unsupported.hpp"

#include <span>

namespace kintsugi::cublas {

namespace {

struct Name {
  std::int64_t number;
  const char* name;
};

// Names of NVIDIA's headers; tests/drop_in/test_cublas_symbols.py compares them.
constexpr Name data_types[] = {
    {0, "CUDA_R_32F"},      {1, "CUDA_R_64F"},      {2, "CUDA_R_16F"},       {3, "CUDA_R_8I"},
    {4, "CUDA_C_32F"},      {5, "CUDA_C_64F"},      {6, "CUDA_C_16F"},       {7, "CUDA_C_8I"},
    {8, "CUDA_R_8U"},       {9, "CUDA_C_8U"},       {10, "CUDA_R_32I"},      {11, "CUDA_C_32I"},
    {12, "CUDA_R_32U"},     {13, "CUDA_C_32U"},     {14, "CUDA_R_16BF"},     {15, "CUDA_C_16BF"},
    {16, "CUDA_R_4I"},      {17, "CUDA_C_4I"},      {18, "CUDA_R_4U"},       {19, "CUDA_C_4U"},
    {20, "CUDA_R_16I"},     {21, "CUDA_C_16I"},     {22, "CUDA_R_16U"},      {23, "CUDA_C_16U"},
    {24, "CUDA_R_64I"},     {25, "CUDA_C_64I"},     {26, "CUDA_R_64U"},      {27, "CUDA_C_64U"},
    {28, "CUDA_R_8F_E4M3"}, {29, "CUDA_R_8F_E5M2"}, {30, "CUDA_R_8F_UE8M0"}, {31, "CUDA_R_6F_E2M3"},
    {32, "CUDA_R_6F_E3M2"}, {33, "CUDA_R_4F_E2M1"}};
constexpr Name compute_types[] = {{64, "CUBLAS_COMPUTE_16F"},
                                  {65, "CUBLAS_COMPUTE_16F_PEDANTIC"},
                                  {68, "CUBLAS_COMPUTE_32F"},
                                  {69, "CUBLAS_COMPUTE_32F_PEDANTIC"},
                                  {70, "CUBLAS_COMPUTE_64F"},
                                  {71, "CUBLAS_COMPUTE_64F_PEDANTIC"},
                                  {72, "CUBLAS_COMPUTE_32I"},
                                  {73, "CUBLAS_COMPUTE_32I_PEDANTIC"},
                                  {74, "CUBLAS_COMPUTE_32F_FAST_16F"},
                                  {75, "CUBLAS_COMPUTE_32F_FAST_16BF"},
                                  {77, "CUBLAS_COMPUTE_32F_FAST_TF32"},
                                  {78, "CUBLAS_COMPUTE_32F_EMULATED_16BFX9"},
                                  {79, "CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT"}};
constexpr Name epilogues[] = {{1, "DEFAULT"}, {2, "RELU"},          {4, "BIAS"},       {6, "RELU_BIAS"},
                              {32, "GELU"},   {36, "GELU_BIAS"},    {130, "RELU_AUX"}, {134, "RELU_AUX_BIAS"},
                              {136, "DRELU"}, {152, "DRELU_BGRAD"}, {160, "GELU_AUX"}, {164, "GELU_AUX_BIAS"},
                              {192, "DGELU"}, {208, "DGELU_BGRAD"}, {256, "BGRADA"},   {512, "BGRADB"}};
constexpr Name orders[] = {{0, "COL"}, {1, "ROW"}, {2, "COL32"}, {3, "COL4_4R2_8C"}, {4, "COL32_2R_4R4"}};

std::string name_of(std::span<const Name> names, std::int64_t number) {
  for (const Name& known : names)
    if (known.number == number) return known.name;
  return std::to_string(number);
}

std::string names_of(std::span<const Name> names, const std::array<std::int64_t, 3>& numbers) {
  return name_of(names, numbers[0]) + ", " + name_of(names, numbers[1]) + ", " + name_of(names, numbers[2]);
}

std::string text_of(const Unsupported& it) {
  switch (it.field) {
    case Field::none: return "";
    case Field::groups: return "groups of complex matrices";
    case Field::descriptors: return "a descriptor is null";
    case Field::scalars: return "alpha or beta is null";
    case Field::types: return "types " + names_of(data_types, it.values);
    case Field::compute_type: return "compute type " + name_of(compute_types, it.values[0]);
    case Field::scale_type: return "scale type " + name_of(data_types, it.values[0]);
    case Field::algorithm: return "algorithm " + std::to_string(it.values[0]);
    case Field::pointer_mode: return "pointer mode " + std::to_string(it.values[0]);
    case Field::order: return "order " + names_of(orders, it.values);
    case Field::batch: return "batch counts " + names_of({}, it.values);
    case Field::sizes: return "layouts whose rows and columns do not fit";
    case Field::c: return "C is read and is not D";
    case Field::epilogue: return "epilogue " + name_of(epilogues, it.values[0]);
  }
  return "";
}

}  // namespace

std::string reason_of(const Unsupported& unsupported) { return text_of(unsupported) + unsupported.detail; }

}  // namespace kintsugi::cublas

#include "call.hpp"

#include <span>

#include "core/settings.hpp"

namespace kintsugi {

// cuBLAS has the names with _real where stubs of this library have the names of cuBLAS (path.c).
static bool is_cublas(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (const char* name : {"libcublas.so", "libcublasLt.so", "libcublas_real.so", "libcublasLt_real.so"})
    if (file.starts_with(name)) return true;
  return false;
}

constinit const drop_in::DropIn drop_in::this_drop_in = {.library = "cuBLAS",
                                                         .is_cublas = true,
                                                         .report_format = "kintsugi.cublas-report",
                                                         .member = "cublas",
                                                         .known_function = "cublasCreate_v2"};

void* drop_in::find_next(const char* name) {
  void* const found = find_behind(name);
  return found != nullptr ? found : find_in_loaded(name, is_cublas);
}

namespace cublas {

namespace {

// Returns the number of cudaDataType_t.
int number_of(kintsugi_type type) {
  switch (type) {
    case KINTSUGI_F32: return data_f32;
    case KINTSUGI_F64: return data_f64;
    case KINTSUGI_C32: return data_c32;
    default: return data_c64;
  }
}

// True if cuBLAS accepts the ops, the sizes and the leading dimensions.
bool has_valid_numbers(const Call& call) {
  return call.op_a <= Op::c && call.op_b <= Op::c && call.m >= 0 && call.n >= 0 && call.k >= 0 &&
         call.count >= 0 && is_ld(call.lda, call.op_a == Op::n ? call.m : call.k) &&
         is_ld(call.ldb, call.op_b == Op::n ? call.k : call.n) && is_ld(call.ldc, call.m);
}

}  // namespace

CallType type_of_all(const MatrixTypes& types, kintsugi_type type) {
  const int wanted = number_of(type);
  if (types.a == wanted && types.b == wanted && types.c == wanted) return type;
  return Unsupported{.field = Field::types, .values = {types.a, types.b, types.c}};
}

CallType type_of(const MatrixTypes& types, int compute, int algorithm) {
  CallType found = type_of_all(types, KINTSUGI_F32);
  for (const kintsugi_type type : {KINTSUGI_F64, KINTSUGI_C32, KINTSUGI_C64})
    if (!found.is_supported()) found = type_of_all(types, type);
  if (!found.is_supported()) return found;
  const bool has_single_precision = is_single(found.type);
  found.requests_emulation =
      compute == (has_single_precision ? compute_f32_bf16x9 : compute_f64_fixed_point) &&
      !settings().keeps_vendor_emulation;
  if (!found.requests_emulation && compute != (has_single_precision ? compute_f32 : compute_f64))
    return Unsupported{.field = Field::compute_type, .values = {compute}};
  if (algorithm < default_algorithm || algorithm > max_algorithm)
    return Unsupported{.field = Field::algorithm, .values = {algorithm}};
  return found;
}

void set_type(ProductCall& call, const CallType& type) {
  call.type = type.type;
  call.is_supported = type.is_supported();
  call.unsupported = type.unsupported;
  call.requests_emulation = type.requests_emulation;
}

void make_strided(Call& call, std::int64_t stride_a, std::int64_t stride_b, std::int64_t stride_c,
                  std::int64_t count) {
  call.batch = BatchKind::strided;
  call.count = count;
  const bool has_strides = count != 1;  // else 0, so that equal problems have one plan whatever they name
  call.stride_a = has_strides ? stride_a : 0;
  call.stride_b = has_strides ? stride_b : 0;
  call.stride_c = has_strides ? stride_c : 0;
}

void make_batch_by_pointers(Call& call, std::int64_t count) {
  call.batch = BatchKind::pointers;
  call.count = count;
}

const char* reason_to_forward(const Call& call) {
  if (!has_valid_numbers(call)) return "arguments that cuBLAS answers with a status";
  if (is_empty(call)) return "a size is 0";
  for (const void* pointer : {call.alpha, call.a, call.b, call.beta, static_cast<const void*>(call.c)})
    if (pointer == nullptr) return "a pointer is null";
  return nullptr;
}

bool is_empty(const Call& call) {
  const bool has_empty_size = call.m == 0 || call.n == 0 || call.k == 0 || call.count == 0;
  return has_empty_size && has_valid_numbers(call);
}

const char* reason_in_math_mode(int math_mode, kintsugi_type type) {
  const int mode = math_mode & math_mode_mask;
  if (mode == pedantic_math) return "the handle's math mode is pedantic";
  if (is_single(type) && (mode == tf32_math || mode == tensor_op_math))
    return "the handle's math mode allows TF32 or FP16";
  return settings().keeps_vendor_emulation && requests_emulation(math_mode, type)
             ? "the handle's math mode is an emulation of cuBLAS"
             : nullptr;
}

bool requests_emulation(int math_mode, kintsugi_type type) {
  return (math_mode & (is_single(type) ? bf16x9_math_bit : fixed_point_math_bit)) != 0;
}

// cuBLAS takes 55 bits for the accuracy of FP64. A program that asks for more gets them from cuBLAS.
const char* reason_in_mantissa(const MantissaSettings& settings) {
  constexpr int bits_of_fp64 = 55;
  if (settings.count_pointer != nullptr) return "cuBLAS is to tell the mantissa bits of its emulation";
  const bool wants_more =
      settings.control == mantissa_fixed ? settings.max_bits > bits_of_fp64 : settings.offset > 0;
  return wants_more ? "more mantissa bits than those of FP64 are asked for" : nullptr;
}

// ------------------------------------------------------------------ unsupported fields

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
    case Field::increments:
      return "increments that are negative, or not 1 beside a conjugated matrix or vector";
    case Field::c: return "C";
    case Field::epilogue: return "epilogue " + name_of(epilogues, it.values[0]);
  }
  return "";
}

}  // namespace

std::string reason_of(const Unsupported& unsupported) { return text_of(unsupported) + unsupported.detail; }

}  // namespace cublas

}  // namespace kintsugi

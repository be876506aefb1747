// A call of cuBLAS: its arguments and types, and the real cuBLAS.
#pragma once

#include <kintsugi/kintsugi.h>

#include <array>
#include <string>

#include "api.hpp"
#include "core/arguments.hpp"
#include "core/symbol.hpp"

namespace kintsugi::cublas {

using namespace drop_in;

struct Cublas {
  static constexpr Op op(int number) { return enumerator_at<Op>(number); }
  static constexpr Side side(int number) { return enumerator_at<Side>(number); }
  static constexpr Uplo uplo(int number) { return enumerator_at<Uplo>(fill_upper - number); }
  static constexpr Diag diag(int number) { return enumerator_at<Diag>(number); }
  static constexpr std::int64_t number(std::int64_t value) { return value; }
  static constexpr const void* scalar(const void* value) { return value; }
};

// Fields of a call that leave the call to cuBLAS, for the report.
enum class Field : std::uint8_t {
  none,
  groups,        // groups of complex matrices
  descriptors,   // a null descriptor of cublasLt
  scalars,       // alpha or beta is null
  types,         // values: cudaDataType_t of A, B and C or D
  compute_type,  // value: cublasComputeType_t
  scale_type,    // value: cudaDataType_t
  algorithm,
  pointer_mode,
  order,       // values: cublasLtOrder_t of A, B and D
  batch,       // values: batch counts of A, B and D
  sizes,       // the layouts' rows and columns do not fit each other
  increments,  // increments of vectors, without a product that takes them as leading dimensions
  c,           // C is read and is not D
  epilogue     // value: cublasLtEpilogue_t
};

struct Unsupported {
  Field field = Field::none;
  std::array<std::int64_t, 3> values = {};
  const char* detail = "";  // follows the text
};

// Returns the reason as the report has it, such as "epilogue GELU_AUX" or "compute type
// CUBLAS_COMPUTE_32F_FAST_TF32".
std::string reason_of(const Unsupported& unsupported);

// A product as the caller wrote it.
struct ProductCall : Call {
  Unsupported unsupported = {};     // the field for which cuBLAS answers, unless is_supported
  bool requests_emulation = false;  // the compute type is that of an emulation of cuBLAS
};

// Types of the matrices of a call, as cuBLAS numbers them.
struct MatrixTypes {
  int a, b, c;
};

// The type of a call's matrices, or the field for which the call is not supported.
struct CallType {
  CallType(kintsugi_type supported) : type(supported) {}
  CallType(const Unsupported& field) : unsupported(field) {}

  kintsugi_type type = KINTSUGI_F32;
  Unsupported unsupported = {};
  bool requests_emulation = false;

  bool is_supported() const { return unsupported.field == Field::none; }
};

// Returns `type` if all matrices have it.
CallType type_of_all(const MatrixTypes& types, kintsugi_type type);

// Returns the type of the matrices if all have the same type of kintsugi_type, and if the compute type is
// that type's default or cuBLAS's own emulation of it. Returns a field if the caller has chosen another
// arithmetic, such as TF32 or a pedantic mode.
CallType type_of(const MatrixTypes& types, int compute, int algorithm);

void set_type(ProductCall& call, const CallType& type);

// These make a call the batch of `count` such products, by strides or by arrays of pointers.
void make_strided(Call& call, std::int64_t stride_a, std::int64_t stride_b, std::int64_t stride_c,
                  std::int64_t count);
void make_batch_by_pointers(Call& call, std::int64_t count);

// Returns the reason why cuBLAS must answer a product with a type under all settings; nullptr: there is none.
// An argument that may be invalid is such a reason, so that the caller gets cuBLAS's own status.
const char* reason_to_forward(const Call& call);

// True if the arguments are valid and a size is 0.
bool is_empty(const Call& call);

// True if a leading dimension fits the rows.
constexpr bool is_ld(std::int64_t ld, std::int64_t rows) { return ld >= (rows > 1 ? rows : 1); }

// Returns the reason why the handle's math mode leaves calls of this type to cuBLAS; nullptr: there is none.
const char* reason_in_math_mode(int math_mode, kintsugi_type type);
// True if the math mode asks for cuBLAS's own emulation of the type.
bool requests_emulation(int math_mode, kintsugi_type type);

// Settings by which cuBLAS's emulation of FP64 chooses its mantissa bits.
struct MantissaSettings {
  int control = 0, max_bits = 0, offset = 0;
  const void* count_pointer = nullptr;  // where cuBLAS writes the number of bits
};
// Returns the reason for which cuBLAS must emulate; nullptr: there is none.
const char* reason_in_mantissa(const MantissaSettings& settings);

// Calls the real function and returns its status, or not_supported if there is no such function. The types of
// the arguments must be exactly those of the real declaration.
template <class... Arguments>
int call_real(Symbol& symbol, Arguments... arguments) {
  auto* const real = symbol.next<int(Arguments...)>();
  return real != nullptr ? real(arguments...) : not_supported;
}

}  // namespace kintsugi::cublas

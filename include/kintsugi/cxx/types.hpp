// Part of kintsugi.hpp, which users include: status, errors, enumerations and element types.
#ifndef KINTSUGI_CXX_TYPES_HPP
#define KINTSUGI_CXX_TYPES_HPP

#include <complex>
#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "kintsugi/kintsugi.h"

namespace kintsugi {

// ------------------------------------------------------------------ status

enum class Status : std::int32_t {
  success = KINTSUGI_SUCCESS,
  invalid_argument = KINTSUGI_INVALID_ARGUMENT,
  not_supported = KINTSUGI_NOT_SUPPORTED,
  engine_unavailable = KINTSUGI_ENGINE_UNAVAILABLE,
  out_of_memory = KINTSUGI_OUT_OF_MEMORY,
  workspace_too_small = KINTSUGI_WORKSPACE_TOO_SMALL,
  contract_unreachable = KINTSUGI_CONTRACT_UNREACHABLE,
  bad_setting = KINTSUGI_BAD_SETTING,
  device_error = KINTSUGI_DEVICE_ERROR,
  internal = KINTSUGI_INTERNAL,
};

// Returns "success", "invalid_argument", ...; "unknown" for a number that this version does not have.
inline const char* status_name(Status status) {
  return kintsugi_status_name(static_cast<kintsugi_status>(status));
}

// Returns "MAJOR.MINOR.PATCH" of the loaded library.
inline std::string version() { return kintsugi_version(); }

// Exception that is thrown when a call of the library fails. what() is the message of kintsugi_last_error().
class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  Status status() const noexcept { return status_; }

 private:
  Status status_;
};

// Throws Error unless the status is success.
inline void check(kintsugi_status status) {
  if (status != KINTSUGI_SUCCESS) throw Error(static_cast<Status>(status), kintsugi_last_error());
}

// ------------------------------------------------------------------- enums

enum class Op : std::int32_t {
  N = KINTSUGI_OP_N,  // op(X) = X
  T = KINTSUGI_OP_T,  // transpose
  C = KINTSUGI_OP_C,  // conjugate transpose
};

enum class Layout : std::int32_t {
  column_major = KINTSUGI_COLUMN_MAJOR,  // element (i, j) at i + j * ld
  row_major = KINTSUGI_ROW_MAJOR,        // element (i, j) at i * ld + j
};

enum class Type : std::int32_t {
  f32 = KINTSUGI_F32,
  f64 = KINTSUGI_F64,
  c32 = KINTSUGI_C32,
  c64 = KINTSUGI_C64,
  dd = KINTSUGI_DD
};

// Returns "f32", "f64", ...; "unknown" for a number that this version does not have.
constexpr const char* type_name(Type type) noexcept {
  constexpr const char* names[] = {"f32", "f64", "c32", "c64", "dd"};
  const auto index = static_cast<std::int32_t>(type);
  return index >= 0 && index < 5 ? names[index] : "unknown";
}

enum class PointerMode : std::int32_t {
  host = KINTSUGI_SCALARS_ON_HOST,
  device = KINTSUGI_SCALARS_ON_DEVICE
};

enum class Memory : std::int32_t {
  host = KINTSUGI_HOST,
  device = KINTSUGI_DEVICE,
  any = KINTSUGI_ANY_MEMORY,  // only for gemm(): the CUDA driver is asked where A, B and C lie
};

enum class BatchKind : std::int32_t {
  strided = KINTSUGI_BATCH_STRIDED,    // item t of A begins at a + t * stride_a; likewise B and C
  pointers = KINTSUGI_BATCH_POINTERS,  // a, b and c are arrays of batch_count pointers
};

enum class Side : std::int32_t { A = KINTSUGI_A, B = KINTSUGI_B };

enum class LogLevel : std::int32_t {
  off = KINTSUGI_LOG_OFF,
  error = KINTSUGI_LOG_ERROR,
  info = KINTSUGI_LOG_INFO,
  debug = KINTSUGI_LOG_DEBUG,
};

// The number hi + lo with about 106 significant bits; kintsugi.h defines which pairs are numbers.
using DoubleDouble = kintsugi_dd;

// Element types of gemm.
template <class T>
concept Scalar = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::complex<float>> ||
    std::same_as<T, std::complex<double>> || std::same_as<T, DoubleDouble>;

template <Scalar T>
constexpr Type type_of() {
  if constexpr (std::same_as<T, float>) return Type::f32;
  if constexpr (std::same_as<T, double>) return Type::f64;
  if constexpr (std::same_as<T, std::complex<float>>) return Type::c32;
  if constexpr (std::same_as<T, std::complex<double>>) return Type::c64;
  if constexpr (std::same_as<T, DoubleDouble>) return Type::dd;
}

}  // namespace kintsugi

#endif

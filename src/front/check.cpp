#include "front/check.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "front/read_struct.hpp"

namespace kintsugi::core {

namespace {

void check_reserved(std::int32_t reserved, const char* name) {
  if (reserved != 0) fail(Status::invalid_argument, "{}.reserved = {} must be 0", name, reserved);
}

// Fails unless the value is in 0...last. The message names the value by `name` followed by `member`, for
// example a struct and its ".member".
void check_enum(std::int32_t value, std::int32_t last, const char* name, const char* member = "") {
  if (value < 0 || value > last)
    fail(Status::invalid_argument, "{}{} = {} is not in 0...{}", name, member, value, last);
}

// A number of CBLAS or a letter of BLAS, which a caller may pass by mistake.
struct ForeignValue {
  std::int32_t value;
  const char* name;
};
constexpr ForeignValue foreign_ops[] = {
    {111, "CBLAS's CblasNoTrans"},   {112, "CBLAS's CblasTrans"},     {113, "CBLAS's CblasConjTrans"},
    {'N', "the letter 'N' of BLAS"}, {'n', "the letter 'n' of BLAS"}, {'T', "the letter 'T' of BLAS"},
    {'t', "the letter 't' of BLAS"}, {'C', "the letter 'C' of BLAS"}, {'c', "the letter 'c' of BLAS"}};
constexpr ForeignValue foreign_layouts[] = {{101, "CBLAS's CblasRowMajor"}, {102, "CBLAS's CblasColMajor"}};

// Like check_enum(). The message also lists the `accepted` values, and says whether the value is one of
// `foreign`.
void check_named_enum(std::int32_t value, std::int32_t last, const char* name, const char* accepted,
                      std::span<const ForeignValue> foreign) {
  if (value >= 0 && value <= last) return;
  const auto found = std::find_if(foreign.begin(), foreign.end(),
                                  [value](const auto& other) { return other.value == value; });
  fail(Status::invalid_argument, "{} = {} is not in 0...{}: {}{}", name, value, last, accepted,
       found == foreign.end() ? "" : fmt::format("; {} is {}", value, found->name));
}

void check_op(std::int32_t op, const char* name) {
  check_named_enum(op, KINTSUGI_OP_C, name, "KINTSUGI_OP_N is 0, KINTSUGI_OP_T 1, KINTSUGI_OP_C 2",
                   foreign_ops);
}

// Largest size that is accepted. Sums of a few sizes, and a size times the bytes of an element, stay far
// below 2^63.
constexpr std::int64_t largest_count = std::int64_t{1} << 48;

void check_size(std::int64_t value, const char* name) {
  if (value < 0) fail(Status::invalid_argument, "{} = {} is negative", name, value);
  if (value > largest_count) fail(Status::invalid_argument, "{} = {} is more than 2^48", name, value);
}

const char* type_name(std::int32_t type) {
  constexpr const char* names[] = {"f32", "f64", "c32", "c64", "dd"};
  return names[type];
}

void check_leading_dimension(std::int64_t ld, const char* name, std::int64_t length,
                             const char* length_name) {
  if (ld < std::max<std::int64_t>(length, 1)) {
    if (length <= 1) fail(Status::invalid_argument, "{} = {} is less than 1", name, ld);
    fail(Status::invalid_argument, "{} = {} is less than {} = {}", name, ld, length_name, length);
  }
}

// Checks the leading dimension of a matrix X, where op(X) is rows x columns. It must be at least the length
// of the contiguous lines. Layout and op decide whether these are columns or rows of op(X).
void check_matrix(const kintsugi_problem& p, std::int32_t op, std::int64_t ld, const char* name,
                  std::int64_t rows, const char* rows_name, std::int64_t columns, const char* columns_name) {
  const bool has_contiguous_columns = (p.layout == KINTSUGI_COLUMN_MAJOR) == (op == KINTSUGI_OP_N);
  check_leading_dimension(ld, name, has_contiguous_columns ? rows : columns,
                          has_contiguous_columns ? rows_name : columns_name);
  const std::int64_t lines = has_contiguous_columns ? columns : rows;
  std::int64_t extent = 0;
  if (__builtin_mul_overflow(ld, std::max<std::int64_t>(lines, 1), &extent)) {
    fail(Status::invalid_argument, "{} = {} times {} = {} does not fit 64 bits", name, ld,
         has_contiguous_columns ? columns_name : rows_name, lines);
  }
}

void check_enums(const kintsugi_problem& p) {
  check_op(p.op_a, "op_a");
  check_op(p.op_b, "op_b");
  check_enum(p.type_a, KINTSUGI_DD, "type_a");
  check_enum(p.type_b, KINTSUGI_DD, "type_b");
  check_enum(p.type_c, KINTSUGI_DD, "type_c");
  check_enum(p.type_scalar, KINTSUGI_DD, "type_scalar");
  check_named_enum(p.layout, KINTSUGI_ROW_MAJOR, "layout", "KINTSUGI_COLUMN_MAJOR is 0, KINTSUGI_ROW_MAJOR 1",
                   foreign_layouts);
  check_enum(p.pointer_mode, KINTSUGI_SCALARS_ON_DEVICE, "pointer_mode");
  check_enum(p.memory, KINTSUGI_ANY_MEMORY, "memory");
  check_enum(p.batch_kind, KINTSUGI_BATCH_POINTERS, "batch_kind");
  check_enum(p.prepared_a, 1, "prepared_a");
  check_enum(p.prepared_b, 1, "prepared_b");
  check_enum(p.adds_to_c, 1, "adds_to_c");
  check_enum(p.native_elsewhere, 1, "native_elsewhere");
}

void check_batch(const kintsugi_problem& p) {
  check_size(p.batch_count, "batch_count");
  if (p.batch_kind != KINTSUGI_BATCH_STRIDED) return;
  check_size(p.stride_a, "stride_a");
  check_size(p.stride_b, "stride_b");
  check_size(p.stride_c, "stride_c");
  if (p.batch_count > 1 && p.stride_c == 0) {
    fail(Status::invalid_argument, "stride_c = 0 would write all batch_count = {} results to the same memory",
         p.batch_count);
  }
  std::int64_t extent = 0;
  for (const std::int64_t stride : {p.stride_a, p.stride_b, p.stride_c}) {
    if (__builtin_mul_overflow(stride, p.batch_count, &extent)) {
      fail(Status::invalid_argument, "a stride of {} times batch_count = {} does not fit 64 bits", stride,
           p.batch_count);
    }
  }
}

void check_supported(const kintsugi_problem& p) {
  const bool equal = p.type_a == p.type_b && p.type_b == p.type_c && p.type_c == p.type_scalar;
  if (!equal) {
    fail(Status::not_supported,
         "type_a = {}, type_b = {}, type_c = {}, type_scalar = {}: this version multiplies f32, f64, c32, "
         "c64 or dd, all four alike",
         type_name(p.type_a), type_name(p.type_b), type_name(p.type_c), type_name(p.type_scalar));
  }
  if (p.memory != KINTSUGI_DEVICE && p.pointer_mode == KINTSUGI_SCALARS_ON_DEVICE) {
    fail(Status::invalid_argument,
         "pointer_mode = {} (device) with memory = {} ({}): scalars in device memory go with matrices "
         "there",
         p.pointer_mode, p.memory, p.memory == KINTSUGI_HOST ? "host" : "any");
  }
}

// Returns the options that are settings with text values, each with its name in the table of settings.
// nullptr: the option is not set. number_settings() returns the options that are settings with number values
// (0: not set).
std::array<std::pair<const char*, const char*>, 5> text_settings(const kintsugi_options& options) {
  return {{{"accuracy", options.accuracy},
           {"scheme", options.scheme},
           {"engine", options.engine},
           {"policy", options.policy},
           {"accumulator", options.accumulator}}};
}
std::array<std::pair<const char*, std::int64_t>, 2> number_settings(const kintsugi_options& options) {
  return {{{"workspace_limit", options.workspace_limit}, {"threads", options.threads}}};
}

OperandType operand_type(std::int32_t type) {
  if (type == KINTSUGI_DD) return OperandType::dd;
  return type == KINTSUGI_F32 || type == KINTSUGI_C32 ? OperandType::f32 : OperandType::f64;
}

std::int32_t type_of_elements(const Problem& problem) {
  if (problem.type == OperandType::dd) return KINTSUGI_DD;
  const bool is_single = problem.type == OperandType::f32;
  if (problem.complex) return is_single ? KINTSUGI_C32 : KINTSUGI_C64;
  return is_single ? KINTSUGI_F32 : KINTSUGI_F64;
}

}  // namespace

void check_struct_size(std::size_t given, std::size_t least, const char* name) {
  constexpr std::size_t max_size = 4096;
  if (given < least || given > max_size) {
    fail(Status::invalid_argument,
         "{}: struct_size = {} is not in {}...{}; fill it with its _INIT macro first", name, given, least,
         max_size);
  }
}

void check_not_null(const void* pointer, const char* name) {
  if (pointer == nullptr) fail(Status::invalid_argument, "{} is null", name);
}

Problem check_problem(const kintsugi_problem* given) {
  const kintsugi_problem p = read_struct(given, kintsugi_problem KINTSUGI_PROBLEM_INIT, "problem");
  check_enums(p);
  check_size(p.m, "m");
  check_size(p.n, "n");
  check_size(p.k, "k");
  check_matrix(p, p.op_a, p.lda, "lda", p.m, "m", p.k, "k");
  check_matrix(p, p.op_b, p.ldb, "ldb", p.k, "k", p.n, "n");
  check_matrix(p, KINTSUGI_OP_N, p.ldc, "ldc", p.m, "m", p.n, "n");
  check_batch(p);
  check_supported(p);
  return {.m = p.m,
          .n = p.n,
          .k = p.k,
          .lda = p.lda,
          .ldb = p.ldb,
          .ldc = p.ldc,
          .batch_count = p.batch_count,
          .stride_a = p.stride_a,
          .stride_b = p.stride_b,
          .stride_c = p.stride_c,
          .op_a = static_cast<Op>(p.op_a),
          .op_b = static_cast<Op>(p.op_b),
          .type = operand_type(p.type_a),
          .complex = p.type_a == KINTSUGI_C32 || p.type_a == KINTSUGI_C64,
          .layout = static_cast<Layout>(p.layout),
          .batch_kind = static_cast<BatchKind>(p.batch_kind),
          .memory = p.memory == KINTSUGI_DEVICE ? MemorySpace::device : MemorySpace::host,
          .device_scalars = p.pointer_mode == KINTSUGI_SCALARS_ON_DEVICE,
          .prepared_a = p.prepared_a != 0,
          .prepared_b = p.prepared_b != 0,
          .adds_to_c = p.adds_to_c != 0};
}

kintsugi_problem to_c(const Problem& problem) {
  kintsugi_problem p = KINTSUGI_PROBLEM_INIT;
  p.m = problem.m;
  p.n = problem.n;
  p.k = problem.k;
  p.lda = problem.lda;
  p.ldb = problem.ldb;
  p.ldc = problem.ldc;
  p.batch_count = problem.batch_count;
  p.stride_a = problem.stride_a;
  p.stride_b = problem.stride_b;
  p.stride_c = problem.stride_c;
  p.op_a = static_cast<std::int32_t>(problem.op_a);
  p.op_b = static_cast<std::int32_t>(problem.op_b);
  p.type_a = p.type_b = p.type_c = p.type_scalar = type_of_elements(problem);
  p.layout = static_cast<std::int32_t>(problem.layout);
  p.batch_kind = static_cast<std::int32_t>(problem.batch_kind);
  p.memory = problem.memory == MemorySpace::device ? KINTSUGI_DEVICE : KINTSUGI_HOST;
  p.pointer_mode = problem.device_scalars ? KINTSUGI_SCALARS_ON_DEVICE : KINTSUGI_SCALARS_ON_HOST;
  p.prepared_a = problem.prepared_a ? 1 : 0;
  p.prepared_b = problem.prepared_b ? 1 : 0;
  p.adds_to_c = problem.adds_to_c ? 1 : 0;
  return p;
}

void write_problem(const Problem& problem, kintsugi_problem* target) {
  check_struct_size(target->struct_size, first_size(target), "problem");
  kintsugi_problem p = to_c(problem);
  p.struct_size = target->struct_size;
  std::memcpy(target, &p, std::min(p.struct_size, sizeof p));
}

SettingLayer CheckedOptions::layer() const {
  SettingLayer layer;
  for (const auto& [name, value] : text_settings(given)) {
    if (value != nullptr) layer.set(find_setting(name), value, "options");
  }
  for (const auto& [name, value] : number_settings(given)) {
    if (value != 0) layer.set(find_setting(name), fmt::format("{}", value), "options");
  }
  return layer;
}

// The appended text differs for different options: numbers have a fixed length, and texts end with a zero
// byte. The letter before a text distinguishes an option that is not set ("n") from an empty text ("t").
void CheckedOptions::append_settings(std::string& text) const {
  for (const auto& [name, value] : number_settings(given))
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  for (const auto& [name, value] : text_settings(given))
    text.append(value == nullptr ? "n" : "t").append(value == nullptr ? "" : value).append(1, '\0');
}

CheckedOptions check_options(const kintsugi_options* given) {
  constexpr kintsugi_options defaults = KINTSUGI_OPTIONS_INIT;
  const kintsugi_options options = given == nullptr ? defaults : read_struct(given, defaults, "options");
  if ((options.allocate == nullptr) != (options.deallocate == nullptr)) {
    fail(Status::invalid_argument, "options: only one is given of allocate and deallocate");
  }
  check_reserved(options.reserved, "options");
  return {.given = options,
          .allocator = {.allocate = options.allocate,
                        .deallocate = options.deallocate,
                        .user = options.allocator_user},
          .queue = check_queue(options.queue, "options.queue")};
}

kintsugi_calibration check_calibration(const kintsugi_calibration* given) {
  constexpr kintsugi_calibration defaults = KINTSUGI_CALIBRATION_INIT;
  check_not_null(given, "calibration");
  const kintsugi_calibration calibration = read_struct(given, defaults, "calibration");
  for (const auto& [flag, name] :
       {std::pair{calibration.quick, "quick"}, std::pair{calibration.blind, "blind"}}) {
    if (flag != 0 && flag != 1)
      fail(Status::invalid_argument, "calibration: {} = {} is neither 0 nor 1", name, flag);
  }
  return calibration;
}

Queue check_queue(const kintsugi_queue& queue, const char* name) {
  check_reserved(queue.reserved, name);
  check_enum(queue.kind, KINTSUGI_QUEUE_CUDA, name, ".kind");
  return {static_cast<QueueKind>(queue.kind), queue.stream};
}

void check_queue_of(const Problem& problem, const Queue& queue) {
  if (queue.kind != QueueKind::cuda || problem.memory == MemorySpace::device) return;
  fail(Status::invalid_argument,
       "queue.kind = {} (CUDA) with memory = {} (host): a call on host matrices uses no stream of the caller",
       static_cast<int>(KINTSUGI_QUEUE_CUDA), static_cast<int>(KINTSUGI_HOST));
}

}  // namespace kintsugi::core

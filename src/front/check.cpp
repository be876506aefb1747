#include "front/check.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "base/cuda/cuda_driver.hpp"
#include "base/status.hpp"
#include "front/calls.hpp"

namespace kintsugi::core {

namespace {

// Sizes of the structs in version 0.1, which never change. Later versions append members. A struct that is
// shorter than the current one comes from an older caller; members that it lacks have their defaults.
constexpr std::size_t first_size(const kintsugi_problem*) { return 128; }
constexpr std::size_t first_size(const kintsugi_options*) { return 104; }
constexpr std::size_t first_size(const kintsugi_operands*) { return 80; }
constexpr std::size_t first_size(const kintsugi_calibration*) { return 40; }
// These came with version 0.3.
constexpr std::size_t first_size(const kintsugi_plan_summary*) { return 48; }
constexpr std::size_t first_size(const kintsugi_report_summary*) { return 48; }

// Writes the members for which the caller's struct has room, and leaves its struct_size.
template <class Struct>
void write_struct(Struct members, Struct* target, const char* name) {
  check_not_null(target, name);
  check_struct_size(target->struct_size, first_size(target), name);
  members.struct_size = target->struct_size;
  std::memcpy(target, &members, std::min(members.struct_size, sizeof members));
}

// Returns a copy of the caller's struct. Members that an older, shorter struct lacks get their defaults. A
// longer struct comes from a newer caller; its additional bytes must be zero.
template <class Struct>
Struct read_struct(const Struct* given, const Struct& defaults, const char* name) {
  check_not_null(given, name);
  const std::size_t size = given->struct_size;
  if (size == sizeof(Struct)) return *given;
  check_struct_size(size, first_size(given), name);
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] != 0) {
      fail(Status::not_supported,
           "{}: struct_size = {} and byte {} is set, which this version (size {}) does not know", name, size,
           i, sizeof(Struct));
    }
  }
  Struct result = defaults;
  std::memcpy(&result, given, std::min(size, sizeof(Struct)));
  return result;
}

void check_reserved(std::int32_t reserved, const char* name) {
  if (reserved != 0) fail(Status::invalid_argument, "{}.reserved = {} must be 0", name, reserved);
}

void check_flag(std::int32_t value, const char* name) {
  if (value != 0 && value != 1) fail(Status::invalid_argument, "{} = {} is neither 0 nor 1", name, value);
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

// Names of enumerations of the C ABI by their values, which count from 0.
constexpr const char* op_names[] = {"KINTSUGI_OP_N", "KINTSUGI_OP_T", "KINTSUGI_OP_C"};
constexpr const char* type_names[] = {"KINTSUGI_F32", "KINTSUGI_F64", "KINTSUGI_C32", "KINTSUGI_C64",
                                      "KINTSUGI_DD"};
constexpr const char* layout_names[] = {"KINTSUGI_COLUMN_MAJOR", "KINTSUGI_ROW_MAJOR"};
constexpr const char* pointer_mode_names[] = {"KINTSUGI_SCALARS_ON_HOST", "KINTSUGI_SCALARS_ON_DEVICE"};
constexpr const char* memory_names[] = {"KINTSUGI_HOST", "KINTSUGI_DEVICE", "KINTSUGI_ANY_MEMORY"};
constexpr const char* batch_kind_names[] = {"KINTSUGI_BATCH_STRIDED", "KINTSUGI_BATCH_POINTERS"};
constexpr const char* queue_kind_names[] = {"KINTSUGI_QUEUE_HOST", "KINTSUGI_QUEUE_CUDA"};

// Fails unless the value has a name. The message names the value by `name` followed by `member`, for example
// a struct and its ".member", lists the accepted values, and says whether the value is one of `foreign`.
void check_enum(std::int32_t value, std::span<const char* const> names, const char* name,
                std::span<const ForeignValue> foreign = {}, const char* member = "") {
  if (value >= 0 && static_cast<std::size_t>(value) < names.size()) return;
  std::string accepted;
  for (std::size_t i = 0; i < names.size(); ++i)
    accepted += i == 0 ? fmt::format("{} is 0", names[i]) : fmt::format(", {} {}", names[i], i);
  const auto found = std::find_if(foreign.begin(), foreign.end(),
                                  [value](const auto& other) { return other.value == value; });
  fail(Status::invalid_argument, "{}{} = {} is not in 0...{}: {}{}", name, member, value, names.size() - 1,
       accepted, found == foreign.end() ? "" : fmt::format("; {} is {}", value, found->name));
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
  check_enum(p.op_a, op_names, "op_a", foreign_ops);
  check_enum(p.op_b, op_names, "op_b", foreign_ops);
  check_enum(p.type_a, type_names, "type_a");
  check_enum(p.type_b, type_names, "type_b");
  check_enum(p.type_c, type_names, "type_c");
  check_enum(p.type_scalar, type_names, "type_scalar");
  check_enum(p.layout, layout_names, "layout", foreign_layouts);
  check_enum(p.pointer_mode, pointer_mode_names, "pointer_mode");
  check_enum(p.memory, memory_names, "memory");
  check_enum(p.batch_kind, batch_kind_names, "batch_kind");
  check_flag(p.prepared_a, "prepared_a");
  check_flag(p.prepared_b, "prepared_b");
  check_flag(p.adds_to_c, "adds_to_c");
  check_flag(p.native_elsewhere, "native_elsewhere");
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
         "pointer_mode = KINTSUGI_SCALARS_ON_DEVICE with memory = {}: scalars in device memory go with "
         "matrices there",
         memory_names[p.memory]);
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
  write_struct(to_c(problem), target, "problem");
}

void write_summary(const kintsugi_plan_summary& summary, kintsugi_plan_summary* target) {
  write_struct(summary, target, "summary");
}

void write_summary(const kintsugi_report_summary& summary, kintsugi_report_summary* target) {
  write_struct(summary, target, "summary");
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
  check_flag(calibration.quick, "calibration: quick");
  check_flag(calibration.blind, "calibration: blind");
  return calibration;
}

Queue check_queue(const kintsugi_queue& queue, const char* name) {
  check_reserved(queue.reserved, name);
  check_enum(queue.kind, queue_kind_names, name, {}, ".kind");
  return {static_cast<QueueKind>(queue.kind), queue.stream};
}

void check_queue_of(const Problem& problem, const Queue& queue) {
  if (queue.kind != QueueKind::cuda || problem.memory == MemorySpace::device) return;
  fail(
      Status::invalid_argument,
      "queue.kind = KINTSUGI_QUEUE_CUDA with memory = KINTSUGI_HOST: a call on host matrices uses no stream of "
      "the caller");
}

namespace {

static_assert(sizeof(DoubleDouble) == sizeof(kintsugi_dd) && offsetof(kintsugi_dd, lo) == sizeof(double));

CallScalar read_scalar(const Problem& problem, const void* pointer) {
  return with_element_type(problem, [&]<class T>() { return CallScalar(*static_cast<const T*>(pointer)); });
}

kintsugi_operands read_operands(const kintsugi_operands* given) {
  return read_struct(given, kintsugi_operands KINTSUGI_OPERANDS_INIT, "operands");
}

const Prepared* prepared_of(kintsugi_prepared prepared) {
  return prepared == nullptr ? nullptr : &prepared->prepared;
}

std::string text_of(const cuda::PointerLocation& location) {
  if (!location.on_device) return "in host memory";
  if (location.managed) return fmt::format("in managed memory of device {}", location.device);
  if (location.context == nullptr) return fmt::format("on device {}", location.device);
  return fmt::format("on device {} (context {})", location.device, fmt::ptr(location.context));
}

// The matrices that a call reads or writes, and where they lie.
class UsedMatrices {
 public:
  // Adds a matrix or a batch. Null pointers are left out, since check_operands() refuses them where they must
  // not be null. In an array of pointers on the host the first one is looked at, too: it may be a device's.
  void add(const Problem& problem, const char* name, const char* first_name, const void* data) {
    if (data == nullptr) return;
    const cuda::PointerLocation location = add_pointer(name, data);
    if (problem.batch_kind != BatchKind::pointers || location.on_device) return;
    if (const void* first = *static_cast<const void* const*>(data)) add_pointer(first_name, first);
  }

  // Returns the place of all matrices; fails if there is none.
  const cuda::PointerLocation& common_place() const {
    const std::span<const Used> used(used_.data(), count_);
    if (std::all_of(used.begin(), used.end(), [&](const Used& each) { return is_in_place(each.location); }))
      return place_;
    std::string places;
    for (const Used& each : used)
      places += fmt::format("{}{} lies {}", places.empty() ? "" : ", ", each.name, text_of(each.location));
    fail(
        Status::invalid_argument,
        "{}: all of them must be in host memory, or all on one device, in one context; copy what is elsewhere",
        places);
  }

 private:
  struct Used {
    const char* name;
    cuda::PointerLocation location;
  };

  cuda::PointerLocation add_pointer(const char* name, const void* data) {
    const cuda::PointerLocation location = cuda::location_of(data);
    used_[count_++] = {name, location};
    if (rank_of(location) > rank_of(place_)) place_ = location;
    return location;
  }

  // The location of the highest rank is that of the call: managed memory serves every device, and memory of
  // no context every context of its device.
  static int rank_of(const cuda::PointerLocation& location) {
    return !location.on_device ? 0 : location.managed ? 1 : location.context == nullptr ? 2 : 3;
  }
  bool is_in_place(const cuda::PointerLocation& location) const {
    if (location.on_device != place_.on_device) return false;
    if (!location.on_device || location.managed) return true;
    return location.device == place_.device &&
           (location.context == nullptr || location.context == place_.context);
  }

  std::array<Used, 6> used_{};
  std::size_t count_ = 0;
  cuda::PointerLocation place_;
};

// alpha and beta of a product on a device are read on the host, which cannot read the device's memory.
void check_scalar_is_on_host(const void* scalar, const char* name) {
  if (scalar == nullptr) return;
  const cuda::PointerLocation location = cuda::location_of(scalar);
  if (!location.on_device || location.managed) return;
  fail(Status::invalid_argument,
       "{} lies {} and is read on the host: for scalars on a device call kintsugi_gemm with "
       "KINTSUGI_SCALARS_ON_DEVICE",
       name, text_of(location));
}

}  // namespace

std::optional<DevicePlace> find_memory(const kintsugi_operands* operands, Problem& problem) {
  if (!cuda::is_driver_loaded() || problem.m == 0 || problem.n == 0 || problem.batch_count == 0)
    return std::nullopt;
  const kintsugi_operands caller = read_operands(operands);
  UsedMatrices used;
  used.add(problem, "c", "c[0]", caller.c);
  if (used.common_place().on_device) {
    check_scalar_is_on_host(caller.alpha, "alpha");
    check_scalar_is_on_host(caller.beta, "beta");
  }
  if (problem.k != 0 && caller.alpha != nullptr && !read_scalar(problem, caller.alpha).is_zero()) {
    if (caller.prepared_a == nullptr) used.add(problem, "a", "a[0]", caller.a);
    if (caller.prepared_b == nullptr) used.add(problem, "b", "b[0]", caller.b);
  }
  const cuda::PointerLocation& place = used.common_place();
  if (!place.on_device) return std::nullopt;
  problem.memory = MemorySpace::device;
  return DevicePlace{place.device, place.context};
}

void check_data(const Problem& problem, const void* data, const char* name) {
  check_not_null(data, name);
  if (problem.batch_kind != BatchKind::pointers || problem.memory == MemorySpace::device) return;
  const auto* pointers = static_cast<const void* const*>(data);
  for (std::int64_t item = 0; item < problem.batch_count; ++item) {
    if (pointers[item] == nullptr) fail(Status::invalid_argument, "{}[{}] is null", name, item);
  }
}

GivenPrepared given_prepared(const kintsugi_operands* operands) {
  const kintsugi_operands caller = read_operands(operands);
  return {prepared_of(caller.prepared_a), prepared_of(caller.prepared_b)};
}

void set_adds_to_c(const kintsugi_operands* operands, Problem& problem) {
  if (problem.memory != MemorySpace::device || problem.device_scalars) return;
  const kintsugi_operands caller = read_operands(operands);
  if (caller.beta == nullptr || caller.workspace != nullptr) return;
  problem.adds_to_c = !read_scalar(problem, caller.beta).is_zero();
}

Operands check_operands(const Problem& problem, const kintsugi_operands* given) {
  const kintsugi_operands caller = read_operands(given);
  check_not_null(caller.alpha, "alpha");
  check_not_null(caller.beta, "beta");
  Operands operands;
  if (problem.device_scalars) {
    operands.device_alpha = caller.alpha;
    operands.device_beta = caller.beta;
  } else {
    operands.alpha = read_scalar(problem, caller.alpha);
    operands.beta = read_scalar(problem, caller.beta);
  }
  operands.queue = check_queue(caller.queue, "operands.queue");
  check_queue_of(problem, operands.queue);
  operands.a = caller.a;
  operands.b = caller.b;
  operands.c = caller.c;
  operands.prepared_a = prepared_of(caller.prepared_a);
  operands.prepared_b = prepared_of(caller.prepared_b);
  operands.workspace = caller.workspace;
  operands.workspace_size = caller.workspace_size;
  if (caller.workspace == nullptr && caller.workspace_size != 0) {
    fail(Status::invalid_argument, "workspace is null and workspace_size = {}", caller.workspace_size);
  }
  if (problem.m == 0 || problem.n == 0 || problem.batch_count == 0) return operands;
  check_data(problem, caller.c, "c");
  if (problem.k == 0 || problem.device_scalars || operands.alpha.is_zero()) return operands;
  if (operands.prepared_a == nullptr) check_data(problem, caller.a, "a");
  if (operands.prepared_b == nullptr) check_data(problem, caller.b, "b");
  return operands;
}

}  // namespace kintsugi::core

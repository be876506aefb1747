// Routines with vectors: gemv, also in batches, symv, hemv, ger and dot. Each is answered as the product that
// it is.
#include <optional>

#include "answer.hpp"
#include "core/settings.hpp"

namespace kintsugi::cublas {

namespace {

// Origin of products of which one scalar is the drop-in's own, in host memory. A plan takes both from the
// same memory.
class HostScalarsOrigin : public HandleOrigin {
 public:
  using HandleOrigin::HandleOrigin;

  const char* read(CallState& state) const override {
    if (const char* reason = HandleOrigin::read(state)) return reason;
    if (state.pointer_mode != KINTSUGI_SCALARS_ON_HOST) return "scalars of this routine are in device memory";
    return nullptr;
  }
};

// Takes device memory for a call, unless the stream is captured or there is not enough.
void take(std::optional<Workspace>& memory, const CallState& state, std::size_t bytes) {
  if (is_captured(state.stream)) return;
  memory.emplace(state.device, bytes, state.stream);
  if (memory->pointer() == nullptr) memory.reset();
}

constexpr const char* no_memory = "there is no memory for the routine, or the stream is being captured";

// ------------------------------------------------------------------ dot

// dot writes its result where the pointer mode says. Both scalars of its product are the drop-in's own.
class DotOrigin : public HandleOrigin {
 public:
  DotOrigin(Handle handle, const Call& call) : HandleOrigin(handle), result_(call.c), bytes_(bytes_of(call)) {
    CallState state;
    if (read_state(static_cast<const Origin&>(HandleOrigin(handle)), state) != nullptr) return;
    is_on_host_ = state.pointer_mode == KINTSUGI_SCALARS_ON_HOST;
    if (is_on_host_ && result_ != nullptr) take(memory_, state, bytes_);
  }

  // Memory on the device for the product.
  void* target() const { return memory_ ? memory_->pointer() : result_; }

  const char* read(CallState& state) const override {
    if (const char* reason = HandleOrigin::read(state)) return reason;
    state.pointer_mode = KINTSUGI_SCALARS_ON_HOST;
    return is_on_host_ && !memory_ ? no_memory : nullptr;
  }

  // As cuBLAS does, waits for a result in host memory.
  const char* enqueue_after(const CallState& state) const override {
    if (!is_on_host_) return nullptr;
    const DeviceRows row{.first = memory_->pointer(), .pitch = bytes_, .bytes = bytes_, .count = 1};
    const bool is_copied = copy_to_host(row, result_, state.stream) && synchronize(state.stream);
    return is_copied ? nullptr : "the result cannot be copied to the host";
  }

 private:
  static std::size_t bytes_of(const Call& call) { return static_cast<std::size_t>(element_bytes(call.type)); }

  void* result_;
  std::size_t bytes_;
  bool is_on_host_ = true;
  std::optional<Workspace> memory_;  // for the product, if the result is in host memory
};

// ------------------------------------------------------------------ symv and hemv

// Functions of cuBLAS that copy triangles and transposes; the index is a kintsugi_type. Only geam has a name
// with 64-bit integers.
constinit Symbol transposing[] = {Symbol("cublasSgeam"), Symbol("cublasDgeam"), Symbol("cublasCgeam"),
                                  Symbol("cublasZgeam")};
constinit Symbol packing[] = {Symbol("cublasStrttp"), Symbol("cublasDtrttp"), Symbol("cublasCtrttp"),
                              Symbol("cublasZtrttp")};
constinit Symbol unpacking[] = {Symbol("cublasStpttr"), Symbol("cublasDtpttr"), Symbol("cublasCtpttr"),
                                Symbol("cublasZtpttr")};

// cuBLAS computes places in packed triangles by 32-bit integers.
constexpr std::int64_t max_order = 32768;

// Both triangles of A in device memory, and room for the stored one without gaps.
class SymmetricOrigin : public HostScalarsOrigin {
 public:
  SymmetricOrigin(Handle handle, const Call& call) : HostScalarsOrigin(handle), call_(call) {
    CallState state;
    if (call.m > max_order || read_state(static_cast<const Origin&>(HandleOrigin(handle)), state) != nullptr)
      return;
    take(memory_, state, bytes_of(order() * order() + order() * (order() + 1) / 2));
  }

  const void* matrix() const { return memory_ && call_.a != nullptr ? memory_->pointer() : call_.a; }

  const char* read(CallState& state) const override {
    if (const char* reason = HostScalarsOrigin::read(state)) return reason;
    return memory_ ? nullptr : no_memory;
  }

  // Transposes all that A's memory has, then writes the stored triangle over what came from the other one.
  const char* enqueue_before(const CallState& state) const override {
    const auto n = static_cast<int>(call_.m), lda = static_cast<int>(call_.lda);
    const int uplo = call_.uplo == Uplo::lower ? fill_lower : fill_upper;
    const bool is_conjugated = call_.routine == Routine::hemv;
    char* const full = static_cast<char*>(memory_->pointer());
    void* const packed = full + bytes_of(order() * order());
    const int op = static_cast<int>(is_conjugated ? Op::c : Op::t);
    const void* const nothing = zero();
    const bool is_copied =
        call_real(transposing[call_.type], handle(), op, static_cast<int>(Op::n), n, n, one(call_.type),
                  call_.a, lda, nothing, static_cast<const void*>(full), n, static_cast<void*>(full),
                  n) == success &&
        call_real(packing[call_.type], handle(), uplo, n, call_.a, lda, packed) == success &&
        call_real(unpacking[call_.type], handle(), uplo, n, static_cast<const void*>(packed),
                  static_cast<void*>(full), n) == success &&
        (!is_conjugated || clear_imaginary_parts(full, packed, state.stream));
    return is_copied ? nullptr : "cuBLAS cannot copy the triangle of the matrix";
  }

 private:
  std::size_t order() const { return static_cast<std::size_t>(call_.m); }
  std::size_t bytes_of(std::size_t elements) const {
    return elements * static_cast<std::size_t>(element_bytes(call_.type));
  }

  // Imaginary parts on the diagonal count as 0. `spare`: memory that is not needed any more.
  bool clear_imaginary_parts(char* full, void* spare, void* stream) const {
    const std::size_t bytes = bytes_of(1) / 2;
    const DeviceRows diagonal{
        .first = full + bytes, .pitch = bytes_of(order() + 1), .bytes = bytes, .count = order()};
    return set_to_zero(spare, bytes, stream) && fill_rows(spare, diagonal, stream);
  }

  const Call& call_;
  std::optional<Workspace> memory_;
};

// y := alpha A x + beta y with both triangles of A.
Call with_full_matrix(const Call& call, const void* matrix) {
  Call full = call;
  full.routine = Routine::gemv;
  full.op_a = Op::n;
  full.a = matrix;
  full.lda = call.m > 1 ? call.m : 1;
  return full;
}

// ------------------------------------------------------------------ answer

bool has_matrix_a(const Call& call) { return call.routine != Routine::ger && call.routine != Routine::dot; }

// True if cuBLAS accepts the arguments of the routine that the product does not have.
bool has_valid_arguments(const Call& call) {
  if (call.m < 0 || call.n < 0 || call.count < 0 || call.ldb == 0) return false;
  if (has_matrix_a(call))
    return is_ld(call.lda, call.m) && call.ldc != 0 && call.uplo != Uplo::invalid && call.op_a <= Op::c;
  return call.lda != 0 && (call.routine == Routine::dot || is_ld(call.ldc, call.m));
}

bool has_negative_increment(const Call& call) {
  return call.ldb < 0 || (has_matrix_a(call) ? call.ldc < 0 : call.lda < 0);
}

ProductCall product_of(const Call& call) {
  ProductCall product{as_column_major(product_of_vectors(call))};
  product.is_supported = product.is_supported && !has_negative_increment(call);
  if (!product.is_supported) product.unsupported = {.field = Field::increments};
  return product;
}

int answer_product(const Invocation& invocation, const Origin& origin, const Call& call,
                   const Forward& forward) {
  const ProductCall product = product_of(call);
  if (!product.is_supported) note_failure(invocation.symbol.name(), reason_of(product.unsupported));
  return answer(invocation, origin, product, forward);
}

}  // namespace

int answer_vectors(const Invocation& invocation, Handle handle, const Call& call, const Forward& forward) {
  // dot writes 0 for empty vectors; the others leave what they write, as a product of that size would not.
  const bool is_empty = call.m == 0 || call.n == 0 || call.count == 0;
  if (!has_valid_arguments(call) || is_empty) return forward();
  switch (call.routine) {
    case Routine::gemv: return answer_product(invocation, HandleOrigin(handle), call, forward);
    case Routine::ger: return answer_product(invocation, HostScalarsOrigin(handle), call, forward);
    case Routine::dot: {
      const DotOrigin origin(handle, call);
      Call dot = call;
      dot.c = origin.target();
      return answer_product(invocation, origin, dot, forward);
    }
    default: {
      const SymmetricOrigin origin(handle, call);
      return answer_product(invocation, origin, with_full_matrix(call, origin.matrix()), forward);
    }
  }
}

}  // namespace kintsugi::cublas

// cublasLtMatmul. The call's descriptors are read by the getters of the real cuBLASLt. The call is answered
// like a call of cublasSgemm if it is only a product, possibly followed by a bias for each row and an
// activation.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "answer.hpp"
#include "core/settings.hpp"

namespace kintsugi::cublas {

namespace {

// Numbers of cublasLtMatmulDescAttributes_t.
constexpr int compute_type = 0, scale_type = 1, pointer_mode = 2, op_of_a = 3, op_of_b = 4, op_of_c = 5,
              fill_mode = 6, epilogue = 7, bias_pointer = 8, a_scale_pointer = 17, d_scale_pointer = 20,
              bias_data_type = 26, emulation_descriptor = 38;
// Numbers of cublasLtMatrixLayoutAttribute_t.
constexpr int data_type = 0, storage_order = 1, row_count = 2, column_count = 3, leading_dimension = 4,
              batch_count = 5, batch_stride = 6, plane_offset = 7, batch_mode = 8;
constexpr int fill_full = 2, column_order = 0;

constinit Symbol description_getter("cublasLtMatmulDescGetAttribute");
constinit Symbol layout_getter("cublasLtMatrixLayoutGetAttribute");

// Returns an attribute of a descriptor; `otherwise` if this version of cuBLAS does not have it.
template <class T>
T attribute(Symbol& getter, const void* descriptor, int name, T otherwise) {
  T value = otherwise;
  std::size_t written = 0;
  const int status = call_real(getter, descriptor, name, static_cast<void*>(&value), sizeof value, &written);
  return status == success ? value : otherwise;
}

// ------------------------------------------------------------------ layouts and arguments

struct MatrixLayout {
  int type, order;
  std::int64_t rows, columns, ld, count, stride;

  explicit MatrixLayout(const void* layout)
      : type(attribute<int>(layout_getter, layout, data_type, -1)),
        order(attribute<int>(layout_getter, layout, storage_order, -1)),
        rows(attribute<std::int64_t>(layout_getter, layout, row_count, -1)),
        columns(attribute<std::int64_t>(layout_getter, layout, column_count, -1)),
        ld(attribute<std::int64_t>(layout_getter, layout, leading_dimension, -1)),
        count(attribute<std::int32_t>(layout_getter, layout, batch_count, -1)),
        stride(attribute<std::int64_t>(layout_getter, layout, batch_stride, 0)) {}

  bool operator==(const MatrixLayout&) const = default;
};

// True if the layout stores real and imaginary parts in two planes, or describes a batch by pointers.
bool is_unsupported(const void* layout) {
  return attribute<std::int64_t>(layout_getter, layout, plane_offset, 0) != 0 ||
         attribute<std::uint32_t>(layout_getter, layout, batch_mode, 0) != 0;
}

// Arguments of cublasLtMatmul that an emulation needs.
struct Matmul {
  void* handle;
  const void *description, *alpha, *a, *layout_a, *b, *layout_b, *beta, *c, *layout_c;
  void* d;
  const void* layout_d;
  void* workspace;
  std::size_t workspace_bytes;
  void* stream;

  bool lacks_a_descriptor() const {
    for (const void* pointer : {description, layout_a, layout_b, layout_c, layout_d})
      if (pointer == nullptr) return true;
    return false;
  }
  template <class T>
  T described(int name, T otherwise) const {
    return attribute<T>(description_getter, description, name, otherwise);
  }
};

// ------------------------------------------------------------------ epilogues with an activation

constexpr bool is_activation(std::uint32_t requested) {
  const std::uint32_t activation = requested & ~epilogue_bias;
  return activation == epilogue_relu || activation == epilogue_gelu;
}

constinit Symbol real_matmul("cublasLtMatmul");
constinit Symbol make_layout("cublasLtMatrixLayoutCreate");
constinit Symbol destroy_layout("cublasLtMatrixLayoutDestroy");

// Inner indices of the product of zeros. With 4 inner indices cuBLASLt adds the bias in its pass over D,
// since rows and columns are aligned. With one inner index cuBLASLt adds the bias in a second pass. On an
// H100 a D of 4096 x 8192 takes 115 us with 4 inner indices and 387 us with one.
constexpr std::int64_t inner_count = 4;

// Layout of a matrix of FP32 whose columns are adjacent.
class PackedLayout {
 public:
  PackedLayout(std::int64_t rows, std::int64_t columns) {
    const int status = call_real(make_layout, &layout_, data_f32, static_cast<std::uint64_t>(rows),
                                 static_cast<std::uint64_t>(columns), rows);
    if (status != success) layout_ = nullptr;
  }
  ~PackedLayout() {
    if (layout_ != nullptr) call_real(destroy_layout, layout_);
  }
  PackedLayout(const PackedLayout&) = delete;
  PackedLayout& operator=(const PackedLayout&) = delete;

  const void* get() const { return layout_; }

 private:
  void* layout_ = nullptr;
};

// Enqueues the epilogue of an FP32 product, which D holds, as a product of cuBLASLt: matrices of zeros with
// few inner indices are multiplied and their product added to D, and cuBLASLt applies the epilogue to the
// sum. D is read and written once, and GELU is computed as cuBLAS does. Returns the reason for which nothing
// was enqueued; nullptr: there is none.
const char* apply_epilogue(const Matmul& matmul, const Call& call, int device) {
  const auto bytes = static_cast<std::size_t>(inner_count * std::max(call.m, call.n)) * sizeof(float);
  const Workspace zeros(device, bytes, matmul.stream);
  if (zeros.pointer() == nullptr || !set_to_zero(zeros.pointer(), bytes, matmul.stream))
    return "there is no memory for an epilogue";
  const bool is_plain_a = call.op_a == Op::n, is_plain_b = call.op_b == Op::n;
  const PackedLayout a(is_plain_a ? call.m : inner_count, is_plain_a ? inner_count : call.m);
  const PackedLayout b(is_plain_b ? inner_count : call.n, is_plain_b ? call.n : inner_count);
  if (a.get() == nullptr || b.get() == nullptr) return "cuBLAS makes no layout for an epilogue";
  constexpr float one = 1;
  const void *const scalar = &one, *const zero_matrix = zeros.pointer(), *const c = matmul.d;
  const void* const no_algorithm = nullptr;
  const int status = call_real(real_matmul, matmul.handle, matmul.description, scalar, zero_matrix, a.get(),
                               zero_matrix, b.get(), scalar, c, matmul.layout_d, matmul.d, matmul.layout_d,
                               no_algorithm, matmul.workspace, matmul.workspace_bytes, matmul.stream);
  return status == success ? nullptr : "cuBLAS does not apply the epilogue alone";
}

// ------------------------------------------------------------------ the call

template <class T>
constexpr T one_and_zero[] = {1, 0};  // real and imaginary part of 1

// Returns the address of a scalar 1 of the type.
const void* one_of(kintsugi_type type) {
  return is_single(type) ? static_cast<const void*>(one_and_zero<float>) : one_and_zero<double>;
}

// The product that the descriptors describe; call().type is empty if they describe anything else.
class MatmulOrigin : public Origin {
 public:
  explicit MatmulOrigin(const Matmul& matmul) : matmul_(matmul) {
    set_type(call_,
             matmul.lacks_a_descriptor() ? Unsupported{.field = Field::descriptors} : read_descriptors());
  }

  const ProductCall& call() const { return call_; }

  const char* read(CallState& state) const override {
    state.stream = matmul_.stream;
    state.pointer_mode = pointer_mode_;
    return nullptr;
  }
  // Reads the attributes that are rarely set. Each getter takes tens of nanoseconds, so they are read only
  // for calls that would otherwise be emulated.
  const char* reason_in_arithmetic(kintsugi_type) const override {
    for (const void* layout : {matmul_.layout_a, matmul_.layout_b, matmul_.layout_d})
      if (is_unsupported(layout)) return "complex matrices in planes, or a batch by pointers";
    for (int pointer = a_scale_pointer; pointer <= d_scale_pointer; ++pointer)
      if (matmul_.described<const void*>(pointer, nullptr) != nullptr) return "scales of single matrices";
    if (matmul_.described(op_of_c, 0) != 0 || matmul_.described(fill_mode, fill_full) != fill_full)
      return "a transpose of C or one triangle of D";
    return matmul_.described<const void*>(emulation_descriptor, nullptr) != nullptr ? "cuBLAS's own emulation"
                                                                                    : nullptr;
  }

  // Copies the bias into every column of D, to which the emulation then adds the product.
  const char* enqueue_before(const CallState& state) const override {
    if (has_epilogue_after_ && is_captured(state.stream))
      return "the stream is being captured, and an epilogue needs memory";
    if (bias_ == nullptr) return nullptr;
    const auto bytes = static_cast<std::size_t>(element_bytes(call_.type));
    const DeviceRows columns{.first = call_.c,
                             .pitch = static_cast<std::size_t>(call_.ldc) * bytes,
                             .bytes = static_cast<std::size_t>(call_.m) * bytes,
                             .count = static_cast<std::size_t>(call_.n)};
    return fill_rows(bias_, columns, state.stream) ? nullptr : "the driver does not copy the bias";
  }

  // Applies the activation, after the bias if there is one.
  const char* enqueue_after(const CallState& state) const override {
    return has_epilogue_after_ ? apply_epilogue(matmul_, call_, state.device) : nullptr;
  }

  bool computes_product(kintsugi_type type) const override {
    return bias_ == nullptr && !has_epilogue_after_ && reason_in_arithmetic(type) == nullptr;
  }

 private:
  // Sets the call. Returns its type, or the field that is not supported. Each getter takes tens of
  // nanoseconds, so the problem of a call that is not supported is read for the report alone.
  CallType read_descriptors() {
    const MatrixLayout a(matmul_.layout_a), b(matmul_.layout_b), d(matmul_.layout_d);
    const CallType type =
        type_of({a.type, b.type, d.type}, matmul_.described(compute_type, -1), default_algorithm);
    if (!type.is_supported()) {
      if (records_calls()) set_call(a, b, d);
      return type;
    }
    set_call(a, b, d);
    pointer_mode_ = matmul_.described(pointer_mode, -1);
    if (const Unsupported field = field_of_scalars(d.type); field.field != Field::none) return field;
    if (a.order != column_order || b.order != column_order || d.order != column_order)
      return Unsupported{.field = Field::order, .values = {a.order, b.order, d.order}};
    if (a.count != d.count || b.count != d.count)
      return Unsupported{.field = Field::batch, .values = {a.count, b.count, d.count}};
    if (!has_matching_sizes(a, b)) return Unsupported{.field = Field::sizes};
    if (!supports_c(d, type.type)) return Unsupported{.field = Field::c};
    const Unsupported field = take_epilogue(d, type.type);
    return field.field == Field::none ? type : CallType(field);
  }

  // Returns a field unless alpha and beta have the matrices' type and are both on the host or both on the
  // device.
  Unsupported field_of_scalars(int type) const {
    if (const int scale = matmul_.described(scale_type, -1); scale != type)
      return {.field = Field::scale_type, .values = {scale}};
    if (pointer_mode_ != KINTSUGI_SCALARS_ON_HOST && pointer_mode_ != KINTSUGI_SCALARS_ON_DEVICE)
      return {.field = Field::pointer_mode, .values = {pointer_mode_}};
    const bool has_scalars = matmul_.alpha != nullptr && matmul_.beta != nullptr;
    return {.field = has_scalars ? Field::none : Field::scalars};
  }

  // Sets all members of call_ except its type.
  void set_call(const MatrixLayout& a, const MatrixLayout& b, const MatrixLayout& d) {
    const Op op_a = Cublas::op(matmul_.described(op_of_a, -1));
    const Op op_b = Cublas::op(matmul_.described(op_of_b, -1));
    call_ = {product(KINTSUGI_F32, op_a, op_b, d.rows, d.columns, op_a == Op::n ? a.columns : a.rows,
                     matmul_.alpha, matmul_.a, a.ld, matmul_.b, b.ld, matmul_.beta, matmul_.d, d.ld)};
    make_strided(call_, a.stride, b.stride, d.stride, d.count);
  }

  bool has_matching_sizes(const MatrixLayout& a, const MatrixLayout& b) const {
    const bool a_fits = call_.op_a == Op::n ? a.rows == call_.m : a.columns == call_.m;
    const bool b_fits = call_.op_b == Op::n ? b.rows == call_.k && b.columns == call_.n
                                            : b.columns == call_.k && b.rows == call_.n;
    return a_fits && b_fits;
  }

  // True if C is not read, or if C is D. An emulation cannot read C from a matrix other than D.
  bool supports_c(const MatrixLayout& d, kintsugi_type type) const {
    if (pointer_mode_ == KINTSUGI_SCALARS_ON_HOST && is_zero(matmul_.beta, type)) return true;
    return matmul_.c == matmul_.d && MatrixLayout(matmul_.layout_c) == d;
  }

  // Decides how the epilogue is applied. Returns the field because of which cuBLAS must answer the call.
  Unsupported take_epilogue(const MatrixLayout& d, kintsugi_type type) {
    const auto requested = matmul_.described(epilogue, epilogue_default);
    if (requested == epilogue_default) return {};
    if (const char* detail = obstacle_to(requested, d, type))
      return {.field = Field::epilogue, .values = {requested}, .detail = detail};
    has_epilogue_after_ = is_activation(requested) || adds_bias_after(type);
    if ((requested & epilogue_bias) == 0 || take_bias(d, type)) return {};
    return {.field = Field::epilogue, .values = {requested}, .detail = " without a bias of the type of D"};
  }

  // Returns why an epilogue is not supported; nullptr: it is. An epilogue is supported for a single product
  // with beta = 0. An activation is supported for FP32. A bias is not supported for complex types: cuBLAS
  // refuses it with its own status.
  const char* obstacle_to(std::uint32_t requested, const MatrixLayout& d, kintsugi_type type) const {
    if (is_activation(requested)) {
      if (type != KINTSUGI_F32) return " of another type than FP32";
      if (!gains_with_activation()) return " with k below 256";
    } else if (requested != epilogue_bias || is_complex(type)) {
      return requested == epilogue_bias ? " of complex matrices" : "";
    }
    if (d.count != 1) return " of a batch";
    if (pointer_mode_ != KINTSUGI_SCALARS_ON_HOST) return " with scalars on the device";
    return is_zero(matmul_.beta, type) ? nullptr : " with beta other than 0";
  }

  // Stores the bias for enqueue_before(), unless cuBLAS adds it together with the activation after the
  // product. Returns false if there is no bias, or if its type is not the type of D.
  bool take_bias(const MatrixLayout& d, kintsugi_type type) {
    const int bias_type = matmul_.described(bias_data_type, -1);
    const auto* bias = matmul_.described<const void*>(bias_pointer, nullptr);
    if (bias == nullptr || (bias_type != -1 && bias_type != d.type)) return false;
    if (has_epilogue_after_) return true;
    bias_ = bias;
    call_.beta = one_of(type);  // the product is added to the bias, which enqueue_before() copies into D
    return true;
  }

  // True if cuBLAS adds the bias after the product. That is one pass over D; the alternative is two: writing
  // the bias into D before the product, and reading D in the product.
  bool adds_bias_after(kintsugi_type type) const {
    return type == KINTSUGI_F32 && !is_captured(matmul_.stream);
  }

  // True if an emulation gains more time than the additional pass over D for the activation costs. The pass
  // moves 8 bytes per element, about 3 ps on an H100. An FP32 emulation gains about 0.03 ps per
  // multiplication.
  bool gains_with_activation() const {
    constexpr std::int64_t min_k = 256;
    return settings().policy != Policy::automatic || call_.k >= min_k;
  }

  const Matmul& matmul_;
  ProductCall call_;
  int pointer_mode_ = 0;
  const void* bias_ = nullptr;       // bias that is copied into D before the product; nullptr: none
  bool has_epilogue_after_ = false;  // true: cuBLAS applies the epilogue after the product
};

}  // namespace

extern "C" __attribute__((visibility("default"))) int cublasLtMatmul(
    void* handle, const void* description, const void* alpha, const void* a, const void* layout_a,
    const void* b, const void* layout_b, const void* beta, const void* c, const void* layout_c, void* d,
    const void* layout_d, const void* algorithm, void* workspace, std::size_t workspace_bytes, void* stream) {
  static constinit Symbol symbol("cublasLtMatmul");
  const Invocation invocation{symbol, __builtin_return_address(0)};
  const auto forward = [&] {
    return call_real(symbol, handle, description, alpha, a, layout_a, b, layout_b, beta, c, layout_c, d,
                     layout_d, algorithm, workspace, workspace_bytes, stream);
  };
  if (!intercepts(invocation.return_address) || handle == nullptr) return forward();
  const Matmul matmul{handle,   description, alpha,    a,         layout_a,        b,     layout_b, beta, c,
                      layout_c, d,           layout_d, workspace, workspace_bytes, stream};
  const MatmulOrigin origin(matmul);
  return answer(invocation, origin, origin.call(), Forward(forward));
}

}  // namespace kintsugi::cublas

// cublasLtMatmul. The call's descriptors are read by the getters of the real cuBLASLt. The call is answered
// like a call of cublasSgemm if it is a product, possibly followed by an epilogue, which cuBLASLt itself then
// applies to the emulated product.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "answer.hpp"
#include "core/settings.hpp"

namespace kintsugi::cublas {

namespace {

// Numbers of cublasLtMatmulDescAttributes_t.
constexpr int compute_type = 0, scale_type = 1, pointer_mode = 2, op_of_a = 3, op_of_b = 4, op_of_c = 5,
              fill_mode = 6, epilogue = 7, bias_pointer = 8, aux_pointer = 11, a_scale_pointer = 17,
              d_scale_pointer = 20, emulation_descriptor = 38;
// Numbers of cublasLtMatrixLayoutAttribute_t.
constexpr int data_type = 0, storage_order = 1, row_count = 2, column_count = 3, leading_dimension = 4,
              batch_count = 5, batch_stride = 6, plane_offset = 7, batch_mode = 8;
constexpr int fill_full = 2, column_order = 0, row_order = 1;

constinit Symbol description_getter("cublasLtMatmulDescGetAttribute");
constinit Symbol layout_getter("cublasLtMatrixLayoutGetAttribute");
constinit Symbol emulation_getter("cublasLtEmulationDescGetAttribute");

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

// ------------------------------------------------------------------ epilogues

// Epilogues with a gradient of the bias that is a sum over rows of A or columns of B.
constexpr bool is_gradient_of_operand(std::uint32_t requested) {
  return requested == epilogue_bgrada || requested == epilogue_bgradb;
}
constexpr bool has_bias(std::uint32_t requested) {
  return (requested & (epilogue_bias | epilogue_bgrad)) != 0 || is_gradient_of_operand(requested);
}

constinit Symbol real_matmul("cublasLtMatmul");
constinit Symbol make_layout("cublasLtMatrixLayoutCreate");
constinit Symbol set_layout("cublasLtMatrixLayoutSetAttribute");
constinit Symbol destroy_layout("cublasLtMatrixLayoutDestroy");

// Returns the number of cudaDataType_t.
constexpr int data_type_of(kintsugi_type type) { return type == KINTSUGI_F32 ? data_f32 : data_f64; }

// Layout of matrices of FP32 or FP64 whose columns are adjacent.
class PackedLayout {
 public:
  // `stride`: distance of two matrices of the batch, in elements.
  PackedLayout(kintsugi_type type, std::int64_t rows, std::int64_t columns, std::int64_t count,
               std::int64_t stride) {
    const int status = call_real(make_layout, &layout_, data_type_of(type), static_cast<std::uint64_t>(rows),
                                 static_cast<std::uint64_t>(columns), rows);
    if (status != success) layout_ = nullptr;
    if (layout_ == nullptr) return;
    const auto items = static_cast<std::int32_t>(count);
    const void *const items_address = &items, *const stride_address = &stride;
    call_real(set_layout, layout_, batch_count, items_address, sizeof items);
    call_real(set_layout, layout_, batch_stride, stride_address, sizeof stride);
  }
  ~PackedLayout() {
    if (layout_ != nullptr) call_real(destroy_layout, layout_);
  }
  PackedLayout(const PackedLayout&) = delete;
  PackedLayout& operator=(const PackedLayout&) = delete;

  void* get() const { return layout_; }

 private:
  void* layout_ = nullptr;
};

// ------------------------------------------------------------------ the call

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
  const char* reason_in_arithmetic(kintsugi_type type) const override {
    for (const void* layout : {matmul_.layout_a, matmul_.layout_b, matmul_.layout_c, matmul_.layout_d})
      if (is_unsupported(layout)) return "complex matrices in planes, or a batch by pointers";
    for (int pointer = a_scale_pointer; pointer <= d_scale_pointer; ++pointer)
      if (matmul_.described<const void*>(pointer, nullptr) != nullptr) return "scales of single matrices";
    if (matmul_.described(op_of_c, 0) != 0 || matmul_.described(fill_mode, fill_full) != fill_full)
      return "a transpose of C or one triangle of D";
    return call_.requests_emulation && !is_single(type) ? reason_in_emulation() : nullptr;
  }
  bool requests_emulation(kintsugi_type) const override { return call_.requests_emulation; }

  // Sums the operand whose gradient the epilogue is, and copies C into D, to which the emulation then adds
  // the product.
  const char* enqueue_before(const CallState& state) const override {
    if (epilogue_ != epilogue_default && constants_of(state) == nullptr)
      return "an epilogue needs memory that no earlier call took";
    if (is_gradient_of_operand(epilogue_))
      if (const char* reason = enqueue_gradient(state)) return reason;
    return copies_c_ ? enqueue_copies(state) : nullptr;
  }

  const char* enqueue_after(const CallState& state) const override {
    return has_epilogue_after() ? apply_epilogue(state) : nullptr;
  }
  bool can_repeat_after_product() const override { return !reads_d_ || !has_epilogue_after(); }

  bool computes_product(kintsugi_type type) const override {
    return epilogue_ == epilogue_default && !copies_c_ && reason_in_arithmetic(type) == nullptr;
  }

 private:
  const char* reason_in_emulation() const {
    const auto* settings = matmul_.described<const void*>(emulation_descriptor, nullptr);
    if (settings == nullptr) return nullptr;
    return reason_in_mantissa(
        {.control = attribute<std::int32_t>(emulation_getter, settings, 2, 0),
         .max_bits = attribute<std::int32_t>(emulation_getter, settings, 3, 0),
         .offset = attribute<std::int32_t>(emulation_getter, settings, 4, 0),
         .count_pointer = attribute<const void*>(emulation_getter, settings, 5, nullptr)});
  }

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
    if (!supports_orders(a, b, d, type.type))
      return Unsupported{.field = Field::order, .values = {a.order, b.order, d.order}};
    if (a.count != d.count || b.count != d.count)
      return Unsupported{.field = Field::batch, .values = {a.count, b.count, d.count}};
    if (!has_matching_sizes(a, b, d)) return Unsupported{.field = Field::sizes};
    if (const Unsupported field = take_c(d, type.type); field.field != Field::none) return field;
    is_row_major_ = d.order == row_order;
    const Unsupported field = take_epilogue(type.type);
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

  // Sets all members of call_ except its type. A row-major matrix is the transpose of a column-major one, so
  // a row-major D is computed as D^T = op(B)^T op(A)^T.
  void set_call(const MatrixLayout& a, const MatrixLayout& b, const MatrixLayout& d) {
    op_a_ = Cublas::op(matmul_.described(op_of_a, -1));
    op_b_ = Cublas::op(matmul_.described(op_of_b, -1));
    const Op op_a = a.order == d.order ? op_a_ : transposed(op_a_);
    const Op op_b = b.order == d.order ? op_b_ : transposed(op_b_);
    const std::int64_t k = op_a_ == Op::n ? a.columns : a.rows;
    if (d.order == row_order) {
      call_ = {product(KINTSUGI_F32, op_b, op_a, d.columns, d.rows, k, matmul_.alpha, matmul_.b, b.ld,
                       matmul_.a, a.ld, matmul_.beta, matmul_.d, d.ld)};
      make_strided(call_, b.stride, a.stride, d.stride, d.count);
    } else {
      call_ = {product(KINTSUGI_F32, op_a, op_b, d.rows, d.columns, k, matmul_.alpha, matmul_.a, a.ld,
                       matmul_.b, b.ld, matmul_.beta, matmul_.d, d.ld)};
      make_strided(call_, a.stride, b.stride, d.stride, d.count);
    }
  }
  // Returns the op of a real matrix's transpose.
  static Op transposed(Op op) {
    if (op == Op::n) return Op::t;
    return op == Op::t || op == Op::c ? Op::n : op;
  }

  // True if the orders are column-major and row-major ones. Complex matrices must all have the same, since
  // there is no op for conjugation without transposition.
  static bool supports_orders(const MatrixLayout& a, const MatrixLayout& b, const MatrixLayout& d,
                              kintsugi_type type) {
    for (const int order : {a.order, b.order, d.order})
      if (order != column_order && order != row_order) return false;
    return !is_complex(type) || (a.order == d.order && b.order == d.order);
  }

  bool has_matching_sizes(const MatrixLayout& a, const MatrixLayout& b, const MatrixLayout& d) const {
    const bool a_fits = op_a_ == Op::n ? a.rows == d.rows : a.columns == d.rows;
    const bool b_fits = op_b_ == Op::n ? b.rows == call_.k && b.columns == d.columns
                                       : b.columns == call_.k && b.rows == d.columns;
    return a_fits && b_fits;
  }

  // Decides how C is read. Returns the field because of which cuBLAS must answer the call.
  Unsupported take_c(const MatrixLayout& d, kintsugi_type type) {
    if (pointer_mode_ == KINTSUGI_SCALARS_ON_HOST && is_zero(matmul_.beta, type)) return {};
    const MatrixLayout c(matmul_.layout_c);
    copies_c_ = matmul_.c != matmul_.d;
    reads_d_ = !copies_c_;
    if (reads_d_) return {.field = c == d ? Field::none : Field::c, .detail = " in another layout than D"};
    if (matmul_.c == nullptr) return {.field = Field::c, .detail = " that is null"};
    const bool has_shape_of_d = c.type == d.type && c.order == d.order && c.rows == d.rows &&
                                c.columns == d.columns && c.count == d.count;
    if (!has_shape_of_d) return {.field = Field::c, .detail = " of another shape or order than D"};
    c_ld_ = c.ld;
    c_stride_ = c.stride;
    if (c.ld < call_.m) return {.field = Field::c, .detail = " with too small a leading dimension"};
    if (d.count > max_copies) return {.field = Field::c, .detail = " beside D in a batch of more than 64"};
    return gains_with_passes(1, type) ? Unsupported{}
                                      : Unsupported{.field = Field::c, .detail = " beside D with small k"};
  }

  // Sets the epilogue. Returns the field because of which cuBLAS must answer the call.
  Unsupported take_epilogue(kintsugi_type type) {
    epilogue_ = matmul_.described(epilogue, epilogue_default);
    if (epilogue_ == epilogue_default) return {};
    const char* const detail = obstacle_to_epilogue(type);
    return detail == nullptr ? Unsupported{}
                             : Unsupported{.field = Field::epilogue, .values = {epilogue_}, .detail = detail};
  }

  // Returns why the epilogue is not supported; nullptr: it is. cuBLAS refuses epilogues of complex types, and
  // of row-major D all but activations, with its own status.
  const char* obstacle_to_epilogue(kintsugi_type type) const {
    if (is_complex(type)) return " of complex matrices";
    if (is_row_major_ && epilogue_ != epilogue_relu && epilogue_ != epilogue_gelu) return " of a row-major D";
    if (has_bias(epilogue_) && matmul_.described<const void*>(bias_pointer, nullptr) == nullptr)
      return " without a bias";
    if ((epilogue_ & epilogue_aux) != 0 && matmul_.described<const void*>(aux_pointer, nullptr) == nullptr)
      return " without an auxiliary matrix";
    // cuBLAS sums a gradient of the bias in a workspace of which only the heuristics know the size.
    if ((epilogue_ & epilogue_bgrad) != 0 && (reads_d_ || matmul_.workspace == nullptr))
      return reads_d_ ? " that reads D" : " without a workspace";
    // cuBLAS sums the gradient, and packs the bits of a mask, in slower kernels.
    const bool is_slow = (epilogue_ & (epilogue_bgrad | epilogue_drelu)) != 0 ||
                         (epilogue_ & ~epilogue_bias) == (epilogue_relu | epilogue_aux);
    const int passes = (is_slow ? 2 : 1) + (copies_c_ ? 1 : 0);
    return gains_with_passes(passes, type) ? nullptr : " with small k";
  }

  // True if an emulation gains more time than the additional passes over D cost. A pass moves 8 to 12 bytes
  // per element of FP32, 3 to 6 ps on an H100 or H200. An FP32 emulation gains about 0.03 ps per
  // multiplication, one of FP64 a quarter of that, while its elements are twice as long.
  bool gains_with_passes(int passes, kintsugi_type type) const {
    const std::int64_t min_k_of_pass = type == KINTSUGI_F32 || type == KINTSUGI_C32 ? 256 : 2048;
    return settings().policy != Policy::automatic || settings().sites || call_.k >= passes * min_k_of_pass;
  }

  // ---------------------------------------------------------------- steps beside the product

  bool has_epilogue_after() const {
    return epilogue_ != epilogue_default && !is_gradient_of_operand(epilogue_);
  }

  // With 4 inner indices cuBLASLt applies a bias in its pass over D, since rows and columns of the matrices
  // of zeros are aligned. With one inner index cuBLASLt adds the bias in a second pass. On an H100 a D of
  // 4096 x 8192 takes 115 us with 4 inner indices and 387 us with one.
  static constexpr std::int64_t inner_count = 4;
  // Copies of items of a batch take the host about 2 us each.
  static constexpr std::int64_t max_copies = 64;

  // Returns nullptr if there is no memory.
  const Constants* constants_of(const CallState& state) const {
    const std::int64_t longest =
        std::max({call_.m, call_.n, is_gradient_of_operand(epilogue_) ? call_.k : 0});
    const auto bytes = static_cast<std::size_t>(inner_count * longest * element_bytes(call_.type));
    return constants(state.device, bytes, state.stream);
  }

  // Returns 1 or 0 of the matrices' type where the description says that alpha and beta are.
  const void* one(const Constants& all) const {
    if (pointer_mode_ == KINTSUGI_SCALARS_ON_HOST) return drop_in::one(call_.type);
    return call_.type == KINTSUGI_F32 ? all.one_f32 : all.one_f64;
  }
  const void* zero(const Constants& all) const {
    return pointer_mode_ == KINTSUGI_SCALARS_ON_HOST ? drop_in::zero() : all.zeros;
  }

  const char* enqueue_copies(const CallState& state) const {
    const auto bytes = static_cast<std::size_t>(element_bytes(call_.type));
    for (std::int64_t item = 0; item < call_.count; ++item) {
      const DeviceRows columns{.first = const_cast<char*>(static_cast<const char*>(matmul_.c)) +
                                        static_cast<std::size_t>(item * c_stride_) * bytes,
                               .pitch = static_cast<std::size_t>(c_ld_) * bytes,
                               .bytes = static_cast<std::size_t>(call_.m) * bytes,
                               .count = static_cast<std::size_t>(call_.n)};
      void* const target =
          static_cast<char*>(matmul_.d) + static_cast<std::size_t>(item * call_.stride_c) * bytes;
      const std::size_t pitch = static_cast<std::size_t>(call_.ldc) * bytes;
      if (!copy_on_device(columns, target, pitch, state.stream)) return "the driver does not copy C";
    }
    return nullptr;
  }

  // Enqueues the epilogue of a product, which D holds, as a product of cuBLASLt: matrices of zeros with few
  // inner indices are multiplied and their product added to D, and cuBLASLt applies the epilogue to the sum.
  // D is read and written once. All that the epilogue reads and writes is in cuBLASLt's own layout.
  const char* apply_epilogue(const CallState& state) const {
    const Constants* const all = constants_of(state);
    if (all == nullptr) return "there is no memory for an epilogue";
    const std::int64_t rows = is_row_major_ ? call_.n : call_.m, columns = is_row_major_ ? call_.m : call_.n;
    const bool is_plain_a = op_a_ == Op::n, is_plain_b = op_b_ == Op::n;
    const PackedLayout a(call_.type, is_plain_a ? rows : inner_count, is_plain_a ? inner_count : rows,
                         call_.count, 0);
    const PackedLayout b(call_.type, is_plain_b ? inner_count : columns, is_plain_b ? columns : inner_count,
                         call_.count, 0);
    if (a.get() == nullptr || b.get() == nullptr) return "cuBLAS makes no layout for an epilogue";
    const int status =
        multiply(one(*all), all->zeros, a.get(), all->zeros, b.get(), one(*all), matmul_.d, matmul_.layout_d);
    return status == success ? nullptr : "cuBLAS does not apply the epilogue alone";
  }

  // Enqueues the sums of an operand's rows or columns as a product of cuBLASLt with few rows or columns of
  // zeros in the place of the other operand. The product itself is dropped.
  const char* enqueue_gradient(const CallState& state) const {
    if (is_captured(state.stream)) return "the stream is being captured, and an epilogue needs memory";
    const Constants* const all = constants_of(state);
    const bool is_of_a = epilogue_ == epilogue_bgrada;
    const std::int64_t rows = is_of_a ? call_.m : inner_count, columns = is_of_a ? inner_count : call_.n;
    const auto bytes = static_cast<std::size_t>(rows * columns * call_.count * element_bytes(call_.type));
    const Workspace dropped(state.device, bytes, state.stream);
    if (all == nullptr || dropped.pointer() == nullptr) return "there is no memory for an epilogue";
    const bool is_plain = (is_of_a ? op_b_ : op_a_) == Op::n;
    const bool has_k_rows = is_plain == is_of_a;
    const PackedLayout zeros(call_.type, has_k_rows ? call_.k : inner_count,
                             has_k_rows ? inner_count : call_.k, call_.count, 0);
    const PackedLayout d(call_.type, rows, columns, call_.count, rows * columns);
    if (zeros.get() == nullptr || d.get() == nullptr) return "cuBLAS makes no layout for an epilogue";
    const int status = is_of_a ? multiply(one(*all), matmul_.a, matmul_.layout_a, all->zeros, zeros.get(),
                                          zero(*all), dropped.pointer(), d.get())
                               : multiply(one(*all), all->zeros, zeros.get(), matmul_.b, matmul_.layout_b,
                                          zero(*all), dropped.pointer(), d.get());
    return status == success ? nullptr : "cuBLAS does not sum an operand alone";
  }

  // Calls the real function with the caller's description and workspace, where C is D.
  int multiply(const void* alpha, const void* a, const void* layout_a, const void* b, const void* layout_b,
               const void* beta, void* d, const void* layout_d) const {
    const void *const no_algorithm = nullptr, *const c = d;
    return call_real(real_matmul, matmul_.handle, matmul_.description, alpha, a, layout_a, b, layout_b, beta,
                     c, layout_d, d, layout_d, no_algorithm, matmul_.workspace, matmul_.workspace_bytes,
                     matmul_.stream);
  }

  const Matmul& matmul_;
  ProductCall call_;
  Op op_a_ = Op::n, op_b_ = Op::n;  // of the description
  int pointer_mode_ = 0;
  std::uint32_t epilogue_ = epilogue_default;
  bool is_row_major_ = false;  // D is row-major
  bool reads_d_ = false;       // C is D and beta is not known to be 0
  bool copies_c_ = false;      // C is another matrix than D, and beta is not known to be 0
  std::int64_t c_ld_ = 0, c_stride_ = 0;
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

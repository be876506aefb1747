#include "engines/cuda/cublas.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <map>
#include <mutex>

#include "base/cuda/cuda_driver.hpp"
#include "base/status.hpp"
#include "base/view.hpp"
#include "engines/cuda/common/launch_graph.hpp"
#include "engines/cuda/recombine/recombine.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::core::cuda {

namespace {

// Values of cublasPointerMode_t: alpha and beta are in host memory or in device memory.
constexpr int host_scalars = 0;
constexpr int device_scalars = 1;

// A cuBLAS handle, with the stream, workspace and pointer mode that were last set for it. Calls with the same
// values need not set them again.
struct KeptHandle {
  BlasHandle handle = nullptr;
  // Id of the stream. The address does not identify a stream: a later stream may have the address of a
  // destroyed one.
  std::uint64_t stream_id = 0;
  std::byte* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  int pointer_mode = host_scalars;
  bool is_set = false;  // true if the handle has this stream and this workspace
};

// A cuBLAS handle, locked and set up for one queue. Each context has one handle, since handles belong to
// contexts. The handle of a destroyed context is leaked: destroying it would need the context. The lock is
// held for a short time, since calls only put work into a stream.
class LockedHandle {
 public:
  // Locks the handle of the current context, and creates it if there is none.
  LockedHandle() : lock_(mutex()) {
    static std::map<std::uint64_t, KeptHandle> handles;  // key: the context's id
    kept_ = &handles[current_context_id()];
    if (kept_->handle == nullptr) check_blas(cublas().create(&kept_->handle), "cublasCreate");
  }
  // Sets the handle up for the queue. A workspace of 0 bytes is set as well: otherwise cuBLAS would allocate
  // memory.
  LockedHandle(const Queue& queue, std::byte* workspace, std::size_t bytes, bool scalars_on_device)
      : LockedHandle() {
    LaunchRecording::issue_recorded();  // first, since launches of cuBLAS are not recorded
    unsigned long long id = 0;
    const bool has_id = !may_be_captured(queue.stream);  // asking for the id would break a capture
    if (has_id) check(driver().stream_id(queue.stream, &id), "cuStreamGetId");
    std::byte* memory = bytes > 0 ? workspace : nullptr;
    const bool is_same = has_id && kept_->is_set && kept_->stream_id == id && kept_->workspace == memory &&
                         kept_->workspace_bytes == bytes;
    if (!is_same) set_stream(queue, memory, bytes);
    kept_->stream_id = id;
    kept_->is_set = has_id;
    set_pointer_mode(scalars_on_device ? device_scalars : host_scalars);
  }

  BlasHandle get() const { return kept_->handle; }
  void set_pointer_mode(int mode) const {
    if (kept_->pointer_mode == mode) return;
    check_blas(cublas().set_pointer_mode(kept_->handle, mode), "cublasSetPointerMode");
    kept_->pointer_mode = mode;
  }

 private:
  static std::mutex& mutex() {
    static std::mutex instance;
    return instance;
  }
  void set_stream(const Queue& queue, std::byte* memory, std::size_t bytes) const {
    kept_->is_set = false;
    check_blas(cublas().set_stream(kept_->handle, queue.stream), "cublasSetStream");  // resets the workspace
    check_blas(cublas().set_workspace(kept_->handle, memory, bytes), "cublasSetWorkspace");
    kept_->workspace = memory;
    kept_->workspace_bytes = bytes;
  }

  std::lock_guard<std::mutex> lock_;
  KeptHandle* kept_ = nullptr;
};

// Types of a product of slices in cuBLAS.
struct SliceType {
  DataType data;
  ComputeType compute;
  DataType sums = DataType::f32;
};

// Types for slices of a format. FP64 slices may need a pedantic type, because cuBLAS can emulate FP64
// products. It can emulate FP32 products as well, but no slices are FP32 data. TF32 slices are stored as FP32
// and have a compute type of their own.
SliceType type_of(const Format& format, BlasHandle handle) {
  switch (format.id) {
    case FormatId::fp16: return {DataType::f16, ComputeType::f32};
    case FormatId::bf16: return {DataType::bf16, ComputeType::f32};
    case FormatId::tf32:
      return {DataType::f32, ComputeType::f32_by_tf32};  // exact, since the slices are TF32 values
    case FormatId::fp64: return {DataType::f64, native_compute_type(handle, /*is_fp64=*/true), DataType::f64};
    case FormatId::int8: return {DataType::i8, ComputeType::i32, DataType::i32};
    default: fail(Status::internal, "cuBLAS does not multiply {}", format.name);
  }
}

// Factor in host memory, in the type in which cuBLAS computes the product.
class HostFactor {
 public:
  HostFactor(ComputeType type, double value)
      : type_(type), fp64_(value), fp32_(static_cast<float>(value)),
        integer_(static_cast<std::int32_t>(value)) {}

  const void* pointer() const {
    if (type_ == ComputeType::i32) return &integer_;
    const bool is_fp64 = type_ == ComputeType::f64 || type_ == ComputeType::f64_pedantic;
    return is_fp64 ? static_cast<const void*>(&fp64_) : &fp32_;
  }

 private:
  ComputeType type_;
  double fp64_;
  float fp32_;
  std::int32_t integer_;
};

// Product of one term over one k-block: sums = weight a b, plus the old sums if `keep` is true. A term with a
// fit takes its weight from the fit, in device memory.
struct TermCall {
  const void* a;
  const void* b;
  void* sums;
  std::int64_t k;
  double weight;
  bool keep;
  const DeviceFit* fit = nullptr;
};

// Products of the slices of two operands by cuBLAS. `rows` is the number of rows of the sums, padding
// included.
class TermProducts {
 public:
  TermProducts(const Queue& queue, const Slices& a, const Slices& b, std::int64_t rows, std::byte* scratch)
      : handle_(queue, scratch, vendor_workspace_bytes, /*scalars_on_device=*/false), a_(a), b_(b),
        type_(type_of(*a.format, handle_.get())), rows_(rows) {}

  void add(const TermCall& call) const {
    const HostFactor weight(type_.compute, call.weight);
    const HostFactor keep(type_.compute, call.keep ? 1 : 0);
    const void* alpha = weight.pointer();
    const void* beta = keep.pointer();
    if (call.fit != nullptr) {
      // A kernel has fitted the residual's scale, so cuBLAS reads alpha and beta from device memory.
      alpha = &call.fit->weight;
      beta = call.keep ? &call.fit->one : &call.fit->zero;
    }
    handle_.set_pointer_mode(call.fit != nullptr ? device_scalars : host_scalars);
    constexpr int not_transposed = 0;
    constexpr int transposed = 1;
    check_blas(cublas().gemm(handle_.get(), transposed, not_transposed, rows_,
                             round_up(b_.vectors, column_multiple), call.k, alpha, call.a, type_.data,
                             a_.vector_stride(), call.b, type_.data, b_.vector_stride(), beta, call.sums,
                             type_.sums, rows_, type_.compute, default_algorithm),
               "cublasGemmEx");
  }

  static constexpr std::int64_t column_multiple = 16;

 private:
  LockedHandle handle_;
  const Slices& a_;
  const Slices& b_;
  SliceType type_;
  std::int64_t rows_;
};

// True if the term's weight is the one of the batch item's fit.
bool is_fitted(const Schedule& schedule, const Term& term) {
  return schedule.joint && schedule.group_exponents[term.group] == fitted_exponent;
}

// Final weight of term t: the product of all later rescalings of its group and, if groups are joint, of the
// group's weight. cuBLAS adds the term with this weight.
double weight_of_term(const Schedule& schedule, std::size_t t) {
  const Term& term = schedule.terms[t];
  int exponent = schedule.joint && !is_fitted(schedule, term) ? schedule.group_exponents[term.group] : 0;
  for (const Term& later : schedule.terms.subspan(t + 1)) {
    if (later.group == term.group && later.rescales) exponent += schedule.rescale_exponent;
  }
  return power_of_two(exponent);
}

// Inner indices of one cuBLAS call, padding included: for int8, cuBLAS requires a multiple of four.
std::int64_t k_block_of(const Schedule& schedule, const Slices& slices) {
  return schedule.block_length(slices.vector_stride());
}

// Address of a slice's vectors from inner index p on.
std::byte* vectors_from(const Slices& slices, int slice, std::int64_t p) {
  return slices.data + static_cast<std::size_t>(slice * slices.slice_stride() + p) * slices.element_bytes();
}

// Adds every term of every k-block to the FP32 sums in memory. So an accumulator of cuBLAS sums no more than
// one term of one k-block, even if the schedule adds terms inside the matrix unit.
void multiply_floating(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                       const Accumulators& sums, std::byte* scratch, const DeviceFit* fit) {
  const TermProducts products(queue, a, b, sums.rows, scratch);
  std::array<bool, max_groups> has_begun{};  // true for sums that have a term
  const std::int64_t k_block = k_block_of(schedule, a);
  for (std::int64_t p = 0; p < a.k; p += k_block) {
    for (std::size_t t = 0; t < schedule.terms.size(); ++t) {
      const Term& term = schedule.terms[t];
      const int sum = schedule.joint ? 0 : term.group;
      products.add({.a = vectors_from(a, term.a, p),
                    .b = vectors_from(b, term.b, p),
                    .sums = sums.group<float>(sum),
                    .k = std::min(k_block, a.vector_stride() - p),
                    .weight = weight_of_term(schedule, t),
                    .keep = has_begun[sum],
                    .fit = is_fitted(schedule, term) ? fit : nullptr});
      has_begun[sum] = true;
    }
  }
}

// Sums the terms of each group over each k-block in int32. Then adds that sum to the group's 64-bit integers,
// or reduces it by the group's modulus and adds it to the group's residues.
void multiply_integers(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                       const Accumulators& sums, std::byte* scratch) {
  auto* inside = reinterpret_cast<std::int32_t*>(scratch + aligned_size(vendor_workspace_bytes));
  const std::int64_t k_block = k_block_of(schedule, a);
  for (std::int64_t p = 0; p < a.k; p += k_block) {
    for (int g = 0; g < schedule.groups; ++g) {
      {  // releases the cuBLAS handle before the kernel below is launched
        const TermProducts products(queue, a, b, sums.rows, scratch);
        bool has_begun = false;
        for (const Term& term : schedule.terms) {
          if (term.group != g) continue;
          products.add({.a = vectors_from(a, term.a, p),
                        .b = vectors_from(b, term.b, p),
                        .sums = inside,
                        .k = std::min(k_block, a.vector_stride() - p),
                        .weight = 1,
                        .keep = has_begun});
          has_begun = true;
        }
      }
      const bool are_residues = sums.type == SumType::residue;
      void* outside =
          are_residues ? static_cast<void*>(sums.group<std::uint8_t>(g)) : sums.group<std::int64_t>(g);
      const bool is_first_k_block = p == 0;
      add_outside(queue, inside, sums.group_stride(), are_residues ? schedule.group_moduli[g] : 0,
                  is_first_k_block, outside);
    }
  }
}

// Multiplies each term of each k-block alone, and adds the product to 64-bit integers. Such a product is
// exact in the matrix unit.
void multiply_without_error(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                            const Accumulators& sums, std::byte* scratch) {
  std::byte* inside = scratch + aligned_size(vendor_workspace_bytes);
  const std::int64_t k_block = k_block_of(schedule, a);
  for (std::int64_t p = 0; p < a.k; p += k_block) {
    for (const Term& term : schedule.terms) {
      const TermProducts products(queue, a, b, sums.rows, scratch);
      products.add({.a = vectors_from(a, term.a, p),
                    .b = vectors_from(b, term.b, p),
                    .sums = inside,
                    .k = std::min(k_block, a.vector_stride() - p),
                    .weight = 1,
                    .keep = false});
      const bool inside_is_fp64 = a.format->id == FormatId::fp64;
      const bool is_first_k_block = p == 0;
      add_exact_sums_outside(queue, inside, inside_is_fp64, sums.group_stride(), is_first_k_block,
                             sums.group<std::int64_t>(term.group));
    }
  }
}

bool is_fp64(ElementType type) { return type == ElementType::f64 || type == ElementType::c64; }

DataType data_type(ElementType type) {
  switch (type) {
    case ElementType::f32: return DataType::f32;
    case ElementType::f64: return DataType::f64;
    case ElementType::c32: return DataType::c32;
    case ElementType::c64: break;
  }
  return DataType::c64;
}

// alpha or beta of a call, in host memory and in the element type. It has the alignment of cuDoubleComplex,
// because cuBLAS 13.1 reads it by aligned instructions.
class HostScalar {
 public:
  HostScalar(ElementType type, std::complex<double> value) : type_(type), fp64_(value), fp32_(value) {}

  // The real part comes first, so this is also the address of a real scalar.
  const void* pointer() const { return is_fp64(type_) ? static_cast<const void*>(&fp64_) : &fp32_; }

 private:
  ElementType type_;
  alignas(16) std::complex<double> fp64_;
  alignas(16) std::complex<float> fp32_;
};

// Result of a call of cuBLAS, with the name of the function.
struct NativeCall {
  int status;
  const char* function;
};

NativeCall call_native(const DeviceBlasProduct& p, BlasHandle handle) {
  const DataType data = data_type(p.type);
  const ComputeType compute = native_compute_type(handle, is_fp64(p.type));
  const HostScalar host_alpha(p.type, p.scalars.alpha);
  const HostScalar host_beta(p.type, p.scalars.beta);
  const void* alpha = p.scalars.on_device() ? p.scalars.device_alpha : host_alpha.pointer();
  const void* beta = p.scalars.on_device() ? p.scalars.device_beta : host_beta.pointer();
  if (p.pointers) {
    return {cublas().gemm_pointers(
                handle, p.op_a, p.op_b, p.m, p.n, p.k, alpha, static_cast<const void* const*>(p.a), data,
                p.lda, static_cast<const void* const*>(p.b), data, p.ldb, beta,
                static_cast<void* const*>(p.c), data, p.ldc, p.batch_count, compute, default_algorithm),
            "cublasGemmBatchedEx"};
  }
  if (p.batch_count > 1) {
    return {cublas().gemm_strided(handle, p.op_a, p.op_b, p.m, p.n, p.k, alpha, p.a, data, p.lda,
                                  p.batch_stride_a, p.b, data, p.ldb, p.batch_stride_b, beta, p.c, data,
                                  p.ldc, p.batch_stride_c, p.batch_count, compute, default_algorithm),
            "cublasGemmStridedBatchedEx"};
  }
  return {cublas().gemm(handle, p.op_a, p.op_b, p.m, p.n, p.k, alpha, p.a, data, p.lda, p.b, data, p.ldb,
                        beta, p.c, data, p.ldc, compute, default_algorithm),
          "cublasGemmEx"};
}

}  // namespace

std::size_t cublas_scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t rows,
                                 std::int64_t columns) {
  const bool needs_sums_of_k_block = format == FormatId::int8 || schedule.integer_sums;
  const std::size_t sum_bytes = format == FormatId::fp64 ? sizeof(double) : sizeof(std::int32_t);
  return aligned_size(vendor_workspace_bytes) +
         (needs_sums_of_k_block ? array_bytes(rows, columns, sum_bytes) : std::size_t{0});
}

void multiply_by_cublas(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                        const Accumulators& sums, std::byte* scratch, const DeviceFit* fit) {
  if (schedule.integer_sums) return multiply_without_error(queue, schedule, a, b, sums, scratch);
  if (a.format->floating) return multiply_floating(queue, schedule, a, b, sums, scratch, fit);
  multiply_integers(queue, schedule, a, b, sums, scratch);
}

// Some kernels of cuBLAS multiply an operand by alpha instead of the sums, so that alpha a may underflow or
// overflow where the scaled sum does not. Of 15,000 shapes and ops a type, all of them had a side of C of at
// most 16, or k = 1 (cuBLAS 13.1; lab/results/log/2026-11-29-native-products.md). No kernel flushes
// subnormal operands or scalars.
bool may_scale_operands(const DeviceBlasProduct& p) {
  constexpr std::int64_t longest_side = 16;
  const bool has_such_kernels = std::min(p.m, p.n) <= longest_side || p.k == 1;
  const bool is_sign = !p.scalars.on_device() && (p.scalars.alpha == 1.0 || p.scalars.alpha == -1.0);
  return has_such_kernels && !is_sign;
}

bool multiply_by_vendor(const Queue& queue, const DeviceBlasProduct& p, std::byte* scratch) {
  if (p.keeps_contract && may_scale_operands(p)) return false;
  const LockedHandle handle(queue, scratch, p.scratch_bytes, p.scalars.on_device());
  const auto [status, function] = call_native(p, handle.get());
  // "Workspace size equal to or larger than 16KiB is enough to prevent CUBLAS_STATUS_ALLOC_FAILED error"
  // (reference of cublasSetWorkspace).
  constexpr std::size_t enough_bytes = 16384;
  if (status == allocation_failed && p.scratch_bytes < enough_bytes) return false;
  check_blas(status, function);
  return true;
}

void prepare_blas() { const LockedHandle handle; }

}  // namespace kintsugi::core::cuda

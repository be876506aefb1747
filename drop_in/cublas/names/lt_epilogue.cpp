#include "lt_epilogue.hpp"

#include <kintsugi/kintsugi.h>

#include <algorithm>

#include "cublas/device/driver.hpp"
#include "cublas/device/workspace.hpp"
#include "cublas/real.hpp"

namespace kintsugi::cublas {

namespace {

constinit Symbol real_matmul("cublasLtMatmul");
constinit Symbol make_layout("cublasLtMatrixLayoutCreate");
constinit Symbol destroy_layout("cublasLtMatrixLayoutDestroy");

// Layout of a vector, as a matrix with one column or one row.
class VectorLayout {
 public:
  VectorLayout(std::int64_t rows, std::int64_t columns) {
    const int status = call_real(make_layout, &layout_, data_f32, static_cast<std::uint64_t>(rows),
                                 static_cast<std::uint64_t>(columns), rows);
    if (status != success) layout_ = nullptr;
  }
  ~VectorLayout() {
    if (layout_ != nullptr) call_real(destroy_layout, layout_);
  }
  VectorLayout(const VectorLayout&) = delete;
  VectorLayout& operator=(const VectorLayout&) = delete;

  const void* get() const { return layout_; }

 private:
  void* layout_ = nullptr;
};

}  // namespace

const char* apply_epilogue(const PendingEpilogue& e) {
  const auto bytes = static_cast<std::size_t>(std::max(e.m, e.n)) * sizeof(float);
  const Workspace zeros(e.device, bytes, e.stream);
  if (zeros.pointer() == nullptr || !set_to_zero(zeros.pointer(), bytes, e.stream))
    return "there is no memory for an epilogue";
  // op(A) is a column of m zeros, and op(B) is a row of n zeros.
  const bool is_plain_a = e.op_a == KINTSUGI_OP_N;
  const bool is_plain_b = e.op_b == KINTSUGI_OP_N;
  const VectorLayout column(is_plain_a ? e.m : 1, is_plain_a ? 1 : e.m);
  const VectorLayout row(is_plain_b ? 1 : e.n, is_plain_b ? e.n : 1);
  if (column.get() == nullptr || row.get() == nullptr) return "cuBLAS makes no layout for an epilogue";
  constexpr float one = 1;
  const void* const scalar = &one;
  const void* const zero_vector = zeros.pointer();
  const void* const c = e.d;
  const void* const no_algorithm = nullptr;
  const int status = call_real(real_matmul, e.handle, e.description, scalar, zero_vector, column.get(),
                               zero_vector, row.get(), scalar, c, e.layout_d, e.d, e.layout_d, no_algorithm,
                               e.workspace, e.workspace_bytes, e.stream);
  return status == success ? nullptr : "cuBLAS does not apply the epilogue alone";
}

}  // namespace kintsugi::cublas

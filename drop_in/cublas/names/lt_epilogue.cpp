#include "lt_epilogue.hpp"

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

const char* apply_epilogue(const AwaitedEpilogue& e) {
  const auto bytes = static_cast<std::size_t>(std::max(e.m, e.n)) * sizeof(float);
  const Workspace zeros(e.device, bytes, e.stream);
  if (zeros.pointer() == nullptr || !set_to_zero(zeros.pointer(), bytes, e.stream))
    return "there is no memory for an epilogue";
  const VectorLayout column(e.op_a == 0 ? e.m : 1, e.op_a == 0 ? 1 : e.m);
  const VectorLayout row(e.op_b == 0 ? 1 : e.n, e.op_b == 0 ? e.n : 1);
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

// The perceptron of perceptron.cpp with its products on a GPU by cuBLAS, and activations on the host: three
// call sites of cublasSgemm.
#include <exception>

#include "common.hpp"

// As cublas_v2.h and cuda.h declare them.
extern "C" {
int cublasCreate_v2(void** handle);
int cublasDestroy_v2(void* handle);
int cublasSgemm_v2(void* handle, int op_a, int op_b, int m, int n, int k, const float* alpha, const float* a,
                   int lda, const float* b, int ldb, const float* beta, float* c, int ldc);
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuCtxSetCurrent(void* context);
int cuCtxSynchronize();
int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes);
int cuMemFree_v2(unsigned long long address);
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, std::size_t bytes, void* stream);
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, void* stream);
}

namespace {

using apps::Matrix;

void require(int status, const char* what) {
  if (status != 0) throw std::runtime_error(std::string(what) + " returned " + std::to_string(status));
}

// A matrix in the device's memory.
class DeviceMatrix {
 public:
  DeviceMatrix(int rows, int columns) : rows_(rows), columns_(columns) {
    require(cuMemAlloc_v2(&address_, bytes()), "cuMemAlloc");
  }
  explicit DeviceMatrix(const Matrix& matrix) : DeviceMatrix(matrix.rows, matrix.columns) { put(matrix); }
  ~DeviceMatrix() { cuMemFree_v2(address_); }
  DeviceMatrix(const DeviceMatrix&) = delete;
  DeviceMatrix& operator=(const DeviceMatrix&) = delete;

  float* data() const { return reinterpret_cast<float*>(address_); }
  int rows() const { return rows_; }
  int columns() const { return columns_; }
  void put(const Matrix& matrix) {
    require(cuMemcpyHtoDAsync_v2(address_, matrix.values.data(), bytes(), nullptr), "cuMemcpyHtoDAsync");
    require(cuCtxSynchronize(), "cuCtxSynchronize");
  }
  Matrix get() const {
    Matrix matrix(rows_, columns_);
    require(cuMemcpyDtoHAsync_v2(matrix.values.data(), address_, bytes(), nullptr), "cuMemcpyDtoHAsync");
    require(cuCtxSynchronize(), "cuCtxSynchronize");
    return matrix;
  }

 private:
  std::size_t bytes() const {
    return static_cast<std::size_t>(rows_) * static_cast<std::size_t>(columns_) * sizeof(float);
  }
  int rows_, columns_;
  unsigned long long address_ = 0;
};

void activate(DeviceMatrix& values) {
  Matrix matrix = values.get();
  for (float& value : matrix.values) value = std::tanh(value);
  values.put(matrix);
}

// Arguments of C = A B in cublasSgemm, behind the handle; `one` and `zero` are the scalars.
#define APPS_PRODUCT(a, b, c)                                                                           \
  0, 0, (c).rows(), (c).columns(), (a).columns(), &one, (a).data(), (a).rows(), (b).data(), (b).rows(), \
      &zero, (c).data(), (c).rows()

constexpr float one = 1, zero = 0;

// The same product three times, in functions of their own.
APPS_CALL_SITE void first_layer(void* handle, const DeviceMatrix& x, const DeviceMatrix& w, DeviceMatrix& y) {
  require(cublasSgemm_v2(handle, APPS_PRODUCT(x, w, y)), "the product of the first layer");
  activate(y);
}

APPS_CALL_SITE void second_layer(void* handle, const DeviceMatrix& x, const DeviceMatrix& w,
                                 DeviceMatrix& y) {
  require(cublasSgemm_v2(handle, APPS_PRODUCT(x, w, y)), "the product of the second layer");
  activate(y);
}

APPS_CALL_SITE void last_layer(void* handle, const DeviceMatrix& x, const DeviceMatrix& w, DeviceMatrix& y) {
  require(cublasSgemm_v2(handle, APPS_PRODUCT(x, w, y)), "the product of the last layer");
}

int run(int count, char** words) {
  if (count != 5) throw std::invalid_argument("usage: perceptron_cublas SAMPLES INPUTS HIDDEN Y.npy");
  const int samples = apps::size_of_text(words[1], "SAMPLES"),
            inputs = apps::size_of_text(words[2], "INPUTS");
  const int hidden = apps::size_of_text(words[3], "HIDDEN");
  void *context = nullptr, *handle = nullptr;
  require(cuInit(0), "cuInit");
  require(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  require(cublasCreate_v2(&handle), "cublasCreate");
  std::mt19937_64 random(apps::seed());
  const DeviceMatrix x(apps::random_matrix(samples, inputs, random));
  const DeviceMatrix w1(apps::weights(inputs, hidden, random)), w2(apps::weights(hidden, hidden, random));
  const DeviceMatrix w3(apps::weights(hidden, inputs, random));
  DeviceMatrix h1(samples, hidden), h2(samples, hidden), y(samples, inputs);
  constexpr int passes = 3;  // the first one waits for the loading of kernels
  for (int pass = 0; pass < passes; ++pass) {
    first_layer(handle, x, w1, h1);
    second_layer(handle, h1, w2, h2);
    last_layer(handle, h2, w3, y);
  }
  apps::write_npy(words[4], y.get());
  return 0;
}

}  // namespace

int main(int count, char** words) try { return run(count, words); } catch (const std::exception& error) {
  std::fprintf(stderr, "perceptron_cublas: %s\n", error.what());
  return 2;
}

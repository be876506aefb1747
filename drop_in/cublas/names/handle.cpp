// cublasDestroy. It also releases the memory pools of emulated products.
#include "cublas/device/workspace.hpp"
#include "names.hpp"

namespace kintsugi::cublas {

namespace {

int destroy(Symbol& symbol, Handle handle) {
  const int status = call_real(symbol, handle);
  give_back_workspaces();
  return status;
}

}  // namespace

KINTSUGI_CUBLAS_DEFINE(cublasDestroy_v2, (Handle handle), destroy, handle)

}  // namespace kintsugi::cublas

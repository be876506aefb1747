// The drop-in library for BLAS as an LD_PRELOAD.
#pragma once

#include <string>

namespace kintsugi::tools {

// Returns LD_PRELOAD with libkintsugi_blas before what the environment has there. Fails, naming the flag, if
// there is no such library or if its path has characters that the dynamic linker does not take.
std::string blas_preload(const std::string& flag);

}  // namespace kintsugi::tools

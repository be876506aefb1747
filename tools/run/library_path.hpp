// A folder for LD_LIBRARY_PATH in which the drop-in has the name of cuBLAS.
#pragma once

#include <string>

namespace kintsugi::tools {

// Fills the folder, which is made if there is none, with links to stubs, to the drop-in and to the real
// cuBLAS, which is in the folder `cublas`. Returns LD_LIBRARY_PATH with the folder before what the
// environment has there. Fails, naming the flag, if a library is missing or another file is in the way.
std::string make_library_path(const std::string& folder, const std::string& cublas);

}  // namespace kintsugi::tools

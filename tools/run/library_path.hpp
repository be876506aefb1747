// A folder for LD_LIBRARY_PATH in which the drop-in has the name of cuBLAS.
#pragma once

#include <string>

namespace kintsugi::tools {

// Makes `folder` if there is none, and fills it with links to stubs, to the drop-in and to the real cuBLAS.
// `cublas`: the folder of the real cuBLAS; "": the folder of KINTSUGI_CUBLAS or the toolkit. Returns the
// value for LD_LIBRARY_PATH: the folder, followed by the folders in the environment's LD_LIBRARY_PATH. Fails
// with the flag in the message if a library is missing or another file is in the way.
std::string make_library_path(const std::string& folder, const std::string& cublas);

}  // namespace kintsugi::tools

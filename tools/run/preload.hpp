// The value of LD_PRELOAD for a drop-in library.
#pragma once

#include <string>

namespace kintsugi::tools {

// Returns the value of LD_PRELOAD: the drop-in of that name, such as kintsugi_blas, followed by the value in
// the environment. Fails with the flag in the message if there is no such library, or if its path has
// characters that LD_PRELOAD does not allow.
std::string preload_of(const std::string& drop_in, const std::string& flag);

}  // namespace kintsugi::tools

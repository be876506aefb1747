// Errors of a program's outputs relative to those of a reference run.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kintsugi::tools {

// Error of one .npy file: |C - R|_F / |R|_F (frobenius) or max |C - R| / max |R| (max). 0 where both are 0;
// infinite where C cannot be read, has another shape or type, or where a number in it is NaN or infinite and
// not R's.
double file_error(const std::string& metric, const std::string& file, const std::string& reference);

// Returns the number that a shell command prints; infinite for NaN. Fails, naming the command, if it fails or
// prints something else.
double command_error(const std::string& command,
                     const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace kintsugi::tools

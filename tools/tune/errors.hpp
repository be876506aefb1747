// Errors of a program's outputs relative to the outputs of a reference run.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kintsugi::tools {

// Returns the error of the .npy file C relative to the file R: |C - R|_F / |R|_F for the metric "frobenius",
// max |C - R| / max |R| for "max". If C = R, the error is 0. The error is infinite if C cannot be read or has
// another shape or type, and if C and R differ in a NaN or an infinity.
double file_error(const std::string& metric, const std::string& file, const std::string& reference);

// Returns the magnitude of the number that a shell command prints; infinity if it prints NaN. Throws an error
// with the command's name if the command fails or prints anything else.
double command_error(const std::string& command,
                     const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace kintsugi::tools

#include "tune/errors.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "io/npy.hpp"
#include "support.hpp"

namespace kintsugi::tools {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// The Frobenius norm, or the largest magnitude if `is_largest`. Squares are relative to the largest magnitude
// so far, so that they neither overflow nor underflow.
class Norm {
 public:
  explicit Norm(bool is_largest) : is_largest_(is_largest) {}
  void add(double value) {
    const double magnitude = std::fabs(value);
    if (magnitude == 0) return;
    if (is_largest_) {
      scale_ = std::max(scale_, magnitude);
      return;
    }
    if (magnitude > scale_) {
      sum_ = 1 + sum_ * (scale_ / magnitude) * (scale_ / magnitude);
      scale_ = magnitude;
    } else {
      sum_ += (magnitude / scale_) * (magnitude / scale_);
    }
  }
  double value() const { return is_largest_ ? scale_ : scale_ * std::sqrt(sum_); }

 private:
  bool is_largest_;
  double scale_ = 0, sum_ = 0;
};

bool is_same_special(double value, double reference) {
  return (std::isnan(value) && std::isnan(reference)) || (std::isinf(reference) && value == reference);
}

template <class T>
double error_of(bool is_largest, const std::vector<T>& values, const std::vector<T>& references) {
  Norm difference(is_largest), norm(is_largest);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = static_cast<double>(values[i]), reference = static_cast<double>(references[i]);
    if (is_same_special(value, reference)) continue;
    if (!std::isfinite(value) || !std::isfinite(reference)) return infinite;
    difference.add(value - reference);
    norm.add(reference);
  }
  if (difference.value() == 0) return 0;
  return norm.value() == 0 ? infinite : difference.value() / norm.value();
}

double matrix_error(bool is_largest, const Matrix& written, const Matrix& reference) {
  if (written.rows != reference.rows || written.columns != reference.columns ||
      written.type() != reference.type() || written.complex != reference.complex)
    return infinite;
  const Matrix same_order = reordered(written, reference.order);
  if (reference.type() == Type::float32)
    return error_of(is_largest, std::get<std::vector<float>>(same_order.values),
                    std::get<std::vector<float>>(reference.values));
  return error_of(is_largest, std::get<std::vector<double>>(same_order.values),
                  std::get<std::vector<double>>(reference.values));
}

std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) fail("--command", "\"{}\" cannot be run", command);
  std::string text;
  char part[256];
  while (const std::size_t count = std::fread(part, 1, sizeof(part), pipe)) text.append(part, count);
  const int status = ::pclose(pipe);
  if (status != 0) fail("--command", "\"{}\" failed with status {}", command, status);
  return text;
}

}  // namespace

double file_error(const std::string& metric, const std::string& file, const std::string& reference) {
  const Matrix expected = read_npy(reference);
  Matrix written;
  try {
    written = read_npy(file);
  } catch (const InputError&) {
    return infinite;
  }
  return matrix_error(metric == "max", written, expected);
}

double command_error(const std::string& command,
                     const std::vector<std::pair<std::string, std::string>>& variables) {
  std::string line;
  for (const auto& [name, value] : variables) line += fmt::format("export {}={}; ", name, quoted(value));
  std::string text = output_of(line + command);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  char* end = nullptr;
  const double error = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0')
    fail("--command", "\"{}\" printed \"{}\" in place of one number", command, text.substr(0, 80));
  return std::isnan(error) ? infinite : std::fabs(error);
}

}  // namespace kintsugi::tools

// Reads a file to its end; errors name the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kintsugi::tools {

class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  // Returns the bytes of the file; nothing for a pipe or a device, whose size is unknown.
  std::optional<std::uint64_t> size() const { return size_; }
  // Reads up to `bytes` bytes; fewer only at the end of the file.
  std::size_t read(void* target, std::size_t bytes);
  // Returns the rest of the file.
  std::string read_rest();

 private:
  std::string path_;
  int descriptor_ = -1;
  std::optional<std::uint64_t> size_;
};

}  // namespace kintsugi::tools

// Reading a file to its end, with errors that name it.
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
  // Bytes of the whole file; nothing for a pipe or a device, which end where they end.
  std::optional<std::uint64_t> size() const { return size_; }
  // Reads up to `bytes` bytes; fewer only at the end of the file.
  std::size_t read(void* target, std::size_t bytes);
  // What is left of the file.
  std::string read_rest();

 private:
  std::string path_;
  int descriptor_ = -1;
  std::optional<std::uint64_t> size_;
};

}  // namespace kintsugi::tools

// Reads a file to its end; errors name the file.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "io/input_error.hpp"

namespace kintsugi::tools {

class InputFile {
 public:
  explicit InputFile(const std::string& path) : path_(path) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail(path, "cannot be opened: {}", std::strerror(errno));
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) {
      const int error = errno;
      ::close(descriptor_);
      fail(path, "cannot be opened: {}", std::strerror(error));
    }
    if (S_ISREG(status.st_mode)) size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~InputFile() { ::close(descriptor_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  // Returns the bytes of the file; nothing for a pipe or a device, whose size is unknown.
  std::optional<std::uint64_t> size() const { return size_; }
  // Reads up to `bytes` bytes; fewer only at the end of the file.
  std::size_t read(void* target, std::size_t bytes) {
    std::size_t done = 0;
    while (done < bytes) {
      const ssize_t got = ::read(descriptor_, static_cast<char*>(target) + done, bytes - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(path_, "cannot be read: {}", std::strerror(errno));
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }
  // Returns the rest of the file.
  std::string read_rest() {
    constexpr std::size_t piece = std::size_t{1} << 20;
    std::string text;
    if (size_) text.reserve(*size_ + piece);
    for (std::size_t got = piece; got == piece;) {
      const std::size_t length = text.size();
      text.resize(length + piece);
      got = read(text.data() + length, piece);
      text.resize(length + got);
    }
    return text;
  }

 private:
  std::string path_;
  int descriptor_ = -1;
  std::optional<std::uint64_t> size_;
};

}  // namespace kintsugi::tools

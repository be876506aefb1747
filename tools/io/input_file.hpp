// Reads a file to its end; errors name the file. "-" is standard input.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "io/input_error.hpp"

namespace kintsugi::tools {

// True if the name of an input file is "-". (A file of that name can be read as ./-.)
inline bool is_standard_input(const std::string& path) { return path == "-"; }

class InputFile {
 public:
  explicit InputFile(const std::string& path) : path_(is_standard_input(path) ? "standard input" : path) {
    descriptor_ = is_standard_input(path) ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                          : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail(path_, "cannot be opened: {}", std::strerror(errno));
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) {
      const int error = errno;
      ::close(descriptor_);
      fail(path_, "cannot be opened: {}", std::strerror(error));
    }
    // A part of standard input may have been read before.
    if (S_ISREG(status.st_mode) && !is_standard_input(path))
      size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~InputFile() { ::close(descriptor_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  // Returns the bytes of the file; nothing for a pipe or a device, whose size is unknown.
  std::optional<std::uint64_t> size() const { return size_; }
  // True if the bytes to read next are those of `text`. Later reads return them all the same, even of files
  // that cannot seek.
  bool begins_with(std::string_view text) {
    std::string bytes(text.size(), '\0');
    bytes.resize(read(bytes.data(), bytes.size()));
    ahead_.insert(0, bytes);
    return bytes == text;
  }
  // Reads up to `bytes` bytes; fewer only at the end of the file.
  std::size_t read(void* target, std::size_t bytes) {
    std::size_t done = std::min(bytes, ahead_.size());
    std::memcpy(target, ahead_.data(), done);
    ahead_.erase(0, done);
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
  std::string ahead_;  // bytes that begins_with() has read
};

}  // namespace kintsugi::tools

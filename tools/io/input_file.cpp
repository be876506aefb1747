#include "io/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/input_error.hpp"

namespace kintsugi::tools {

InputFile::InputFile(const std::string& path) : path_(path) {
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

InputFile::~InputFile() { ::close(descriptor_); }

std::size_t InputFile::read(void* target, std::size_t bytes) {
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

std::string InputFile::read_rest() {
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

}  // namespace kintsugi::tools

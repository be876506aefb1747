// A file that appears complete or not at all. It is written under a temporary name, synchronized, then
// renamed. The previous file survives a full disk, an error and a kill. Standard output, "-", is written
// directly.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "io/input_error.hpp"

namespace kintsugi::tools {

namespace atomic_file {

// Name of the temporary file that a signal handler must remove; "": none. It is a plain array, since the
// handler must not use the heap.
inline char pending[4096];
// While `creating` is 1, between creating the temporary file and storing its name, the handler only records
// the signal in `delayed_signal`.
inline volatile std::sig_atomic_t creating = 0;
inline volatile std::sig_atomic_t delayed_signal = 0;

// Signal handler: removes the temporary file, then lets the signal end the program.
extern "C" inline void kintsugi_remove_pending(int number) {
  if (creating != 0) {
    delayed_signal = number;
    return;
  }
  if (pending[0] != '\0') ::unlink(pending);
  ::signal(number, SIG_DFL);
  ::raise(number);
}

// Installs the handler for signals that would end the program. An ignored signal (nohup) stays ignored.
inline void remove_pending_on_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction current {};
    if (::sigaction(number, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) {
      ::signal(number, kintsugi_remove_pending);
    }
  }
}

// Returns the file to which a link leads. The file is then replaced, and the link stays.
inline std::string resolved(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string result(real);
  std::free(real);
  return result;
}

inline std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace atomic_file

// True if the name of an output file is "-". (A file of that name can be written as ./-.)
inline bool is_standard_output(const std::string& path) { return path == "-"; }

// Fails if the file must not be replaced. Renaming would replace even a file without write permission, and
// root may write to it, so the permission is checked here.
inline void check_replaceable(const std::string& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode))
    fail(path, "{}", S_ISDIR(status.st_mode) ? "is a folder" : "is not a regular file");
  if ((status.st_mode & 0222) == 0 || ::access(path.c_str(), W_OK) != 0)
    fail(path, "is read-only and is not replaced; choose another file, or chmod u+w it");
}

// Fails if `path` cannot be written. Called before any work is done for the file.
inline void check_writable(const std::string& path) {
  if (is_standard_output(path)) return;
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) check_replaceable(path, status);
  const std::string folder = atomic_file::folder_of(atomic_file::resolved(path));
  if (::stat(folder.c_str(), &status) != 0) fail(path, "the folder {} does not exist", folder);
  if (!S_ISDIR(status.st_mode)) fail(path, "{} is not a folder", folder);
  if (::access(folder.c_str(), W_OK) != 0) fail(path, "the folder {} cannot be written to", folder);
}

class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path) : path_(path), target_(atomic_file::resolved(path)) {
    check_writable(path);
    if (is_standard_output(path)) {
      open_standard_output();
      return;
    }
    atomic_file::remove_pending_on_signals();
    create();
    if (descriptor_ < 0) fail(path_, "cannot be written: {}", std::strerror(errno));
    ::fchmod(descriptor_, permissions());
  }

  ~AtomicFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    atomic_file::pending[0] = '\0';
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes) {
    const auto* next = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t done = ::write(descriptor_, next, bytes);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) throw_write_error();
      next += done;
      bytes -= static_cast<std::size_t>(done);
      written_ += static_cast<std::size_t>(done);
    }
  }

  // Gives the file its name, after its data are on the disk.
  void commit() {
    if (is_standard_output(path_)) return;
    if (::fsync(descriptor_) != 0) throw_write_error();
    const int descriptor = descriptor_;
    descriptor_ = -1;
    if (::close(descriptor) != 0) throw_write_error();
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) throw_write_error();
    temporary_.clear();
    // Synchronizes the new name in the folder; errors are ignored, since some file systems cannot synchronize
    // folders.
    const int folder = ::open(atomic_file::folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
      ::fsync(folder);
      ::close(folder);
    }
  }

 private:
  // Opens a copy of the descriptor, after earlier output was flushed.
  void open_standard_output() {
    std::fflush(stdout);
    descriptor_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (descriptor_ < 0) fail("standard output", "cannot be written: {}", std::strerror(errno));
  }

  // Creates the temporary file; descriptor_ is negative and errno set if that fails.
  void create() {
    temporary_ = target_ + ".part-XXXXXX";
    atomic_file::creating = 1;
    descriptor_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
    const int creation_error = errno;
    if (descriptor_ >= 0 && temporary_.size() < sizeof(atomic_file::pending)) {
      std::memcpy(atomic_file::pending, temporary_.c_str(), temporary_.size() + 1);
    }
    atomic_file::creating = 0;
    const int signal = atomic_file::delayed_signal;
    if (signal != 0) atomic_file::kintsugi_remove_pending(signal);
    errno = creation_error;
  }

  [[noreturn]] void throw_write_error() {
    const int error = errno;
    if (is_standard_output(path_))
      fail("standard output", "cannot be written: {} (after {} bytes)", std::strerror(error), written_);
    fail(path_, "cannot be written: {} (after {} bytes); what was there before is unchanged",
         std::strerror(error), written_);
  }

  // Returns the permissions of the file that is replaced, or those that a new file gets by default.
  mode_t permissions() const {
    struct stat status {};
    if (::stat(target_.c_str(), &status) == 0) return status.st_mode & 0777;
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return 0666 & ~mask;
  }

  std::string path_;
  std::string target_;
  std::string temporary_;
  int descriptor_ = -1;
  std::size_t written_ = 0;
};

}  // namespace kintsugi::tools

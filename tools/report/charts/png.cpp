#include "report/charts/png.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "io/input_error.hpp"

extern char** environ;

namespace kintsugi::tools {

namespace {

constexpr const char* converter = "rsvg-convert";

// Redirects the converter's output to /dev/null. This program prints its own messages about failures.
class SilencedOutput {
 public:
  SilencedOutput() {
    ::posix_spawn_file_actions_init(&actions_);
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
      ::posix_spawn_file_actions_addopen(&actions_, stream, "/dev/null", O_WRONLY, 0);
  }
  ~SilencedOutput() { ::posix_spawn_file_actions_destroy(&actions_); }
  SilencedOutput(const SilencedOutput&) = delete;
  SilencedOutput& operator=(const SilencedOutput&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

// Runs the converter without a shell; its file is found on PATH. Returns its exit status, or 128 plus the
// number of the signal that ended it.
int run_converter(const std::string& flag, std::vector<std::string> words) {
  words.insert(words.begin(), converter);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const SilencedOutput output;
  pid_t process = 0;
  const int error = ::posix_spawnp(&process, converter, output.get(), nullptr, arguments.data(), environ);
  if (error != 0)
    fail(flag, "{} cannot be started: {} (it is in Debian's package librsvg2-bin)", converter,
         std::strerror(error));
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) fail(flag, "waiting for {} failed: {}", converter, std::strerror(errno));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

void require_png(const std::string& flag) {
  const int status = run_converter(flag, {"--version"});
  if (status != 0) fail(flag, "{} --version ended with status {}", converter, status);
}

void write_png(const std::string& flag, const std::string& svg_file, const std::string& png_file) {
  // The PNG has twice the SVG's pixels.
  const int status = run_converter(flag, {"--zoom=2", "--output=" + png_file, "--", svg_file});
  if (status != 0) fail(flag, "{} ended with status {} on {}", converter, status, svg_file);
}

}  // namespace kintsugi::tools

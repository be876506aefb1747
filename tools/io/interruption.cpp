#include "io/interruption.hpp"

#include <unistd.h>

#include <cerrno>

#include "io/atomic_file.hpp"

namespace kintsugi::tools {

namespace {

volatile std::sig_atomic_t arrived = 0;

extern "C" void kintsugi_note_interruption(int number) {
  if (arrived != 0) {
    atomic_file::kintsugi_remove_pending(number);
    return;
  }
  arrived = number;
  constexpr char line[] =
      "\nkintsugi: stopping after this step, when its results are saved; ^C again stops at once\n";
  const int error = errno;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, sizeof line - 1);
  errno = error;
}

}  // namespace

InterruptionWatch::InterruptionWatch() {
  arrived = 0;
  for (int i = 0; i < 3; ++i) {
    struct sigaction now {};
    ::sigaction(watched[i], nullptr, &now);
    before_[i] = now.sa_handler;
    if (before_[i] != SIG_IGN) ::signal(watched[i], kintsugi_note_interruption);
  }
}

InterruptionWatch::~InterruptionWatch() {
  for (int i = 0; i < 3; ++i) {
    if (before_[i] != SIG_IGN) ::signal(watched[i], before_[i]);
  }
}

int InterruptionWatch::signal() const { return arrived; }

}  // namespace kintsugi::tools

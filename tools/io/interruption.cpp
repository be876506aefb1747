#include "io/interruption.hpp"

#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "io/atomic_file.hpp"

namespace kintsugi::tools {

namespace {

volatile std::sig_atomic_t arrived_signal = 0;

// Signal handler: records the first signal; the second ends the program.
extern "C" void kintsugi_note_interruption(int number) {
  if (arrived_signal != 0) {
    atomic_file::kintsugi_remove_pending(number);
    return;
  }
  arrived_signal = number;
  const int error = errno;
  for (const std::string_view part :
       {std::string_view("\n"), std::string_view(program_invocation_short_name),
        std::string_view(
            ": stopping after this step, when its results are saved; ^C again stops at once\n")}) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, part.data(), part.size());
  }
  errno = error;
}

}  // namespace

InterruptionWatch::InterruptionWatch() {
  arrived_signal = 0;
  for (std::size_t i = 0; i < std::size(watched); ++i) {
    struct sigaction current {};
    ::sigaction(watched[i], nullptr, &current);
    earlier_handlers_[i] = current.sa_handler;
    if (earlier_handlers_[i] != SIG_IGN) ::signal(watched[i], kintsugi_note_interruption);
  }
}

InterruptionWatch::~InterruptionWatch() {
  for (std::size_t i = 0; i < std::size(watched); ++i) {
    if (earlier_handlers_[i] != SIG_IGN) ::signal(watched[i], earlier_handlers_[i]);
  }
}

int InterruptionWatch::signal() const { return arrived_signal; }

}  // namespace kintsugi::tools

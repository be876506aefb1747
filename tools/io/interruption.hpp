// Lets ^C interrupt long work at the next point where all results so far are on the disk.
#pragma once

#include <csignal>
#include <iterator>
#include <stdexcept>
#include <string>

namespace kintsugi::tools {

// Thrown if work ends because of a signal. The program reports the message, then ends by the signal.
class Interrupted : public std::runtime_error {
 public:
  Interrupted(const std::string& what, int signal) : std::runtime_error(what), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

// While an object exists, the first SIGINT, SIGTERM or SIGHUP is only recorded, with a line on stderr. A
// second one ends the program at once. Ignored signals (nohup) stay ignored.
class InterruptionWatch {
 public:
  InterruptionWatch();
  ~InterruptionWatch();
  InterruptionWatch(const InterruptionWatch&) = delete;
  InterruptionWatch& operator=(const InterruptionWatch&) = delete;

  // Returns the signal that arrived; 0: none.
  int signal() const;

 private:
  static constexpr int watched[] = {SIGINT, SIGTERM, SIGHUP};
  void (*earlier_handlers_[std::size(watched)])(int) = {};
};

}  // namespace kintsugi::tools

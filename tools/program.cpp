#include "program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>

#include "command_line.hpp"
#include "io/interruption.hpp"
#include "text.hpp"

namespace kintsugi::tools {

namespace {

constexpr int user_error = 2;
constexpr int failure = 1;

// Name of the program, which begins its messages.
std::string program_name;

// Prints the message as one line and returns the status.
int report(std::string message, int status) {
  for (char& c : message) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  std::fflush(stdout);
  print_note("{}: {}\n", program_name, message);
  return status;
}

// Takes the descriptors of closed standard streams, so that no file of ours gets one of them and the output
// with it. Reading and writing fail as before, and a program that `kintsugi run` starts finds them closed.
void reserve_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    ::open("/dev/null", (stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  }
}

void describe_program(const ProgramText& text, CLI::App& program) {
  program.name(text.name);
  program.description(text.description);
  program.footer(
      text.footer +
      fmt::format(
          "\n\n{} help COMMAND describes a command. Exit status: 0 success, 2 bad input, 1 an error in\n"
          "the program, or a result that exceeds a bound or the requested accuracy.",
          text.name));
  program.set_version_flag("-V,--version", [name = text.name] {
    return fmt::format("{} {} (commit {})", name, kintsugi_version(), commit());
  });
  program.require_subcommand(1);
}

// Flushes the output. Output that cannot be written (a full disk, a closed pipe) is an error, too.
int flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
  return report(fmt::format("standard output: cannot be written: {}", std::strerror(errno)), user_error);
}

int run(const ProgramText& text, AddCommands add_commands, int count, char** words) {
  CLI::App program;
  describe_program(text, program);
  Action action;
  add_commands(program, action);
  add_help(program, action);
  try {
    program.parse(count, words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success)) {
      return report(command_line_message(program, error), user_error);
    }
    program.exit(error);  // --help and --version
    return flush_output();
  }
  action();
  return flush_output();
}

// Runs the program, reports every exception as one line, and returns the exit status.
int run_and_report_errors(const ProgramText& text, AddCommands add_commands, int count, char** words) {
  try {
    return run(text, add_commands, count, words);
  } catch (const InputError& error) {
    return report(error.what(), user_error);
  } catch (const LibraryError& error) {
    return report(error.what(), error.is_unexpected() ? failure : user_error);
  } catch (const Finding& finding) {
    return report(finding.what(), failure);
  } catch (const Interrupted& interruption) {
    report(interruption.what(), user_error);
    std::signal(interruption.signal(), SIG_DFL);
    std::raise(interruption.signal());  // shells and make then see that the signal ended the program
    return user_error;
  } catch (const std::bad_alloc&) {
    return report("memory: there is not enough for matrices of this size", user_error);
  } catch (const std::system_error& error) {  // from fmt::print()
    return report(fmt::format("standard output: {}", error.what()), user_error);
  } catch (const std::exception& error) {
    return report(fmt::format("internal error: {}", error.what()), failure);
  }
}

}  // namespace

int run_program(const ProgramText& text, AddCommands add_commands, int count, char** words) {
  program_name = text.name;
  reserve_closed_streams();
  // A limit on file sizes is reported as an error of write(), instead of ending the program.
  std::signal(SIGXFSZ, SIG_IGN);
  return run_and_report_errors(text, add_commands, count, words);
}

}  // namespace kintsugi::tools

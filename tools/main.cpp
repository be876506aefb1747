// The program `kintsugi`: entry point and error exit; the commands have one file each.
//
// Exit status: 0 success. 2: an error that the user can correct; a line on stderr describes it. 1: an error
// in the program, or a result that exceeds a bound or the requested accuracy.
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
#include "commands.hpp"
#include "io/interruption.hpp"
#include "text.hpp"

namespace kintsugi::tools {

namespace {

constexpr int user_error = 2;
constexpr int failure = 1;

// Prints the message as one line and returns the status.
int report(std::string message, int status) {
  for (char& c : message) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  std::fflush(stdout);
  print_note("kintsugi: {}\n", message);
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

void describe_program(CLI::App& program) {
  program.name("kintsugi");
  program.description(
      "Kintsugi multiplies matrices at FP32, FP64 or exact accuracy on matrix engines that only know\n"
      "FP16, BF16, TF32 or INT8.");
  program.footer(
      "Example:\n"
      "  kintsugi generate uniform 512x512 -o A.npy --seed 1\n"
      "  kintsugi generate uniform 512x512 -o B.npy --seed 1 --side b\n"
      "  kintsugi gemm A.npy B.npy -o C.npy --scheme fp16x3-wide --explain --check --compare fp16,native\n"
      "\n"
      "kintsugi help COMMAND describes a command. Exit status: 0 success, 2 bad input, 1 an error in\n"
      "the program, or a result that exceeds a bound or the requested accuracy.");
  program.set_version_flag(
      "-V,--version", [] { return fmt::format("kintsugi {} (commit {})", kintsugi_version(), commit()); });
  program.require_subcommand(1);
}

// Flushes the output. Output that cannot be written (a full disk, a closed pipe) is an error, too.
int flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
  return report(fmt::format("standard output: cannot be written: {}", std::strerror(errno)), user_error);
}

int run(int count, char** words) {
  CLI::App program;
  describe_program(program);
  Action action;
  add_gemm(program, action);
  add_schemes(program, action);
  add_engines(program, action);
  add_settings(program, action);
  add_doctor(program, action);
  add_calibrate(program, action);
  add_generate(program, action);
  add_accuracy(program, action);
  add_analyse(program, action);
  add_bench(program, action);
  add_demo(program, action);
  add_report(program, action);
  add_reproduce(program, action);
  add_explain(program, action);
  add_run(program, action);
  add_sites(program, action);
  add_tune_program(program, action);
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
int run_and_report_errors(int count, char** words) {
  try {
    return run(count, words);
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

}  // namespace kintsugi::tools

int main(int count, char** words) {
  kintsugi::tools::reserve_closed_streams();
  // A limit on file sizes is reported as an error of write(), instead of ending the program.
  std::signal(SIGXFSZ, SIG_IGN);
  return kintsugi::tools::run_and_report_errors(count, words);
}

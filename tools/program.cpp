#include "program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "io/interruption.hpp"
#include "support.hpp"
#include "tools/measure/nearest_name.hpp"

namespace kintsugi::tools {

namespace {

std::string braced(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ",") + name;
  return "{" + text + "}";
}

std::string not_accepted(const std::string& value, const std::vector<std::string>& names) {
  return fmt::format("\"{}\" is not accepted{}", value, measure::accepted_names(value, "accepted:", names));
}

bool equal_in_any_case(const std::string& x, const std::string& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

std::optional<std::int64_t> parse_integer(const std::string& text) {
  std::int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc() && end == last ? std::optional(value) : std::nullopt;
}

CLI::Validator integer_between(std::int64_t min, std::int64_t max, const std::string& range,
                               const std::string& description) {
  return {[=](std::string& text) {
            const auto value = parse_integer(text);
            if (value && *value >= min && *value <= max) return std::string();
            return fmt::format("\"{}\" is not a whole number from {}", text, range);
          },
          description};
}

std::vector<std::string> command_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

// Returns the long names of options, without their dashes.
std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    const auto& long_names = option->get_lnames();
    names.insert(names.end(), long_names.begin(), long_names.end());
  }
  return names;
}

// Hint for an unknown flag (`--flag` or `--flag=value`).
std::string flag_hint(const CLI::App& command, const std::string& word) {
  const std::string flag = word.substr(0, word.find('='));
  const auto nearest = measure::nearest_name(flag.substr(flag.find_first_not_of('-')), flag_names(command));
  return nearest ? "did you mean --" + *nearest + "? " : "";
}

std::string unknown_word(const CLI::App& program, const std::string& word) {
  const auto chosen = program.get_subcommands();
  const bool is_flag = word.starts_with("-") && word.find_first_not_of('-') != std::string::npos;
  const CLI::App& command = chosen.empty() ? program : *chosen.front();
  const std::string help = program.get_name() + (chosen.empty() ? "" : " " + command.get_name()) + " --help";
  if (is_flag)
    return fmt::format("{}: is not known here; {}{} lists the flags", word, flag_hint(command, word), help);
  if (!chosen.empty()) return fmt::format("{}: is not known here; {} lists the arguments", word, help);
  const auto nearest = measure::nearest_name(word, command_names(program));
  const std::string hint = nearest ? "did you mean " + *nearest + "? " : "";
  return fmt::format("{}: is not known here; {}{} lists the commands", word, hint, help);
}

void print_help(CLI::App& program, const std::string& name) {
  if (name.empty()) {
    program.clear();  // otherwise CLI11 would describe the chosen command, which is `help`
    fmt::print("{}", program.help());
    return;
  }
  for (const CLI::App* command : program.get_subcommands(nullptr)) {
    if (command->get_name() != name) continue;
    fmt::print("{}", command->help(program.get_name()));
    return;
  }
  fail("COMMAND", "there is no command \"{}\"{}", name,
       measure::accepted_names(name, "the commands are", command_names(program)));
}

// Returns CLI11's message in the program's form, `<flag>: <what>`.
std::string command_line_message(const CLI::App& program, const CLI::ParseError& error) {
  constexpr bool of_subcommands_too = true;
  auto extras = program.remaining(of_subcommands_too);
  std::erase(extras, "--");  // CLI11 keeps the mark that precedes positional words
  // An unknown word is reported first. It may be the reason why CLI11 misses other words.
  if (!extras.empty()) return unknown_word(program, extras.front());
  const std::string text = error.what();
  constexpr std::string_view required = " is required";
  if (text.starts_with("A subcommand"))
    return "command: one is needed; " + program.get_name() + " --help lists them";
  if (text.ends_with(required)) return text.substr(0, text.size() - required.size()) + ": is missing";
  for (const std::string_view word : {" requires ", " excludes "}) {
    if (const auto found = text.find(word); found != std::string::npos)
      return text.substr(0, found) + ":" + text.substr(found);
  }
  return text;
}

// Adds the command `help COMMAND`, which prints the same as `COMMAND --help`. Comes after all others.
void add_help(CLI::App& program, Action& action) {
  auto name = std::make_shared<std::string>();
  const std::vector<std::string> names = command_names(program);
  CLI::App* command =
      program.add_subcommand("help", "Describe a command, as " + program.get_name() + " COMMAND --help does");
  command->footer("Example:\n  " + program.get_name() + " help " + names.front());
  command->add_option("COMMAND", *name, "A command")->type_name(braced(names));
  command->callback([name, &program, &action] { action = [name, &program] { print_help(program, *name); }; });
}

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
  program.add_flag_callback(
      "--man",
      [&program, name = text.name] {
        throw CLI::CallForVersion(manual_page(program, fmt::format("{} {}", name, kintsugi_version())), 0);
      },
      "Print the manual page: " + text.name + " --man | man -l -");
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
  add_completion(program, action);
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

CLI::Validator one_of(std::vector<std::string> names) {
  const std::string description = braced(names);
  return {[names = std::move(names)](std::string& value) {
            return contains(names, value) ? std::string() : not_accepted(value, names);
          },
          description};
}

CLI::Validator one_of_any_case(std::vector<std::string> names) {
  const std::string description = braced(names);
  return {[names = std::move(names)](std::string& value) {
            const auto known = std::find_if(names.begin(), names.end(),
                                            [&](const auto& name) { return equal_in_any_case(name, value); });
            if (known == names.end()) return not_accepted(value, names);
            value = *known;
            return std::string();
          },
          description};
}

CLI::Validator whole_number(std::int64_t min) {
  return integer_between(min, std::numeric_limits<std::int64_t>::max(), fmt::format("{} up", min),
                         fmt::format("{}...", min));
}

CLI::Validator whole_number(std::int64_t min, std::int64_t max) {
  return integer_between(min, max, fmt::format("{} to {}", min, max), fmt::format("{}...{}", min, max));
}

int run_program(const ProgramText& text, AddCommands add_commands, int count, char** words) {
  program_name = text.name;
  reserve_closed_streams();
  // A limit on file sizes is reported as an error of write(), instead of ending the program.
  std::signal(SIGXFSZ, SIG_IGN);
  return run_and_report_errors(text, add_commands, count, words);
}

}  // namespace kintsugi::tools

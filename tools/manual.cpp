// kintsugi --man: the manual page, made from the texts of --help.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "program.hpp"

namespace kintsugi::tools {

namespace {

// Returns a line of text for roff, which gives a meaning to backslashes and to a period or apostrophe at the
// beginning. Hyphens get a backslash, without which they would not be found as minus signs.
std::string roff(std::string_view line) {
  std::string text = !line.empty() && (line.front() == '.' || line.front() == '\'') ? "\\&" : "";
  for (const char c : line) text += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  return text;
}

std::string roff_lines(const std::string& text) {
  std::string result;
  for (const std::string& line : CLI::detail::split(text, '\n')) result += roff(line) + "\n";
  return result;
}

// Returns paragraphs; indented lines are printed as they are.
std::string roff_paragraphs(const std::string& text) {
  std::string result;
  bool is_example = false;
  for (const std::string& line : CLI::detail::split(text, '\n')) {
    if (line.starts_with("  ") != is_example) {
      is_example = !is_example;
      result += is_example ? ".RS 4\n.nf\n" : ".fi\n.RE\n";
    }
    result += line.empty() ? ".PP\n" : roff(is_example ? std::string_view(line).substr(2) : line) + "\n";
  }
  return result + (is_example ? ".fi\n.RE\n" : "");
}

// Returns an entry for an option: its names in bold, type and default as --help prints them, its description.
std::string roff_option(const CLI::Option& option) {
  const bool is_positional = option.get_positional();
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}", roff(option.get_name(is_positional, true)),
                     roff(CLI::Formatter().make_option_opts(&option)), roff_lines(option.get_description()));
}

std::string roff_options(const CLI::App& command) {
  std::string text;
  for (const bool positional : {true, false}) {
    for (const CLI::Option* option :
         command.get_options([=](const CLI::Option* each) { return each->get_positional() == positional; }))
      text += roff_option(*option);
  }
  return text;
}

// Returns "kintsugi gemm [OPTIONS] A B".
std::string synopsis(const CLI::App& command, const std::string& name) {
  const std::string usage = CLI::Formatter().make_usage(&command, name);  // "Usage: ...\n"
  return usage.substr(usage.find(' ') + 1, usage.size() - usage.find(' ') - 2);
}

}  // namespace

std::string manual_page(const CLI::App& program, const std::string& version) {
  const std::string& name = program.get_name();
  const std::string description = program.get_description();
  const std::string footer = program.get_footer();
  const auto status = footer.rfind("\n\n");  // after it describe_program() tells the exit status
  std::string capitals = name;
  for (char& c : capitals) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string line = description;
  for (char& c : line) c = c == '\n' ? ' ' : c;
  std::string text =
      fmt::format(".TH {} 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.nf\n",
                  capitals, roff(version), roff(name), roff(line));
  for (const CLI::App* command : program.get_subcommands({}))
    text += roff(synopsis(*command, name + " " + command->get_name())) + "\n";
  text += ".fi\n.SH DESCRIPTION\n" + roff_lines(description) + ".SH OPTIONS\n" + roff_options(program) +
          ".SH COMMANDS\n";
  for (const CLI::App* command : program.get_subcommands({})) {
    text +=
        fmt::format(".SS {}\n{}{}.PP\n{}", roff(command->get_name()), roff_lines(command->get_description()),
                    roff_options(*command), roff_paragraphs(command->get_footer()));
  }
  return text + ".SH EXIT STATUS\n" + roff_paragraphs(footer.substr(status + 2)) + ".SH EXAMPLE\n" +
         roff_paragraphs(footer.substr(footer.find('\n') + 1, status - footer.find('\n') - 1));
}

}  // namespace kintsugi::tools

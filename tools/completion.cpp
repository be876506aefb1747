// kintsugi completion: scripts that complete command lines in bash, zsh and fish. They are made from the
// program's own commands and options.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "program.hpp"

namespace kintsugi::tools {

namespace {

// Returns the values between the braces that one_of() describes; none if any value is accepted.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto begin = type.find('{');
  const auto end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// True for the program of `run -- PROGRAM ...` and its arguments.
bool is_program(const CLI::Option& option) { return option.get_name(true) == "PROGRAM"; }

// Returns "-o", "--output"; nothing for positionals.
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// Returns the first sentence, as one line.
std::string first_sentence(std::string text) {
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return text.substr(0, text.find(". "));
}

std::string replaced(std::string text, char special, const std::string& by) {
  return CLI::detail::find_and_replace(std::move(text), std::string(1, special), by);
}

std::vector<const CLI::App*> commands_of(const CLI::App& program) { return program.get_subcommands({}); }

std::vector<const CLI::Option*> flags_of(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return !option->get_positional(); });
}

std::vector<const CLI::Option*> positionals_of(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::string command_words(const CLI::App& program) {
  std::string words;
  for (const CLI::App* command : commands_of(program)) words += command->get_name() + " ";
  return words;
}

std::string flag_words(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : flags_of(command)) {
    for (std::string& name : names_of(*option)) words.push_back(std::move(name));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

// ----------------------------------------------------------------------- bash

// Returns the branches of a command for the word before the one that is completed.
std::string bash_values(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : flags_of(command)) {
    if (!takes_value(*option)) continue;
    const auto choices = choices_of(*option);
    text += fmt::format("        {}) {} ;;\n", fmt::join(names_of(*option), " | "),
                        choices.empty() ? "return" : fmt::format("words='{}'", fmt::join(choices, " ")));
  }
  return text;
}

std::string bash_command(const CLI::App& command) {
  std::vector<std::string> choices;
  const auto positionals = positionals_of(command);
  for (const CLI::Option* option : positionals) {
    for (std::string& choice : choices_of(*option)) choices.push_back(std::move(choice));
  }
  const std::string flags = flag_words(command);
  // Positionals without choices are completed as files.
  const std::string other = positionals.empty() ? flags : fmt::format("{}", fmt::join(choices, " "));
  return fmt::format(
      "    {})\n"
      "      case $previous in\n{}"
      "        *) if [[ $word == -* ]]; then words='{}'; else words='{}'; fi ;;\n"
      "      esac ;;\n",
      command.get_name(), bash_values(command), flags, other);
}

std::string bash_script(const CLI::App& program) {
  const std::string& name = program.get_name();
  std::string function = replaced("_" + name, '-', "_");
  std::string text = fmt::format(
      "# bash completion of {0}; made by `{0} completion bash`.\n"
      "{1}() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} words= i\n"
      "  COMPREPLY=()\n"
      "  # bash takes --flag=value as three words.\n"
      "  if [[ $word == = ]]; then word=; elif [[ $previous == = ]]; then "
      "previous=${{COMP_WORDS[COMP_CWORD - 2]}}; fi\n"
      "  for ((i = 2; i < COMP_CWORD; i++)); do\n"
      "    [[ ${{COMP_WORDS[i]}} == -- ]] || continue\n"
      "    # A program, then its arguments, which are completed as files.\n"
      "    ((i + 1 < COMP_CWORD)) || mapfile -t COMPREPLY < <(compgen -c -- \"$word\")\n"
      "    return\n"
      "  done\n"
      "  if ((COMP_CWORD == 1)); then words='{2}{3}'; else case ${{COMP_WORDS[1]}} in\n",
      name, function, command_words(program), flag_words(program));
  for (const CLI::App* command : commands_of(program)) text += bash_command(*command);
  return text + fmt::format(
                    "  esac; fi\n"
                    "  [[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
                    "}}\n"
                    "complete -o default -F {} {}\n",
                    function, name);
}

// ------------------------------------------------------------------------ zsh

// Returns the text for single quotes in a specification of _arguments.
std::string zsh_text(std::string text) {
  text = replaced(std::move(text), '\\', "\\\\");
  for (const char special : {'[', ']', ':'})
    text = replaced(std::move(text), special, std::string("\\") + special);
  return replaced(std::move(text), '\'', "'\\''");
}

std::string zsh_value(const CLI::Option& option) {
  const auto choices = choices_of(option);
  return choices.empty() ? "_files" : fmt::format("({})", fmt::join(choices, " "));
}

std::string zsh_option(const CLI::Option& option) {
  std::string specification;
  if (option.get_positional()) {
    const std::string name = zsh_text(option.get_name(true));
    if (is_program(option)) return fmt::format("'*::{}:_normal'", name);
    const bool repeats = option.get_expected_max() > 1;
    return fmt::format("'{}:{}:{}'", repeats ? "*" : "", name, zsh_value(option));
  }
  const auto names = names_of(option);
  const std::string text = zsh_text(first_sentence(option.get_description()));
  for (const std::string& name : names) {
    // A long option takes its value after = too.
    const char* joint = !takes_value(option) ? "" : name.starts_with("--") ? "=" : "+";
    specification +=
        fmt::format("{}'({}){}{}[{}]{}'", specification.empty() ? "" : " ", fmt::join(names, " "), name,
                    joint, text, takes_value(option) ? ":value:" + zsh_value(option) : "");
  }
  return specification;
}

std::string zsh_arguments(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : flags_of(command)) text += " \\\n          " + zsh_option(*option);
  for (const CLI::Option* option : positionals_of(command)) text += " \\\n          " + zsh_option(*option);
  return text;
}

std::string zsh_script(const CLI::App& program) {
  const std::string& name = program.get_name();
  const std::string function = "_" + name;
  std::string text = fmt::format(
      "#compdef {0}\n"
      "# zsh completion of {0}; made by `{0} completion zsh`.\n"
      "{1}() {{\n"
      "  local curcontext=$curcontext state line\n"
      "  local -a commands=(\n",
      name, function);
  for (const CLI::App* command : commands_of(program))
    text += fmt::format("    '{}:{}'\n", command->get_name(), zsh_text(command->get_description()));
  text += fmt::format(
      "  )\n"
      "  _arguments -C{} \\\n          '1:command:->command' '*::argument:->argument'\n"
      "  case $state in\n"
      "    command) _describe command commands ;;\n"
      "    argument)\n"
      "      case $words[1] in\n",
      zsh_arguments(program));
  for (const CLI::App* command : commands_of(program))
    text += fmt::format("        {}) _arguments{} ;;\n", command->get_name(), zsh_arguments(*command));
  return text + fmt::format(
                    "      esac ;;\n"
                    "  esac\n"
                    "}}\n"
                    "# The file is loaded by the completion system, or by `source`.\n"
                    "if [[ $funcstack[1] == {0} ]]; then {0} \"$@\"; else compdef {0} {1}; fi\n",
                    function, name);
}

// ----------------------------------------------------------------------- fish

std::string fish_text(std::string text) {
  return "'" + replaced(replaced(std::move(text), '\\', "\\\\"), '\'', "\\'") + "'";
}

// Returns the line for an option of the command lines that `condition` tells.
std::string fish_option(const std::string& name, const std::string& condition, const CLI::Option& option) {
  const auto choices = choices_of(option);
  std::string text = fmt::format("complete -c {} -n '{}'", name, condition);
  if (option.get_positional())
    return choices.empty() ? "" : text + fmt::format(" -f -a '{}'\n", fmt::join(choices, " "));
  for (const std::string& letter : option.get_snames()) text += " -s " + letter;
  for (const std::string& word : option.get_lnames()) text += " -l " + word;
  if (!choices.empty()) {
    text += fmt::format(" -x -a '{}'", fmt::join(choices, " "));
  } else if (takes_value(option)) {
    text += " -r";
  }
  return text + " -d " + fish_text(first_sentence(option.get_description())) + "\n";
}

std::string fish_script(const CLI::App& program) {
  const std::string& name = program.get_name();
  std::string text = fmt::format("# fish completion of {0}; made by `{0} completion fish`.\n", name);
  for (const CLI::Option* option : flags_of(program))
    text += fish_option(name, "__fish_use_subcommand", *option);
  for (const CLI::App* command : commands_of(program)) {
    text += fmt::format("complete -c {} -n __fish_use_subcommand -f -a {} -d {}\n", name, command->get_name(),
                        fish_text(command->get_description()));
  }
  for (const CLI::App* command : commands_of(program)) {
    const std::string condition = "__fish_seen_subcommand_from " + command->get_name();
    for (const CLI::Option* option : flags_of(*command)) text += fish_option(name, condition, *option);
    for (const CLI::Option* option : positionals_of(*command)) text += fish_option(name, condition, *option);
  }
  return text;
}

}  // namespace

void add_completion(CLI::App& program, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      program.add_subcommand("completion", "Print a script that completes command lines in a shell");
  command->footer(fmt::format(
      "Example:\n"
      "  source <({0} completion bash)                             # this shell; in ~/.bashrc: all\n"
      "  {0} completion zsh > ~/.zfunc/_{0}                  # a folder of $fpath\n"
      "  {0} completion fish > ~/.config/fish/completions/{0}.fish",
      program.get_name()));
  command->add_option("SHELL", *shell, "Shell that reads the script")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}));
  command->callback([shell, &program, &action] {
    action = [shell, &program] {
      fmt::print("{}", *shell == "bash"  ? bash_script(program)
                       : *shell == "zsh" ? zsh_script(program)
                                         : fish_script(program));
    };
  });
}

}  // namespace kintsugi::tools

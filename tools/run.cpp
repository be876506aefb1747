// kintsugi run: runs a program with a drop-in library in place of its BLAS.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "commands.hpp"

namespace kintsugi::tools {

namespace {

struct RunRequest {
  bool blas = false;
  bool json = false;
  std::vector<std::string> words;
};

// Returns the path of the drop-in, which is in the folder of libkintsugi.
std::string blas_library() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&kintsugi_version), &info) == 0 || info.dli_fname == nullptr)
    fail("--blas", "the folder of libkintsugi is not known");
  const auto folder = std::filesystem::canonical(info.dli_fname).parent_path();
  const auto library = folder / fmt::format("libkintsugi_blas.so.{}", KINTSUGI_VERSION_MAJOR);
  if (!std::filesystem::exists(library))
    fail("--blas", "there is no {}; it is built with -DKINTSUGI_DROP_IN=ON", library.string());
  return library.string();
}

// Returns the value of LD_PRELOAD with the library in front. Spaces and colons separate names there and
// cannot be quoted.
std::string preload_with(const std::string& library) {
  if (library.find_first_of(" :") != std::string::npos)
    fail("--blas", "the dynamic linker takes no space and no colon in LD_PRELOAD: \"{}\" has one", library);
  const char* before = std::getenv("LD_PRELOAD");
  return before == nullptr || *before == '\0' ? library : library + ":" + before;
}

void print_run(const RunRequest& request, const std::string& preload) {
  Json result = document("run");
  result["environment"] = {{"LD_PRELOAD", preload}};
  result["program"] = request.words;
  print(result);
}

void run_program(const RunRequest& request) {
  if (!request.blas) fail("--blas", "is missing; there is no other drop-in library");
  const std::string preload = preload_with(blas_library());
  if (request.json) return print_run(request, preload);
  ::setenv("LD_PRELOAD", preload.c_str(), 1);
  std::signal(SIGXFSZ, SIG_DFL);  // else the program would inherit that main() ignores it
  std::vector<char*> words;
  for (const std::string& word : request.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  fail(request.words.front(), "cannot be run: {}", std::strerror(errno));
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  auto request = std::make_shared<RunRequest>();
  CLI::App* command =
      program.add_subcommand("run", "Run a program with a drop-in library in place of its BLAS");
  command->footer(
      "Example:\n"
      "  KINTSUGI_POLICY=emulate KINTSUGI_REPORT=- kintsugi run --blas -- python3 script.py\n"
      "\n"
      "The program and all that it starts get the library by LD_PRELOAD. KINTSUGI_POLICY,\n"
      "KINTSUGI_ACCURACY, KINTSUGI_EXPLAIN and KINTSUGI_REPORT control the library\n"
      "(docs/BLAS-DROP-IN.md). The exit status is the program's.");
  command->add_flag("--blas", request->blas, "Answer calls of BLAS's level 3 (libkintsugi_blas)");
  command->add_flag("--json", request->json, "Print what would be run as a JSON document, and do not run it");
  command->add_option("PROGRAM", request->words, "Program and its arguments, after --")->required();
  command->positionals_at_end();
  command->callback([request, &action] { action = [request] { run_program(*request); }; });
}

}  // namespace kintsugi::tools

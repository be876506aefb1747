// kintsugi run: runs a program with a drop-in library preloaded for its cuBLAS or BLAS.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "run/library_path.hpp"
#include "run/preload.hpp"

namespace kintsugi::tools {

namespace {

struct RunRequest {
  bool blas = false;
  bool audit = false;
  bool json = false;
  std::string library_path;
  std::string cublas;
  std::vector<std::string> words;
};

// Environment variables by which the program gets the drop-in, and their values.
std::map<std::string, std::string> environment_of(const RunRequest& request) {
  if (!request.library_path.empty())
    return {{"LD_LIBRARY_PATH", make_library_path(request.library_path, request.cublas)}};
  std::map<std::string, std::string> variables{{"LD_PRELOAD", request.blas
                                                                  ? preload_of("kintsugi_blas", "--blas")
                                                                  : preload_of("kintsugi_cublas", "run")}};
  if (request.audit) variables["LD_AUDIT"] = audit_library("kintsugi_cublas", "--audit");
  return variables;
}

void print_run(const RunRequest& request, const std::map<std::string, std::string>& environment) {
  Json result = document("run");
  result["environment"] = environment;
  result["program"] = request.words;
  print(result);
}

void run_program(const RunRequest& request) {
  const auto environment = environment_of(request);
  if (request.json) return print_run(request, environment);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (is_static_program(request.words.front()))
    fmt::print(
        stderr,
        "kintsugi: {} is linked statically, so that the drop-in does not reach it: all products stay its own\n",
        request.words.front());
  std::signal(SIGXFSZ, SIG_DFL);  // main() ignores the signal, which the program must not inherit
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
      program.add_subcommand("run", "Run a program with a drop-in library in place of its cuBLAS or BLAS");
  command->footer(
      "Example:\n"
      "  KINTSUGI_REPORT=- kintsugi run -- python3 train.py\n"
      "  KINTSUGI_POLICY=emulate kintsugi run --blas -- python3 script.py\n"
      "  kintsugi run --library-path links -- ./program\n"
      "\n"
      "The program and all that it starts get the library by LD_PRELOAD: libkintsugi_cublas, which\n"
      "answers products of cuBLAS, or with --blas libkintsugi_blas. KINTSUGI_POLICY,\n"
      "KINTSUGI_ACCURACY, KINTSUGI_EXPLAIN and KINTSUGI_REPORT control the library\n"
      "(docs/CUBLAS-DROP-IN.md, docs/BLAS-DROP-IN.md). The exit status is the program's.");
  auto* blas =
      command->add_flag("--blas", request->blas, "Answer calls of BLAS's level 3 in place of cuBLAS's");
  auto* audit =
      command
          ->add_flag(
              "--audit", request->audit,
              "Reach programs that take cuBLAS's functions from a handle of their own, such as JAX, too")
          ->excludes(blas);
  auto* path =
      command->add_option("--library-path", request->library_path,
                          "Use LD_LIBRARY_PATH in place of LD_PRELOAD, with this folder, which is filled "
                          "with links");
  path->excludes(blas)->excludes(audit)->type_name("FOLDER");
  command
      ->add_option("--cublas", request->cublas,
                   "Folder of the real cuBLAS [that of KINTSUGI_CUBLAS, else /usr/local/cuda/lib64]")
      ->needs(path)
      ->type_name("FOLDER");
  command->add_flag("--json", request->json, "Print what would be run as a JSON document, and do not run it");
  command->add_option("PROGRAM", request->words, "Program and its arguments, after --")->required();
  command->positionals_at_end();
  command->callback([request, &action] { action = [request] { run_program(*request); }; });
}

}  // namespace kintsugi::tools

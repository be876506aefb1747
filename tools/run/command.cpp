// kintsugi run: runs a program with a drop-in library preloaded for its cuBLAS or BLAS.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "commands.hpp"
#include "run/preload.hpp"

namespace kintsugi::tools {

namespace {

struct RunRequest {
  bool blas = false;
  bool json = false;
  std::vector<std::string> words;
};

void print_run(const RunRequest& request, const std::string& preload) {
  Json result = document("run");
  result["environment"] = {{"LD_PRELOAD", preload}};
  result["program"] = request.words;
  print(result);
}

void run_program(const RunRequest& request) {
  const std::string preload =
      request.blas ? preload_of("kintsugi_blas", "--blas") : preload_of("kintsugi_cublas", "run");
  if (request.json) return print_run(request, preload);
  ::setenv("LD_PRELOAD", preload.c_str(), 1);
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
      "\n"
      "The program and all that it starts get the library by LD_PRELOAD: libkintsugi_cublas, which\n"
      "answers products of cuBLAS, or with --blas libkintsugi_blas. KINTSUGI_POLICY,\n"
      "KINTSUGI_ACCURACY, KINTSUGI_EXPLAIN and KINTSUGI_REPORT control the library\n"
      "(docs/CUBLAS-DROP-IN.md, docs/BLAS-DROP-IN.md). The exit status is the program's.");
  command->add_flag("--blas", request->blas, "Answer calls of BLAS's level 3 in place of cuBLAS's");
  command->add_flag("--json", request->json, "Print what would be run as a JSON document, and do not run it");
  command->add_option("PROGRAM", request->words, "Program and its arguments, after --")->required();
  command->positionals_at_end();
  command->callback([request, &action] { action = [request] { run_program(*request); }; });
}

}  // namespace kintsugi::tools

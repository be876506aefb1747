// kintsugi run: runs a program with a drop-in library preloaded for its cuBLAS or BLAS.
#include "run.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "program.hpp"
#include "support.hpp"

namespace kintsugi::tools {

namespace {

namespace fs = std::filesystem;

constexpr const char* path_flag = "--library-path";

// Returns the program that the first line of a script names; for `#!/usr/bin/env NAME` NAME.
std::string interpreter_of(std::ifstream& script) {
  std::string line, program, argument;
  std::getline(script, line);
  std::istringstream words(line.substr(2));
  words >> program >> argument;
  return program.ends_with("/env") && !argument.empty() && argument[0] != '-' ? argument : program;
}

// True if no program header of a 64-bit ELF file names a dynamic linker.
bool lacks_dynamic_linker(std::ifstream& file) {
  Elf64_Ehdr head{};
  file.read(reinterpret_cast<char*>(&head), sizeof head);
  if (!file || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  std::vector<Elf64_Phdr> parts(head.e_phnum);
  file.seekg(static_cast<std::streamoff>(head.e_phoff));
  file.read(reinterpret_cast<char*>(parts.data()),
            static_cast<std::streamsize>(parts.size() * sizeof(Elf64_Phdr)));
  if (!file || head.e_phentsize != sizeof(Elf64_Phdr)) return false;
  for (const Elf64_Phdr& part : parts)
    if (part.p_type == PT_INTERP) return false;
  return true;
}

// True if the program that execvp() would run, or the interpreter of that script, is an ELF file that has no
// dynamic linker: then no library takes the place of its own functions. False for files that cannot be read.
bool is_static_program(const std::string& program) {
  std::ifstream file(file_of_program(program), std::ios::binary);
  if (file.get() != '#' || file.get() != '!') {
    file.clear();
    file.seekg(0);
    return lacks_dynamic_linker(file);
  }
  file.seekg(0);
  std::ifstream interpreter(file_of_program(interpreter_of(file)), std::ios::binary);
  return lacks_dynamic_linker(interpreter);
}

// Makes the link `place` to `target`. Replaces an existing link.
void link(const fs::path& target, const fs::path& place) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(place, error))) fs::remove(place, error);
  fs::create_symlink(target, place, error);
  if (error) fail(path_flag, "cannot make {}: {}", place.string(), error.message());
}

// Makes links to the stub of a library and to the real library. Returns false and does nothing if there is no
// real library of this version.
bool link_library(const fs::path& folder, const fs::path& stubs, const fs::path& cublas,
                  const std::string& name, int version) {
  const std::string suffix = fmt::format(".so.{}", version);
  const fs::path real = cublas / (name + suffix);
  if (!fs::exists(real)) return false;
  const fs::path stub = stubs / fmt::format("{}", version) / (name + suffix);
  if (!fs::exists(stub)) fail(path_flag, "there is no {}; it is built with the drop-in", stub.string());
  link(stub, folder / (name + suffix));
  link(fs::canonical(real), folder / (name + "_real" + suffix));
  return true;
}

// Returns the folder of the real cuBLAS. The option names the folder; without it, KINTSUGI_CUBLAS names a
// file in the folder; without both, the folder is the toolkit's.
fs::path folder_of_cublas(const std::string& option) {
  if (!option.empty()) return option;
  const char* setting = std::getenv("KINTSUGI_CUBLAS");
  if (setting != nullptr && fs::path(setting).has_parent_path()) return fs::path(setting).parent_path();
  return "/usr/local/cuda/lib64";
}

// Makes `folder` if there is none, and fills it with links to stubs, to the drop-in and to the real cuBLAS.
// `cublas`: the folder of the real cuBLAS; "": the folder of KINTSUGI_CUBLAS or the toolkit. Returns the
// value for LD_LIBRARY_PATH: the folder, followed by the folders in the environment's LD_LIBRARY_PATH. Fails
// with the flag in the message if a library is missing or another file is in the way.
std::string make_library_path(const std::string& folder, const std::string& cublas) {
  const fs::path drop_in = drop_in_library("kintsugi_cublas", path_flag);
  const fs::path real = folder_of_cublas(cublas);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(path_flag, "cannot make {}: {}", folder, error.message());
  const fs::path whole = fs::canonical(folder);
  if (fs::equivalent(whole, real, error)) fail(path_flag, "{} is the folder of the real cuBLAS", folder);
  bool found = false;
  for (const int version : {12, 13}) {
    if (!link_library(whole, drop_in.parent_path() / "cublas_path", real, "libcublas", version)) continue;
    found = true;
    link_library(whole, drop_in.parent_path() / "cublas_path", real, "libcublasLt", version);
  }
  if (!found)
    fail(path_flag, "there is no libcublas.so.12 or .13 in {}; --cublas names its folder", real.string());
  for (const char* library : {"libkintsugi", "libkintsugi_cublas"}) {
    const std::string name = fmt::format("{}.so.{}", library, KINTSUGI_VERSION_MAJOR);
    link(drop_in.parent_path() / name, whole / name);
  }
  const char* before = std::getenv("LD_LIBRARY_PATH");
  return before == nullptr || *before == '\0' ? whole.string() : whole.string() + ":" + before;
}

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
  const std::string drop_in = request.blas ? "kintsugi_blas" : "kintsugi_cublas";
  std::map<std::string, std::string> variables{
      {"LD_PRELOAD", preload_of(drop_in, request.blas ? "--blas" : "run")}};
  if (request.audit) variables["LD_AUDIT"] = audit_library(drop_in, "--audit");
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
  ::execvp(request.words.front().c_str(), pointers_to(request.words).data());
  fail(request.words.front(), "cannot be run: {}", std::strerror(errno));
}

}  // namespace

// The drop-in is in the folder of libkintsugi.
std::string drop_in_library(const std::string& drop_in, const std::string& flag) {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&kintsugi_version), &info) == 0 || info.dli_fname == nullptr)
    fail(flag, "the folder of libkintsugi is not known");
  const auto folder = std::filesystem::canonical(info.dli_fname).parent_path();
  const auto library = folder / fmt::format("lib{}.so.{}", drop_in, KINTSUGI_VERSION_MAJOR);
  if (!std::filesystem::exists(library))
    fail(flag, "there is no {}; it is built with -DKINTSUGI_DROP_IN=ON", library.string());
  return library.string();
}

std::string audit_library(const std::string& drop_in, const std::string& flag) {
  const std::filesystem::path library = drop_in_library(drop_in, flag);
  return (library.parent_path() / fmt::format("lib{}_audit.so", drop_in)).string();
}

std::string file_of_program(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + program;
    if (::access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file)) return file;
  }
  return {};
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  return all;
}

int run_command(const std::vector<std::string>& words, char* const* environment, const std::string& output) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0666);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, words.front().c_str(), &actions, nullptr,
                                   pointers_to(words).data(), environment);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error(error, std::generic_category());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw std::system_error(errno, std::generic_category());
  constexpr int signal_base = 128;  // added to the number of a signal, as shells do
  return WIFEXITED(status) ? WEXITSTATUS(status) : signal_base + WTERMSIG(status);
}

// Refuses paths with spaces and colons. These characters separate names in LD_PRELOAD and cannot be quoted
// there.
std::string preload_of(const std::string& drop_in, const std::string& flag) {
  const std::string library = drop_in_library(drop_in, flag);
  if (library.find_first_of(" :") != std::string::npos)
    fail(flag, "the dynamic linker takes no space and no colon in LD_PRELOAD: \"{}\" has one", library);
  const char* before = std::getenv("LD_PRELOAD");
  return before == nullptr || *before == '\0' ? library : library + ":" + before;
}

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
      "KINTSUGI_ACCURACY and KINTSUGI_SITES say what it computes; KINTSUGI_EXPLAIN, KINTSUGI_VERBOSE,\n"
      "KINTSUGI_REPORT and KINTSUGI_DUMP what it tells; KINTSUGI_VERIFY_SPEED times cuBLAS beside it\n"
      "(docs/CUBLAS-DROP-IN.md, docs/BLAS-DROP-IN.md). The exit status is the program's.");
  auto* blas = command->add_flag("--blas", request->blas, "Answer calls of BLAS in place of cuBLAS's");
  auto* audit = command->add_flag(
      "--audit", request->audit,
      "Reach programs that take the functions from a library's own handle, such as JAX, too");
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

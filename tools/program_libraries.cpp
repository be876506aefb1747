#include "program_libraries.hpp"

#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "elf_symbols.hpp"
#include "run.hpp"

extern char** environ;

namespace kintsugi::tools {

namespace {

namespace fs = std::filesystem;

// One of the drop-ins, and the library in whose place it is.
struct DropIn {
  const char* library;  // "BLAS"
  std::string file;
  std::set<std::string> names;  // functions that it answers or forwards
  std::string run;              // command that puts it before the program
  std::string audit;            // what reaches functions that are taken from a handle, too
};

std::string base_name(const std::string& path) { return fs::path(path).filename().string(); }

bool is_ours(const std::string& path) { return base_name(path).starts_with("libkintsugi"); }

bool is_product(const std::string& name) { return name.find("gemm") != std::string::npos; }

bool has_product(const std::set<std::string>& names) { return std::ranges::any_of(names, is_product); }

// A file that the program has loaded.
struct Object {
  std::string path;
  std::set<std::string> file_names;  // base names by which the log calls it
  ElfSymbols symbols;
  std::set<std::string> loaders;  // files that asked for it first
  // Names that were looked up in its scope past the drop-ins, by the file in which they were found. That is
  // the object itself if a caller has them by dlsym from its handle.
  std::map<std::string, std::set<std::string>> misses;
};

// Contents of the dynamic linker's log.
struct LinkLog {
  std::map<std::string, Object> objects;  // by path

  Object& object(const std::string& name);
};

// The path of a file in the log. A program is logged by its first argument, which the shell may have found.
std::string path_in_log(const std::string& name) {
  std::error_code error;
  const std::string file = name.find('/') == std::string::npos ? file_of_program(name) : name;
  const fs::path path = fs::canonical(file.empty() ? name : file, error);
  return error ? name : path.string();
}

Object& LinkLog::object(const std::string& name) {
  const std::string path = path_in_log(name);
  Object& found = objects[path];
  found.path = path;
  found.file_names.insert(base_name(name));
  return found;
}

// Returns the text between two marks, from the position on, which moves behind it; nothing if a mark is not
// there.
std::optional<std::string> between(const std::string& line, std::string_view first, std::string_view last,
                                   std::size_t& position) {
  const auto begin = line.find(first, position);
  if (begin == std::string::npos) return std::nullopt;
  const auto end = line.find(last, begin + first.size());
  if (end == std::string::npos) return std::nullopt;
  position = end;
  return line.substr(begin + first.size(), end - begin - first.size());
}

// The look-ups of one process.
class Bindings {
 public:
  Bindings(const std::set<std::string>& names, LinkLog& log) : names_(names), log_(log) {}

  // Reads "binding file FROM [0] to FILE [0]: normal symbol `NAME'".
  void read(const std::string& line) {
    std::size_t position = 0;
    const auto from = between(line, "binding file ", " [0] to ", position);
    const auto to = between(line, " [0] to ", " [0]: ", position);
    const auto name = between(line, "`", "'", position);
    if (!from || !to || !name || !names_.contains(*name)) return;
    if (is_ours(*to)) return note_ours(is_ours(*from), *name);
    if (is_ours(*from) || is_drop_ins(*name)) return;
    log_.object(*from).misses[path_in_log(*to)].insert(*name);
  }

 private:
  // A drop-in searches the function behind it in the handles of all libraries, or of those of cuBLAS alone.
  // In the first case it finds its own function before, in the second that name was bound to it.
  void note_ours(bool is_search, const std::string& name) {
    if (is_search) {
      ++searches_[name];
    } else if (name.starts_with("cublas") && bound_.insert(name).second) {
      ++searches_[name];
    }
  }

  // True for a look-up by a drop-in itself, which the log shows with the handle in place of the caller.
  bool is_drop_ins(const std::string& name) {
    const auto search = searches_.find(name);
    return search != searches_.end() && search->second-- > 0;
  }

  const std::set<std::string>& names_;
  LinkLog& log_;
  std::map<std::string, int> searches_;  // by name, those whose result was not seen yet
  std::set<std::string> bound_;
};

// Reads "file=NAME [0];  needed by FILE [0]", or "dynamically loaded by".
void read_loader(const std::string& line, std::map<std::string, std::set<std::string>>& loaders) {
  std::size_t position = 0;
  const auto file = between(line, "file=", " [0];", position);
  const auto loader = between(line, " by ", " [0]", position);
  if (file && loader) loaders[base_name(*file)].insert(base_name(*loader));
}

// Notes a library or a program that is started.
void note_file(const std::string& line, LinkLog& log) {
  for (const std::string_view words : {"calling init: ", "initialize program: "})
    if (const auto at = line.find(words); at != std::string::npos) log.object(line.substr(at + words.size()));
}

LinkLog read_logs(const fs::path& folder, const std::set<std::string>& names) {
  LinkLog log;
  std::map<std::string, std::set<std::string>> loaders;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    Bindings bindings(names, log);
    for (std::string line; std::getline(file, line);) {
      if (line.find("binding file ") != std::string::npos) {
        bindings.read(line);
      } else if (line.find("\tfile=") != std::string::npos) {
        read_loader(line, loaders);
      } else {
        note_file(line, log);
      }
    }
  }
  for (auto& [path, object] : log.objects)
    for (const std::string& name : object.file_names)
      if (const auto found = loaders.find(name); found != loaders.end())
        object.loaders.insert(found->second.begin(), found->second.end());
  return log;
}

// A maker of BLAS libraries: a text in the files of its libraries, and one that is also in programs which
// contain its library. A version may follow the first text.
struct Maker {
  const char* name;
  std::string_view text;
  std::string_view message;
};
constexpr std::array<Maker, 6> makers{{{"FlexiBLAS", "flexiblas_get_version", "flexiblas_get_version"},
                                       {"MKL", "Math Kernel Library", "MKL ERROR: "},
                                       {"BLIS", "bli_info_get_version_str", "libblis: "},
                                       {"ATLAS", "ATL_buildinfo", "ATL_buildinfo"},
                                       {"Arm Performance Libraries", "armplversion", "armplversion"},
                                       {"OpenBLAS", "OpenBLAS ", "OpenBLAS warning: "}}};

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the version that follows a maker's text, such as "0.3.30"; "" if none does.
std::string version_in(const std::string& content, std::string_view text) {
  for (auto at = content.find(text); at != std::string::npos; at = content.find(text, at + 1)) {
    const auto begin = at + text.size();
    const auto end = content.find_first_not_of("0123456789.", begin);
    if (end != std::string::npos && end - begin >= 3) return content.substr(begin, end - begin);
  }
  return {};
}

// Returns the maker of a library that exports products, with its version if the file has it; "" if none is
// known.
std::string maker_of_library(const std::string& path) {
  const std::string content = content_of(path);
  for (const Maker& maker : makers) {
    if (content.find(maker.text) == std::string::npos) continue;
    const std::string version = version_in(content, maker.text);
    return version.empty() ? maker.name : fmt::format("{} {}", maker.name, version);
  }
  return {};
}

// Returns the maker of a BLAS inside a file, "BLAS" if only its names are known, or "" if there is none.
std::string maker_inside(const Object& object) {
  const ElfSymbols& symbols = object.symbols;
  if (has_product(symbols.exported) && !symbols.is_program) return {};
  // Files that need a BLAS often have functions of those names too, which call it.
  const bool has_names =
      !has_product(symbols.needed) && (has_product(symbols.hidden) || has_product(symbols.exported));
  const std::string content = content_of(object.path);
  for (const Maker& maker : makers)
    if (content.find(maker.message) != std::string::npos) return maker.name;
  return has_names ? "BLAS" : "";
}

// Returns up to three names, products first, and the number of the others.
std::string names_text(const std::set<std::string>& names) {
  constexpr std::size_t shown = 3;
  std::vector<std::string> sorted(names.begin(), names.end());
  std::stable_partition(sorted.begin(), sorted.end(), is_product);
  const std::size_t others = sorted.size() - std::min(sorted.size(), shown);
  sorted.resize(sorted.size() - others);
  std::string text;
  for (const std::string& name : sorted) text += (text.empty() ? "" : ", ") + name;
  return others == 0 ? text : fmt::format("{} and {} more", text, others);
}

std::set<std::string> common(const std::set<std::string>& x, const std::set<std::string>& y) {
  std::set<std::string> result;
  std::ranges::set_intersection(x, y, std::inserter(result, result.end()));
  return result;
}

// Judges the objects of a program by one drop-in.
class Judge {
 public:
  Judge(const LinkLog& log, const DropIn& drop_in, Json& findings)
      : log_(log), drop_in_(drop_in), findings_(findings) {}

  void run() {
    for (const auto& [path, object] : log_.objects) {
      if (is_ours(path)) continue;
      if (is_library(object)) {
        append_library(object);
        libraries_.insert(object.file_names.begin(), object.file_names.end());
      } else if (const auto names = common(object.symbols.needed, drop_in_.names); !names.empty()) {
        callers_.insert(base_name(path));
        called_.insert(names.begin(), names.end());
      }
    }
    if (!callers_.empty())
      findings_.push_back(finding(
          "calls", "ok",
          fmt::format("{} {}, from {}: {} reaches them", counted(called_.size(), "name of", "names of"),
                      drop_in_.library, names_text(callers_), drop_in_.run)));
    for (const auto& [path, object] : log_.objects) append_misses(object);
  }

 private:
  bool is_library(const Object& object) const {
    return !object.symbols.is_program && has_product(common(object.symbols.exported, drop_in_.names)) &&
           !is_only_ours(object);
  }

  // True for a BLAS that only libkintsugi has loaded, for its own products.
  static bool is_only_ours(const Object& object) {
    return object.misses.empty() && !object.loaders.empty() && std::ranges::all_of(object.loaders, is_ours);
  }

  void append_library(const Object& object) {
    const std::string maker = maker_of_library(object.path);
    std::string detail = maker.empty() ? object.path : object.path + ": " + maker;
    if (!object.loaders.empty()) detail += ", loaded by " + names_text(object.loaders);
    findings_.push_back(finding(drop_in_.library, "ok", detail));
  }

  // Appends look-ups past the drop-in. A part of a library, which another BLAS loads, is left out: the other
  // one passes its calls on.
  void append_misses(const Object& object) {
    const bool is_part =
        !object.loaders.empty() &&
        std::ranges::all_of(object.loaders, [&](const auto& file) { return libraries_.contains(file); });
    if (is_part) return;
    for (const auto& [path, taken] : object.misses) {
      const std::set<std::string> names = common(taken, drop_in_.names);
      if (names.empty()) continue;
      const std::string way = path == object.path
                                  ? "taken from its handle, by dlsym"
                                  : "taken from " + path + " by dlsym, or since it is RTLD_DEEPBIND";
      findings_.push_back(finding("calls past the drop-in", "missing",
                                  fmt::format("{}: {} {}", object.path, names_text(names), way),
                                  drop_in_.audit));
    }
  }

  static std::string counted(std::size_t count, const char* one, const char* many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
  }

  const LinkLog& log_;
  const DropIn& drop_in_;
  Json& findings_;
  std::set<std::string> libraries_, callers_, called_;  // files by their base names
};

// Appends the files that contain a BLAS, whose calls stay inside. Parts of a library, which that has loaded,
// are left out.
void append_static(const LinkLog& log, Json& findings) {
  std::set<std::string> libraries;
  for (const auto& [path, object] : log.objects)
    if (has_product(object.symbols.exported) && !object.symbols.is_program)
      libraries.insert(object.file_names.begin(), object.file_names.end());
  for (const auto& [path, object] : log.objects) {
    if (is_ours(path) || !common(object.loaders, libraries).empty()) continue;
    const std::string maker = maker_inside(object);
    if (!maker.empty())
      findings.push_back(finding("BLAS inside", "missing",
                                 fmt::format("{}: contains {}, linked statically", path, maker),
                                 "no library comes before calls that are bound inside a file: link it to a "
                                 "shared BLAS"));
  }
}

// Environment of the program: the caller's, without settings, which would change what the drop-ins do.
std::vector<std::string> environment_of(const std::string& preload, const std::string& log) {
  std::vector<std::string> variables;
  for (char** element = environ; *element != nullptr; ++element) {
    const std::string_view line(*element);
    const bool is_replaced =
        line.starts_with("KINTSUGI_") || line.starts_with("LD_PRELOAD=") || line.starts_with("LD_DEBUG");
    if (!is_replaced || line.starts_with("KINTSUGI_CPU_BLAS=") || line.starts_with("KINTSUGI_CUBLAS="))
      variables.emplace_back(line);
  }
  variables.push_back("LD_PRELOAD=" + preload);
  variables.emplace_back("LD_DEBUG=libs,files,bindings");
  variables.push_back("LD_DEBUG_OUTPUT=" + log);
  variables.emplace_back("KINTSUGI_POLICY=native");
  variables.emplace_back("KINTSUGI_CONFIG=/dev/null");
  return variables;
}

// Runs the program and returns its status as waitpid() gives it.
int run_logged(const std::vector<std::string>& words, const std::vector<std::string>& environment) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGXFSZ);  // main() ignores the signal, which the program must not inherit
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, words.front().c_str(), &actions, &attributes,
                                   pointers_to(words).data(), pointers_to(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail(words.front(), "cannot be run: {}", std::strerror(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail(words.front(), "cannot be waited for: {}", std::strerror(errno));
  return status;
}

// A folder that is deleted with its files.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "kintsugi-doctor-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail(name, "cannot be made: {}", std::strerror(errno));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Returns the drop-in. The names that it exports are all those of the library in whose place it is.
DropIn drop_in_of(const char* library, const char* name, const std::string& run, const std::string& audit) {
  const std::string file = drop_in_library(name, "PROGRAM");
  const auto is_name = [](const std::string& symbol) { return !symbol.starts_with("kintsugi"); };
  return {library, file, read_elf_symbols(file, is_name).exported, run, audit};
}

std::array<DropIn, 2> drop_ins() {
  const std::string audit = audit_library("kintsugi_blas", "PROGRAM");
  return {drop_in_of("BLAS", "kintsugi_blas", "kintsugi run --blas",
                     fmt::format("LD_AUDIT={} beside kintsugi run --blas reaches it, too", audit)),
          drop_in_of("cuBLAS", "kintsugi_cublas", "kintsugi run", "kintsugi run --audit reaches it, too")};
}

Json program_finding(int status) {
  if (WIFSIGNALED(status))
    return finding("program", "failed", fmt::format("signal {} ended it", ::strsignal(WTERMSIG(status))),
                   "what it had loaded before is below");
  if (WEXITSTATUS(status) != 0)
    return finding("program", "failed", fmt::format("ended with status {}", WEXITSTATUS(status)),
                   "what it had loaded before is below");
  return finding("program", "ok", "ended with status 0");
}

}  // namespace

Json finding(const std::string& name, const std::string& status, const std::string& detail,
             const std::string& advice) {
  return {{"name", name}, {"status", status}, {"detail", detail}, {"advice", advice}};
}

Json examine_program(const std::vector<std::string>& words) {
  const std::array<DropIn, 2> all = drop_ins();
  std::set<std::string> names = all[0].names;
  names.insert(all[1].names.begin(), all[1].names.end());
  const TemporaryFolder folder;
  const std::string preload = all[0].file + ":" + preload_of("kintsugi_cublas", "PROGRAM");
  const int status = run_logged(words, environment_of(preload, (folder.path() / "log").string()));
  Json findings = Json::array({program_finding(status)});
  LinkLog log = read_logs(folder.path(), names);
  const bool is_static = log.objects.empty();
  log.object(words.front());
  const auto is_name = [&names](const std::string& symbol) { return names.contains(symbol); };
  for (auto& [path, object] : log.objects) object.symbols = read_elf_symbols(path, is_name);
  if (is_static)
    findings.push_back(finding("linking", "missing",
                               fmt::format("{} has no dynamic linker", log.objects.begin()->first),
                               "the drop-ins reach only programs with one"));
  const std::size_t before = findings.size();
  for (const DropIn& drop_in : all) Judge(log, drop_in, findings).run();
  append_static(log, findings);
  if (findings.size() == before)
    findings.push_back(finding("BLAS, cuBLAS", "missing",
                               "neither is loaded, nor is one of their names called",
                               "nothing to do: the program multiplies in another way, or not at all"));
  return findings;
}

}  // namespace kintsugi::tools

#include "tune/state.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "report/pictures.hpp"

namespace kintsugi::tools {

namespace {

// Returns the path of the program, looked up in the folders of PATH; "" if it is not found.
std::filesystem::path path_of(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* folders = std::getenv("PATH");
  std::string rest = folders != nullptr ? folders : "";
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    const auto candidate = std::filesystem::path(rest.substr(0, colon)) / program;
    if (std::filesystem::exists(candidate)) return candidate;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return {};
}

// Returns size and time of the program's file. They change when the program is built again, which may move
// its call sites.
std::string version_of(const std::string& program) {
  std::error_code error;
  const auto path = path_of(program);
  const auto size = std::filesystem::file_size(path, error);
  if (error) return "";
  const auto time = std::filesystem::last_write_time(path, error).time_since_epoch().count();
  return fmt::format("{} bytes, written at {}", size, time);
}

// Returns everything on which a run's results depend.
Json key_of(const TuneRequest& request) {
  const char* seed = std::getenv("KINTSUGI_TUNE_SEED");
  return {{"program", request.program},
          {"program_file", version_of(request.program.front())},
          {"folder", std::filesystem::current_path().string()},
          {"seed", seed != nullptr ? Json(seed) : Json()},
          {"drop_in", request.library},
          {"metric", request.metric},
          {"command", request.command},
          {"reference", request.reference},
          {"output", request.output},
          {"repeat", request.repeat},
          {"frames", request.frames},
          {"error_samples", request.error_samples},
          {"library", kintsugi_version()},
          {"commit", commit()}};
}

}  // namespace

State::State(const TuneRequest& request) : path_(request.beside(".state.json")) {
  document_ = {{"format", "kintsugi.tune-state"},
               {"format_version", 1},
               {"key", key_of(request)},
               {"profile", nullptr},
               {"runs", Json::object()}};
  std::ifstream file(path_);
  if (!file) return;
  const Json found = parse_or_discard(file);
  const bool fits = found.is_object() && found.value("format", "") == "kintsugi.tune-state" &&
                    found.value("format_version", 0) == 1 &&
                    found.value("key", Json()) == document_.at("key") && found.contains("profile") &&
                    found.value("runs", Json()).is_object();
  if (!fits) return;
  document_ = found;
  is_resumed_ = true;
}

void State::keep_profile(const Json& sites) {
  document_["profile"] = sites;
  write();
}

const Json* State::find(const std::string& levels) const {
  const Json& runs = document_.at("runs");
  const auto found = runs.find(levels);
  return found == runs.end() ? nullptr : &*found;
}

void State::keep(const std::string& levels, const Json& run) {
  document_["runs"][levels] = run;
  write();
}

void State::write() const { write_text(path_, document_.dump(1) + "\n"); }

}  // namespace kintsugi::tools

#include "levels.hpp"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/Support/JSON.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Path.h>

#include <cstdlib>

namespace kintsugi::pass {

namespace {

class Message : public llvm::DiagnosticInfo {
 public:
  Message(std::string text, llvm::DiagnosticSeverity severity)
      : DiagnosticInfo(kind(), severity), text_(std::move(text)) {}
  void print(llvm::DiagnosticPrinter& printer) const override { printer << "kintsugi: " << text_; }

 private:
  static int kind() {
    static const int number = llvm::getNextAvailablePluginDiagnosticKind();
    return number;
  }
  std::string text_;
};

void report(llvm::Module& module, const std::string& text, llvm::DiagnosticSeverity severity) {
  module.getContext().diagnose(Message(text, severity));
}

// Reads a rule. Returns what is wrong with it; "" if it is accepted.
std::string read_level(const llvm::json::Value& json, sites::Level& level) {
  const llvm::json::Object* const rule = json.getAsObject();
  if (rule == nullptr) return "is no object";
  for (const auto& [key, value] : *rule) {
    const llvm::StringRef name = key;
    std::string* const option = name == "scheme"     ? &level.scheme
                                : name == "accuracy" ? &level.accuracy
                                : name == "policy"   ? &level.policy
                                                     : nullptr;
    if (option == nullptr) return name.str() + " is no member; accepted: scheme, accuracy, policy";
    const auto text = value.getAsString();
    if (!text || text->empty()) return name.str() + " is no text";
    *option = text->str();
  }
  return sites::mistake_in(level);
}

// Returns why the compiler cannot know a site by this name; "" if it can.
std::string mistake_in_name(llvm::StringRef name) {
  if (name.contains(" < ")) return "names callers, which only a running program has";
  if (!name.contains('#'))
    return "is the name of a return address; the compiler knows file:function:callee#number, as `kintsugi sites` "
           "lists them";
  return "";
}

}  // namespace

std::optional<Levels> Levels::of_environment(llvm::Module& module) {
  const char* const path = std::getenv("KINTSUGI_CLANG_REPLACE");
  if (path == nullptr || *path == '\0') return std::nullopt;
  const auto fail = [&](const std::string& message) {
    report(module, "\"" + std::string(path) + "\": " + message, llvm::DS_Error);
    return Levels();
  };
  const auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) return fail("cannot be read: " + buffer.getError().message());
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse((*buffer)->getBuffer());
  if (!parsed) return fail("is no JSON: " + llvm::toString(parsed.takeError()));
  const llvm::json::Object* const file = parsed->getAsObject();
  if (file == nullptr || file->getString("format").getValueOr("") != "kintsugi.sites")
    return fail("format is not kintsugi.sites");
  if (file->getInteger("format_version").getValueOr(0) != 1) return fail("format_version is not 1");
  const llvm::json::Object* const sites = file->getObject("sites");
  if (sites == nullptr) return fail("sites is no object");
  Levels levels;
  for (const auto& [key, value] : *sites) {
    const std::string name = llvm::StringRef(key).str();
    Rule rule;
    std::string mistake = read_level(value, rule.level);
    if (mistake.empty() && !rule.level.is_native()) mistake = mistake_in_name(name);
    if (!mistake.empty()) return fail("sites: \"" + name + "\": " + mistake);
    levels.rules_[name] = rule;
  }
  return levels;
}

sites::Level Levels::of(const sites::SiteRecord& site) {
  constexpr bool with_hash = true;
  auto rule = site.file.empty() ? rules_.end() : rules_.find(sites::site_name(site, with_hash));
  if (rule == rules_.end()) rule = rules_.find(sites::site_name(site));
  if (rule == rules_.end()) return sites::Level::native();
  rule->second.is_used = true;
  return rule->second.level.is_native() ? sites::Level::native() : rule->second.level;
}

void Levels::warn_of_unknown_sites(llvm::Module& module) const {
  sites::SiteRecord any;
  any.file = llvm::sys::path::filename(module.getSourceFileName()).str();
  any.path_hash = sites::hash_of(module.getSourceFileName());
  for (const auto& [name, rule] : rules_) {
    if (rule.is_used || rule.level.is_native()) continue;
    for (const bool with_hash : {false, true}) {
      const std::string whole = sites::site_name(any, with_hash);
      const std::string file = whole.substr(0, whole.find(':') + 1);
      if (llvm::StringRef(name).startswith(file))
        warn(module, "the sites file has " + level_text(rule.level) + " for " + name +
                         ", which this source file does not contain");
    }
  }
}

void warn(llvm::Module& module, const std::string& message) { report(module, message, llvm::DS_Warning); }

}  // namespace kintsugi::pass

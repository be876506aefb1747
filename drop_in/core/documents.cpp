#include "documents.hpp"

#include <nlohmann/json.hpp>

namespace kintsugi::drop_in {

namespace {

using Document = nlohmann::json;

// Reads the document that describe(buffer, capacity, needed) writes. Its arguments are used as those of
// kintsugi_plan_describe().
template <class Describe>
std::optional<Document> read_document(const Describe& describe) {
  std::size_t needed = 16384;  // enough for most documents: measuring one first takes as long as writing it
  std::string text;
  while (text.size() < needed) {
    text.resize(needed);
    if (describe(text.data(), text.size(), &needed) != KINTSUGI_SUCCESS) return std::nullopt;
  }
  text.resize(needed - 1);
  return Document::parse(text);
}

// Sets the sentences on the decision. `words` has first a sentence on the problem, then warnings, then one
// sentence on the decision, and possibly one on GPUs.
void set_sentences(PlanSummary& summary, const Document& words) {
  std::string& choice = summary.why;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string sentence = words[i];
    if (sentence.starts_with("Warning:")) continue;
    if (choice.empty()) {
      choice = sentence;
    } else if (sentence.starts_with("Offload ")) {
      summary.offload = sentence;
      choice += " " + sentence;
    }
  }
}

}  // namespace

std::optional<LibrarySettings> library_settings() {
  const auto document = read_document([](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_describe_settings(nullptr, buffer, capacity, needed);
  });
  if (!document) return std::nullopt;
  LibrarySettings settings;
  for (const Document& setting : document->at("settings"))
    settings.values[setting.at("name")] =
        setting.at("value").is_string() ? setting.at("value").get<std::string>() : "";
  for (const Document& variable : document->at("ignored_variables"))
    if (variable.at("nearest").is_string())
      settings.misspelt_variables.emplace_back(variable.at("name"), variable.at("nearest"));
  return settings;
}

PlanSummary summary_of(kintsugi_plan plan) {
  const auto document = read_document([plan](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_plan_describe(plan, buffer, capacity, needed);
  });
  PlanSummary summary;
  if (!document) return summary;
  const Document& candidates = document->at("candidates");
  summary.may_be_native = !candidates.empty() && candidates.back().at("scheme") == "native";
  summary.is_native = summary.may_be_native && candidates.size() == 1;
  for (const Document& candidate : candidates) {
    if (!summary.candidates.empty()) summary.candidates += ", ";
    summary.candidates += candidate.at("scheme").get<std::string>();
  }
  summary.is_offloaded = document->at("offloaded");
  set_sentences(summary, document->at("words"));
  return summary;
}

ExecutionSummary summary_of(kintsugi_handle handle) {
  const auto document = read_document([handle](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_report(handle, buffer, capacity, needed);
  });
  ExecutionSummary summary;
  if (!document) return summary;
  if (const Document& candidates = document->at("candidates"); !candidates.empty())
    summary.program = candidates.front().at("scheme");
  summary.recomputed_elements = document->at("recomputed_elements");
  summary.has_special_values = document->at("items_with_special_values") != 0;
  if (const Document& offload = document->at("offload"); !offload.is_null()) {
    summary.is_offloaded = offload.at("devices") != 0;
    if (const Document& reason = offload.at("host_reason"); reason.is_string())
      summary.offload_obstacle = reason;
  }
  return summary;
}

}  // namespace kintsugi::drop_in

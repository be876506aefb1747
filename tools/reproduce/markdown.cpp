#include "reproduce/markdown.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

namespace kintsugi::tools {

namespace {

std::string escaped_cell(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '_') result += '\\';
    if (c == '<') {
      result += "&lt;";
    } else {
      result += c;
    }
  }
  return result;
}

// Returns a paragraph in lines of 120 characters.
std::string paragraph(const std::string& text) { return wrapped(text, 120, 0) + "\n\n"; }

bool is_counted(const Json& claim) { return claim.at("kind") == "paper"; }

int count_of(const Json& document, const std::string& verdict) {
  int count = 0;
  for (const Json& figure : document.at("figures")) {
    for (const Json& claim : figure.at("claims"))
      count += is_counted(claim) && cell(claim, "verdict") == verdict ? 1 : 0;
  }
  return count;
}

std::string summary_of(const Json& document) {
  if (document.at("quick").get<bool>()) return "Small sizes, no verdicts (--quick)";
  return fmt::format(
      "Of the papers' claims {} agree, {} disagree, {} cannot be decided here and {} were not measured",
      count_of(document, "agrees"), count_of(document, "disagrees"),
      count_of(document, "cannot be decided here"), count_of(document, "not measured"));
}

std::string head_of(const Json& document) {
  const Json& machine = document.at("machine");
  std::string text = "# The papers' claims on accuracy, and what came out here\n\n";
  text += paragraph(
      fmt::format("Made by `{}`; not to be edited by hand. Kintsugi {}, commit {}; {}, {} threads, {}.",
                  cell(document, "command"), cell(document, "version"), cell(document, "commit"),
                  cell(machine, "processor"), cell(machine, "threads"), cell(machine, "system")));
  text += paragraph(fmt::format(
      "{}. Verdicts follow from the values and the criteria of claims.json; claims.md has all claims, "
      "those that nobody measured among them. Our own claims and those that are true by construction are "
      "marked and not counted. Errors are against the exact product where nothing else is said; {} rows "
      "lie beyond their scheme's a-priori bound. The words are those of docs/TERMS.md, the schemes those "
      "of docs/schemes. The command also writes a page with pictures for each figure, FIGURE.html, beside "
      "the figure's data, which the repository keeps packed in lab/results/papers.",
      summary_of(document), cell(document, "bound_violations")));
  return text;
}

std::string claims_table(const Json& claims) {
  std::string text = "| claim | | paper | here | verdict |\n|---|---|---|---|---|\n";
  for (const Json& claim : claims) {
    const std::string verdict = cell(claim, "verdict");
    const std::string kind = is_counted(claim) ? "" : " (" + cell(claim, "kind") + ")";
    text += fmt::format("| `{}` | {}{} | {} | {} | {} |\n", cell(claim, "id"),
                        escaped_cell(cell(claim, "claim")), kind, escaped_cell(cell(claim, "theirs")),
                        escaped_cell(cell(claim, "ours")), verdict.empty() ? "-" : "**" + verdict + "**");
  }
  return text + "\n";
}

// Returns the reasons of the verdicts as a list. Claims with the same reason share a line.
std::string reasons(const Json& claims) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Json& claim : claims) {
    const std::string reason = cell(claim, "reason");
    if (reason.empty()) continue;
    const std::string name = "`" + cell(claim, "id") + "`";
    const auto same_reason =
        std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line.first == reason; });
    if (same_reason == lines.end()) {
      lines.emplace_back(reason, name);
    } else {
      same_reason->second += ", " + name;
    }
  }
  std::string text;
  for (const auto& [reason, names] : lines)
    text += wrapped("- " + names + ": " + escaped_cell(reason), 120, 2) + "\n";
  return text.empty() ? "" : text + "\n";
}

std::string data_of(const Json& figure) {
  std::vector<std::string> data;
  for (const Json& name : figure.at("data"))
    data.push_back("`" + std::filesystem::path(name.get<std::string>()).filename().string() + "`");
  std::set<std::string> commits;
  for (const Json& commit : figure.at("commits")) commits.insert(commit.get<std::string>());
  return fmt::format("{}; {} rows of commit {}: `{}`\n\n", fmt::join(data, ", "), cell(figure, "rows"),
                     fmt::join(commits, ", "), cell(figure, "command"));
}

}  // namespace

std::string markdown_of(const Json& document) {
  std::string text = head_of(document);
  for (const Json& figure : document.at("figures")) {
    text += fmt::format("## {}: {}\n\n", cell(figure, "name"), cell(figure, "subject"));
    text += paragraph(fmt::format("{}, {}. Conditions: {}.", cell(figure, "paper"), cell(figure, "place"),
                                  escaped_cell(cell(figure, "conditions"))));
    text += claims_table(figure.at("claims")) + reasons(figure.at("claims")) + data_of(figure);
  }
  text.pop_back();  // one newline at the end
  return text;
}

}  // namespace kintsugi::tools

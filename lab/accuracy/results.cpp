#include "lab/accuracy/results.hpp"

#include <filesystem>
#include <utility>

#include "tools/gemm/product.hpp"
#include "tools/io/atomic_file.hpp"
#include "tools/io/input_file.hpp"

namespace kintsugi::tools {

namespace {

// Fails unless a value in the file is equal to the value of this run. `name`: name of the value in the
// message.
void require_same(const std::string& file, const Json& of_file, const Json& of_run, const char* name) {
  if (of_file == of_run) return;
  fail(file, "its {} is {} and ours is {}; choose another -o, or remove the file to start again", name,
       of_file.dump(), of_run.dump());
}

const Json& processor_of(const Json& document) { return document.at("machine").at("processor"); }

}  // namespace

Json key_of(const Json& row) {
  Json key;
  for (const char* name : {"problem", "distribution", "seed", "scheme", "engine", "accumulator"})
    key[name] = row.at(name);
  return key;
}

AccuracyResults::AccuracyResults(std::string file, const Sweep& sweep, const std::vector<Json>& keys)
    : file_(std::move(file)), head_(tools::document("accuracy")) {
  head_["settings"] = settings_of(sweep);
  head_["seed"] = sample_seed;
  if (file_.empty()) return;
  check_writable(file_);
  if (std::filesystem::exists(file_)) resume(keys);
}

void AccuracyResults::resume(const std::vector<Json>& keys) {
  InputFile input(file_);
  const Json old = parse_or_discard(input.read_rest());
  if (!old.is_object() || old.value("format", Json()) != head_.at("format"))
    fail(file_, "exists and was not written by kintsugi-lab accuracy; choose another -o");
  try {
    for (const char* name : {"format_version", "version", "commit", "seed"})
      require_same(file_, old.at(name), head_.at(name), name);
    require_same(file_, processor_of(old), processor_of(head_), "processor");
    for (const char* name : {"max_elements", "histogram"})
      require_same(file_, old.at("settings").at(name), head_.at("settings").at(name), name);
    std::set<std::string> wanted;
    for (const Json& key : keys) wanted.insert(key.dump());
    for (const Json& row : old.at("rows")) {
      const std::string key = key_of(row).dump();
      if (!wanted.contains(key))
        fail(file_, "has a row that is not in this sweep ({}); choose another -o", key);
      if (done_.insert(key).second) rows_.push_back(row);
    }
  } catch (const Json::exception& error) {
    fail(file_, "cannot be continued by kintsugi-lab accuracy, choose another -o: {}", error.what());
  }
}

void AccuracyResults::add(const Json& row) {
  constexpr auto interval = std::chrono::seconds(5);
  done_.insert(key_of(row).dump());
  rows_.push_back(row);
  changed_ = true;
  if (std::chrono::steady_clock::now() - flushed_ >= interval) flush();
}

void AccuracyResults::flush() {
  if (file_.empty() || !changed_) return;
  const std::string text = results_text(document());
  AtomicFile output(file_);
  output.write(text.data(), text.size());
  output.commit();
  changed_ = false;
  flushed_ = std::chrono::steady_clock::now();
}

Json AccuracyResults::document() const {
  Json document = head_;
  document["rows"] = rows_;
  return document;
}

}  // namespace kintsugi::tools

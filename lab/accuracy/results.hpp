// The document of `kintsugi-lab accuracy`, in memory and in its file.
#pragma once

#include <chrono>
#include <set>
#include <string>

#include "lab/accuracy/sweep.hpp"

namespace kintsugi::tools {

class AccuracyResults {
 public:
  // `file`: file of the document; "": results are kept in memory only. Rows of an existing file are kept.
  // Fails if the file was made by another version, commit or processor, or if it has rows that are not among
  // `keys`.
  AccuracyResults(std::string file, const Sweep& sweep, const std::vector<Json>& keys);

  bool has(const Json& key) const { return done_.contains(key.dump()); }
  std::size_t size() const { return done_.size(); }
  // Adds a row. Writes the file if the last write was more than a few seconds ago.
  void add(const Json& row);
  // Writes the file under a temporary name, then renames it.
  void flush();

  Json document() const;

 private:
  void resume(const std::vector<Json>& keys);

  std::string file_;
  Json head_;
  Json rows_ = Json::array();
  std::set<std::string> done_;  // keys of rows_
  bool changed_ = true;         // true: rows have changed since the file was written
  std::chrono::steady_clock::time_point flushed_ = std::chrono::steady_clock::now();
};

// Returns the members of a row that identify it.
Json key_of(const Json& row);

}  // namespace kintsugi::tools

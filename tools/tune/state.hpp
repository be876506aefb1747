// Runs that have been made, in a file beside the configuration, by which an interrupted search goes on.
#pragma once

#include <map>
#include <string>

#include "support.hpp"
#include "tune/request.hpp"

namespace kintsugi::tools {

class State {
 public:
  // Reads the file, unless it is of another program, of other levels or of another measure of error.
  explicit State(const TuneRequest& request);

  bool is_resumed() const { return is_resumed_; }
  const Json& profile() const { return document_.at("profile"); }  // null: not made
  void keep_profile(const Json& sites);

  // A run by its levels' names, "native,fp16"; nullptr: not made.
  const Json* find(const std::string& levels) const;
  void keep(const std::string& levels, const Json& run);

 private:
  void write() const;

  std::string path_;
  Json document_;
  bool is_resumed_ = false;
};

}  // namespace kintsugi::tools

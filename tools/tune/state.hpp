// Results of the program's runs so far, in a file beside the sites file. An interrupted search continues from
// it.
#pragma once

#include <map>
#include <string>

#include "support.hpp"
#include "tune/request.hpp"

namespace kintsugi::tools {

class State {
 public:
  // Reads the file. Ignores its content if it belongs to another program or to other options.
  explicit State(const TuneRequest& request);

  bool is_resumed() const { return is_resumed_; }
  const Json& profile() const { return document_.at("profile"); }  // null: the program was not profiled yet
  void keep_profile(const Json& sites);

  // Returns the run with these levels, given as "native,fp16"; nullptr if there was no such run.
  const Json* find(const std::string& levels) const;
  void keep(const std::string& levels, const Json& run);

 private:
  void write() const;

  std::string path_;
  Json document_;
  bool is_resumed_ = false;
};

}  // namespace kintsugi::tools

// Schemes and engines of the library under test, from its own descriptions.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kintsugi/kintsugi.h"
#include "tests/support/fuzz_case.hpp"

namespace kintsugi::test {

inline std::string description(const std::function<kintsugi_status(char*, std::size_t, std::size_t*)>& call) {
  std::size_t needed = 0;
  call(nullptr, 0, &needed);
  std::string text(needed, ' ');
  call(text.data(), text.size(), nullptr);
  text.pop_back();
  return text;
}

// All schemes and engines of this library, and some schemes with parameters that are not their defaults.
inline FuzzChoices choices_of_library() {
  FuzzChoices choices;
  const nlohmann::json schemes = nlohmann::json::parse(description(kintsugi_describe_schemes));
  std::map<std::string, std::vector<std::string>*> lists = {
      {"fp32", &choices.schemes_fp32}, {"fp64", &choices.schemes_fp64}, {"dd", &choices.schemes_dd}};
  for (const nlohmann::json& scheme : schemes.at("schemes")) {
    for (const nlohmann::json& type : scheme.at("operands")) lists.at(type)->push_back(scheme.at("name"));
  }
  const auto with_parameters = {"h2sgemm:sb=6",         "split-n:a=3:b=3",     "quantensor:slices=3",
                                "quantensor:scale=max", "ozaki-int8:slices=2", "ozaki-int8:slices=8",
                                "int52:words=2",        "ozaki-fp16:slices=4", "ozaki-fp16:mode=cr",
                                "ozaki-fp64:mode=sp",   "fp16x3:block=128",    "ozaki2:moduli=9",
                                "ozaki2:moduli=22",     "ozaki2:scale=norm",   "ozaki2:scale=product"};
  for (const std::string name : with_parameters) {
    for (auto& [type, list] : lists) {
      const std::string plain = name.substr(0, name.find(':'));
      if (type != "dd" && std::find(list->begin(), list->end(), plain) != list->end()) list->push_back(name);
    }
  }
  const nlohmann::json engines = nlohmann::json::parse(description(kintsugi_describe_engines));
  for (const nlohmann::json& engine : engines.at("engines")) {
    const std::string name = engine.at("name");
    if (engine.at("available") && name != "cuda") choices.engines.push_back(name);
  }
  return choices;
}

}  // namespace kintsugi::test

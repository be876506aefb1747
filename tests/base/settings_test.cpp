#include "base/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/status.hpp"
#include "kintsugi/kintsugi.h"

namespace kintsugi::core {
namespace {

using testing::HasSubstr;

std::string message_of(const auto& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::bad_setting);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

// Sets an environment variable for its lifetime.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value, 1);
  }
  ~Variable() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

SettingLayer layer_with(const char* name, const char* value) {
  SettingLayer layer;
  layer.set(find_setting(name), value, "test");
  return layer;
}

TEST(Settings, NearerLayersGoFirst) {
  const auto value = [](const SettingLayer& call, const SettingLayer& handle, const SettingLayer& environment,
                        const SettingLayer& file) {
    const Settings settings(call, handle, environment, file);
    return settings[SettingId::policy].value + " by " + std::string(settings[SettingId::policy].source);
  };
  const SettingLayer none;
  const auto native = layer_with("policy", "native");
  const auto emulate = layer_with("policy", "emulate");
  EXPECT_EQ(value(none, none, none, none), "auto by default");
  EXPECT_EQ(value(none, none, none, native), "native by file");
  EXPECT_EQ(value(none, none, emulate, native), "emulate by environment");
  EXPECT_EQ(value(none, native, emulate, emulate), "native by handle");
  EXPECT_EQ(value(emulate, native, native, native), "emulate by call");
}

TEST(Settings, UnknownNamesListTheSettings) {
  EXPECT_THAT(message_of([] { find_setting("shceme"); }),
              testing::AllOf(HasSubstr("\"shceme\""), HasSubstr("accuracy, scheme, engine")));
}

TEST(Settings, MalformedValuesNameTheAcceptedOnes) {
  const std::pair<const char*, const char*> wrong[] = {{"policy", "force"},
                                                       {"policy", ""},
                                                       {"policy", "auto, emulate"},
                                                       {"accuracy", "fp16"},
                                                       {"accuracy", "0"},
                                                       {"accuracy", "-1e-3"},
                                                       {"accuracy", "1e-3x"},
                                                       {"accuracy", "1.5"},
                                                       {"accuracy", "nan"},
                                                       {"threads", "-1"},
                                                       {"threads", "5000"},
                                                       {"threads", "2 "},
                                                       {"threads", "two"},
                                                       {"workspace_limit", "-1"},
                                                       {"workspace_limit", "1T"},
                                                       {"workspace_limit", "K"},
                                                       {"workspace_limit", "9999999999G"},
                                                       {"scheme", "a b"},
                                                       {"engine", ""},
                                                       {"log", "verbose"}};
  for (const auto& [name, value] : wrong) {
    const SettingDescription& setting = find_setting(name);
    const std::string message = message_of([&] { check_setting(setting, value, "somewhere"); });
    EXPECT_THAT(message, HasSubstr(std::string("somewhere: ") + name + " = \"" + value + "\"")) << message;
    EXPECT_THAT(message, HasSubstr(std::string(setting.accepted)));
  }
}

TEST(Settings, ValidValuesAreRead) {
  for (const char* accuracy : {"fp32", "fp64", "exact", "1e-10", "0.25"}) {
    EXPECT_NO_THROW(check_setting(find_setting("accuracy"), accuracy, "test")) << accuracy;
  }
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("3K"), 3 * 1024);
  EXPECT_EQ(parse_bytes("2m"), 2 * 1024 * 1024);
  EXPECT_EQ(parse_bytes("1G"), 1 << 30);
  EXPECT_EQ(parse_integer("17"), 17);
}

TEST(Settings, EnvironmentIsReadAndChecked) {
  {
    const Variable variable("KINTSUGI_POLICY", "native");
    EXPECT_EQ(environment_settings().get(SettingId::policy), "native");
  }
  EXPECT_EQ(environment_settings().get(SettingId::policy), std::nullopt);
  {
    const Variable variable("KINTSUGI_POLICY", "sometimes");
    EXPECT_THAT(message_of([] { environment_settings(); }),
                HasSubstr("KINTSUGI_POLICY: policy = \"sometimes\""));
  }
}

// CMake and module systems set KINTSUGI_ROOT and the like, which must not fail a call.
TEST(Settings, UnknownVariablesAreSkippedAndNamed) {
  const Variable root("KINTSUGI_ROOT", "/opt/kintsugi");
  const Variable folder("KINTSUGI_DIR", "");
  const Variable home("KINTSUGI_HOME", "/opt/kintsugi");
  const Variable policy("KINTSUGI_POLICY", "native");
  EXPECT_EQ(environment_settings().get(SettingId::policy), "native");
  const Variable misspelt("KINTSUGI_SHCEME", "fp16");
  EXPECT_EQ(environment_settings().get(SettingId::scheme), std::nullopt);
  std::vector<std::string> names;
  for (const UnknownVariable& variable : unknown_variables()) {
    names.push_back(variable.name);
    if (variable.name != "KINTSUGI_SHCEME") {
      EXPECT_EQ(variable.nearest, std::nullopt);
      EXPECT_EQ(describe(variable), "the environment variable " + variable.name + " names no setting");
      continue;
    }
    EXPECT_EQ(variable.nearest, "KINTSUGI_SCHEME");
    EXPECT_THAT(describe(variable),
                HasSubstr("KINTSUGI_SHCEME names no setting (did you mean KINTSUGI_SCHEME?)"));
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("KINTSUGI_ROOT", "KINTSUGI_DIR", "KINTSUGI_HOME",
                                                   "KINTSUGI_SHCEME"));
}

TEST(Settings, StrictMakesUnknownVariablesErrors) {
  const Variable misspelt("KINTSUGI_CONFIGG", "settings");
  const auto error = [](const char* strict) {
    const Variable variable("KINTSUGI_STRICT", strict);
    return message_of([] { environment_settings(); });
  };
  EXPECT_THAT(error("1"),
              testing::AllOf(HasSubstr("KINTSUGI_CONFIGG names no setting"),
                             HasSubstr("did you mean KINTSUGI_CONFIG?"), HasSubstr("KINTSUGI_STRICT = 1")));
  for (const char* malformed : {"", "yes", "2", "01"})
    EXPECT_THAT(error(malformed), HasSubstr("KINTSUGI_STRICT: strict = \"")) << malformed;
  const Variable off("KINTSUGI_STRICT", "0");
  EXPECT_NO_THROW(environment_settings());
}

TEST(Settings, StrictIsSetByTheEnvironmentOnly) {
  EXPECT_THAT(message_of([] { refuse_environment_only(find_setting("strict"), "kintsugi_set"); }),
              HasSubstr("set the environment variable KINTSUGI_STRICT instead"));
}

TEST(Settings, EnvironmentTakesTheVariablesOfTheDropInLibraries) {
  const Variable policy("KINTSUGI_POLICY", "force");
  const Variable explain("KINTSUGI_EXPLAIN", "1");
  const Variable report("KINTSUGI_REPORT", "-");
  const Variable strict("KINTSUGI_STRICT", "1");
  EXPECT_EQ(environment_settings().get(SettingId::policy), "emulate");
  EXPECT_THAT(message_of([] { check_setting(find_setting("policy"), "force", "options"); }),
              HasSubstr("did you mean emulate? Accepted: auto, emulate, native"));
  const Variable misspelt("KINTSUGI_REPROT", "-");
  EXPECT_THAT(message_of([] { environment_settings(); }), HasSubstr("did you mean KINTSUGI_REPORT?"));
}

class SettingsFile : public testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(path_) << text; }
  ~SettingsFile() override { std::filesystem::remove(path_); }
  std::string path_ = testing::TempDir() + "kintsugi_settings_test";
  Variable variable_{"KINTSUGI_CONFIG", path_.c_str()};
};

TEST_F(SettingsFile, CommentsAndBlanksAreSkipped) {
  write("# mine\n\n  policy = emulate # why not\nthreads=3\n");
  const SettingLayer layer = file_settings();
  EXPECT_EQ(layer.get(SettingId::policy), "emulate");
  EXPECT_EQ(layer.get(SettingId::threads), "3");
  EXPECT_EQ(layer.get(SettingId::scheme), std::nullopt);
}

TEST_F(SettingsFile, MistakesNameTheLine) {
  write("policy = emulate\nthreads 3\n");
  EXPECT_THAT(message_of([] { file_settings(); }), HasSubstr(path_ + ":2: \"threads 3\""));
  write("policy = none\n");
  EXPECT_THAT(message_of([] { file_settings(); }), HasSubstr(path_ + ":1: policy = \"none\""));
  write("colour = red\n");
  EXPECT_THAT(message_of([] { file_settings(); }), HasSubstr("no setting \"colour\""));
}

TEST_F(SettingsFile, RefusesSettingsOfTheEnvironmentOnly) {
  write("cpu_blas = libblas.so\n");
  EXPECT_THAT(message_of([] { file_settings(); }),
              HasSubstr("set the environment variable KINTSUGI_CPU_BLAS instead"));
}

TEST_F(SettingsFile, MayBeEmptyButNotAFolder) {
  write("");
  EXPECT_EQ(file_settings().get(SettingId::policy), std::nullopt);
  const Variable folder("KINTSUGI_CONFIG", "/tmp");
  EXPECT_THAT(message_of([] { file_settings(); }), HasSubstr("\"/tmp\" cannot be read"));
}

TEST(SettingsFolders, EmptyVariablesCountAsUnset) {
  const Variable named("KINTSUGI_CONFIG", "");
  const Variable home("HOME", "/nowhere");
  const Variable folder("XDG_CONFIG_HOME", "");
  EXPECT_EQ(file_settings().get(SettingId::policy), std::nullopt);
}

TEST_F(SettingsFile, ANamedFileMustExist) {
  std::filesystem::remove(path_);
  EXPECT_THAT(message_of([] { file_settings(); }), HasSubstr("cannot be read"));
}

TEST(SettingsFolders, TheDefaultFileMayBeMissing) {
  const std::string folder = testing::TempDir() + "kintsugi_config_test";
  const Variable variable("XDG_CONFIG_HOME", folder.c_str());
  std::filesystem::remove_all(folder);
  EXPECT_EQ(file_settings().get(SettingId::policy), std::nullopt);
  std::filesystem::create_directories(folder + "/kintsugi");
  std::ofstream(folder + "/kintsugi/settings") << "policy = native\n";
  EXPECT_EQ(file_settings().get(SettingId::policy), "native");
  std::filesystem::remove_all(folder);
}

TEST(Status, NumbersAndNamesEqualTheHeaders) {
  const std::pair<Status, kintsugi_status> pairs[] = {
      {Status::success, KINTSUGI_SUCCESS},
      {Status::invalid_argument, KINTSUGI_INVALID_ARGUMENT},
      {Status::not_supported, KINTSUGI_NOT_SUPPORTED},
      {Status::engine_unavailable, KINTSUGI_ENGINE_UNAVAILABLE},
      {Status::out_of_memory, KINTSUGI_OUT_OF_MEMORY},
      {Status::workspace_too_small, KINTSUGI_WORKSPACE_TOO_SMALL},
      {Status::contract_unreachable, KINTSUGI_CONTRACT_UNREACHABLE},
      {Status::bad_setting, KINTSUGI_BAD_SETTING},
      {Status::device_error, KINTSUGI_DEVICE_ERROR},
      {Status::internal, KINTSUGI_INTERNAL}};
  for (const auto& [internal_status, public_status] : pairs) {
    EXPECT_EQ(static_cast<int>(internal_status), static_cast<int>(public_status));
    EXPECT_STREQ(status_name(internal_status), kintsugi_status_name(public_status));
  }
  const int unknown = 12;  // within the enumeration's bits, so that the conversion is defined
  EXPECT_STREQ(kintsugi_status_name(static_cast<kintsugi_status>(unknown)), "unknown");
}

}  // namespace
}  // namespace kintsugi::core

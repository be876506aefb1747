// kintsugi calibrate: measures this machine's GPU or CPU, so that the policy auto decides by its own times.
#include <fstream>
#include <memory>

#include "program.hpp"

namespace kintsugi::tools {

namespace {

struct CalibrateRequest {
  std::string engine;
  std::string output;
  bool quick = false;
  bool blind = false;
  bool json = false;
};

// Contents of the library's progress reports.
struct CalibrationProgress {
  Progress bar{"calibrating"};
  std::string last_step;  // step of the latest progress report; the last report has the profile's file
};

void show_progress(void* user, double fraction_done, const char* step) {
  constexpr std::int64_t bar_steps = 1000;
  auto& progress = *static_cast<CalibrationProgress*>(user);
  progress.bar.show(static_cast<std::int64_t>(fraction_done * bar_steps), bar_steps);
  progress.last_step = step;
}

void print_fits(const std::string& file, const Json& profile) {
  fmt::print("Profile of {}: {}\n\n", profile.at("device").at("name").get<std::string>(), file);
  Table table({"measured", "times", "median deviation", "largest", "of"});
  for (const auto& fit : profile.at("fits")) {
    table.add({cell(fit, "kind"), cell(fit, "measurements"),
               fmt::format("{:.1f} %", 100 * fit.at("median_deviation").get<double>()),
               fmt::format("{:.0f} %", 100 * fit.at("max_deviation").get<double>()), cell(fit, "worst")});
  }
  fmt::print("{}", table.text());
}

void run_calibrate(const CalibrateRequest& request) {
  require_settings();
  std::string file;
  {
    CalibrationProgress progress;  // clears its bar at the end of this block, before anything is printed
    kintsugi_calibration calibration = KINTSUGI_CALIBRATION_INIT;
    calibration.engine = request.engine.empty() ? nullptr : request.engine.c_str();
    calibration.file = request.output.empty() ? nullptr : request.output.c_str();
    calibration.quick = request.quick ? 1 : 0;
    calibration.blind = request.blind ? 1 : 0;
    calibration.progress = show_progress;
    calibration.progress_user = &progress;
    require("calibrate", kintsugi_calibrate(&calibration));
    file = progress.last_step;
  }
  std::ifstream stream(file);
  const Json profile = Json::parse(stream);
  if (!request.json) return print_fits(file, profile);
  Json result = document("calibration");
  result["file"] = file;
  result["profile"] = profile;
  print(result);
}

}  // namespace

void add_calibrate(CLI::App& program, Action& action) {
  auto request = std::make_shared<CalibrateRequest>();
  CLI::App* command = program.add_subcommand(
      "calibrate", "Measure this machine's GPU or CPU, so that auto decides by its own times");
  command->footer(
      "Takes a minute, on a machine that should be idle, and writes a profile that later calls read\n"
      "(kintsugi doctor says which profile they read). The printed deviations show how well the cost\n"
      "model explains the measurements.\n"
      "\n"
      "Example:\n"
      "  kintsugi calibrate --quick\n"
      "  kintsugi calibrate --engine cpu --json");
  command->add_option("--engine", request->engine, "cuda, cpu [cuda where it can run, else cpu]");
  command->add_flag("--quick", request->quick, "Fewer repetitions");
  command->add_flag(
      "--blind", request->blind,
      "Ignore what is known of this device, to test how well calibration works on an unknown one");
  command->add_option("-o,--output", request->output,
                      "File of the profile [the one that calls read, in the folder of the settings]");
  command->add_flag("--json", request->json, "Print the profile as JSON");
  command->callback([request, &action] { action = [request] { run_calibrate(*request); }; });
}

}  // namespace kintsugi::tools

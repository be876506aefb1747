#include "calibrate/calibrate.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/status.hpp"
#include "base/text/format_text.hpp"
#include "base/text/nearest_name.hpp"
#include "base/version.hpp"
#include "calibrate/tasks.hpp"
#include "engines/cuda/arch/family.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/device.hpp"
#include "engines/registry.hpp"

namespace kintsugi::core {

namespace {

using namespace calibrate;

// Returns the engine that is calibrated: the named one; else cuda where it can run, else cpu.
const Engine& engine_to_calibrate(const std::string& name) {
  const Engine* const gpus = find_engine("cuda");
  const bool uses_gpus =
      name.empty() ? gpus != nullptr && gpus->unavailable_reason().empty() : name == "cuda";
  if (!name.empty() && name != "cuda" && name != "cpu")
    fail(Status::bad_setting, "the engine \"{}\" has no costs to calibrate{}", name,
         accepted_names(name, "those that have some are", "cpu, cuda"));
  const Engine* engine = uses_gpus ? gpus : find_engine("cpu");
  if (engine == nullptr) fail(Status::engine_unavailable, "this library has no engine cuda");
  if (const std::string reason = engine->unavailable_reason(); !reason.empty())
    fail(Status::engine_unavailable, "the engine {} cannot run here: {}", engine->name(), reason);
  return *engine;
}

// Prepares the device in use. Fails if the engine cuda has no kernels to measure there.
void prepare_gpu(const Engine& engine) {
  cuda::prepare_device();
  if (cuda::profile_in_force() == nullptr || !cuda::current_family().has_gemm_kernels())
    fail(Status::engine_unavailable,
         "{} cannot be calibrated: a calibration measures kernels for one family of GPUs, and begins with a "
         "profile of another device of this family",
         engine.details());
}

// Runs all tasks and returns their measurements.
template <class Costs>
std::vector<MeasurementBy<Costs>> measure_all(const std::vector<TaskBy<Costs>>& tasks,
                                              const CalibrationProgress& progress) {
  std::vector<MeasurementBy<Costs>> measurements;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    progress(static_cast<double>(i) / static_cast<double>(tasks.size()), tasks[i].what);
    tasks[i].run(measurements);
  }
  progress(1, "fitting the costs");
  return measurements;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm calendar{};
  gmtime_r(&now, &calendar);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &calendar);
  return text.data();
}

// Returns the costs with which the fit begins: the current costs or, if `blind`, costs that are estimated
// from the shipped profiles of other devices.
cuda::Costs first_costs(const cuda::DeviceTraits& device, bool blind) {
  if (!blind) return cuda::current_costs();
  cuda::DeviceTraits nameless = device;
  nameless.name.clear();  // No shipped profile then belongs to this device.
  std::vector<cuda::Profile> others;
  for (const cuda::Profile& profile : cuda::shipped_profiles()) {
    const bool is_of_family = profile.device.major == device.major && profile.device.minor == device.minor;
    if (is_of_family && profile.device.name != device.name) others.push_back(profile);
  }
  if (others.empty())
    fail(Status::engine_unavailable, "no other device of compute capability {}.{} than {} has a profile",
         device.major, device.minor, device.name);
  return cuda::find_profile(nameless, others).profile.costs;
}

// The file of a profile. Text is written to FILE.partial, which is renamed when it is complete. Other
// processes therefore read either the old or the new profile.
class ProfileFile {
 public:
  // Opens FILE.partial. The object is made before the measurements, so that a file that cannot be written is
  // an error at once.
  explicit ProfileFile(std::string file) : file_(std::move(file)), partial_(file_ + ".partial") {
    const std::filesystem::path path(file_);
    std::error_code error;
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
    if (std::filesystem::is_directory(path, error)) fail_to_write();
    stream_.open(partial_);
    if (!stream_) fail_to_write();
  }
  ProfileFile(const ProfileFile&) = delete;
  ProfileFile& operator=(const ProfileFile&) = delete;
  ~ProfileFile() {
    std::error_code error;
    std::filesystem::remove(partial_, error);  // does nothing after write(), which has renamed the file
  }

  void write(const std::string& text) {
    stream_ << text;
    stream_.close();
    std::error_code error;
    if (stream_) std::filesystem::rename(partial_, file_, error);
    if (!stream_ || error) fail_to_write();
  }

 private:
  [[noreturn]] void fail_to_write() const {
    fail(Status::bad_setting, "the profile cannot be written to {}", file_);
  }

  std::string file_, partial_;
  std::ofstream stream_;
};

}  // namespace

std::vector<Task> calibrate::all_tasks(Workbench& bench) {
  struct Kind {
    std::vector<Task> (*tasks)(Workbench& bench);
    bool has_kernels = true;
  };
  const cuda::Family& family = cuda::current_family();
  std::vector<Task> tasks;
  for (const Kind& kind : {Kind{split_tasks},
                           {multi_term_tasks, !family.multi_term.empty()},
                           {vendor_tasks},
                           {native_tasks},
                           {int8_tasks, family.int8 != nullptr},
                           {weighted_tile_tasks, !family.weighted_tiles.empty()},
                           {call_tasks},
                           {prepared_call_tasks}}) {
    if (kind.has_kernels) std::ranges::move(kind.tasks(bench), std::back_inserter(tasks));
  }
  return tasks;
}

namespace {

// Returns the file to write: `file`, or where calls look for the profile.
std::string target_of(const std::string& file, const std::string& default_file) {
  std::string target = file.empty() ? default_file : file;
  if (target.empty())
    fail(Status::bad_setting,
         "name the profile's file, or set XDG_CONFIG_HOME or HOME, in which profiles are kept");
  return target;
}

std::string calibrate_gpu(const CalibrationOptions& options, const CalibrationProgress& progress) {
  const cuda::DeviceTraits device = cuda::traits_of(cuda::device_in_use());
  const std::string target = target_of(options.file, cuda::profile_file(device));
  ProfileFile output(target);
  Workbench bench(options.quick);
  const std::vector<Measurement> measurements = measure_all(all_tasks(bench), progress);
  cuda::Profile profile{.device = device,
                        .library_version = library_version,
                        .driver_version = cuda::driver().version,
                        .date = today(),
                        .costs = first_costs(device, options.blind),
                        .fits = {}};
  profile.fits = fit_costs(profile.costs, measurements);
  output.write(profile_text(profile));
  cuda::reread_profiles();
  return target;
}

std::string calibrate_cpu(const CalibrationOptions& options, const CalibrationProgress& progress) {
  const CpuTraits device = cpu_traits();
  const std::string target = target_of(options.file, profile_file(device));
  ProfileFile output(target);
  const std::vector<CpuMeasurement> measurements = measure_all(cpu_tasks(options.quick), progress);
  CpuProfile profile{.device = device,
                     .threads = threads_of_calibration(),
                     .library_version = library_version,
                     .date = today(),
                     .costs = options.blind ? shipped_cpu_costs(device.kernels) : cpu_costs_in_force().costs,
                     .fits = {}};
  profile.fits = fit_costs(profile.costs, measurements);
  output.write(profile_text(profile));
  reread_cpu_profile();
  return target;
}

}  // namespace

std::string calibrate_device(const CalibrationOptions& options, const CalibrationProgress& progress) {
  const Engine& engine = engine_to_calibrate(options.engine);
  if (!engine.is_device()) return calibrate_cpu(options, progress);
  prepare_gpu(engine);
  return calibrate_gpu(options, progress);
}

}  // namespace kintsugi::core

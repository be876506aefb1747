#include "gpu/fuzz/session.hpp"

#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "tools/measure/machine/device.hpp"

namespace kintsugi::test {
namespace {

std::string command_of(const FuzzRequest& request) {
  return std::string("gpu_fuzz") + (request.limits.on_host ? " --host" : "");
}

}  // namespace

class FuzzSession::Worker {
 public:
  Worker(FuzzSession& session, std::size_t index)
      : session_(session), running(*session.running_[index]),
        lane_(session.request_.limits.on_host ? make_host_lane() : make_device_lane()) {
    omp_set_num_threads(1);  // for loops of tools/measure in this thread: the workers already use all cores
    kintsugi_create(&handle_);
  }
  ~Worker() { kintsugi_destroy(handle_); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  CallContext context(bool judges) const {
    const FuzzRequest& request = session_.request_;
    return {*lane_,          handle_, session_.gate_, running.inside, judges, request.limits.no_vendor,
            request.sabotage};
  }
  // True if the device still accepts work: an illegal address makes its context unusable.
  bool is_alive() const {
    try {
      lane_->synchronize();
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

 private:
  FuzzSession& session_;

 public:
  Running& running;

 private:
  std::unique_ptr<Lane> lane_;
  kintsugi_handle handle_ = nullptr;
};

namespace {

// Values and alignment are drawn for a type, so one that the request gives must be known before.
FuzzChoices choices_of(const FuzzRequest& request) {
  FuzzChoices choices = device_choices(request.limits);
  FuzzCase given;
  given.type.clear();
  given = read_case(request.with, given);
  if (!given.type.empty()) choices.types = {given.type};
  return choices;
}

}  // namespace

FuzzSession::FuzzSession(const FuzzRequest& request)
    : request_(request), choices_(choices_of(request)), tally_(command_of(request)),
      device_(request.limits.on_host ? "host" : measure::device_facts().name) {
  for (int worker = 0; worker < request.threads; ++worker) running_.push_back(std::make_unique<Running>());
}

FuzzCase FuzzSession::draw(std::uint64_t number) const {
  return read_case(request_.with, draw_device_case(choices_, request_.limits, request_.seed, number));
}

bool FuzzSession::goes_on() const {
  return !lost_ && std::chrono::duration<double>(Clock::now() - begin_).count() < request_.seconds;
}

std::optional<Outcome> FuzzSession::call(Worker& worker, const FuzzCase& test, bool judges) {
  {
    const std::scoped_lock lock(worker.running.mutex);
    worker.running.test = test;
    worker.running.begin = Clock::now();
  }
  std::optional<Outcome> outcome;
  try {
    if (request_.sabotage == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
    outcome = make_call(worker.context(judges), test);
    tally_.add(test, *outcome);
  } catch (const std::exception& error) {
    report_exception(worker, test, error.what());
  }
  const std::scoped_lock lock(worker.running.mutex);
  worker.running.inside = false;
  worker.running.test.reset();
  return outcome;
}

void FuzzSession::report_exception(Worker& worker, const FuzzCase& test, const std::string& what) {
  const bool alive = worker.is_alive();
  if (!alive && lost_.exchange(true)) return;  // another worker has already reported the loss
  tally_.add_fault(test, {"device", what});
  if (!alive) fmt::print("The device is lost. Cases that were running:\n{}", running_cases());
}

// Runs work(worker, index) in as many threads as were requested, under the watchdog.
template <class Work>
void FuzzSession::with_workers(const Work& work) {
  const std::jthread watchdog([this](const std::stop_token& stop) { watch(stop); });
  std::vector<std::jthread> threads;
  for (std::size_t index = 0; index < running_.size(); ++index) {
    threads.emplace_back([this, index, &work] {
      try {
        Worker worker(*this, index);
        work(worker, index);
      } catch (const std::exception& error) {
        tally_.add_fault({}, {"program", error.what()});
      }
    });
  }
}

int FuzzSession::run_one_case() {
  const FuzzCase test = read_case(request_.line);
  with_workers([&](Worker& worker, std::size_t) {
    const auto outcome = call(worker, test, true);
    if (!outcome) return;
    fmt::print("{}: program {}, {} elements compared with the reference{}{}\n", to_text(test),
               outcome->program, outcome->elements,
               outcome->refusal.empty() ? "" : ", refused: ", outcome->refusal);
  });
  return finish();
}

int FuzzSession::run_cases() {
  with_workers([&](Worker& worker, std::size_t) {
    while (goes_on()) {
      const std::int64_t number = next_++;
      if (number >= request_.cases) return;
      call(worker, draw(request_.first + static_cast<std::uint64_t>(number)), true);
    }
  });
  return finish();
}

int FuzzSession::run_same_bits() {
  constexpr std::uint64_t max_cases = 300;
  std::vector<std::pair<FuzzCase, std::uint64_t>> bits_alone;  // bits of each case when no other call runs
  {
    const std::jthread watchdog([this](const std::stop_token& stop) { watch(stop); });
    Worker worker(*this, 0);
    for (std::uint64_t number = 0; number < max_cases && !lost_; ++number) {
      const FuzzCase test = draw(request_.first + number);
      const auto outcome = call(worker, test, true);
      if (outcome && outcome->refusal.empty()) bits_alone.emplace_back(test, outcome->bits);
    }
  }
  if (bits_alone.empty()) return finish();
  const auto begin = Clock::now();
  with_workers([&](Worker& worker, std::size_t index) {
    measure::Random random(request_.seed, 1000 + index);
    while (!lost_ && std::chrono::duration<double>(Clock::now() - begin).count() < request_.seconds) {
      const auto& [test, bits] =
          bits_alone[static_cast<std::size_t>(random.integer(0, std::ssize(bits_alone) - 1))];
      const auto outcome = call(worker, test, false);
      if (outcome && outcome->bits != bits)
        tally_.add_fault(test, {"bits", "the bits differ from those of the call without other threads"},
                         outcome->program);
    }
  });
  return finish();
}

// ------------------------------------------------------------------ the watchdog
void FuzzSession::watch(const std::stop_token& stop) {
  std::unique_lock lock(watch_mutex_);
  for (int round = 1; !stop.stop_requested(); ++round) {
    watch_wakes_.wait_for(lock, stop, std::chrono::milliseconds(500), [] { return false; });
    end_if_hung();
    if (round % 10 == 0) write_json("running");
  }
}

std::optional<FuzzCase> FuzzSession::overdue_case(Running& running, bool inside) const {
  const std::scoped_lock lock(running.mutex);
  const std::chrono::duration<double> age = Clock::now() - running.begin;
  return age.count() >= request_.hang_seconds && (running.inside || !inside) ? running.test : std::nullopt;
}

// Looks first for a case inside the library: a case that waits for another one's capture is blamed only if no
// other hangs.
void FuzzSession::end_if_hung() {
  for (const bool inside : {true, false}) {
    for (const auto& running : running_) {
      if (const auto test = overdue_case(*running, inside)) end_hung(*test);
    }
  }
}

void FuzzSession::end_hung(const FuzzCase& test) {
  tally_.add_fault(test, {"hang", fmt::format("did not end within {:.0f} s", request_.hang_seconds)});
  write_json("hang");
  fmt::print("This case does not end: {} --case '{}'\nAll cases that were running:\n{}", command_of(request_),
             to_text(test), running_cases());
  std::fflush(stdout);
  _exit(fuzz_hang);
}

std::string FuzzSession::running_cases() {
  std::string all;
  for (const auto& running : running_) {
    const std::scoped_lock lock(running->mutex);
    if (running->test)
      all += fmt::format("        {} --case '{}'\n", command_of(request_), to_text(*running->test));
  }
  return all;
}

// ------------------------------------------------------------------ results
void FuzzSession::write_json(const std::string& ending) const {
  if (request_.json.empty()) return;
  nlohmann::json document = {{"format", "kintsugi.fuzz"},
                             {"format_version", 1},
                             {"version", kintsugi_version()},
                             {"device", device_},
                             {"seed", request_.seed},
                             {"first", request_.first},
                             {"threads", request_.threads},
                             {"same_bits", request_.same_bits},
                             {"ending", ending}};
  document.update(tally_.document());
  const std::string partial = request_.json + ".partial";
  std::ofstream(partial) << document.dump(1) << '\n';
  std::rename(partial.c_str(), request_.json.c_str());
}

int FuzzSession::finish() {
  tally_.print_summary();
  write_json(lost_ ? "device lost" : "done");
  if (lost_) {
    std::fflush(stdout);
    _exit(fuzz_device_lost);  // what the library has on the device cannot be given back
  }
  return tally_.violations() == 0 ? fuzz_passed : fuzz_violations;
}

}  // namespace kintsugi::test

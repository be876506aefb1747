#include "bench/request.hpp"

#include <omp.h>

#include <algorithm>
#include <utility>

#include "tools/measure/generators/generators.hpp"
#include "tools/measure/nearest_name.hpp"
#include "tools/measure/reference/reference_loop.hpp"

namespace kintsugi::tools {

namespace {

std::vector<std::string> scheme_names() {
  const Json schemes = describe_schemes();
  std::vector<std::string> names;
  for (const Json& scheme : schemes.at("schemes")) names.push_back(cell(scheme, "name"));
  return names;
}

bool is_scheme(const std::string& word) { return contains(scheme_names(), without_parameters(word)); }

void require_candidate(const std::string& word) {
  if (is_contract(word) || word == auto_candidate || is_scheme(word)) return;
  std::vector<std::string> names{"fp32", "fp64", "exact", auto_candidate};
  for (auto& name : scheme_names()) names.push_back(std::move(name));
  fail("CANDIDATE", "\"{}\" is neither a contract nor a scheme{}", word,
       measure::accepted_names(without_parameters(word), "accepted: a tolerance such as 1e-10,", names));
}

std::vector<std::string> parse_candidates(const std::vector<std::string>& words,
                                          const std::vector<std::string>& baselines) {
  std::vector<std::string> candidates;
  for (const auto& word : words) {
    if (word == "native") fail("CANDIDATE", "native is a baseline: --baselines native");
    if (contains(baselines, word)) fail("CANDIDATE", "{} is a baseline too; name it only once", word);
    require_candidate(word);
    add_once(candidates, word);
  }
  return candidates;
}

std::string parse_baseline(const std::string& word) {
  if (word == "native" || word == native_policy || word == vendor_call || is_scheme(word)) return word;
  try {
    return measure::to_text(measure::parse_arithmetic(word));
  } catch (const std::runtime_error& error) {
    std::vector<std::string> names = scheme_names();
    for (const char* name : {"native", native_policy, vendor_call}) names.emplace_back(name);
    if (const std::string hint = measure::did_you_mean(word, names); !hint.empty())
      fail("--baselines", "\"{}\" is not known{}", word, hint);
    fail("--baselines", "\"{}\" is neither native nor a scheme, and {}", word, error.what());
  }
}

std::vector<std::string> parse_baselines(const std::vector<std::string>& words) {
  std::vector<std::string> baselines;
  for (const auto& word : words) add_once(baselines, parse_baseline(word));
  return baselines;
}

// Fails for options that need --call gemm and --memory device if these are not given. Also fails for options
// that exclude each other under --call gemm and --memory device.
void require_calls(const Bench& bench) {
  if (bench.times_calls()) {
    if (bench.batch > 1 && contains<std::string>(bench.baselines, vendor_call))
      fail("--baselines", "{} cannot multiply a batch, and --batch is {}", vendor_call, bench.batch);
    if (bench.problems > 1 && bench.prepare != "none")
      fail("--problems",
           "{} problems have operands of different sizes, but --prepare {} prepares a single one",
           bench.problems, bench.prepare);
    return;
  }
  if (bench.problems > 1) fail("--problems", "needs --call gemm and --memory device");
  if (contains<std::string>(bench.baselines, vendor_call)) {
    fail("--baselines",
         "{}, a call of cuBLAS itself, needs --call gemm and --memory device; native is cuBLAS's product",
         vendor_call);
  }
}

// Parses a shape; N means NxNxN.
Shape parse_size(const std::string& text) {
  if (text.find('x') != std::string::npos) return parse_shape(text);
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos)
    fail("--shapes", "\"{}\" is neither N nor MxNxK, such as 512 or 64x64x2048", text);
  return parse_shape(text + "x" + text + "x" + text);
}

std::vector<Shape> parse_shapes(const std::vector<std::string>& words) {
  std::vector<std::string> seen;
  std::vector<Shape> shapes;
  for (const auto& word : words) {
    const Shape shape = parse_size(word);
    if (std::find(seen.begin(), seen.end(), shape_text(shape)) != seen.end()) continue;
    seen.push_back(shape_text(shape));
    shapes.push_back(shape);
  }
  return shapes;
}

std::string parse_distribution(const std::string& text) {
  try {
    return measure::to_text(measure::parse_distribution(text));
  } catch (const std::runtime_error& error) {
    fail("--distribution", "{}", error.what());
  }
}

}  // namespace

bool is_reference_loop(const std::string& name) {
  try {
    measure::parse_arithmetic(name);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

bool is_contract(const std::string& candidate) {
  const bool is_tolerance = candidate.find_first_of("0123456789.") == 0;
  return candidate == "fp32" || candidate == "fp64" || candidate == "exact" || is_tolerance;
}

// Returns the number of threads that the flag names. Without the flag, the setting decides; without a
// setting, OpenMP decides (OMP_NUM_THREADS or all threads).
int threads_of(const BenchRequest& request) {
  if (request.threads > 0) return request.threads;
  for (const Json& setting : settings_table().settings) {
    if (cell(setting, "name") != "threads") continue;
    const int threads = std::stoi(cell(setting, "value"));
    return threads > 0 ? threads : omp_get_max_threads();
  }
  return omp_get_max_threads();
}

Bench make_bench(const BenchRequest& request) {
  Bench bench;
  bench.baselines = parse_baselines(request.baselines);
  bench.candidates = parse_candidates(request.candidates, bench.baselines);
  bench.shapes = parse_shapes(request.shapes);
  bench.batch = request.batch;
  bench.prepare = request.prepare;
  bench.type = request.type.ends_with("32") ? Type::float32 : Type::float64;
  bench.complex = request.type.starts_with("c");
  bench.distribution = parse_distribution(request.distribution);
  bench.seed = parse_seed("--seed", request.seed);
  bench.on_device = request.memory == "device";
  bench.by_gemm = request.call == "gemm";
  bench.problems = request.problems;
  require_calls(bench);
  bench.engine = !request.engine.empty() ? request.engine : bench.on_device ? "cuda" : "cpu";
  bench.workspace_limit = request.workspace_limit;
  bench.threads = threads_of(request);
  bench.repeat = request.repeat;
  bench.baseline_size = request.baseline_size;
  bench.no_ceilings = request.no_ceilings;
  for (const auto& name : bench.baselines) {
    if (bench.complex && is_reference_loop(name))
      fail("--baselines", "{} is a loop over real elements, and --type is {}", name, request.type);
  }
  return bench;
}

std::string element_text(const Bench& bench) {
  if (!bench.complex) return type_text(bench.type);
  return bench.type == Type::float32 ? "c32" : "c64";
}

Json settings_of(const Bench& bench) {
  Json shapes = Json::array();
  for (const Shape& shape : bench.shapes) shapes.push_back(shape_text(shape));
  return {{"candidates", bench.candidates},
          {"baselines", bench.baselines},
          {"shapes", shapes},
          {"batch", bench.batch},
          {"prepare", bench.prepare},
          {"call", bench.by_gemm ? "gemm" : "plan"},
          {"problems", bench.problems},
          {"type", element_text(bench)},
          {"distribution", bench.distribution},
          {"seed", bench.seed},
          {"memory", bench.on_device ? "device" : "host"},
          {"engine", bench.engine},
          {"workspace_limit", bench.workspace_limit},
          {"threads", bench.threads},
          {"repeat", bench.repeat},
          {"baseline_size", bench.baseline_size},
          {"no_ceilings", bench.no_ceilings}};
}

}  // namespace kintsugi::tools

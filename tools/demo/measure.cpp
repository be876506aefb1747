#include "demo/measure.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "bench/run.hpp"

namespace kintsugi::tools {

namespace {

// Returns why the engine cuda cannot be used; "" if it can.
std::string why_device_is_unusable() {
  const Json engines = describe_engines();
  for (const Json& engine : engines.at("engines")) {
    if (engine.at("name") == "cuda") return engine.at("available") == true ? "" : cell(engine, "reason");
  }
  return "this library has no engine cuda";
}

// Returns the request for FP64 products in a memory, host or device.
BenchRequest fp64_request(const DemoRequest& request, const std::string& memory) {
  BenchRequest bench;
  bench.shapes.clear();
  const bool on_device = memory == "device";
  for (const std::int64_t size : request.sizes) bench.shapes.push_back(fmt::format("{}", size));
  if (bench.shapes.empty())
    bench.shapes =
        on_device ? std::vector<std::string>{"4096", "8192"} : std::vector<std::string>{"500", "1000"};
  bench.memory = memory;
  bench.type = "fp64";
  bench.candidates = {"fp64", "exact"};
  bench.repeat = 3;
  bench.no_ceilings = true;
  return bench;
}

// Runs a benchmark whose document is not written to a file.
Json bench_document(const BenchRequest& request) { return run_bench(make_bench(request), ""); }

void run_on_host(const DemoRequest& request, Demo& demo) {
  for (const int threads : {1, 2}) {
    BenchRequest bench = fp64_request(request, "host");
    bench.threads = threads;
    demo.runs.push_back(bench_document(bench));
  }
}

void run_on_device(const DemoRequest& request, Demo& demo) {
  const BenchRequest fp64 = fp64_request(request, "device");
  BenchRequest fp32 = fp64;
  fp32.type = "fp32";
  fp32.candidates = {"fp32"};
  demo.runs.push_back(bench_document(fp32));
  demo.runs.push_back(bench_document(fp64));
}

// Returns the rows of a product of one size, in the order of the runs.
std::vector<Json> rows_of(const Demo& demo, const std::string& name, std::int64_t size) {
  std::vector<Json> rows;
  for (const Json& run : demo.runs) {
    for (const Json& row : run.at("rows")) {
      if (row.at("name") == name && row.at("problem").at("n") == size) rows.push_back(row);
    }
  }
  return rows;
}

// Fails if the bits of emulated products depend on the number of threads.
void require_same_bits(const Demo& demo) {
  for (const std::int64_t size : demo_sizes(demo)) {
    for (const char* name : {"fp64", "exact"}) {
      if (!has_same_bits(demo, name, size))
        throw Finding(
            fmt::format("demo: the bits of {} of {} x {} differ between 1 and 2 threads", name, size, size));
    }
  }
}

// Returns the row of a product from the run with 2 threads, the last on the host.
Json row_with_two_threads(const Demo& demo, const std::string& name, std::int64_t size) {
  return rows_of(demo, name, size).back();
}

double rounded_percent(const Json& row) {
  return 100 * row.at("check").at("correctly_rounded_fraction").get<double>();
}

std::vector<std::string> host_sentences(const Demo& demo) {
  std::vector<std::string> sizes_with_different_bits;
  for (const std::int64_t size : demo_sizes(demo)) {
    if (!has_same_bits(demo, "native", size)) sizes_with_different_bits.push_back(fmt::format("{}", size));
  }
  const std::int64_t size = demo_sizes(demo).back();  // the last that the user named
  const Json native = row_with_two_threads(demo, "native", size);
  const Json exact = row_with_two_threads(demo, "exact", size);
  const std::string vendor = product_text(native);
  const std::string bits =
      sizes_with_different_bits.empty()
          ? fmt::format("{} happened to give the same bits with 1 and 2 threads here", vendor)
          : fmt::format("{} gives different bits with 1 and 2 threads at n = {}", vendor,
                        joined(sizes_with_different_bits));
  return {
      bits + "; those of Kintsugi's fp64 and exact are always the same.",
      fmt::format("exact rounded {:.4g} % of the checked elements of n = {} correctly, {} {:.3g} %. It takes "
                  "{:.3g} times as long.",
                  rounded_percent(exact), size, vendor, rounded_percent(native),
                  1 / read_number(exact.at("ratios").at("native")))};
}

std::vector<std::string> device_sentences(const Demo& demo) {
  std::vector<std::string> sentences;
  for (const Json& run : demo.runs) {
    const Json& rows = run.at("rows");
    for (const Json& row : rows) {
      if (row.at("kind") != "candidate" || row.at("problem").at("n") != demo_sizes(demo).back()) continue;
      const auto native = std::find_if(rows.begin(), rows.end(), [&](const Json& other) {
        return other.at("name") == "native" && other.at("problem") == row.at("problem");
      });
      sentences.push_back(fmt::format(
          "{} at n = {}: {:.3g} times the speed of cuBLAS; largest error {:.2g} of |A||B|, cuBLAS {:.2g}.",
          cell(row, "name"), cell(row.at("problem"), "n"), read_number(row.at("ratios").at("native")),
          read_number(row.at("check").at("max_componentwise")),
          read_number(native->at("check").at("max_componentwise"))));
    }
  }
  return sentences;
}

}  // namespace

Demo run_demo(const DemoRequest& request) {
  Demo demo;
  const std::string why_no_device = request.memory == "host" ? "" : why_device_is_unusable();
  if (request.memory == "device" && !why_no_device.empty())
    fail("--memory", "device: the engine cuda cannot be used: {}", why_no_device);
  demo.on_device = request.memory != "host" && why_no_device.empty();
  demo.why_host = why_no_device;
  if (demo.on_device) {
    run_on_device(request, demo);
  } else {
    run_on_host(request, demo);
    require_same_bits(demo);
  }
  return demo;
}

std::string product_text(const Json& row) {
  if (row.at("name") != "native") return cell(row, "name");
  if (row.at("engine") == "cuda") return "cuBLAS";
  return cell(row, "engine_details").find("OpenBLAS") != std::string::npos ? "OpenBLAS" : "native";
}

bool has_same_bits(const Demo& demo, const std::string& name, std::int64_t size) {
  std::set<std::string> bits;
  for (const Json& row : rows_of(demo, name, size)) bits.insert(cell(row, "bits"));
  return bits.size() == 1;
}

std::vector<std::int64_t> demo_sizes(const Demo& demo) {
  std::vector<std::int64_t> sizes;
  for (const Json& row : demo.runs.front().at("rows")) {
    const std::int64_t size = row.at("problem").at("n");
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  }
  return sizes;
}

std::vector<Json> demo_rows(const Demo& demo) {
  std::vector<Json> rows;
  for (const Json& run : demo.runs) rows.insert(rows.end(), run.at("rows").begin(), run.at("rows").end());
  // Baselines before candidates, exact last.
  const auto key = [](const Json& row) {
    return std::make_tuple(row.at("problem").at("n").get<std::int64_t>(), cell(row.at("problem"), "type"),
                           row.at("kind") == "candidate", cell(row, "name") == "exact");
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Json& x, const Json& y) { return key(x) < key(y); });
  return rows;
}

std::vector<std::string> demo_sentences(const Demo& demo) {
  return demo.on_device ? device_sentences(demo) : host_sentences(demo);
}

}  // namespace kintsugi::tools

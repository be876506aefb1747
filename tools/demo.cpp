// kintsugi demo: compares Kintsugi with the vendor library on this machine, by runs of kintsugi bench.
#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "bench/run.hpp"
#include "io/atomic_file.hpp"
#include "program.hpp"
#include "report/charts.hpp"
#include "report/figures.hpp"
#include "report/page.hpp"
#include "report/pictures.hpp"
#include "support.hpp"

namespace kintsugi::tools {

namespace {

struct DemoRequest {
  std::string memory;               // host or device; "": device if the engine cuda can be used
  std::vector<std::int64_t> sizes;  // m = n = k; empty: the defaults for the memory
  std::string output;               // file of the page; "": none
  bool json = false;
};

struct Demo {
  bool on_device = false;
  std::string why_host;  // reason why no GPU is used; "" if a GPU is used, or if the host was requested
  // Documents of kintsugi bench. On the host: with 1 thread, then with 2. On a device: FP32, then FP64.
  std::vector<Json> runs;
};

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

// Returns the sizes in the order of the runs.
std::vector<std::int64_t> demo_sizes(const Demo& demo) {
  std::vector<std::int64_t> sizes;
  for (const Json& row : demo.runs.front().at("rows"))
    add_once(sizes, row.at("problem").at("n").get<std::int64_t>());
  return sizes;
}

// True if the product `name` of that size has the same bits in all runs that contain it.
bool has_same_bits(const Demo& demo, const std::string& name, std::int64_t size) {
  std::set<std::string> bits;
  for (const Json& row : rows_of(demo, name, size)) bits.insert(cell(row, "bits"));
  return bits.size() == 1;
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

// Returns the name of a product for readers: OpenBLAS or cuBLAS for the native product, else the candidate's
// name.
std::string product_text(const Json& row) {
  if (row.at("name") != "native") return cell(row, "name");
  if (row.at("engine") == "cuda") return "cuBLAS";
  return cell(row, "engine_details").find("OpenBLAS") != std::string::npos ? "OpenBLAS" : "native";
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

// Runs FP64 products with 1 and 2 threads on the host, or FP32 and FP64 products on a device. Throws a
// Finding if a product breaks its promise, or if the bits of C depend on the number of threads.
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

// Returns the rows of all runs, ordered by size, type, product, threads.
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

// Returns the findings of the runs, one sentence each.
std::vector<std::string> demo_sentences(const Demo& demo) {
  return demo.on_device ? device_sentences(demo) : host_sentences(demo);
}

enum class YAxis : std::uint8_t { linear, logarithmic };

// Returns a picture that plots value(check) of each row's check over n. The rows are results of rate_row().
Picture check_picture(const std::vector<Json>& rows, const std::string& name, const std::string& label,
                      YAxis y_axis, const std::function<double(const Json& check)>& value) {
  Looks looks(rows);
  Chart chart{
      .title = label, .x_label = "m = n = k", .y_label = label, .log_y = y_axis == YAxis::logarithmic};
  for (const Json& row : rows) {
    const Json& bench = row.at("bench");
    const std::string scheme = cell(row, "scheme");
    const Series series = looks.series_of(row, scheme, product_text(bench));
    add_point(series_in(chart, series), bench.at("problem").at("n").get<double>(), value(bench.at("check")));
  }
  return {.chart = chart, .name = name};
}

// Returns figures with errors and shares of correctly rounded elements, for each type of operands.
std::vector<Figure> check_figures(const std::vector<Json>& rows) {
  const auto error = [](const Json& check) { return read_number(check.at("max_componentwise")); };
  const auto rounded = [](const Json& check) {
    return 100 * check.at("correctly_rounded_fraction").get<double>();
  };
  std::vector<Figure> figures;
  for (const char* type : {"fp32", "fp64"}) {
    std::vector<Json> rows_of_type;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(rows_of_type),
                 [&](const Json& row) { return cell(row.at("problem"), "type") == type; });
    if (rows_of_type.empty()) continue;
    figures.push_back({fmt::format("{}: largest error of the checked elements", type),
                       {check_picture(rows_of_type, "error", "largest |C - R| / (|A||B|), R exact",
                                      YAxis::logarithmic, error)}});
    figures.push_back(
        {fmt::format("{}: correctly rounded elements", type),
         {check_picture(rows_of_type, "rounded", "% of the checked elements that are correctly rounded",
                        YAxis::linear, rounded)}});
  }
  return figures;
}

// Returns one line about the operands.
std::string demo_subject(const Demo& demo) {
  const Json& settings = demo.runs.front().at("settings");
  return fmt::format(
      "Square products of matrices of {} elements, {}; every result was checked against the exact one "
      "before it was timed.",
      cell(settings, "distribution"),
      demo.on_device ? "in the memory of " + cell(demo.runs.front().at("device"), "name")
                     : "FP64, by OpenBLAS and by Kintsugi, with 1 and with 2 threads");
}

HeadedCells demo_cells(const Demo& demo, const Json& row) {
  const Json& check = row.at("check");
  return {{"product", product_text(row)},
          {"n", cell(row.at("problem"), "n")},
          {"type", cell(row.at("problem"), "type")},
          {"threads", demo.on_device ? "-" : cell(row, "threads")},
          {"bits of C", cell(row, "bits")},
          {"correctly rounded",
           fmt::format("{:.4g} %", 100 * check.at("correctly_rounded_fraction").get<double>())},
          {"error / |A||B|", fmt::format("{:.2g}", read_number(check.at("max_componentwise")))},
          {"time", time_text(read_number(row.at("time").at("median")))},
          {demo.on_device ? "TFLOP/s" : "GFLOP/s",
           fmt::format("{:.4g}", (demo.on_device ? 1e-12 : 1e-9) * read_number(row.at("rate")))},
          {demo.on_device ? "x cuBLAS" : "x native",
           fmt::format("{:.3g}", read_number(row.at("ratios").at("native")))}};
}

// Returns the table's rows for all rows of all runs, ordered by size, type, product, threads.
std::vector<HeadedCells> demo_table(const Demo& demo) {
  std::vector<HeadedCells> table;
  for (const Json& row : demo_rows(demo)) table.push_back(demo_cells(demo, row));
  return table;
}

std::string preface_of(const Demo& demo) {
  std::string html = "<p>" + escaped(demo_subject(demo)) + "</p>\n<ul>\n";
  for (const std::string& sentence : demo_sentences(demo)) html += "<li>" + escaped(sentence) + "</li>\n";
  return html + "</ul>\n" + html_table(demo_table(demo));
}

std::string demo_page(const Demo& demo, const std::string& command) {
  std::vector<Source> sources;
  std::vector<Json> rows;
  for (const Json& run : demo.runs) {
    sources.push_back({fmt::format("run {}", sources.size() + 1), run, command});
    for (const Json& row : run.at("rows")) rows.push_back(rate_row(run, row));
  }
  std::vector<Figure> figures = make_figures(rows);
  for (Figure& figure : check_figures(rows)) figures.push_back(std::move(figure));
  const char* title = demo.on_device ? "Kintsugi beside cuBLAS" : "Kintsugi beside OpenBLAS";
  return report_page({title, preface_of(demo)}, sources, rows, figures);
}

std::string command_text(const DemoRequest& request) {
  std::string text = "kintsugi demo";
  if (!request.memory.empty()) text += " --memory " + request.memory;
  if (!request.sizes.empty()) text += " --sizes " + fmt::format("{}", fmt::join(request.sizes, ","));
  return text + " -o " + quoted(request.output);
}

void print_demo(const DemoRequest& request, const Demo& demo) {
  if (!demo.why_host.empty())
    fmt::print("On the CPU, since no GPU can be used: {}\n\n", wrapped(demo.why_host, 100, 2));
  fmt::print("{}\n\n", wrapped(demo_subject(demo), 110, 0));
  fmt::print("{}\n", make_table(demo_table(demo), 4).text());
  for (const std::string& sentence : demo_sentences(demo)) fmt::print("{}\n", wrapped(sentence, 110, 0));
  if (!request.output.empty()) fmt::print("\nPictures: {}\n", request.output);
}

Json demo_document(const DemoRequest& request, const Demo& demo) {
  Json result = document("demo");
  result["memory"] = demo.on_device ? "device" : "host";
  result["page"] = request.output.empty() ? Json() : Json(request.output);
  result["findings"] = demo_sentences(demo);
  result["runs"] = demo.runs;
  return result;
}

void run(const DemoRequest& request) {
  require_settings();
  if (!request.output.empty()) check_writable(request.output);
  const Demo demo = run_demo(request);
  if (!request.output.empty()) write_text(request.output, demo_page(demo, command_text(request)));
  if (request.json) return print(demo_document(request, demo));
  print_demo(request, demo);
}

}  // namespace

void add_demo(CLI::App& program, Action& action) {
  auto request = std::make_shared<DemoRequest>();
  CLI::App* command =
      program.add_subcommand("demo", "Compare bits, errors and speed with OpenBLAS, on a GPU with cuBLAS");
  command->footer(
      "Example:\n"
      "  kintsugi demo -o demo.html\n"
      "\n"
      "On the host: FP64 products with 1 and 2 threads, by OpenBLAS, by the contract fp64, whose bits\n"
      "do not depend on threads, and by exact, which rounds every element correctly. On a GPU: FP32,\n"
      "FP64 and exact products and those of cuBLAS. These are runs of kintsugi bench, which compares\n"
      "every result with the exact one before timing it. Takes about 20 seconds.");
  command
      ->add_option("--memory", request->memory,
                   "Where the operands lie, host or device [device where a GPU can be used]")
      ->check(CLI::IsMember({"host", "device"}));
  command->add_option("--sizes", request->sizes, "Sizes m = n = k [host 500,1000; device 4096,8192]")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  command->add_option("-o,--output", request->output, "File for a page with pictures, HTML");
  command->add_flag("--json", request->json, "Print one JSON document instead of text");
  command->callback([request, &action] { action = [request] { run(*request); }; });
}

}  // namespace kintsugi::tools

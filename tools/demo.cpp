// kintsugi demo: compares Kintsugi with the vendor library on this machine, by runs of kintsugi bench.
#include <algorithm>
#include <array>
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
  // Documents of kintsugi bench: FP32, then FP64; on the host with 1 thread, then with all.
  std::vector<Json> runs;
  // The same of FP64 products of the first size, at most 512, for each of cancelled_bits.
  std::vector<Json> cancellation;
};

// Bits that cancel in the sum of every element of C; 0: uniform operands.
constexpr std::array cancelled_bits{0, 20, 40};

// Returns the request for products of a type in a memory, host or device.
BenchRequest bench_request(const DemoRequest& request, const std::string& memory, const std::string& type) {
  BenchRequest bench;
  bench.shapes.clear();
  const bool on_device = memory == "device";
  for (const std::int64_t size : request.sizes) bench.shapes.push_back(fmt::format("{}", size));
  if (bench.shapes.empty())
    bench.shapes =
        on_device ? std::vector<std::string>{"4096", "8192"} : std::vector<std::string>{"1024", "2048"};
  bench.memory = memory;
  bench.type = type;
  if (!on_device) bench.candidates.emplace_back(auto_candidate);
  bench.candidates.push_back(type);
  if (type == "fp64") bench.candidates.emplace_back("exact");
  bench.repeat = 3;
  bench.no_ceilings = on_device;
  return bench;
}

// Runs a benchmark whose document is not written to a file.
Json bench_document(const BenchRequest& request) { return run_bench(make_bench(request), ""); }

constexpr std::array types{"fp32", "fp64"};

void run_cancellation(const DemoRequest& request, Demo& demo) {
  constexpr std::int64_t largest_size = 512;
  DemoRequest small = request;
  small.sizes = {request.sizes.empty() ? largest_size : std::min(request.sizes.front(), largest_size)};
  for (const int bits : cancelled_bits) {
    BenchRequest bench = bench_request(small, demo.on_device ? "device" : "host", "fp64");
    bench.candidates = {"fp64", "exact"};
    bench.distribution = bits == 0 ? "uniform" : fmt::format("cancellation:{}", bits);
    bench.repeat = 1;
    demo.cancellation.push_back(bench_document(bench));
  }
}

// With several threads there are at least two, for the sake of the bits.
void run_on_host(const DemoRequest& request, Demo& demo) {
  const int all = std::max(2, make_bench(bench_request(request, "host", "fp64")).threads);
  for (const int threads : {1, all}) {
    for (const char* type : types) {
      BenchRequest bench = bench_request(request, "host", type);
      bench.threads = threads;
      demo.runs.push_back(bench_document(bench));
    }
  }
}

void run_on_device(const DemoRequest& request, Demo& demo) {
  for (const char* type : types) demo.runs.push_back(bench_document(bench_request(request, "device", type)));
}

// Returns the rows of a product of one type and size, in the order of the runs.
std::vector<Json> rows_of(const Demo& demo, const std::string& type, const std::string& name,
                          std::int64_t size) {
  std::vector<Json> rows;
  for (const Json& run : demo.runs) {
    for (const Json& row : run.at("rows")) {
      const Json& problem = row.at("problem");
      if (row.at("name") == name && problem.at("n") == size && problem.at("type") == type)
        rows.push_back(row);
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

// True if a product has the same bits in all runs that contain it.
bool has_same_bits(const Demo& demo, const std::string& type, const std::string& name, std::int64_t size) {
  std::set<std::string> bits;
  for (const Json& row : rows_of(demo, type, name, size)) bits.insert(cell(row, "bits"));
  return bits.size() <= 1;
}

// Fails if the bits of emulated products depend on the number of threads.
void require_same_bits(const Demo& demo) {
  for (const std::int64_t size : demo_sizes(demo)) {
    for (const char* type : types) {
      for (const char* name : {type, "exact"}) {
        if (!has_same_bits(demo, type, name, size))
          throw Finding(fmt::format("demo: the bits of {} of {} x {} depend on the number of threads", name,
                                    size, size));
      }
    }
  }
}

double rounded_percent(const Json& row) {
  return 100 * row.at("check").at("correctly_rounded_fraction").get<double>();
}

// Returns the name of a product for readers: OpenBLAS or cuBLAS for the native product, emulate for a
// contract of the operands' type on the host, else the candidate's name.
std::string product_text(const Json& row) {
  const std::string name = cell(row, "name");
  if (row.at("engine") == "cuda") return name == "native" ? "cuBLAS" : name;
  if (name == cell(row.at("problem"), "type")) return "emulate";
  if (name != "native") return name;
  return cell(row, "engine_details").find("OpenBLAS") != std::string::npos ? "OpenBLAS" : "native";
}

// Returns the name of the native product in all texts of a demonstration.
std::string vendor_text(const Demo& demo) {
  for (const Json& row : demo.runs.front().at("rows")) {
    if (row.at("name") == "native") return product_text(row);
  }
  return "native";
}

double relative_error(const Json& row) { return read_number(row.at("check").at("frobenius_relative")); }

// Returns the sentence on the last run with cancellation.
std::string cancellation_sentence(const Demo& demo) {
  const Json& rows = demo.cancellation.back().at("rows");
  const auto error_of = [&](const char* name) {
    return relative_error(
        *std::find_if(rows.begin(), rows.end(), [&](const Json& row) { return row.at("name") == name; }));
  };
  return fmt::format(
      "Where {} bits cancel in every element of C, the relative error of {} is {:.1g}, that of exact {:.1g}.",
      cancelled_bits.back(), vendor_text(demo), error_of("native"), error_of("exact"));
}

// Returns the row of the native product of the same run and problem.
const Json& native_row(const Json& run, const Json& row) {
  const Json& rows = run.at("rows");
  return *std::find_if(rows.begin(), rows.end(), [&](const Json& other) {
    return other.at("name") == "native" && other.at("problem") == row.at("problem");
  });
}

std::string threads_text(const Json& row) {
  const int threads = row.at("threads");
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

// Returns the sentence on the speed and the errors of a candidate.
std::string speed_sentence(const Json& run, const Json& row) {
  const Json& native = native_row(run, row);
  const std::string vendor = product_text(native);
  const bool on_host = row.at("engine") != "cuda";
  const std::string what = on_host ? fmt::format("{}, {}, {} (ran {})", cell(row.at("problem"), "type"),
                                                 threads_text(row), product_text(row), cell(row, "scheme"))
                                   : cell(row, "name");
  return fmt::format("{} at n = {}: {:.3g} times the speed of {}; largest error {:.2g} of |A||B|, {} {:.2g}.",
                     what, cell(row.at("problem"), "n"), read_number(row.at("ratios").at("native")), vendor,
                     read_number(row.at("check").at("max_componentwise")), vendor,
                     read_number(native.at("check").at("max_componentwise")));
}

// Returns a sentence for each candidate of the last size; on the host for those of the policy auto.
std::vector<std::string> speed_sentences(const Demo& demo) {
  std::vector<std::string> sentences;
  for (const Json& run : demo.runs) {
    for (const Json& row : run.at("rows")) {
      const bool is_told = demo.on_device ? row.at("kind") == "candidate" : row.at("name") == auto_candidate;
      if (is_told && row.at("problem").at("n") == demo_sizes(demo).back())
        sentences.push_back(speed_sentence(run, row));
    }
  }
  return sentences;
}

// Returns the state of AMX by which a call was planned; "-" if there is none.
std::string matrix_unit_text(const Json& row) {
  const Json& unit = row.at("matrix_unit");
  return unit.is_null() ? "-" : cell(unit, "state");
}

// Returns the sentence on the states of AMX in calls of one thread; empty on CPUs without it.
std::string matrix_unit_sentence(const Demo& demo) {
  std::vector<std::string> states;
  for (const Json& run : demo.runs) {
    for (const Json& row : run.at("rows")) {
      if (row.at("threads") == 1 && !row.at("matrix_unit").is_null()) add_once(states, matrix_unit_text(row));
    }
  }
  if (states.empty()) return {};
  return fmt::format(
      "AMX in calls of 1 thread: {}. It is slow, and native products may be faster, while the core's other "
      "hardware thread works.",
      joined(states));
}

std::vector<std::string> host_sentences(const Demo& demo) {
  std::vector<std::string> sizes_with_different_bits;
  for (const std::int64_t size : demo_sizes(demo)) {
    if (!has_same_bits(demo, "fp64", "native", size))
      sizes_with_different_bits.push_back(fmt::format("{}", size));
  }
  const std::int64_t size = demo_sizes(demo).back();  // the last that the user named
  const Json native = rows_of(demo, "fp64", "native", size).back();
  const Json exact = rows_of(demo, "fp64", "exact", size).back();
  const std::string vendor = product_text(native);
  const std::string threads = fmt::format("1 and {}", threads_text(native));
  const std::string bits =
      sizes_with_different_bits.empty()
          ? fmt::format("{} happened to give the same bits with {} here", vendor, threads)
          : fmt::format("{} gives different bits with {} at n = {}", vendor, threads,
                        joined(sizes_with_different_bits));
  std::vector<std::string> sentences{
      bits + "; those of Kintsugi's emulated and exact products are always the same.",
      fmt::format("exact rounded {:.4g} % of the checked elements of n = {} correctly, {} {:.3g} %. It takes "
                  "{:.3g} times as long.",
                  rounded_percent(exact), size, vendor, rounded_percent(native),
                  1 / read_number(exact.at("ratios").at("native")))};
  sentences.push_back(cancellation_sentence(demo));
  if (const std::string unit = matrix_unit_sentence(demo); !unit.empty()) sentences.push_back(unit);
  for (std::string& sentence : speed_sentences(demo)) sentences.push_back(std::move(sentence));
  return sentences;
}

// Runs FP32 and FP64 products, on the host with 1 thread and with all. Throws a
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
  run_cancellation(request, demo);
  return demo;
}

// Returns the rows of all runs, ordered by size, type, threads, product.
std::vector<Json> demo_rows(const Demo& demo) {
  std::vector<Json> rows;
  for (const Json& run : demo.runs) rows.insert(rows.end(), run.at("rows").begin(), run.at("rows").end());
  // Baselines before candidates, exact last.
  const auto key = [](const Json& row) {
    return std::make_tuple(row.at("problem").at("n").get<std::int64_t>(), cell(row.at("problem"), "type"),
                           row.at("threads").get<int>(), row.at("kind") == "candidate",
                           cell(row, "name") == "exact");
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Json& x, const Json& y) { return key(x) < key(y); });
  return rows;
}

// Returns the findings of the runs, one sentence each.
std::vector<std::string> demo_sentences(const Demo& demo) {
  if (!demo.on_device) return host_sentences(demo);
  std::vector<std::string> sentences = speed_sentences(demo);
  sentences.push_back(cancellation_sentence(demo));
  return sentences;
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
    Series& series = series_in(chart, looks.series_of(row, cell(row, "scheme")));
    add_point(series, bench.at("problem").at("n").get<double>(), value(bench.at("check")));
  }
  return {.chart = chart, .name = name};
}

// Returns a row for figures, with the name that the product has in all texts.
Json labelled_row(const Json& run, const Json& row) {
  Json result = rate_row(run, row);
  result["label"] = product_text(row);
  return result;
}

std::vector<Json> labelled_rows(const std::vector<Json>& runs) {
  std::vector<Json> rows;
  for (const Json& run : runs) {
    for (const Json& row : run.at("rows")) rows.push_back(labelled_row(run, row));
  }
  return rows;
}

// Returns the figure of relative errors against the number of bits that cancel.
Figure cancellation_figure(const Demo& demo) {
  const std::string label = "relative error of C, |C - R| / |R| by Frobenius norms, R exact";
  Looks looks(labelled_rows(demo.cancellation));
  Chart chart{.title = "fp64: relative error where elements cancel",
              .x_label = "bits that cancel in every element (0: uniform data)",
              .y_label = label,
              .log_x = false};
  for (std::size_t i = 0; i < cancelled_bits.size(); ++i) {
    for (const Json& row : demo.cancellation[i].at("rows")) {
      Series& series =
          series_in(chart, looks.series_of(labelled_row(demo.cancellation[i], row), cell(row, "name")));
      add_point(series, cancelled_bits[i], relative_error(row));
    }
  }
  return {chart.title, {{.chart = chart, .name = "cancellation"}}};
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
         {check_picture(rows_of_type, "rounded", "% of the checked elements", YAxis::linear, rounded)}});
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
                     : "by OpenBLAS and by Kintsugi, with 1 thread and with all");
}

HeadedCells demo_cells(const Demo& demo, const Json& row) {
  const Json& check = row.at("check");
  return {{"product", product_text(row)},
          {"ran", cell(row, "scheme")},
          {"n", cell(row.at("problem"), "n")},
          {"type", cell(row.at("problem"), "type")},
          {"threads", demo.on_device ? "-" : cell(row, "threads")},
          {"matrix unit", matrix_unit_text(row)},
          {"bits of C", cell(row, "bits")},
          {"correctly rounded",
           fmt::format("{:.4g} %", 100 * check.at("correctly_rounded_fraction").get<double>())},
          {"error / |A||B|", fmt::format("{:.2g}", read_number(check.at("max_componentwise")))},
          {"time", time_text(read_number(row.at("time").at("median")))},
          {demo.on_device ? "TFLOP/s" : "GFLOP/s",
           fmt::format("{:.4g}", (demo.on_device ? 1e-12 : 1e-9) * read_number(row.at("rate")))},
          {"x " + vendor_text(demo), fmt::format("{:.3g}", read_number(row.at("ratios").at("native")))}};
}

// Returns the row of a narrow table.
HeadedCells short_cells(const Demo& demo, const Json& row) {
  HeadedCells cells{{"product", product_text(row)}, {"type", cell(row.at("problem"), "type")}};
  for (const auto& [head, text] : demo_cells(demo, row)) {
    if (head == "threads" && !demo.on_device) cells.emplace_back(head, text);
    if (head == "correctly rounded") cells.emplace_back("rounded", text);
    if (head == "error / |A||B|") cells.emplace_back("error", text);
    if (head.starts_with("x ")) cells.emplace_back(head, text);
  }
  return cells;
}

// Returns the narrow table of the last size.
std::string short_table(const Demo& demo) {
  const std::int64_t size = demo_sizes(demo).back();
  std::vector<HeadedCells> table;
  for (const Json& row : demo_rows(demo)) {
    if (row.at("problem").at("n") == size) table.push_back(short_cells(demo, row));
  }
  return fmt::format(
             "<h2>n = {}</h2>\n<p>error: the largest |C - R| / (|A||B|), R exact; rounded: the share of the checked elements that are "
             "correctly rounded; x {}: speed in units of its.</p>\n",
             size, escaped(vendor_text(demo))) +
         html_table(table);
}

// Returns the table's rows for all rows of all runs, ordered by size, type, threads, product.
std::vector<HeadedCells> demo_table(const Demo& demo) {
  std::vector<HeadedCells> table;
  for (const Json& row : demo_rows(demo)) table.push_back(demo_cells(demo, row));
  return table;
}

std::string preface_of(const Demo& demo) {
  std::string html = "<p>" + escaped(demo_subject(demo)) + "</p>\n<ul>\n";
  for (const std::string& sentence : demo_sentences(demo)) html += "<li>" + escaped(sentence) + "</li>\n";
  return html + "</ul>\n" + short_table(demo);
}

// Returns all runs as one source of the page.
Source demo_source(const Demo& demo, const std::string& command) {
  Source source{
      .name = fmt::format("{} runs", demo.runs.size()), .document = demo.runs.front(), .command = command};
  source.document["rows"] = demo_rows(demo);
  return source;
}

std::string demo_page(const Demo& demo, const std::string& command) {
  const std::vector<Json> rows = labelled_rows(demo.runs);
  const std::string vendor = vendor_text(demo);
  std::vector<Figure> figures = make_figures(rows);
  for (Figure& figure : figures) {
    for (Picture& picture : figure.pictures) {
      if (picture.name == "ratio_to_native") picture.chart.y_label = "speed in units of " + vendor + "'s";
    }
  }
  figures.insert(figures.begin(), cancellation_figure(demo));
  for (Figure& figure : check_figures(rows)) figures.push_back(std::move(figure));
  const std::string all = "<h2>All products</h2>\n" + html_table(demo_table(demo));
  return report_page({"Kintsugi beside " + vendor, preface_of(demo), all}, {demo_source(demo, command)}, {},
                     figures);
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
  result["cancellation"] = demo.cancellation;
  return result;
}

void run(const DemoRequest& request) {
  require_settings();
  refuse_settings({"scheme", "policy", "accuracy", "engine"}, "the demonstration runs products of all kinds");
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
      "On the host: FP32 and FP64 products with 1 thread and with all, by OpenBLAS, under the policies\n"
      "auto and emulate (whose bits do not depend on threads), and by exact, which rounds every element\n"
      "correctly; AMX's state, where there is one. On a GPU: FP32, FP64 and exact products and those of\n"
      "cuBLAS. Then FP64 products whose elements cancel. These are runs of kintsugi bench, which compares every result with the exact one before\n"
      "timing it. Takes about 30 seconds.");
  command
      ->add_option("--memory", request->memory,
                   "Where the operands lie, host or device [device where a GPU can be used]")
      ->check(CLI::IsMember({"host", "device"}));
  command->add_option("--sizes", request->sizes, "Sizes m = n = k [host 1024,2048; device 4096,8192]")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  command->add_option("-o,--output", request->output, "File for a page with pictures, HTML");
  command->add_flag("--json", request->json, "Print one JSON document instead of text");
  command->callback([request, &action] { action = [request] { run(*request); }; });
}

}  // namespace kintsugi::tools

// kintsugi demo: compares Kintsugi with the vendor library on this machine.
#include <memory>

#include "commands.hpp"
#include "demo/measure.hpp"
#include "demo/page.hpp"
#include "io/atomic_file.hpp"
#include "report/pictures.hpp"

namespace kintsugi::tools {

namespace {

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
  Table table(demo_heads(demo));
  for (std::size_t column = 4; column < demo_heads(demo).size(); ++column) table.align_right(column);
  for (const Json& row : demo_rows(demo)) table.add(demo_cells(demo, row));
  fmt::print("{}\n", table.text());
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

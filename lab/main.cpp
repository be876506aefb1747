// The program `kintsugi-lab`: studies of the papers' figures and claims, and pages of measurements.
#include "lab/commands.hpp"
#include "tools/program.hpp"

namespace {

using namespace kintsugi::tools;

void add_commands(CLI::App& program, Action& action) {
  add_reproduce(program, action);
  add_accuracy(program, action);
  add_analyse(program, action);
  add_report(program, action);
  add_predict(program, action);
}

}  // namespace

int main(int count, char** words) {
  return run_program(
      {.name = "kintsugi-lab",
       .description =
           "Measures the errors and the speed of Kintsugi's schemes and compares them with what papers claim.",
       .footer = "Example:\n"
                 "  kintsugi-lab reproduce h2sgemm-fig2 -o reproduced\n"
                 "  kintsugi-lab accuracy --schemes fp16x3,native --k 64,1024 -o errors.json\n"
                 "  kintsugi-lab report errors.json -o errors.html"},
      add_commands, count, words);
}

// The program `kintsugi`; its commands have one file each.
#include <algorithm>
#include <array>
#include <string_view>

#include "program.hpp"

namespace {

using namespace kintsugi::tools;

void add_commands(CLI::App& program, Action& action) {
  add_gemm(program, action);
  add_schemes(program, action);
  add_engines(program, action);
  add_settings(program, action);
  add_doctor(program, action);
  add_calibrate(program, action);
  add_generate(program, action);
  add_bench(program, action);
  add_demo(program, action);
  add_explain(program, action);
  add_run(program, action);
  add_sites(program, action);
  add_tune_program(program, action);
}

// Returns the command, or the subject of `help`, if it is one of the laboratory's; "" otherwise.
std::string_view command_of_laboratory(int count, char** words) {
  constexpr std::array<std::string_view, 4> commands{"accuracy", "analyse", "report", "reproduce"};
  const int first = count > 1 && words[1] == std::string_view("help") ? 2 : 1;
  const std::string_view word = count > first ? words[first] : "";
  return std::find(commands.begin(), commands.end(), word) == commands.end() ? "" : word;
}

}  // namespace

int main(int count, char** words) {
  if (const std::string_view command = command_of_laboratory(count, words); !command.empty()) {
    print_note(
        "kintsugi: {0}: is now kintsugi-lab {0}; cmake -S lab -B build-lab -G Ninja && ninja -C build-lab kintsugi-lab builds it\n",
        command);
    return 2;
  }
  return run_program(
      {.name = "kintsugi",
       .description =
           "Kintsugi multiplies matrices at FP32, FP64 or exact accuracy on matrix engines that only know\n"
           "FP16, BF16, TF32 or INT8.",
       .footer =
           "Example:\n"
           "  kintsugi generate uniform 512x512 -o A.npy --seed 1\n"
           "  kintsugi generate uniform 512x512 -o B.npy --seed 1 --side b\n"
           "  kintsugi gemm A.npy B.npy -o C.npy --scheme fp16x3-wide --explain --check --compare fp16,native"},
      add_commands, count, words);
}

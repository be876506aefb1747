// The lists of names and sizes that `kintsugi-lab accuracy` measures, from flags and from a file.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/plan.hpp"

namespace kintsugi::tools {

// A list of a sweep. It is a flag of the command, and a member of a --plan file.
struct SweepList {
  const char* name;  // "schemes"; the flag is --schemes
  const char* help;
};
inline constexpr std::array<SweepList, 11> sweep_lists{{
    {"schemes", "Names of `kintsugi schemes`, with parameters if wanted, and native [all]"},
    {"engines", "Names of `kintsugi engines` [reference]"},
    {"accumulators",
     "How matrix units add: first (the engine's first for the format), all, or names [first]"},
    {"types", "Types of the operands: fp32, fp64 [fp32]"},
    {"distributions", "Those of `kintsugi generate --help` [uniform]"},
    {"shapes", "Sizes MxNxK"},
    {"m", "Rows of C; all combinations of m, n and k [64]"},
    {"n", "Columns of C [64]"},
    {"k", "Inner lengths [1,4,16,64,256,1024]"},
    {"seeds", "Seeds of the matrices [1]"},
    {"max-elements", "Elements of C that are checked: a sample where C has more [4096]"},
}};

// Words of the lists, by the lists' names. "histogram", a flag without a value, is also a list: true or
// false.
using SweepTexts = std::map<std::string, std::vector<std::string>>;

// Reads a file {"schemes": [...], "k": [1, 4], ...}. Its members are the lists of sweep_lists (with
// underscores: "max_elements"), "histogram", and "description", which is ignored.
SweepTexts read_sweep_plan(const std::string& file);

// A checked sweep. All names exist, distributions are in their canonical form, and no list has duplicates.
struct Sweep {
  std::vector<std::string> schemes;
  std::vector<std::string> engines;
  std::vector<std::string> accumulators;
  std::vector<Type> types;
  std::vector<std::string> distributions;
  std::vector<Shape> shapes;
  std::vector<std::uint64_t> seeds;
  std::int64_t max_elements = 0;
  bool histogram = false;  // true: rows have a histogram of differences from the native product
};
// Returns the sweep. Fails with the flag in the message for an unknown name.
Sweep make_sweep(const SweepTexts& texts);
Json settings_of(const Sweep& sweep);

// Returns the methods of a sweep. Combinations of scheme, type, engine and accumulator that do not exist are
// left out. If no combination exists for a scheme, fails with --schemes in the message.
std::vector<Method> methods_of(const Sweep& sweep);

}  // namespace kintsugi::tools

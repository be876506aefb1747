#include "dump.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "call.hpp"
#include "record.hpp"
#include "settings.hpp"
#include "sites/site.hpp"

namespace kintsugi::drop_in {

namespace {

// A product may take gigabytes.
constexpr int most_dumps = 16;

bool make_folder(const std::string& path) {
  struct stat status;
  return ::mkdir(path.c_str(), 0777) == 0 ||
         (errno == EEXIST && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode));
}

const char* numpy_type(kintsugi_type type) {
  switch (type) {
    case KINTSUGI_F32: return "<f4";
    case KINTSUGI_F64: return "<f8";
    case KINTSUGI_C32: return "<c8";
    default: return "<c16";
  }
}

const char* op_letter(Op op) { return op == Op::t ? "T" : op == Op::c ? "C" : "N"; }

// Returns a scalar as `kintsugi gemm` reads it: with all its digits, complex ones as RE,IM.
std::string scalar_text(const void* scalar, kintsugi_type type) {
  const auto part = [&](int index) {
    char text[40];
    if (is_single(type))
      std::snprintf(text, sizeof text, "%.9g", static_cast<double>(static_cast<const float*>(scalar)[index]));
    else
      std::snprintf(text, sizeof text, "%.17g", static_cast<const double*>(scalar)[index]);
    return std::string(text);
  };
  return is_complex(type) ? part(0) + "," + part(1) : part(0);
}

// Returns the flags of `kintsugi gemm` for what the call's site, or the settings, ask for.
std::string options_of(const Call& call, const MeasuredProduct& product) {
  if (product.program.empty()) return " --policy native";
  const SiteRule of_settings{.scheme = settings().scheme, .accuracy = settings().accuracy, .policy = ""};
  const SiteRule& rule = call.site != nullptr ? call.site->rule : of_settings;
  const bool has_scheme = !rule.scheme.empty() && product.program.starts_with(rule.scheme);
  std::string options = has_scheme ? " --scheme " + rule.scheme : " --policy emulate";
  if (!rule.accuracy.empty() && !has_scheme) options += " --accuracy " + rule.accuracy;
  return options;
}

std::string replay_command(const Call& call, const MeasuredProduct& product) {
  std::string command = std::string("kintsugi gemm a.npy b.npy --transa ") + op_letter(call.op_a) +
                        " --transb " + op_letter(call.op_b) +
                        " --alpha=" + scalar_text(product.alpha, call.type);
  if (!product.c.empty()) command += " --beta=" + scalar_text(product.beta, call.type) + " --c c.npy";
  return command + options_of(call, product) + " --check";
}

std::string description(const Call& call, const MeasuredProduct& product, double limit) {
  nlohmann::ordered_json json = {
      {"format", "kintsugi.dump"},
      {"format_version", 1},
      {"symbol", product.symbol},
      {"type", record_key(product.symbol, call).type},
      {"m", call.m},
      {"n", call.n},
      {"k", call.k},
      {"program", product.program.empty() ? this_drop_in.library : product.program},
      {"error", nullptr},
      {"limit", limit},
      {"replay", replay_command(call, product)}};
  json["error"] = std::isfinite(product.error) ? nlohmann::ordered_json(product.error) : "inf";
  return json.dump(2) + "\n";
}

bool write_files(const std::string& folder, const Call& call, const MeasuredProduct& product, double limit) {
  const auto write = [&](const char* name, std::int64_t rows, std::int64_t columns,
                         const std::vector<char>& elements) {
    return elements.empty() ||
           write_file(folder + "/" + name, npy_file(call.type, rows, columns, false, elements));
  };
  for (const auto* matrix : {&product.a, &product.b, &product.result, &product.exact}) {
    if (!matrix->empty()) continue;
    errno = EIO;  // the device did not give it
    return false;
  }
  const bool swaps_a = call.op_a != Op::n, swaps_b = call.op_b != Op::n;
  return make_folder(folder) &&
         write("a.npy", swaps_a ? call.k : call.m, swaps_a ? call.m : call.k, product.a) &&
         write("b.npy", swaps_b ? call.n : call.k, swaps_b ? call.k : call.n, product.b) &&
         write("c.npy", call.m, call.n, product.c) && write("result.npy", call.m, call.n, product.result) &&
         write("exact.npy", call.m, call.n, product.exact) &&
         write_file(folder + "/call.json", description(call, product, limit));
}

}  // namespace

bool read_dump(const std::string& text, std::optional<DumpSetting>& dump, std::string& message) {
  if (text.empty()) return true;
  char* end = nullptr;
  const double limit = std::strtod(text.c_str(), &end);
  const bool has_limit = end != text.c_str() && *end == ':' && limit >= 0 && std::isfinite(limit);
  if (!has_limit || end[1] == '\0') {
    message = "KINTSUGI_DUMP = \"" + text + "\" is not accepted; accepted: LIMIT:FOLDER, as in 1e-6:dumps";
    return false;
  }
  const std::string folder = end + 1;
  if (!make_folder(folder)) {
    message = "KINTSUGI_DUMP: the folder \"" + folder + "\" cannot be made: " + std::strerror(errno);
    return false;
  }
  dump = DumpSetting{limit, folder};
  return true;
}

std::string npy_file(kintsugi_type type, std::int64_t rows, std::int64_t columns, bool has_rows,
                     const std::vector<char>& elements) {
  std::string header = std::string("{'descr': '") + numpy_type(type) +
                       "', 'fortran_order': " + (has_rows ? "False" : "True") + ", 'shape': (" +
                       std::to_string(rows) + ", " + std::to_string(columns) + "), }";
  constexpr std::size_t preamble = 10, alignment = 64;
  header.append(alignment - (preamble + header.size() + 1) % alignment, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() % 256);
  file += static_cast<char>(header.size() / 256);
  file += header;
  file.append(elements.data(), elements.size());
  return file;
}

void write_dump(const DumpSetting& setting, const Call& call, const MeasuredProduct& product) {
  static constinit std::atomic<int> dumps = 0;
  const int number = ++dumps;
  if (number == most_dumps + 1)
    print_line(
        {"KINTSUGI_DUMP: ", std::to_string(most_dumps), " products are written, further ones are not"});
  if (number > most_dumps) return;
  const std::string folder = setting.folder + "/" + std::to_string(::getpid()) + "-" + std::to_string(number);
  const bool is_written = write_files(folder, call, product, setting.limit);
  const std::string reason = is_written ? "" : std::strerror(errno);
  char error[32];
  std::snprintf(error, sizeof error, "%.3g", product.error);
  print_line({product.symbol, " ", std::to_string(call.m), " x ", std::to_string(call.n), " x ",
              std::to_string(call.k), product.is_transposed ? " (transposed)" : "", " by ",
              product.program.empty() ? this_drop_in.library : product.program, ": error ", error,
              " exceeds the limit; ", folder,
              is_written ? " has its matrices" : " cannot be written: ", reason});
}

}  // namespace kintsugi::drop_in

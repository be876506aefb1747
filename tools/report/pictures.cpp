#include "report/pictures.hpp"

#include <unistd.h>

#include <filesystem>
#include <set>
#include <system_error>

#include "io/atomic_file.hpp"
#include "run.hpp"

extern char** environ;

namespace kintsugi::tools {

namespace {

constexpr const char* converter = "rsvg-convert";

// Runs the converter, whose file is found on PATH; this program prints its own messages about failures.
// Returns the exit status.
int run_converter(const std::string& flag, std::vector<std::string> words) try {
  words.insert(words.begin(), converter);
  return run_command(words, environ, "/dev/null");
} catch (const std::system_error& error) {
  fail(flag, "{} cannot be started: {} (it is in Debian's package librsvg2-bin)", converter,
       error.code().message());
}

// Draws the picture of `svg_file` into `png_file`; fails, naming `flag`, if the converter fails.
void write_png(const std::string& flag, const std::string& svg_file, const std::string& png_file) {
  // The PNG has twice the SVG's pixels.
  const int status = run_converter(flag, {"--zoom=2", "--output=" + png_file, "--", svg_file});
  if (status != 0) fail(flag, "{} ended with status {} on {}", converter, status, svg_file);
}

// Returns a title as a part of a file name: "uniform, m = 32" gives uniform-m-32, "offset:-8" offset-minus8.
std::string file_name(const std::string& title) {
  std::string name;
  char previous = ' ';
  for (const char c : title) {
    const bool is_kept =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    if (is_kept) {
      name += c;
    } else if (c == '-' && previous == ':') {
      name += "minus";
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
    previous = c;
  }
  return name;
}

// Name of a temporary SVG file for rsvg-convert, used if SVG files are not kept. The destructor removes the
// file.
class TemporarySvg {
 public:
  explicit TemporarySvg(const std::string& folder) : name_(fmt::format("{}/.{}.svg", folder, ::getpid())) {}
  ~TemporarySvg() { ::unlink(name_.c_str()); }
  TemporarySvg(const TemporarySvg&) = delete;
  TemporarySvg& operator=(const TemporarySvg&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

void write_picture(const PictureFolders& folders, const std::string& name, const Chart& chart,
                   std::vector<std::string>& written) {
  const std::string svg = draw(chart, chart_style());
  std::string svg_file = folders.svg + "/" + name + ".svg";
  if (!folders.svg.empty()) {
    write_text(svg_file, svg);
    written.push_back(svg_file);
  }
  if (folders.png.empty()) return;
  const TemporarySvg temporary(folders.png);
  if (folders.svg.empty()) {
    svg_file = temporary.name();
    write_text(svg_file, svg);
  }
  written.push_back(folders.png + "/" + name + ".png");
  write_png("--png", svg_file, written.back());
}

}  // namespace

void require_png(const std::string& flag) {
  const int status = run_converter(flag, {"--version"});
  if (status != 0) fail(flag, "{} --version ended with status {}", converter, status);
}

void make_folder(const std::string& flag, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(flag, "{}: {}", folder, error.message());
}

void write_text(const std::string& name, const std::string& text) {
  AtomicFile file(name);
  file.write(text.data(), text.size());
  file.commit();
}

std::vector<std::string> write_pictures(const PictureFolders& folders, const std::vector<Figure>& figures) {
  std::vector<std::string> written;
  if (!folders.svg.empty()) make_folder("--svg", folders.svg);
  if (!folders.png.empty()) make_folder("--png", folders.png);
  std::set<std::string> names;  // different titles may give the same name
  for (const Figure& figure : figures) {
    for (const Picture& picture : figure.pictures) {
      const std::string base = file_name(figure.title) + "-" + file_name(picture.name);
      std::string name = base;
      for (int suffix = 2; !names.insert(name).second; ++suffix) name = fmt::format("{}-{}", base, suffix);
      write_picture(folders, name, picture.chart, written);
    }
  }
  return written;
}

}  // namespace kintsugi::tools

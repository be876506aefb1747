#include "report_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "lock.hpp"

namespace kintsugi::drop_in {

namespace {

std::string with_process_number(std::string path) {
  const auto position = path.find("%p");
  return position == std::string::npos ? path : path.replace(position, 2, std::to_string(::getpid()));
}

}  // namespace

bool write_file(const std::string& path, const std::string& contents) {
  const std::string temporary = path + "." + std::to_string(::getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "w");
  if (file == nullptr) return false;
  const bool written = std::fwrite(contents.data(), 1, contents.size(), file) == contents.size();
  const bool closed = std::fclose(file) == 0;
  if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0) return true;
  const int error = errno;
  std::remove(temporary.c_str());
  errno = error;
  return false;
}

void write_report_file(const std::string& name, const std::string& contents) {
  const std::string path = with_process_number(name);
  if (!write_file(path, contents))
    std::fprintf(stderr, "kintsugi: KINTSUGI_REPORT = \"%s\" cannot be written: %s\n", path.c_str(),
                 std::strerror(errno));
}

bool has_own_report_file(const std::string& name) {
  return !is_forked_child() || name.find("%p") != std::string::npos;
}

}  // namespace kintsugi::drop_in

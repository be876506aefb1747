#include "base/kernel_image.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/status.hpp"

namespace kintsugi::core::cuda {

Library loaded_image(KernelImages images, std::string_view name) {
  static std::mutex mutex;
  static std::map<const void*, Library> loaded;
  const auto image =
      std::find_if(images.begin(), images.end(), [&](const KernelImage& i) { return name == i.name; });
  if (image == images.end()) fail(Status::internal, "there is no device code \"{}\"", name);
  const std::lock_guard lock(mutex);
  Library& library = loaded[image->data];
  if (library == nullptr)
    check(driver().library_load(&library, image->data, nullptr, nullptr, 0, nullptr, nullptr, 0),
          image->name);
  return library;
}

}  // namespace kintsugi::core::cuda

#include "base/cuda/kernel_image.hpp"

#include <algorithm>
#include <map>

#include "base/status.hpp"
#include "base/threads/fork.hpp"

namespace kintsugi::core::cuda {

bool DeviceBuild::runs_on(int major, int minor) const {
  const int capability = 10 * major + minor;
  if (architectures.empty()) return false;
  return architectures.front() <= capability ||
         std::any_of(architectures.begin(), architectures.end(), [&](int architecture) {
           return architecture / 10 == major && architecture <= capability;
         });
}

bool has_image(KernelImages images, std::string_view name) {
  return std::any_of(images.begin(), images.end(),
                     [&](const KernelImage& image) { return name == image.name; });
}

Library loaded_image(KernelImages images, std::string_view name) {
  const auto image =
      std::find_if(images.begin(), images.end(), [&](const KernelImage& i) { return name == i.name; });
  if (image == images.end()) fail(Status::internal, "there is no device code \"{}\"", name);
  const auto lock = lock_shared_state();
  static std::map<const void*, Library> loaded;
  Library& library = loaded[image->data];
  if (library == nullptr)
    check(driver().library_load(&library, image->data, nullptr, nullptr, 0, nullptr, nullptr, 0),
          image->name);
  return library;
}

}  // namespace kintsugi::core::cuda

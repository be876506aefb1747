#include "compiled_site.hpp"

#include <utility>

#include "common/sites/compiled_place.hpp"

namespace kintsugi::blas {

namespace in_force {

constinit thread_local const void* site_record = nullptr;

}  // namespace in_force

void announce_compiled_site(const void* record) { in_force::site_record = record; }

const void* take_compiled_site() { return std::exchange(in_force::site_record, nullptr); }

std::unique_ptr<Site> new_compiled_site(const void* record) {
  auto found = drop_in::compiled_place_of(record);
  if (!found) return nullptr;
  auto site = std::make_unique<Site>();
  static_cast<drop_in::Place&>(*site) = std::move(found->place);
  site->source = std::move(found->source);
  return site;
}

// Called by programs that were compiled with the pass.
extern "C" __attribute__((visibility("default"))) void kintsugi_site_begin(const void* record) {
  in_force::site_record = record;
}
extern "C" __attribute__((visibility("default"))) void kintsugi_site_end() {
  in_force::site_record = nullptr;
}

}  // namespace kintsugi::blas

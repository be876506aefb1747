#include "site.hpp"

#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "cublas/mutexes.hpp"
#include "cublas/settings.hpp"

namespace kintsugi::cublas {

namespace {

// Sites by return address and by name. Two addresses have one site if two loaded files have the same name and
// call at the same offset.
struct Sites {
  std::unordered_map<const void*, const Site*> of_address;
  std::map<std::string, std::unique_ptr<Site>> of_name;
};
// Never destroyed, since calls may come from other libraries' destructors.
Sites& all_sites() {
  static Sites* const all = new Sites;
  return *all;
}

// Returns the site of a return address that was not seen before.
const Site* site_of_new_address(Sites& all, const void* address, const drop_in::SitesFile& file) {
  auto site = std::make_unique<Site>();
  static_cast<drop_in::Place&>(*site) = drop_in::place_of(address);
  const auto [named_site, is_new] = all.of_name.try_emplace(site->name, nullptr);
  if (!is_new) return named_site->second.get();
  if (const auto rule = file.rules.find(site->name); rule != file.rules.end()) {
    site->rule = rule->second;
    site->has_rule = true;
  }
  // A file without rules asks for a profile, in which sites are only recorded.
  if (!site->has_rule && !file.rules.empty())
    std::fprintf(stderr, "kintsugi: %s is not in the sites file: its calls are native\n", site->name.c_str());
  named_site->second = std::move(site);
  return named_site->second.get();
}

}  // namespace

constinit thread_local const void* return_address = nullptr;

const Site* current_site() try {
  const auto& file = settings().sites;
  if (!file) return nullptr;
  const std::lock_guard lock(sites_mutex);
  Sites& all = all_sites();
  const auto found = all.of_address.find(return_address);
  if (found != all.of_address.end()) return found->second;
  return all.of_address[return_address] = site_of_new_address(all, return_address, *file);
} catch (const std::exception&) {  // No memory.
  return nullptr;
}

void note_failure(const Site& site, const std::string& message) {
  if (site.has_failed.exchange(true)) return;
  std::fprintf(stderr, "kintsugi: %s: its calls are native, since its rule makes %s\n", site.name.c_str(),
               message.c_str());
}

}  // namespace kintsugi::cublas

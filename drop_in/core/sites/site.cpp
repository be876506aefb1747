#include "site.hpp"

#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/intercept.hpp"
#include "core/lock.hpp"
#include "core/settings.hpp"

namespace kintsugi::drop_in {

namespace {

// All call sites. Never destroyed, since calls may come from other libraries' destructors. Several addresses
// may share one site, if the name of the site is the same.
struct Sites {
  std::unordered_map<const void*, const Site*> of_address;  // return address or record of the compiler pass
  std::unordered_map<CallStack, const Site*, CallStackHash> of_stack;
  std::map<std::string, std::unique_ptr<Site>> of_name;
};
Sites& all_sites() {
  static Sites* const all = new Sites;
  return *all;
}

std::unique_ptr<Site> new_site(const void* return_address, const void* compiled_site) {
  auto site = std::make_unique<Site>();
  auto compiled = compiled_site != nullptr ? compiled_place_of(compiled_site) : std::nullopt;
  if (compiled) site->source = std::move(compiled->source);
  static_cast<Place&>(*site) = compiled ? std::move(compiled->place) : place_of(return_address);
  return site;
}

// Tells the user that a site is missing in the sites file. A file without rules is made for profiling and
// names no sites on purpose, so nothing is said then. Loop nests need no rule, so nothing is said about them
// either.
void note_unknown(const Site& site, const SitesFile& file) {
  if (file.rules.empty() || (site.source && site.source->is_loop())) return;
  print_line({site.name, " is not in the sites file: its calls are native"});
}

// Returns the site with the name of `made`. If there is none yet, `made` becomes the site and gets its rule.
const Site* site_with_rule(Sites& all, std::unique_ptr<Site> made, const SitesFile& file) {
  const auto [place, is_new] = all.of_name.try_emplace(made->name, nullptr);
  if (is_new) {
    if (const SiteRule* const rule = file.rule_for(made->name)) {
      made->rule = *rule;
      made->has_rule = true;
    }
    place->second = std::move(made);
    if (!place->second->has_rule) note_unknown(*place->second, file);
  }
  return place->second.get();
}

// The site of the thread's last call. If the next call comes from the same site, it needs neither a lock nor
// a look-up.
struct LastSite {
  const void* address;  // return address or record of the compiler pass
  const Site* site;
};
constinit thread_local LastSite last_site{nullptr, nullptr};

const Site* site_of_address(const void* return_address, const void* compiled_site, const SitesFile& file) {
  const void* const address = compiled_site != nullptr ? compiled_site : return_address;
  if (last_site.site != nullptr && last_site.address == address) return last_site.site;
  const std::lock_guard lock(sites_mutex);
  Sites& all = all_sites();
  const Site*& site = all.of_address[address];
  if (site == nullptr) {
    site = site_with_rule(all, new_site(return_address, compiled_site), file);
    if (site->rule.is_native()) native_sites.add(address);
  }
  last_site = {address, site};
  return site;
}

// Element of Sites::of_stack for the thread's last call, if sites have several frames. Elements of the map
// keep their addresses. A copy of the stack would be too large for the library's static TLS.
constinit thread_local const std::pair<const CallStack, const Site*>* last_stack = nullptr;

// Finds the site by the whole stack. The record of the compiler pass takes the place of the innermost frame.
const Site* site_of_stack(const void* return_address, const void* compiled_site, const SitesFile& file) {
  const CallStack stack = read_stack(return_address, file.frames);
  CallStack key = stack;
  if (compiled_site != nullptr) key.frames[0] = compiled_site;
  if (last_stack != nullptr && last_stack->first == key) return last_stack->second;
  const std::lock_guard lock(sites_mutex);
  Sites& all = all_sites();
  auto& pair = *all.of_stack.try_emplace(key, nullptr).first;
  const Site*& site = pair.second;
  if (site == nullptr) {
    std::unique_ptr<Site> made = new_site(return_address, compiled_site);
    if (made->function != "main") made->callers = callers_of(stack);
    made->name = name_with_callers(made->name, made->callers);
    site = site_with_rule(all, std::move(made), file);
  }
  last_stack = &pair;
  return site;
}

}  // namespace

const Site* site_of(const void* return_address, const void* compiled_site) try {
  const auto& file = settings().sites;
  if (!file) return nullptr;
  return file->frames == 1 ? site_of_address(return_address, compiled_site, *file)
                           : site_of_stack(return_address, compiled_site, *file);
} catch (const std::exception&) {  // No memory.
  return nullptr;
}

// Never destroyed, like all sites.
const Site* exact_site() {
  static const Site* const site = [] {
    auto* made = new Site;
    made->name = "the exact call of a measured one";
    // A scheme of the settings need not take the operands. Devices have no superaccumulator by name.
    const bool replaces_scheme = !settings().scheme.empty() && !this_drop_in.is_cublas;
    made->rule = {
        .scheme = replaces_scheme ? "superaccumulator" : "", .accuracy = "exact", .policy = "emulate"};
    made->has_rule = true;
    return made;
  }();
  return site;
}

void note_failure(const Site& site, const std::string& message) {
  if (site.has_failed.exchange(true)) return;
  print_line({site.name, ": its calls are native, since its rule makes ", message});
  if (settings().strict) std::exit(2);
}

}  // namespace kintsugi::drop_in

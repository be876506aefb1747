#include "site.hpp"

#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "common/sites/call_stack.hpp"
#include "common/sites/compiled_place.hpp"
#include "cublas/mutexes.hpp"
#include "cublas/settings.hpp"

namespace kintsugi::cublas {

namespace {

// Sites by return address and by name. Two addresses have one site if two loaded files have the same name and
// call at the same offset.
struct Sites {
  std::unordered_map<const void*, const Site*> of_address;
  std::unordered_map<drop_in::CallStack, const Site*, drop_in::CallStackHash> of_stack;
  std::map<std::string, std::unique_ptr<Site>> of_name;
};
// Never destroyed, since calls may come from other libraries' destructors.
Sites& all_sites() {
  static Sites* const all = new Sites;
  return *all;
}

// Returns the site of a stack that was not seen before. A stack of one frame is a return address.
// `record`: the compiler pass's record of the call; nullptr: none.
const Site* site_of_new_stack(Sites& all, const drop_in::CallStack& stack, const void* record,
                              const drop_in::SitesFile& file) {
  auto site = std::make_unique<Site>();
  const auto compiled = record != nullptr ? drop_in::compiled_place_of(record) : std::nullopt;
  static_cast<drop_in::Place&>(*site) = compiled ? compiled->place : drop_in::place_of(stack.frames[0]);
  if (site->function != "main") site->callers = drop_in::callers_of(stack);
  site->name = drop_in::name_with_callers(site->name, site->callers);
  const auto [named_site, is_new] = all.of_name.try_emplace(site->name, nullptr);
  if (!is_new) return named_site->second.get();
  if (const drop_in::SiteRule* const rule = file.rule_for(site->name)) {
    site->rule = *rule;
    site->has_rule = true;
  }
  // A file without rules asks for a profile, in which sites are only recorded.
  if (!site->has_rule && !file.rules.empty())
    std::fprintf(stderr, "kintsugi: %s is not in the sites file: its calls are native\n", site->name.c_str());
  named_site->second = std::move(site);
  return named_site->second.get();
}

// The thread's current call, and the site of its last one. With one frame, a call from the same place as the
// last one takes neither lock nor look-up.
struct ThreadSites {
  const void* announced = nullptr;  // record of the compiler pass for the next call
  const void* record = nullptr;     // record of the thread's call; nullptr: none
  const void* return_address = nullptr;
  bool is_stack_read = false;  // true: `site` was found by the stack of the thread's call
  const void* address = nullptr;
  const Site* site = nullptr;
};
constinit thread_local ThreadSites thread_sites;

const Site* site_of_address(const drop_in::SitesFile& file) {
  const void* const address =
      thread_sites.record != nullptr ? thread_sites.record : thread_sites.return_address;
  if (thread_sites.site != nullptr && thread_sites.address == address) return thread_sites.site;
  const std::lock_guard lock(sites_mutex);
  Sites& all = all_sites();
  const Site*& site = all.of_address[address];
  if (site == nullptr)
    site = site_of_new_stack(all, drop_in::read_stack(thread_sites.return_address, 1), thread_sites.record,
                             file);
  thread_sites.address = address;
  thread_sites.site = site;
  return site;
}

const Site* site_of_stack(const drop_in::SitesFile& file) {
  if (thread_sites.is_stack_read) return thread_sites.site;
  const drop_in::CallStack stack = drop_in::read_stack(thread_sites.return_address, file.frames);
  drop_in::CallStack key = stack;
  if (thread_sites.record != nullptr) key.frames[0] = thread_sites.record;
  const std::lock_guard lock(sites_mutex);
  Sites& all = all_sites();
  const Site*& site = all.of_stack[key];
  if (site == nullptr) site = site_of_new_stack(all, stack, thread_sites.record, file);
  thread_sites.site = site;
  thread_sites.is_stack_read = true;
  return site;
}

}  // namespace

void note_return_address(const void* address) {
  thread_sites.record = std::exchange(thread_sites.announced, nullptr);
  thread_sites.return_address = address;
  thread_sites.is_stack_read = false;
}

// Called by programs that were compiled with the pass, before and after a call of cuBLAS.
extern "C" __attribute__((visibility("default"))) void kintsugi_cublas_site_begin(const void* record) {
  thread_sites.announced = record;
}
extern "C" __attribute__((visibility("default"))) void kintsugi_cublas_site_end() {
  thread_sites.announced = nullptr;
}

const Site* current_site() try {
  const auto& file = settings().sites;
  if (!file) return nullptr;
  return file->frames == 1 ? site_of_address(*file) : site_of_stack(*file);
} catch (const std::exception&) {  // No memory.
  return nullptr;
}

void note_failure(const Site& site, const std::string& message) {
  if (site.has_failed.exchange(true)) return;
  std::fprintf(stderr, "kintsugi: %s: its calls are native, since its rule makes %s\n", site.name.c_str(),
               message.c_str());
}

}  // namespace kintsugi::cublas

#include "intercept.hpp"

#include "settings.hpp"

namespace kintsugi::drop_in {

constinit std::atomic<Interception> interception = Interception::unknown;
constinit thread_local int calls_under_way = 0;
constinit thread_local const void* announced_site = nullptr;
constinit NativeSites native_sites;

Interception read_interception() {
  const Settings& read = settings();
  const bool forwards_all = read.is_malformed() || (read.policy == Policy::native && !read.sites);
  const Interception found = records_calls() ? Interception::all
                             : forwards_all  ? Interception::none
                             : read.sites    ? Interception::by_site
                                             : Interception::all;
  Interception unknown = Interception::unknown;  // else the program has asked for a report meanwhile
  return interception.compare_exchange_strong(unknown, found) ? found : unknown;
}

}  // namespace kintsugi::drop_in

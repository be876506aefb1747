#include "flow.hpp"

#include <algorithm>
#include <set>

namespace kintsugi::blas {

void Flow::add(const Call& call, SiteInputs& inputs) {
  std::set<const Site*> feeding;
  for (const Region& input : inputs_of(call))
    for (const Output& output : outputs_)
      if (overlap(output.region, input)) feeding.insert(output.site);
  for (const Site* site : feeding) ++inputs[site];

  const Region written = output_of(call);
  if (written.is_empty()) return;
  std::erase_if(outputs_, [&](const Output& output) { return covers(written, output.region); });
  if (outputs_.size() >= most_outputs) outputs_.erase(outputs_.begin());
  outputs_.push_back({written, call.site});
}

}  // namespace kintsugi::blas

#include "execute/device/candidates/tile_steps.hpp"

#include <array>
#include <span>

namespace kintsugi::core {

Interval slices_of(const Candidate& candidate, const Interval& vectors) {
  return {candidate.program.extent_of_slices(vectors.first),
          candidate.program.extent_of_slices(vectors.count)};
}

Schedule schedule_to_fit(const Candidate& candidate) {
  Schedule schedule = candidate.program.schedule;
  for (const int group : candidate.scheme->fitted_groups) schedule.group_exponents[group] = fitted_exponent;
  return schedule;
}

void recombine(const DeviceEngine& engine, const Queue& queue, const Candidate& candidate,
               const UnfinishedTile& unfinished) {
  const auto& [sums, tile] = unfinished;
  if (candidate.program.recombination == Recombination::residues)
    return engine.recombine_residues(queue, sums, candidate.program.residue_system(), tile);
  const Schedule schedule = schedule_to_fit(candidate);
  std::array<int, max_groups> exponents{};
  for (int g = 0; g < schedule.sums(); ++g) exponents[g] = schedule.sum_exponent(g);
  engine.recombine_weighted(queue, sums, {exponents.data(), static_cast<std::size_t>(sums.groups)}, tile);
}

}  // namespace kintsugi::core

// Costs of devices that nobody measured, predicted from published numbers (cards.hpp).
#pragma once

#include "engines/cuda/arch/cards.hpp"
#include "engines/cuda/arch/profile.hpp"

namespace kintsugi::core::cuda {

// Returns the costs that are expected on a device of the card's numbers. `reference`: a measured device, from
// which all that no published number says is taken: the shares of published rates that kernels reach, and
// times of launches. Its family may be another one.
Costs predicted_costs(const Card& card, const Profile& reference);

}  // namespace kintsugi::core::cuda

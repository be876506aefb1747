// Scales of residues by norms or by a product of magnitudes. They are found for the whole problem, before the
// blocks.
#pragma once

#include "execute/host/operand.hpp"

namespace kintsugi::core {

// Replaces the scales of set_program() by the scales of the program's ScaleRule
// (arith/residue/residue_scale.hpp). The two vectors of a complex column get the same scale. The workspace is
// used only during the call.
template <class T>
void set_residue_scales(const Plan& plan, const Program& program, const Blocking& blocking, SideOf<T>& a,
                        SideOf<T>& b, Workspace workspace);

}  // namespace kintsugi::core

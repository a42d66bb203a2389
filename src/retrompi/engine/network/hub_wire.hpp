// A hub: one half-duplex medium for all stations (one on each rail), with the rule by which they get it.
#pragma once
#include "network/wire.hpp"

namespace retrompi {

/// `seed`: of the delays after collisions.
std::unique_ptr<Wire> hub_wire(Loop&, Anatomy&, const std::vector<size_t>& positions, const LinkSpec&, uint64_t seed);

}  // namespace retrompi

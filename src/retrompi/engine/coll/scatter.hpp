// The binomial scatter of a vector that begins a long broadcast.
#pragma once
#include "coll/data.hpp"

namespace retrompi::coll {

/// Each member gets the pieces of its subtree, and repeatedly passes on the upper half. Empty pieces are not sent.
Steps scatter_vector(Args a);

}  // namespace retrompi::coll

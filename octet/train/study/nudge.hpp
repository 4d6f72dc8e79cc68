#pragma once

#include "octet/nn/parameters.hpp"

namespace octet::train {

/// Moves every value that is not 0 of the masters here to a neighbour in the type of its codes: away from 0 where bit e mod 128 of
/// philox(key, e / 128, twin) is set, e the value's place in its parameter, else towards 0. The largest code only goes towards 0. `key`
/// follows from seed and path. So runs with other twin numbers begin with weights that differ by rounding alone. On the host: the same on
/// every backend. Throws ContractError unless twin >= 1.
void nudge(Stream&, const nn::Parameters&, std::uint64_t seed, int twin);

}  // namespace octet::train

#pragma once

#include <span>

#include "octet/data/windows.hpp"

namespace octet::data {

/// The share of the targets of some batches that are the same token, where it is more than a half; otherwise 0. Linear in time, without
/// memory. Source: Boyer and Moore 1991, "MJRTY: A Fast Majority Vote Algorithm".
double majority_share(std::span<const Batch>);

}  // namespace octet::data

#pragma once

#include <string>
#include <string_view>

#include "octet/io/safetensors_header.hpp"

namespace octet::io {

/// Reads the JSON of a header into `header`'s tensors, metadata and unknown_fields; offsets are not yet compared with anything.
/// `text` stands at byte 8 of `file` (as messages show it). DataError for everything that is not a well-formed list of entries.
void parse_entries(std::string_view text, const std::string& file, const SafetensorsLimits& limits, SafetensorsHeader& header);

}  // namespace octet::io

#pragma once

#include <string>
#include <string_view>

#include "octet/io/safetensors_header.hpp"

namespace octet::io {

/// Reads the JSON of a header into `header`'s tensors, metadata and unknown_fields; offsets are not validated yet.
/// `text` begins at byte 8 of `file` (the name in messages). DataError unless it is a well-formed list of entries.
void parse_entries(std::string_view text, const std::string& file, const SafetensorsLimits& limits, SafetensorsHeader& header);

}  // namespace octet::io

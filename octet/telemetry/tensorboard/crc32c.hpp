#pragma once

#include <cstdint>
#include <string_view>

namespace octet::telemetry {

/// CRC-32C of the bytes (Castagnoli's polynomial 0x1EDC6F41, bits reflected, register begun and ended inverted).
/// Source: RFC 3720, section 12.1 and appendix B.4.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace octet::telemetry

#include "octet/telemetry/tensorboard/crc32c.hpp"

#include <array>

namespace octet::telemetry {
namespace {

/// The effect of eight register steps on each value of the low byte.
constexpr std::array<std::uint32_t, 256> table = [] {
  std::array<std::uint32_t, 256> out{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t r = byte;
    for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ ((r & 1) != 0 ? 0x82F63B78u : 0u);  // the polynomial, reflected
    out[byte] = r;
  }
  return out;
}();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t r = ~0u;
  for (const char c : bytes) r = (r >> 8) ^ table[(r ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~r;
}

}  // namespace octet::telemetry

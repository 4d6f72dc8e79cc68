#pragma once

// Only for tests: compressed data.

#include <zlib.h>
#include <zstd.h>

#include <string>

namespace octet::data {

/// One gzip member.
inline std::string gzip(const std::string& text) {
  z_stream state{};
  deflateInit2(&state, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&state, uLong(text.size())), '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data())), state.avail_in = uInt(text.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data()), state.avail_out = uInt(out.size());
  deflate(&state, Z_FINISH);
  out.resize(std::size_t(state.total_out));
  deflateEnd(&state);
  return out;
}

/// One Zstandard frame.
inline std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

}  // namespace octet::data

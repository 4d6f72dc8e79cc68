#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "octet/telemetry/tensorboard/crc32c.hpp"
#include "tests/testing/scratch.hpp"

// Reads event files as TensorBoard does, from the description of the format alone, independent of the writer that it tests.

namespace octet::testing {

/// The rest of a protobuf message.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : rest_(bytes) {}

  /// Goes to the next field; false at the end.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t key = base128();
    field = int(key >> 3);
    switch (key & 7) {
      case 0: number = base128(); break;
      case 1: number = little_endian(take(8)); break;
      case 2: bytes = take(base128()); break;
      case 5: number = little_endian(take(4)); break;
      default: throw std::runtime_error("no wire type of protobuf");
    }
    return true;
  }
  static std::uint64_t little_endian(std::string_view bytes) {
    std::uint64_t out = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) out = out << 8 | static_cast<unsigned char>(bytes[i]);
    return out;
  }

  int field = 0;
  std::uint64_t number = 0;  // of a varint or a fixed field
  std::string_view bytes;    // of a field with a length

 private:
  std::string_view take(std::uint64_t n) {
    if (n > rest_.size()) throw std::runtime_error("the message ends early");
    const std::string_view out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }
  std::uint64_t base128() {
    std::uint64_t out = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      out |= std::uint64_t(byte & 0x7F) << shift;
      if (byte < 0x80) return out;
    }
  }

  std::string_view rest_;
};

/// One message of an event file.
struct BoardEvent {
  double time = 0;
  std::int64_t step = 0;
  std::string version{};
  bool restart = false;
  std::vector<std::pair<std::string, float>> scalars{};
  std::map<std::string, std::string> texts{};  // of the plugin "text"
};

/// The text of a tensor of one string, or none.
inline std::string text_of(std::string_view tensor) {
  std::string type, shape, out;
  for (ProtoReader field(tensor); field.next();) {
    if (field.field == 1) type = std::to_string(field.number);
    if (field.field == 2) shape = field.bytes;
    if (field.field == 8) out = field.bytes;
  }
  return type == "7" && shape == std::string("\x12\x02\x08\x01", 4) ? out : "";
}

inline BoardEvent board_event(std::string_view message) {
  BoardEvent out;
  for (ProtoReader event(message); event.next();) {
    if (event.field == 1) out.time = std::bit_cast<double>(event.number);
    if (event.field == 2) out.step = std::int64_t(event.number);
    if (event.field == 3) out.version = event.bytes;
    if (event.field == 7)
      for (ProtoReader session(event.bytes); session.next();) out.restart = out.restart || (session.field == 1 && session.number == 1);
    if (event.field != 5) continue;
    for (ProtoReader summary(event.bytes); summary.next();) {
      std::pair<std::string, float> scalar;
      std::string plugin, text;
      for (ProtoReader value(summary.bytes); value.next();) {
        if (value.field == 1) scalar.first = value.bytes;
        if (value.field == 2) scalar.second = std::bit_cast<float>(std::uint32_t(value.number));
        if (value.field == 8) text = text_of(value.bytes);
        if (value.field == 9) plugin = value.bytes;
      }
      if (plugin == std::string("\x0a\x06\x0a\x04text")) out.texts[scalar.first] = text;
      else out.scalars.push_back(scalar);
    }
  }
  return out;
}

/// The messages of a file up to its end or to the first incomplete record; throws std::runtime_error on a wrong checksum.
inline std::vector<BoardEvent> board_events(std::string_view file) {
  const auto unmasked = [](std::uint64_t x) { return std::rotl(std::uint32_t(x) - 0xA282EAD8u, 15); };
  std::vector<BoardEvent> out;
  while (file.size() >= 12) {
    const std::uint64_t length = ProtoReader::little_endian(file.substr(0, 8));
    if (unmasked(ProtoReader::little_endian(file.substr(8, 4))) != telemetry::crc32c(file.substr(0, 8)))
      throw std::runtime_error("checksum of a length");
    if (file.size() < length + 16) break;
    const std::string_view message = file.substr(12, length);
    if (unmasked(ProtoReader::little_endian(file.substr(12 + length, 4))) != telemetry::crc32c(message))
      throw std::runtime_error("checksum of a message");
    out.push_back(board_event(message));
    file.remove_prefix(length + 16);
  }
  return out;
}

/// The event files of a folder, in the order in which TensorBoard reads them.
inline std::vector<std::string> board_files(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (has(entry.path().filename().string(), "tfevents")) out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

/// The content that TensorBoard shows of a run: steps and values per tag. A restart voids earlier events of its step and later ones. Throws
/// std::runtime_error when a tag has a step twice or steps decrease.
inline std::map<std::string, std::map<std::int64_t, float>> board_of(const std::string& folder) {
  std::map<std::string, std::map<std::int64_t, float>> out;
  for (const std::string& path : board_files(folder)) {
    for (const BoardEvent& e : board_events(bytes_of(path))) {
      if (e.restart)
        for (auto& [tag, series] : out) series.erase(series.lower_bound(e.step), series.end());
      for (const auto& [tag, value] : e.scalars) {
        auto& series = out[tag];
        if (!series.empty() && series.rbegin()->first >= e.step)
          throw std::runtime_error(tag + " goes back to step " + std::to_string(e.step));
        series[e.step] = value;
      }
    }
  }
  return out;
}

}  // namespace octet::testing

#include "octet/telemetry/tensorboard/summary_record.hpp"

#include <bit>

#include "octet/telemetry/tensorboard/crc32c.hpp"

namespace octet::telemetry {
namespace {

// The numbers of the fields, and of a session that starts.
enum EventField { event_time = 1, event_step = 2, event_version = 3, event_summary = 5, event_session = 7 };
enum SummaryField { summary_value = 1 };
enum ValueField { value_tag = 1, value_number = 2, value_tensor = 8, value_metadata = 9 };
enum MetadataField { metadata_plugin = 1 };
enum PluginField { plugin_name = 1 };
enum TensorField { tensor_type = 1, tensor_shape = 2, tensor_text = 8 };
enum ShapeField { shape_dimension = 2 };
enum DimensionField { dimension_size = 1 };
constexpr std::uint64_t type_text = 7;  // DT_STRING
enum SessionField { session_status = 1, session_start = 1 };

/// A message that is being built.
class Message {
 public:
  void fixed64(int field, std::uint64_t bits) { key(field, 1), little_endian(bits, 8); }
  void fixed32(int field, std::uint32_t bits) { key(field, 5), little_endian(bits, 4); }
  void varint(int field, std::uint64_t x) { key(field, 0), base128(x); }
  void bytes(int field, std::string_view text) { key(field, 2), base128(text.size()), bytes_ += text; }
  void little_endian(std::uint64_t bits, int size) {
    for (int i = 0; i < size; ++i) bytes_ += char(bits >> (8 * i) & 0xFF);
  }
  void raw(std::string_view text) { bytes_ += text; }

  void clear() { bytes_.clear(); }
  const std::string& text() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  void key(int field, int wire_type) { base128(std::uint64_t(field) << 3 | std::uint64_t(wire_type)); }
  void base128(std::uint64_t x) {
    for (; x >= 0x80; x >>= 7) bytes_ += char(x | 0x80);
    bytes_ += char(x);
  }

  std::string bytes_;
};

Message event_at(double time) {
  Message m;
  m.fixed64(event_time, std::bit_cast<std::uint64_t>(time));
  return m;
}

std::string summary_at(double time, std::int64_t step, const Message& summary) {
  Message m = event_at(time);
  m.varint(event_step, std::uint64_t(step));
  m.bytes(event_summary, summary.text());
  return m.take();
}

std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xA282EAD8u; }

}  // namespace

std::string version_message(double time) {
  Message m = event_at(time);
  m.bytes(event_version, "brain.Event:2");
  return m.take();
}

std::string restart_message(double time, std::int64_t step) {
  Message session;
  session.varint(session_status, session_start);
  Message m = event_at(time);
  m.varint(event_step, std::uint64_t(step));
  m.bytes(event_session, session.text());
  return m.take();
}

std::string scalars_message(double time, std::int64_t step, std::span<const Scalar> scalars) {
  Message summary, value;
  for (const Scalar& s : scalars) {
    value.clear();
    value.bytes(value_tag, s.tag);
    value.fixed32(value_number, std::bit_cast<std::uint32_t>(s.value));
    summary.bytes(summary_value, value.text());
  }
  return summary_at(time, step, summary);
}

std::string text_message(double time, std::int64_t step, std::string_view tag, std::string_view markdown) {
  Message plugin, metadata, dimension, shape, tensor, value, summary;
  plugin.bytes(plugin_name, "text");
  metadata.bytes(metadata_plugin, plugin.text());
  dimension.varint(dimension_size, 1);
  shape.bytes(shape_dimension, dimension.text());
  tensor.varint(tensor_type, type_text);
  tensor.bytes(tensor_shape, shape.text());
  tensor.bytes(tensor_text, markdown);
  value.bytes(value_tag, tag);
  value.bytes(value_tensor, tensor.text());
  value.bytes(value_metadata, metadata.text());
  summary.bytes(summary_value, value.text());
  return summary_at(time, step, summary);
}

std::string framed(std::string_view message) {
  Message length;
  length.little_endian(message.size(), 8);
  Message out;
  out.raw(length.text());
  out.little_endian(masked(crc32c(length.text())), 4);
  out.raw(message);
  out.little_endian(masked(crc32c(message)), 4);
  return out.take();
}

}  // namespace octet::telemetry

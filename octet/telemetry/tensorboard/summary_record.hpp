#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// The records of a TensorBoard event file: of the messages Event, Summary and SessionLog those few fields that scalars and texts need, in
// protobuf's wire format. Times are seconds since 1970. Sources: tensorboard/compat/proto/event.proto, summary.proto and tensor.proto;
// protobuf.dev, "Encoding".

namespace octet::telemetry {

/// One number under its tag; TensorBoard shows the tags that share the part before the first "/" as one group.
struct Scalar {
  std::string_view tag;
  float value = 0;
};

/// The first message of every file.
std::string version_message(double time);
/// A process starts to write at `step`: a reader drops earlier events of this and later steps.
std::string restart_message(double time, std::int64_t step);
std::string scalars_message(double time, std::int64_t step, std::span<const Scalar>);
/// A text under its tag, shown as Markdown by TensorBoard's plugin "text".
std::string text_message(double time, std::int64_t step, std::string_view tag, std::string_view markdown);

/// The record in the file: length u64, masked CRC-32C of the length u32, message, masked CRC-32C of the message u32, all little endian;
/// masked(c) = (c rotated right by 15 bits) + 0xA282EAD8. Source: tensorflow.org, "TFRecord format".
std::string framed(std::string_view message);

}  // namespace octet::telemetry

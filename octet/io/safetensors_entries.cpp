#include "octet/io/safetensors_entries.hpp"

#include <algorithm>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/json/text.hpp"

namespace octet::io {
namespace {

/// Walks { name: { dtype, shape: [..], data_offsets: [..] }, "__metadata__": { key: value } }.
class EntryReader : public json::Events {
 public:
  EntryReader(const std::string& file, const SafetensorsLimits& limits, SafetensorsHeader& header)
      : file_(file), limits_(limits), header_(header) {}

  void on_null() override { scalar("null"); }
  void on_bool(bool x) override { scalar(to_text(x)); }
  void on_negative(std::int64_t x) override { scalar(x == 0 ? "-0" : to_text(x)); }
  void on_real(double x) override { scalar(json::real_text(x)); }
  void on_integer(std::uint64_t x) override {
    if (skipped_ == 0 && where_ == Where::numbers) return number(x);
    scalar(to_text(x));
  }
  void on_string(std::string& x) override;
  void on_key(std::string& key) override;
  void on_begin(char bracket) override;
  void on_end(char bracket) override;

 private:
  enum class Where : std::uint8_t { outside, root, metadata, entry, numbers };
  enum Field : unsigned { none = 0, dtype = 1, shape = 2, offsets = 4, unknown = 8 };

  [[noreturn]] void refuse(std::string_view what, std::string_view came) const {
    const std::string place =
        in_metadata_ ? format("__metadata__ \"{}\"", shortened(field_name_)) : format("tensor \"{}\"", shortened(name_));
    throw DataError(format("{}: {}: {}, got {}", file_, place, what, came));
  }
  static std::string shortened(std::string_view s) {
    return printable(s.size() > 200 ? std::string(s.substr(0, 200)) + "..." : std::string(s));
  }
  std::string_view wanted() const;
  void scalar(std::string_view came);
  void number(std::uint64_t x);
  void begin_entry(std::string& name);
  void end_entry();
  void note_unknown_field();
  TensorEntry& entry() { return header_.tensors.back(); }

  const std::string& file_;
  const SafetensorsLimits& limits_;
  SafetensorsHeader& header_;
  Where where_ = Where::outside;
  bool in_metadata_ = false, seen_metadata_ = false;
  Field field_ = none;
  unsigned seen_ = 0, skipped_ = 0;  // fields of this entry; depth inside the value of an unknown field
  std::size_t offsets_read_ = 0, name_bytes_ = 0, metadata_bytes_ = 0;
  std::string name_, field_name_;
};

std::string_view EntryReader::wanted() const {
  if (in_metadata_) return where_ == Where::root ? "must be an object of strings" : "must be a string";
  if (where_ == Where::root) return "must be an object with dtype, shape and data_offsets";
  if (field_ == dtype) return "dtype must be a string";
  if (field_ == shape) return "shape must be an array of at most 8 integers from 0 to 2^48";
  return "data_offsets must be two integers from 0 to 2^63 - 1";
}

void EntryReader::scalar(std::string_view came) {
  if (skipped_ > 0 || (where_ == Where::entry && field_ == unknown)) return;
  refuse(wanted(), came);
}

void EntryReader::on_string(std::string& x) {
  if (skipped_ == 0 && where_ == Where::metadata) {
    metadata_bytes_ += field_name_.size() + x.size();
    if (metadata_bytes_ > limits_.metadata_bytes)
      refuse(format("keys and values may have {} bytes together", limits_.metadata_bytes), "more");
    header_.metadata.emplace_back(field_name_, std::move(x));
  } else if (skipped_ == 0 && where_ == Where::entry && field_ == dtype) {
    const auto type = stored_dtype(x);
    if (!type) refuse("dtype must be one of the format's types (F32, BF16, F16, F8_E4M3, ...)", format("\"{}\"", shortened(x)));
    entry().spec.dtype = *type;
  } else {
    scalar(format("the string \"{}\"", shortened(x)));
  }
}

void EntryReader::number(std::uint64_t x) {
  if (field_ == shape) {
    if (entry().spec.shape.size() == max_rank || x > max_dimension) refuse(wanted(), x > max_dimension ? to_text(x) : "more");
    entry().spec.shape.push_back(std::int64_t(x));
  } else {
    if (offsets_read_ == 2 || x >> 63 != 0) refuse(wanted(), x >> 63 != 0 ? to_text(x) : "more");
    (offsets_read_++ == 0 ? entry().begin : entry().end) = x;
  }
}

void EntryReader::begin_entry(std::string& name) {
  name_ = std::move(name);
  in_metadata_ = name_ == "__metadata__";
  if (in_metadata_) {
    if (seen_metadata_) throw DataError(format("{}: __metadata__ occurs twice in the header", file_));
    seen_metadata_ = true;
    return;
  }
  name_bytes_ += name_.size();
  if (header_.tensors.size() == limits_.tensors) {
    throw DataError(format("{}: at most {} tensors can be read from one file, this one has more", file_, limits_.tensors));
  }
  if (name_bytes_ > limits_.name_bytes)
    throw DataError(format("{}: tensor names may have {} bytes together, these have more", file_, limits_.name_bytes));
  header_.tensors.push_back({{name_, StoredDType::u8, {}}, 0, 0});
  seen_ = 0, offsets_read_ = 0;
}

void EntryReader::on_key(std::string& key) {
  if (skipped_ > 0) return;
  if (where_ == Where::root) return begin_entry(key);
  field_name_ = std::move(key);
  if (where_ == Where::metadata) return;
  field_ = field_name_ == "dtype" ? dtype : field_name_ == "shape" ? shape : field_name_ == "data_offsets" ? offsets : unknown;
  if (field_ == unknown) return note_unknown_field();
  if (seen_ & field_) refuse("a field may occur once", format("{} twice", field_name_));
  seen_ |= field_;
}

void EntryReader::note_unknown_field() {
  auto& known = header_.unknown_fields;
  const std::string shown = shortened(field_name_);
  if (known.size() < 8 && std::find(known.begin(), known.end(), shown) == known.end()) known.push_back(shown);
}

void EntryReader::on_begin(char bracket) {
  if (skipped_ > 0 || (where_ == Where::entry && field_ == unknown)) {
    ++skipped_;
  } else if (where_ == Where::outside) {
    where_ = Where::root;
  } else if (where_ == Where::root && bracket == '{') {
    where_ = in_metadata_ ? Where::metadata : Where::entry;
  } else if (where_ == Where::entry && bracket == '[' && (field_ == shape || field_ == offsets)) {
    where_ = Where::numbers;
  } else {
    refuse(wanted(), bracket == '{' ? "an object" : "an array");
  }
}

void EntryReader::on_end(char) {
  if (skipped_ > 0) {
    --skipped_;
  } else if (where_ == Where::numbers) {
    if (field_ == offsets && offsets_read_ != 2) refuse(wanted(), to_text(offsets_read_));
    where_ = Where::entry;
  } else if (where_ == Where::root) {
    where_ = Where::outside;
  } else {
    if (where_ == Where::entry) end_entry();
    where_ = Where::root;
  }
}

void EntryReader::end_entry() {
  const char* missing = !(seen_ & dtype) ? "dtype" : !(seen_ & shape) ? "shape" : !(seen_ & offsets) ? "data_offsets" : nullptr;
  if (missing) refuse("must have dtype, shape and data_offsets", format("no {}", missing));
}

void check_metadata_keys(const Metadata& metadata, const std::string& file) {
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : metadata) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) throw DataError(format("{}: __metadata__ \"{}\" occurs twice", file, printable(*twice)));
}

}  // namespace

void parse_entries(std::string_view text, const std::string& file, const SafetensorsLimits& limits, SafetensorsHeader& header) {
  EntryReader reader(file, limits, header);
  const json::Limits json_limits{.bytes = json::Limits::none, .values = json::Limits::none, .depth = 4};  // the caller limits the bytes
  json::read({.text = text, .file = file, .limits = json_limits, .place = json::Place::byte, .first_byte = 8}, reader);
  check_metadata_keys(header.metadata, file);
}

}  // namespace octet::io

#include "octet/train/checkpoint/manifest.hpp"

#include <algorithm>

#include "octet/base/check.hpp"
#include "octet/base/file.hpp"
#include "octet/json/fields.hpp"

namespace octet::train {
namespace {

constexpr std::int64_t format_number = 1;
constexpr std::string_view end = "\n}";
constexpr std::size_t most_files = 4096;

std::string signature(std::string_view body) { return format(",\n  \"xxh3\": \"{}\"{}\n", to_text(data::checksum_of(body)), end); }

data::Checksum checksum_field(const json::Fields& fields) {
  const std::string& text = fields.text("xxh3");
  data::Checksum out;
  if (text.size() != 32 || text.find_first_not_of("0123456789abcdef") != std::string::npos) fields.refuse("xxh3", "32 hexadecimal digits");
  for (std::size_t i = 0; i < 32; ++i) {
    std::uint64_t& half = i < 16 ? out.high : out.low;
    half = half << 4 | std::uint64_t(text[i] <= '9' ? text[i] - '0' : text[i] - 'a' + 10);
  }
  return out;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.size() < 100 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

std::string manifest_text(const Manifest& m) {
  json::Array files;
  for (const auto& f : m.files)
    files.push_back(json::Object{{"name", f.name}, {"bytes", std::int64_t(f.bytes)}, {"xxh3", to_text(f.checksum)}});
  std::string body =
      json::Value(
          json::Object{{"format", format_number}, {"step", m.step}, {"data", m.text}, {"config", m.config}, {"files", std::move(files)}})
          .dump(json::Layout::indented, json::Invalid::replace);
  while (!body.empty() && body.back() == '\n') body.pop_back();
  check(body.ends_with(end), "manifest: must end with a brace on a line of its own");
  const std::string signed_by = signature(body);
  body.resize(body.size() - end.size());
  return body + signed_by;
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  const std::string where = printable(path);
  const std::size_t length = signature("").size();
  const std::string body = text.size() < length ? "" : text.substr(0, text.size() - length) + std::string(end);
  if (body.empty() || text.substr(text.size() - length) != signature(body))
    throw DataError(format("{}: its checksum does not fit: the file was damaged or cut off", where));
  const json::Value file = json::parse({.text = text, .file = where, .limits = {.bytes = std::size_t(16) << 20}});
  const json::Fields fields(file, where);
  if (const std::int64_t is = fields.count("format"); is != format_number)
    throw DataError(format("{}: format {} is newer than this program, which reads {}; use a newer octet", where, is, format_number));
  Manifest out;
  out.step = fields.count("step"), out.text = fields.text("data"), out.config = fields.text("config");
  for (const json::Fields& f : fields.objects("files")) {
    out.files.push_back({f.text("name"), std::uint64_t(f.count("bytes")), checksum_field(f)});
    if (!is_plain_name(out.files.back().name)) f.refuse("name", "the name of a file beside the manifest");
  }
  if (out.files.empty() || out.files.size() > most_files) fields.refuse("files", format("an array of 1 to {} files", most_files));
  return out;
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + Manifest::file_name;
  return parse_manifest(read_file(path, std::size_t(16) << 20), path);
}

}  // namespace octet::train

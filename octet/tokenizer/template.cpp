#include "octet/tokenizer/template.hpp"

#include "octet/tokenizer/normalizer.hpp"

namespace octet::tokenizer {
namespace {

/// Adds a TemplateProcessing around `out`.
void add_single(const json::Fields& fields, std::int32_t vocab_size, Template& out) {
  Template own;
  bool text_seen = false;
  for (const auto& item : fields.objects("single")) {
    if (item.has("Sequence")) {
      if (text_seen) fields.refuse("single", "special tokens around one Sequence");
      text_seen = true;
      continue;
    }
    const std::string& name = item.object("SpecialToken").text("id");
    const json::Fields token = fields.object("special_tokens").object(name);
    for (const std::int64_t id : token.integers("ids", 0, vocab_size - 1))
      (text_seen ? own.suffix : own.prefix).push_back(std::int32_t(id));
  }
  if (!text_seen) fields.refuse("single", "special tokens around one Sequence");
  out.prefix.insert(out.prefix.begin(), own.prefix.begin(), own.prefix.end());
  out.suffix.insert(out.suffix.end(), own.suffix.begin(), own.suffix.end());
}

void add(const json::Fields& fields, std::int32_t vocab_size, Template& out) {
  const std::string& type = fields.text("type");
  if (type == "Sequence") {
    require_keys(fields, {"type", "processors"});
    for (const auto& each : fields.objects("processors")) add(each, vocab_size, out);
  } else if (type == "ByteLevel") {
    require_keys(fields, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  } else if (type == "TemplateProcessing") {
    require_keys(fields, {"type", "single", "pair", "special_tokens"});
    add_single(fields, vocab_size, out);
  } else {
    fields.refuse("type", "ByteLevel, TemplateProcessing or Sequence (other post-processors are not supported)");
  }
}

}  // namespace

Template read_template(const json::Fields& fields, std::int32_t vocab_size) {
  Template out;
  add(fields, vocab_size, out);
  return out;
}

}  // namespace octet::tokenizer

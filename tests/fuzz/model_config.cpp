#include <map>

#include "octet/json/fields.hpp"
#include "octet/models/companions.hpp"
#include "octet/models/gemma3/hugging_face.hpp"
#include "octet/models/gpt2/hugging_face.hpp"
#include "octet/models/granite/hugging_face.hpp"
#include "octet/models/llama/hugging_face.hpp"
#include "octet/models/mistral/hugging_face.hpp"
#include "octet/models/olmo2/hugging_face.hpp"
#include "octet/models/phi3/hugging_face.hpp"
#include "octet/models/qwen2/hugging_face.hpp"
#include "octet/models/qwen3/hugging_face.hpp"
#include "octet/models/smollm3/hugging_face.hpp"
#include "tests/fuzz/input.hpp"

using namespace octet;

namespace {

json::Value parsed(std::string_view text) { return json::parse({.text = text, .file = "config.json"}); }

std::string written(const models::HuggingFaceFormat& format, const models::ModelShape& shape) {
  json::Value config = json::Object();
  format.write(shape, config);
  return config.dump();
}

models::ModelShape read_text(const models::HuggingFaceFormat& format, std::string_view text) {
  const json::Value config = parsed(text);
  return format.read(json::Fields(config, "config.json"));
}

/// Slices of one parameter follow one another without gaps.
void check_weights(const models::HuggingFaceFormat& format, const models::ModelShape& shape) {
  std::map<std::string, std::int64_t> rows;
  for (const models::WeightSlice& slice : format.weights(shape)) {
    if (slice.alias) continue;
    if (slice.rows <= 0 || slice.first != rows[slice.parameter]) __builtin_trap();
    rows[slice.parameter] += slice.rows;
  }
}

void read_as(const models::HuggingFaceFormat& format, const json::Value& config) {
  fuzz::read_or_refuse([&] {
    const models::ModelShape shape = format.read(json::Fields(config, "config.json"));
    const std::string text = written(format, shape);
    if (written(format, fuzz::must([&] { return read_text(format, text); })) != text) __builtin_trap();
    if (shape.layers <= 4) check_weights(format, shape);
  });
}

}  // namespace

// A model's config.json, read as each family's, independent of its model_type. An accepted one is written and read back.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::read_or_refuse([&] {
    const json::Value config = parsed(fuzz::text_of(bytes, size));
    const std::string text = config.dump();
    if (fuzz::must([&] { return parsed(text); }).dump() != text) __builtin_trap();
    for (const auto& format :
         {models::llama_hugging_face(), models::qwen2_hugging_face(), models::qwen3_hugging_face(), models::gpt2_hugging_face(),
          models::mistral_hugging_face(), models::smollm3_hugging_face(), models::granite_hugging_face(), models::olmo2_hugging_face(),
          models::phi3_hugging_face(), models::gemma3_hugging_face()})
      read_as(format, config);
    // The same text as any of the files beside it that are read.
    (void)fuzz::must([&] { return models::weights_dtype({.config = text}); });
    fuzz::read_or_refuse([&] { (void)models::dropout_of({.config = text}); });
    fuzz::read_or_refuse([&] {
      (void)models::special_tokens({.config = "", .files = {{"tokenizer.json", text}, {"tokenizer_config.json", text}}});
    });
  });
  return 0;
}

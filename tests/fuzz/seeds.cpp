#include <cmath>
#include <filesystem>

#include "octet/base/file.hpp"
#include "octet/config/sample.test.hpp"
#include "octet/config/write.hpp"
#include "octet/data/compressed.testing.hpp"
#include "octet/data/manifest.hpp"
#include "octet/data/tokenize.hpp"
#include "octet/json/value.hpp"
#include "octet/io/safetensors_writer.hpp"
#include "octet/io/weight_index.hpp"
#include "octet/models/gpt2/hugging_face.hpp"
#include "octet/models/llama/hugging_face.hpp"
#include "octet/models/qwen2/hugging_face.hpp"
#include "octet/models/qwen3/hugging_face.hpp"
#include "octet/ops/gemm/gemm_algorithms.hpp"
#include "octet/telemetry/comparison.hpp"
#include "octet/telemetry/event_line.hpp"
#include "octet/telemetry/run_facts.hpp"
#include "octet/tokenizer/bpe_training.hpp"
#include "octet/tokenizer/pre_tokenizer.hpp"
#include "octet/train/checkpoint/manifest.hpp"

// octet_fuzz_seeds FOLDER: writes FOLDER/<target>/*, good files from which the targets start, each with the writer of its format.

namespace octet::fuzz {
namespace {
namespace fs = std::filesystem;

void put(const std::string& folder, const std::string& name, std::string_view bytes) { write_file(folder + "/" + name, bytes); }

void write_json_lines(const std::string& folder) {
  const std::string lines = "{\"text\": \"one\", \"id\": [1, {\"text\": null}]}\n\n{\"text\": \"\\u00e9\"}\n{\"text\": 3}\n";
  put(folder, "plain", std::string(1, '\0') + lines);
  put(folder, "gzip", '\1' + data::gzip(lines) + data::gzip(lines));
  put(folder, "zstd", '\2' + data::zstd(lines) + data::zstd(lines));
}

void write_toml(const std::string& folder) {
  config::Sample sample;
  put(folder, "sample", config::to_toml(sample));
  put(folder, "comments", config::to_toml(sample, config::Comments::help));
  config::SampleJob job;
  job.plan.stages.resize(2), job.plan.stages[0].parts = {"up"}, job.plan.stages[1].schedule.warmup = 3;
  put(folder, "list", config::to_toml(job));
  put(folder, "sections", "[[plan.stages]]\npath = \"a\"\n[[plan.stages]]\nschedule.warmup = 3\n");
  put(folder, "strings",
      "name = \"\"\"a\n\\u00e9\"\"\"\nkeep = ['x', \"y\"] # why\n[optim]\nlearning_rate = 1e-3\nschedule = { kind = \"linear\", warmup = "
      "0x1F }\n");
  put(folder, "override", "optim.schedule.kind=linear");
}

void write_tensors(const std::string& folder) {
  const std::vector<io::TensorSpec> specs = {{"a", io::StoredDType::f32, {2, 3}}, {"b", io::StoredDType::bf16, {4}},
                                             {"c", io::StoredDType::f16, {}},     {"d.codes", io::StoredDType::e4m3, {3, 1}},
                                             {"e", io::StoredDType::i64, {0, 7}}, {"f", io::StoredDType::f4, {2}}};
  io::SafetensorsWriter writer(folder + "/tensors", specs, {{"format", "pt"}, {"what", "\"quoted\" text"}});
  for (const io::TensorSpec& s : specs) writer.append(s.name, std::vector<std::byte>(std::size_t(*io::stored_bits(s.dtype, s.shape) / 8)));
  writer.commit();
  put(folder, "index", io::weight_index_json({{"a.safetensors", "b.safetensors"}, {{"w", 0}, {"x", 1}}}, 100));
}

void write_tokens(const std::string& folder) {
  const std::string work = folder + "-work";
  fs::create_directories(work + "/text");
  for (const char* name : {"a", "b", "c"}) put(work + "/text", name, std::string(400, *name));
  data::TokenizeOptions options;
  options.shard_bytes = 1024, options.threads = 1;
  data::tokenize({work + "/text/*"}, work + "/out", options);
  for (const auto& entry : fs::directory_iterator(work + "/out"))
    if (entry.path().extension() == ".tok")
      fs::copy(entry.path(), folder + "/" + entry.path().filename().string(), fs::copy_options::overwrite_existing);
  fs::remove_all(work);
}

/// Two small tokenizers, of bytes and of characters, with text.
void write_tokenizers(const std::string& folder) {
  const std::string text = std::string(1, '\0') + "Some text 123\n\xc3\xa4 \xff<|end|> more of it, \xe4\xb8\xad\xe6\x96\x87";
  const tokenizer::TrainedBpe bpe{{"a", "b", " ", "e", "o", "t", "to", "\n"}, {{5, 4}}};
  put(folder, "bytes", tokenizer::tokenizer_json(bpe, std::string(tokenizer::default_pattern), {"<|end|>"}) + text);
  put(folder, "characters",
      R"({"added_tokens":[{"id":0,"content":"<unk>","special":true,"lstrip":true,"rstrip":true,"single_word":true}],"normalizer":{"type":
"Sequence","normalizers":[{"type":"NFKC"},{"type":"Lowercase"},{"type":"Strip","strip_left":true,"strip_right":true},{"type":"Prepend",
"prepend":"\u2581"},{"type":"Replace","pattern":{"String":" "},"content":"\u2581"}]},"pre_tokenizer":{"type":"Sequence","pretokenizers":[
{"type":"Digits","individual_digits":true},{"type":"Split","pattern":{"Regex":"\\p{L}+|\\s"},"behavior":"MergedWithNext","invert":true},{"type":
"Metaspace","replacement":"\u2581","prepend_scheme":"first","split":false}]},"post_processor":{"type":"TemplateProcessing","single":[{
"SpecialToken":{"id":"<unk>"}},{"Sequence":{"id":"A"}}],"special_tokens":{"<unk>":{"ids":[0]}}},"decoder":{"type":"Sequence","decoders":[
{"type":"Replace","pattern":{"String":"\u2581"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,
"stop":0}]},"model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,"ignore_merges":false,"vocab":{"<unk>":0,"\u2581":1,
"t":2,"e":3,"te":4,"<0x41>":5},"merges":["t e"]}})" +
          text);
}

void write_dataset(const std::string& folder) {
  data::Manifest manifest{"byte", 257, 30, 3, {{"0.tok", 20, 2, "00ff"}, {"1.tok", 10, 1, "ff00"}}};
  data::write_manifest(folder, manifest);
  manifest.shards.clear(), manifest.tokens = 1ull << 48;
  fs::rename(folder + "/dataset.toml", folder + "/two");
  data::write_manifest(folder, manifest);
}

void write_model(const std::string& folder) {
  models::ModelShape shape{
      .width = 64, .layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 16, .hidden = 96, .vocabulary = 257, .max_sequence = 128};
  const auto add = [&](const std::string& name, const models::HuggingFaceFormat& format) {
    json::Value config = json::Object();
    format.write(shape, config);
    put(folder, name, config.dump());
  };
  add("llama", models::llama_hugging_face());
  add("qwen2", models::qwen2_hugging_face());
  add("qwen3", models::qwen3_hugging_face());
  add("gpt2", models::gpt2_hugging_face());
  shape.rope_scaling.emplace(), shape.tied = true;
  add("llama3", models::llama_hugging_face());
}

std::vector<telemetry::Event> events() {
  return {
      telemetry::StepEvent{.step = 1, .loss = 2.5, .loss_z = NAN},
      telemetry::ScalesEvent{.step = 1, .amax = {1, 2}, .scale_min = {3, 4}, .scale_max = {5, INFINITY}},
      telemetry::HealthEvent{
          .step = 1, .headroom_bits = {1, 2}, .saturated = {0, 0}, .flushed = {0, 1}, .sqnr_db = {30, NAN}, .nonfinite = {0, 7}},
      telemetry::RanksEvent{.step = 1, .seconds = {1, 2}, .waited = {0.5, NAN}, .slowest = 1, .sent_bytes = 8},
      telemetry::SharedScalesEvent{.step = 1, .mu = {0.5}, .overflow = {0}, .underflow = {NAN}},
      telemetry::EvalEvent{.step = 1, .loss = 2},
      telemetry::IncidentEvent{.step = 2, .kind = "skipped", .path = "a", .text = "b \x1b"},
      telemetry::MachineEvent{.step = 2, .disk_free = 1e9, .epoch = 0.5},
      telemetry::GpusEvent{.step = 2,
                           .utilization = {1},
                           .power = {612},
                           .temperature = {NAN},
                           .sm_clock = {1755},
                           .memory_used = {5e10f},
                           .throttling = {4}},
      telemetry::AlertEvent{.step = 2, .rule = "sqnr", .path = "a.x", .value = 9, .threshold = 10, .window = 2, .text = "b", .remedy = "c"},
      telemetry::EndEvent{.step = 2, .reason = "all steps done"}};
}

void write_events(const std::string& folder) {
  for (const telemetry::Event& event : events()) put(folder, "line" + std::to_string(event.index()), telemetry::event_line(event));
  put(folder, "negative_zero", R"({"event":"eval","step":1,"time":-0.0,"loss":-0e0,"tokens":0})");
}

void write_metrics(const std::string& folder) {
  std::string all;
  for (const telemetry::Event& event : events()) all += telemetry::event_line(event) + "\n";
  put(folder, "all", all);
  put(folder, "torn", all.substr(0, all.size() - 20));
}

void write_facts(const std::string& folder) {
  telemetry::RunFacts facts;
  facts.name = "run", facts.baseline = "bf16", facts.plan = {{"a", "fp8", "why", {2, 3}}},
  facts.quantizers = {{"a", "x", "e4m3", "tensor"}};
  facts.ranks.sent = {{"all_reduce", 2, 64}}, facts.ranks.ran = facts.ranks.planned;
  facts.memory.categories = {{"weights", 7}}, facts.config_json = config::to_json_text(config::Sample());
  telemetry::write_run_facts(folder + "/facts", facts);
}

void write_compared(const std::string& folder) {
  telemetry::Comparison comparison{.baseline = "bf16", .tolerance = 0.005, .runs = {"bf16", "current"}};
  for (const char* recipe : {"bf16", "current"}) {
    telemetry::ComparisonRow& row = comparison.rows.emplace_back();
    row.recipe = recipe, row.eval_loss = 2.5, row.gradient_cosine = NAN, row.memory = {{{"weights", 7}}, 9};
  }
  telemetry::write_comparison(folder + "/comparison", comparison);
}

/// Patterns of Octet's own, each with a text; texts longer than a message shows, without a place to cut them.
void write_wildcards(const std::string& folder) {
  int n = 0;
  for (const std::string pattern : {"layers.*.mlp.?", ".octet-[0-9]*-[!a-z]*.tmp", "[]a-]\\*[^x]**", "[ab"})
    put(folder, std::to_string(n++), char(pattern.size()) + pattern + ".octet-1-2.tmp \xe2\x80\xae\x1b");
  put(folder, "cut_at_the_end", std::string("\0text", 5));
  put(folder, "cut_nowhere", std::string(1, '\x1e') + std::string(200, '\x80'));
}

void write_plans(const std::string& folder) {
  ops::GemmAlgorithms plans;
  plans.store({.M = 16, .N = 32, .K = 64}, {.config = {1, 2, ~0ull}, .workspace_bytes = 1 << 20, .microseconds = 12.3});
  plans.store({.M = 1, .N = 1, .K = 1, .a = DType::e4m3, .a_scale = ops::GemmScale::row, .fast = true, .alignment = 16}, {});
  put(folder, "plans", plans.text("cuBLASLt 13.0, H100"));
  put(folder, "long_time", "m\nf = 0 0 0 0 0 0 0 0 0 1.7e80\n");
}

void write_manifest(const std::string& folder) {
  put(folder, "manifest",
      train::manifest_text({.step = 3, .config = "seed = 1\n", .text = "0", .files = {{"state.safetensors", 100, {1, 2}}}}));
}

}  // namespace
}  // namespace octet::fuzz

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  const auto make = [&](const char* target, void (*write)(const std::string&)) {
    std::filesystem::create_directories(folder + "/" + target);
    write(folder + "/" + target);
  };
  make("toml", octet::fuzz::write_toml);
  make("safetensors", octet::fuzz::write_tensors);
  make("token_folder", octet::fuzz::write_tokens);
  make("tokenizer", octet::fuzz::write_tokenizers);
  make("dataset_manifest", octet::fuzz::write_dataset);
  make("model_config", octet::fuzz::write_model);
  make("metrics", octet::fuzz::write_metrics);
  make("event_line", octet::fuzz::write_events);
  make("run_facts", octet::fuzz::write_facts);
  make("comparison", octet::fuzz::write_compared);
  make("manifest", octet::fuzz::write_manifest);
  make("wildcard", octet::fuzz::write_wildcards);
  make("gemm_plans", octet::fuzz::write_plans);
  make("json_lines", octet::fuzz::write_json_lines);
  return 0;
}

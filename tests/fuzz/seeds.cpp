#include <cmath>
#include <filesystem>

#include "octet/base/file.hpp"
#include "octet/config/sample.test.hpp"
#include "octet/config/write.hpp"
#include "octet/data/tokenize.hpp"
#include "octet/io/safetensors_writer.hpp"
#include "octet/io/weight_index.hpp"
#include "octet/telemetry/event_line.hpp"
#include "octet/telemetry/run_facts.hpp"
#include "octet/train/checkpoint/manifest.hpp"

// octet_fuzz_seeds FOLDER: writes FOLDER/<target>/*, good files from which the targets start, each with the writer of its format.

namespace octet::fuzz {
namespace {
namespace fs = std::filesystem;

void put(const std::string& folder, const std::string& name, std::string_view bytes) { write_file(folder + "/" + name, bytes); }

void write_toml(const std::string& folder) {
  config::Sample sample;
  put(folder, "sample", config::to_toml(sample));
  put(folder, "comments", config::to_toml(sample, config::Comments::help));
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
    if (entry.is_regular_file())
      fs::copy(entry.path(), folder + "/" + entry.path().filename().string(), fs::copy_options::overwrite_existing);
  fs::remove_all(work);
}

void write_metrics(const std::string& folder) {
  std::string all;
  const std::vector<Event> events = {
      StepEvent{.step = 1, .loss = 2.5, .loss_z = NAN},
      ScalesEvent{.step = 1, .amax = {1, 2}, .scale_min = {3, 4}, .scale_max = {5, INFINITY}},
      HealthEvent{.step = 1, .headroom_bits = {1, 2}, .saturated = {0, 0}, .flushed = {0, 1}, .sqnr_db = {30, NAN}, .nonfinite = {0, 7}},
      EvalEvent{.step = 1, .loss = 2},
      IncidentEvent{.step = 2, .kind = "skipped", .path = "a", .text = "b \x1b"},
      EndEvent{.step = 2, .reason = "all steps done"}};
  for (const Event& event : events) {
    const std::string line = event_line(event) + "\n";
    put(folder, "line" + std::to_string(event.index()), line);
    all += line;
  }
  put(folder, "all", all);
  put(folder, "torn", all.substr(0, all.size() - 20));
  RunFacts facts;
  facts.name = "run", facts.plan = {{"a", "fp8", "why", {2, 3}}}, facts.quantizers = {{"a", "x", "e4m3", "tensor"}},
  facts.memory.categories = {{"weights", 7}};
  write_run_facts(folder + "/facts", facts);
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
  make("metrics", octet::fuzz::write_metrics);
  make("manifest", octet::fuzz::write_manifest);
  return 0;
}

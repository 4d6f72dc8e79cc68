#include <cstring>
#include <filesystem>

#include "octet/io/safetensors_file.hpp"
#include "octet/io/safetensors_writer.hpp"
#include "octet/train/checkpoint/manifest.hpp"
#include "tests/bad_input/case.hpp"

namespace octet::bad_input {
namespace {
namespace fs = std::filesystem;

const std::string older = "run/checkpoints/step-000000001", newest = "run/checkpoints/step-000000002";
const std::string manifest = newest + "/MANIFEST.json", state = newest + "/state.safetensors";
const std::string restore = "restore it from a copy, or start a new run without --resume";

/// A case that resumes a run of one checkpoint that was changed.
Case changed(std::string name, std::vector<std::string> says, std::function<void(const Place&)> change) {
  return {"checkpoint_" + std::move(name), "train --resume run --steps 3", ExitCode::data, std::move(says), [change](const Place& p) {
            p.take("run");
            change(p);
            fs::remove_all(p.at(older));
          }};
}

/// The same, with a manifest that fits.
Case forged(std::string name, std::vector<std::string> says, std::function<void(const Place&, train::Manifest&)> change) {
  return changed(std::move(name), std::move(says), [change](const Place& p) {
    train::Manifest m = train::parse_manifest(p.bytes(manifest), manifest);
    change(p, m);
    p.write(manifest, train::manifest_text(m));
  });
}

/// The same, with another state and its checksum.
Case stated(std::string name, std::vector<std::string> says, std::function<void(const Place&)> change) {
  return forged(std::move(name), std::move(says), [change](const Place& p, train::Manifest& m) {
    change(p);
    m.files[0].bytes = p.bytes(state).size(), m.files[0].checksum = data::checksum_of(p.bytes(state));
  });
}

/// The same, with another value of one number of the state.
Case numbered(std::string name, const std::string& tensor, std::int64_t value, std::vector<std::string> says) {
  return stated(std::move(name), std::move(says), [tensor, value](const Place& p) {
    const auto file = io::SafetensorsFile::open(p.at(state));
    const auto offset = file.find(tensor)->bytes.data() - file.tensors().front().bytes.data();
    std::string bytes = p.bytes(state);
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    std::memcpy(bytes.data() + sizeof header + header + offset, &value, sizeof value);
    p.write(state, bytes);
  });
}

/// The text of a manifest as a later program might write it, its checksum right.
std::string of_format_two(std::string text) {
  const std::string format = "\"format\": 1", sum = ",\n  \"xxh3\": \"";
  text.replace(text.find(format), format.size(), "\"format\": 2");
  const std::string body = text.substr(0, text.rfind(sum)) + "\n}";
  return body.substr(0, body.size() - 2) + sum + data::to_text(data::checksum_of(body)) + "\"\n}\n";
}

std::vector<Case> damaged() {
  return {
      changed("without_manifest", {"'" + manifest + "'", restore}, [](const Place& p) { fs::remove(p.at(manifest)); }),
      changed("manifest_empty", {manifest, "cut off", restore}, [](const Place& p) { fs::resize_file(p.at(manifest), 0); }),
      changed("manifest_cut_off", {manifest, "cut off", restore}, [](const Place& p) { p.cut(manifest, 1); }),
      changed("manifest_damaged", {manifest, "damaged", restore}, [](const Place& p) { p.flip(manifest, 40); }),
      changed("manifest_of_another_step", {manifest, "belongs to step 1", restore},
              [](const Place& p) { p.write(manifest, p.bytes(older + "/MANIFEST.json")); }),
      changed("manifest_of_a_gigabyte", {manifest, "at most 16,777,216 bytes", restore},
              [](const Place& p) { fs::resize_file(p.at(manifest), 1 << 30); }),
      changed("state_missing", {"'" + state + "'", restore}, [](const Place& p) { fs::remove(p.at(state)); }),
      changed("state_cut_off", {state, "cut off", restore}, [](const Place& p) { p.cut(state, 1); }),
      changed("state_damaged", {state, "damaged", restore}, [](const Place& p) { p.flip(state, 5000); }),
      changed("state_of_another_step", {state, "replaced", restore},
              [](const Place& p) { p.write(state, p.bytes(older + "/state.safetensors")); }),
      changed("state_that_is_a_link", {state, "symbolic link", restore},
              [](const Place& p) { fs::rename(p.at(state), p.at("s")), fs::create_symlink(p.at("s"), p.at(state)); }),
      changed("that_is_a_file", {"'" + manifest + "'", "Not a directory", restore},
              [](const Place& p) { fs::remove_all(p.at(newest)), p.write(newest, ""); }),
      changed("and_the_one_before_it_damaged", {"none of the 2 checkpoints", manifest, restore},
              [](const Place& p) {
                p.flip(manifest, 40);
                fs::rename(p.at(older), p.at("run/checkpoints/step-000000000"));
              }),
  };
}

std::vector<Case> of_other_origin() {
  return {
      changed("manifest_of_a_future_format", {manifest, "format 2", "use a newer octet", restore},
              [](const Place& p) { p.write(manifest, of_format_two(p.bytes(manifest))); }),
      forged("manifest_that_leads_outside", {manifest, "name", restore},
             [](const Place&, train::Manifest& m) { m.files[0].name = "../state.safetensors"; }),
      forged("manifest_of_no_files", {manifest, "files", restore}, [](const Place&, train::Manifest& m) { m.files.clear(); }),
      forged("configuration_unreadable", {manifest, "not TOML", "start a new run without --resume"},
             [](const Place&, train::Manifest& m) { m.config = "[["; }),
      forged("configuration_of_the_future", {manifest, "unknown key `colour`", "start a new run without --resume"},
             [](const Place&, train::Manifest& m) { m.config = "colour = 1\n"; }),
      forged("of_another_text", {"data.path = \"data\"", "another text", newest, "name the dataset"},
             [](const Place&, train::Manifest& m) { m.text = "0"; }),
      stated("state_of_another_model", {state, "engine.", "another model", "start a new run without --resume"},
             [](const Place& p) {
               io::SafetensorsWriter writer(p.at(state), {{"engine.model.embedding.weight", io::StoredDType::f32, {1}}});
               writer.append("engine.model.embedding.weight", std::vector<std::byte>(4));
               writer.commit();
             }),
      stated("state_with_a_hostile_header", {state, "bytes 0 to 7"}, [](const Place& p) { p.write(state, std::string(16, '\xff')); }),
  };
}

std::vector<Case> of_other_numbers() {
  return {
      numbered("state_before_the_first_sample", "data.next_sample", -1, {state, "data.next_sample = -1: must be from 0", restore}),
      numbered("state_of_no_record", "metrics.bytes", 0, {state, "metrics.bytes = 0", "of step 2", restore}),
      numbered("state_of_half_a_line", "metrics.bytes", 100, {"run/metrics.jsonl", "no line ends after 100 bytes", "restore"}),
      numbered("state_of_another_number", "run.step", 1, {state, "run.step = 1", "of step 2", restore}),
      numbered("state_below_zero", "run.skipped", -7, {state, "run.skipped = -7: must be from 0", restore}),
      numbered("state_without_width", "run.rates.width", 0, {state, "run.rates.width = 0: must be from 1", restore}),
  };
}

std::vector<Case> of_runs() {
  constexpr ExitCode usage = ExitCode::usage, data = ExitCode::data, io = ExitCode::io;
  const auto run = [](const Place& p) { p.take("run"); };
  return {
      {"resume_nowhere", "train --resume nowhere", usage, {"--resume", "no run folder nowhere", "check the path"}},
      {"resume_of_a_run_that_never_was", "train tiny.toml --resume", usage, {"--resume", "no run runs/bf16", "leave --resume out"}},
      {"resume_of_a_folder_without_a_run", "train --resume data", usage, {"data/config.toml", "name that of a run"}},
      {"resume_of_another_model",
       "train --resume run --set model.width=128",
       usage,
       {"model.width = 128 (it was 64)", "without --resume"},
       run},
      {"resume_of_another_recipe", "train --resume run --fp8 mxfp8", usage, {"recipe.name", "without --resume"}, run},
      {"resume_of_a_broken_configuration",
       "train --resume run",
       usage,
       {"run/config.toml:1:", "not TOML"},
       [](const Place& p) { p.take("run"), p.write("run/config.toml", "[["); }},
      {"resume_of_cut_metrics",
       "train --resume run --steps 3",
       data,
       {"run/metrics.jsonl", "when the checkpoint was made", "restore"},
       [](const Place& p) { p.take("run"), fs::resize_file(p.at("run/metrics.jsonl"), 10); }},
      {"resume_of_damaged_facts",
       "train --resume run --steps 3",
       data,
       {"run/run.json", "not valid JSON", "restore"},
       [](const Place& p) { p.take("run"), p.write("run/run.json", "{"); }},
      {"resume_where_checkpoints_are_a_file",
       "train --resume run --steps 3",
       io,
       {"run/checkpoints", "Not a directory"},
       [](const Place& p) { p.take("run"), fs::remove_all(p.at("run/checkpoints")), p.write("run/checkpoints", ""); }},
  };
}

}  // namespace

std::vector<Case> checkpoints() { return all_of({damaged(), of_other_origin(), of_other_numbers(), of_runs()}); }

}  // namespace octet::bad_input

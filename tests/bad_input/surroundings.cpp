#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "octet/io/safetensors_writer.hpp"
#include "tests/bad_input/case.hpp"

// Faults in the surroundings of the program: descriptors, devices, pipes, limits, links, permissions, names, for every subcommand.

namespace octet::bad_input {
namespace {
namespace fs = std::filesystem;

constexpr ExitCode usage = ExitCode::usage, data = ExitCode::data, io = ExitCode::io, device = ExitCode::device;

void take_run(const Place& p) { p.take("run"); }

/// Subcommands whose result goes to standard output.
struct Printing {
  const char *name, *line;
};
constexpr Printing printing[] = {{"eval", "eval run --data data --sequence 32 --held-out 0.25"},
                                 {"generate", "generate run --prompt count --tokens 2"},
                                 {"plan", "plan tiny.toml"},
                                 {"doctor", "doctor"},
                                 {"inspect", "inspect run"},
                                 {"inspect_number", "inspect 0.3"},
                                 {"help", "--help"},
                                 {"help_of_train", "train --help"}};

/// Each subcommand, with a path that it reads in the place of PATH.
constexpr Printing reading[] = {{"train", "train PATH"},
                                {"train_data", "train tiny.toml --data PATH"},
                                {"train_resume", "train --resume PATH"},
                                {"train_output", "train tiny.toml --output PATH"},
                                {"compare", "compare PATH"},
                                {"compare_resume", "compare --resume PATH"},
                                {"plan", "plan PATH"},
                                {"eval", "eval PATH --data data"},
                                {"generate", "generate PATH"},
                                {"export", "export PATH --output there"},
                                {"report", "report PATH"},
                                {"report_output", "report run -o PATH"},
                                {"inspect", "inspect PATH"},
                                {"bench_json", "bench gemm --json PATH"},
                                {"bench_svg", "bench allreduce --device cpu --bytes 4K --quality-ranks 2 --svg PATH"},
                                {"bench_trace", "bench scaling --device cpu --trace PATH"}};

std::string with_path(std::string line, const std::string& path) { return line.replace(line.find("PATH"), 4, path); }

void put_pipe(const Place& p, const std::string& name) {
  fs::remove_all(p.at(name));
  ::mkfifo(p.at(name).c_str(), 0600);
}

void put_loop(const Place& p) {
  take_run(p);
  fs::create_symlink("loop2", p.at("loop")), fs::create_symlink("loop", p.at("loop2"));
}

/// The weights of the run unchanged, except one value that is not a number.
void put_nan(const Place& p) {
  p.take("model");
  std::string bytes = p.bytes("model/model.safetensors");
  const std::string nan("\0\0\xc0\x7f", 4);
  p.write("model/model.safetensors", bytes.replace(bytes.size() - 4, 4, nan));
}

/// Weights that are finite, and whose products are not.
void put_largest(const Place& p) {
  p.take("model");
  const std::string name = "model/model.safetensors";
  std::string bytes = p.bytes(name);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const float largest = 3e38f;
  for (std::size_t at = sizeof header + header; at + sizeof largest <= bytes.size(); at += sizeof largest)
    std::memcpy(bytes.data() + at, &largest, sizeof largest);
  p.write(name, bytes);
}

std::vector<Case> of_descriptors() {
  std::vector<Case> all;
  for (const Printing& p : printing) {
    const std::string name = p.name, remedy = name.starts_with("help") ? "standard output" : "No space left";
    all.push_back({"output_full_" + name, p.line, io, {"standard output", remedy}, take_run, "octet >/dev/full"});
    all.push_back({"output_closed_" + name, p.line, io, {"standard output", "write"}, take_run, "octet >&-"});
  }
  all.push_back({"output_and_input_closed", "inspect 0.3", io, {"standard output", "Bad file descriptor"}, nullptr, "octet <&- >&-"});
  all.push_back(
      {"no_descriptor_is_free", "train tiny.toml --quiet", io, {"Too many open files", "ulimit -n"}, nullptr, "ulimit -n 5; octet"});
  return all;
}

std::vector<Case> of_special_files() {
  const std::string no_file = "not a regular file";
  std::vector<Case> all = {
      {"pipe_as_configuration",
       "train pipe",
       usage,
       {"pipe: is a pipe", no_file, "name a TOML file"},
       [](const Place& p) { put_pipe(p, "pipe"); }},
      {"pipe_as_configuration_of_plan", "plan pipe", usage, {"pipe: is a pipe", no_file}, [](const Place& p) { put_pipe(p, "pipe"); }},
      {"pipe_as_configuration_of_compare",
       "compare pipe",
       usage,
       {"pipe: is a pipe", no_file},
       [](const Place& p) { put_pipe(p, "pipe"); }},
      {"device_as_configuration", "train /dev/zero", usage, {"/dev/zero: is a device", no_file}},
      {"pipe_as_dataset",
       "train tiny.toml",
       data,
       {"data/dataset.toml: is a pipe", "octet tokenize"},
       [](const Place& p) { put_pipe(p, "data/dataset.toml"); }},
      {"pipe_as_dataset_to_inspect",
       "inspect data",
       data,
       {"data/dataset.toml: is a pipe", "octet tokenize"},
       [](const Place& p) { put_pipe(p, "data/dataset.toml"); }},
      {"pipe_as_model_configuration",
       "eval model --data data",
       data,
       {"model/config.json: is a pipe", "fetch it again"},
       [](const Place& p) { p.take("model"), put_pipe(p, "model/config.json"); }},
      {"pipe_as_weights",
       "generate model",
       data,
       {"model/model.safetensors: is a pipe", no_file},
       [](const Place& p) { p.take("model"), put_pipe(p, "model/model.safetensors"); }},
      {"pipe_as_manifest",
       "train --resume run --steps 3",
       data,
       {"MANIFEST.json: is a pipe", "start a new run"},
       [](const Place& p) {
         take_run(p), fs::remove_all(p.at("run/checkpoints/step-000000001")), put_pipe(p, "run/checkpoints/step-000000002/MANIFEST.json");
       }},
      {"pipe_as_facts",
       "report run",
       data,
       {"run/run.json: is a pipe", "restore"},
       [](const Place& p) { take_run(p), put_pipe(p, "run/run.json"); }},
      {"pipe_as_metrics",
       "report run",
       data,
       {"run/metrics.jsonl: is a pipe", "restore"},
       [](const Place& p) { take_run(p), put_pipe(p, "run/metrics.jsonl"); }},
      {"pipe_as_comparison",
       "report study",
       data,
       {"study/compare.json: is a pipe", "restore"},
       [](const Place& p) { p.write("study/x", ""), put_pipe(p, "study/compare.json"); }},
      {"pipe_as_study",
       "compare --resume study",
       usage,
       {"study/study.toml: is a pipe", "restore"},
       [](const Place& p) { p.write("study/x", ""), put_pipe(p, "study/study.toml"); }},
      {"pipe_to_inspect", "inspect pipe", data, {"pipe: is a pipe", no_file}, [](const Place& p) { put_pipe(p, "pipe"); }},
      {"device_to_inspect", "inspect /dev/zero", data, {"/dev/zero: is a device", no_file}},
      {"pipe_as_text",
       "tokenize -i pipe -o there",
       usage,
       {"'pipe' is not a plain file", "copy its text"},
       [](const Place& p) { put_pipe(p, "pipe"); }},
      {"socket_as_configuration",
       "train socket",
       usage,
       {"socket: is a socket", no_file},
       [](const Place& p) {
         const fs::path before = fs::current_path();
         fs::current_path(p.folder());  // a socket's name has at most 107 characters
         const sockaddr_un name{.sun_family = AF_UNIX, .sun_path = "socket"};
         const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
         ::bind(socket, reinterpret_cast<const sockaddr*>(&name), sizeof name), ::close(socket);
         fs::current_path(before);
       }},
      {"report_to_a_full_device",
       "report run -o full",
       io,
       {"/dev/full", "No space left"},
       [](const Place& p) { take_run(p), fs::create_symlink("/dev/full", p.at("full")); }},
      {"report_to_a_device_directly", "report run -o /dev/full", io, {"/dev/full", "No space left"}, take_run},
      {"export_to_a_device", "export run -o /dev/null", io, {"/dev/null", "make the folder"}, take_run},
      {"tokens_to_a_device", "tokenize -i text/*.txt -o /dev/null", io, {"/dev/null", "another --output"}},
      {"runs_to_a_device", "train tiny.toml --output /dev/null", io, {"/dev/null", "--set output=FOLDER"}},
  };
  return all;
}

std::vector<Case> of_paths() {
  std::vector<Case> all;
  const std::string longer(5000, 'a');
  for (const Printing& r : reading) {
    all.push_back({std::string("loop_of_links_") + r.name, with_path(r.line, "loop"), io, {"loop", "links lead in a circle"}, put_loop});
    const bool number = std::string_view(r.name) == "inspect";
    all.push_back({std::string("five_thousand_characters_") + r.name,
                   with_path(r.line, longer),
                   number ? usage : io,
                   {"aaa...aaa", number ? "4096" : "shorten the path"},
                   take_run});
  }
  all.push_back({"five_thousand_characters_tokenize", "tokenize -i text/*.txt -o " + longer, io, {"aaa...aaa", "shorten the path"}});
  all.push_back({"five_thousand_characters_as_a_name", "train tiny.toml --name " + longer, io, {"aaa", "File name too long"}});
  all.push_back({"number_of_120000_digits", "inspect " + std::string(120000, '7'), usage, {"777...777", "check it"}});
  all.push_back({"name_not_utf8", "train tiny.toml --name \xff", usage, {"--name \\xff", "not UTF-8"}});
  all.push_back({"output_not_utf8", "train tiny.toml --output o\xc3(", usage, {"--output o\\xc3(", "not UTF-8"}});
  all.push_back({"data_not_utf8", "train tiny.toml --data \xe9t\xe9", usage, {"--data \\xe9t\\xe9", "not UTF-8"}});
  all.push_back({"comparison_not_utf8", "compare tiny.toml --name \xff", usage, {"--name \\xff", "not UTF-8"}});
  all.push_back({"direction_marks_in_a_path", "train \xe2\x80\xae.toml", usage, {"\\u202e.toml", "check the path"}});
  all.push_back({"raw_bytes_in_a_path", "inspect \xff\xfe", usage, {"\\xff\\xfe", "check the path"}});
  all.push_back({"raw_bytes_in_a_key", "train tiny.toml --set \xff=1", usage, {"--set \\xff=1", "not UTF-8"}});
  all.push_back(
      {"name_with_a_nul", "train bad.toml", usage, {"bad.toml:1:8: ", "`name`", "NUL"}, with_file("bad.toml", "name = \"a\\u0000b\"\n")});
  all.push_back(
      {"name_with_a_line_break", "train bad.toml", usage, {"name = \"a\\x0ab\"", "without control characters"}, [](const Place& p) {
         p.write("bad.toml", "name = \"a\\nb\"\n" + p.bytes("tiny.toml"));
       }});
  for (const char* line : {"train \"\"", "train tiny.toml --fp8 \"\"", "train tiny.toml --fp8=", "train --resume \"\"",
                           "plan --matrix \"\"", "plan \"\"", "compare \"\"", "eval \"\" --data data", "generate \"\"",
                           "export \"\" -o there", "report \"\"", "inspect \"\"", "train tiny.toml --data \"\"",
                           "tokenize -i \"\" -o there", "tokenize -i text/0.txt -o \"\"", "train tiny.toml --name \"\"", "bench \"\""})
    all.push_back({"empty_path_" + std::to_string(all.size()), line, usage, {"must not be empty", "--help"}});
  return all;
}

std::vector<Case> of_limits() {
  std::vector<Case> all;
  for (const Printing& r : {Printing{"train", "train tiny.toml"}, Printing{"compare", "compare tiny.toml"},
                            Printing{"tokenize", "tokenize -i text/*.txt -o there"}, Printing{"eval", "eval run --data data"},
                            Printing{"generate", "generate run"}, Printing{"export", "export run -o there"},
                            Printing{"report", "report run"}, Printing{"inspect", "inspect run"}, Printing{"plan", "plan tiny.toml"},
                            Printing{"bench", "bench gemm"}, Printing{"doctor", "doctor"}})
    all.push_back({std::string("stack_of_64_KiB_") + r.name, r.line, device, {"1 MiB", "ulimit -s"}, take_run, "ulimit -s 64; octet"});
  for (const Printing& r : {Printing{"train", "train tiny.toml"}, Printing{"compare", "compare tiny.toml"},
                            Printing{"eval", "eval run --data data --sequence 32 --held-out 0.25"}, Printing{"generate", "generate run"},
                            Printing{"export", "export run -o there"}, Printing{"bench", "bench gemm"}})
    all.push_back({std::string("one_process_") + r.name,
                   r.line,
                   device,
                   {"thread", "ulimit -u"},
                   [](const Place& p) {
                     take_run(p);
                     fs::permissions(p.folder(), fs::perms::all);
                     for (const auto& entry : fs::recursive_directory_iterator(p.folder())) fs::permissions(entry.path(), fs::perms::all);
                   },
                   "ulimit -u 1; octet",
                   true});
  all.push_back({"address_space", "train tiny.toml", device, {"address space", "ulimit -v"}, nullptr, "ulimit -v 400000; octet"});
  all.push_back({"file_size_of_a_run", "train tiny.toml --quiet", io, {"runs/bf16/", "ulimit -f"}, nullptr, "ulimit -f 1; octet"});
  all.push_back({"file_size_of_a_report", "report run -o page.html", io, {"page.html", "ulimit -f"}, take_run, "ulimit -f 4; octet"});
  all.push_back({"file_size_of_ranks",
                 "launch --device cpu --ranks 2 train tiny.toml",
                 io,
                 {"8.00 MiB", "ulimit -f"},
                 nullptr,
                 "ulimit -f 1; octet"});
  all.push_back({"file_size_of_weights", "export run -o there", io, {"there", "ulimit -f"}, take_run, "ulimit -f 16; octet"});
  return all;
}

std::vector<Case> of_permissions() {
  const auto closed = [](const std::string& name) {
    return [name](const Place& p) {
      take_run(p);
      p.take("model");
      fs::permissions(p.folder(), fs::perms::all);
      fs::permissions(p.at(name), fs::perms::none);
    };
  };
  const auto refused = [&](std::string name, std::string line, std::string what) {
    return Case{"closed_" + std::move(name), std::move(line), io, {what, "Permission denied", "permissions"}, closed(what), "octet", true};
  };
  return {
      refused("configuration", "train tiny.toml", "tiny.toml"),
      refused("data", "train tiny.toml", "data"),
      refused("data_of_eval", "eval model --data data --sequence 32", "data"),
      refused("dataset", "inspect data", "data/dataset.toml"),
      refused("run", "report run", "run"),
      refused("run_to_inspect", "inspect run", "run"),
      refused("run_to_resume", "train --resume run", "run"),
      refused("comparison_to_resume", "compare --resume run", "run"),
      refused("model", "eval model --data data", "model"),
      refused("weights", "export model -o there", "model/model.safetensors"),
      refused("record", "report run -o page.html", "run/metrics.jsonl"),
  };
}

std::vector<Case> of_values() {
  return {
      {"eps_that_is_0_in_f32", "train tiny.toml --set optim.eps=1e-300", usage, {"optim.eps = 1e-300", "0 in f32", "choose"}},
      {"rate_that_is_0_in_f32",
       "train tiny.toml --set optim.learning_rate=1e-300",
       usage,
       {"optim.learning_rate = 1e-300", "0 in f32", "choose"}},
      {"rate_that_is_infinite_in_f32",
       "train tiny.toml --set optim.learning_rate=1e300",
       usage,
       {"optim.learning_rate = 1e+300", "infinite in f32", "choose"}},
      {"decay_that_is_infinite_in_f32",
       "train tiny.toml --set optim.weight_decay=1e39",
       usage,
       {"optim.weight_decay = 1e+39", "infinite in f32", "choose"}},
      {"norm_that_is_0_in_f32",
       "train tiny.toml --set optim.max_grad_norm=1e-60",
       usage,
       {"optim.max_grad_norm = 1e-60", "0 in f32", "choose"}},
      {"steps_of_too_many_tokens",
       "train tiny.toml --set data.eval_fraction=0 --set data.sequence_length=1000000000000 --set train.batch=65536 --set "
       "train.accumulate=65536",
       usage,
       {"data.sequence_length = 1000000000000", "shorten it"}},
      {"seeds_beyond_64_bits",
       "compare tiny.toml --seeds 3 --set seed=9223372036854775806",
       usage,
       {"seed = 9223372036854775806", "--seeds 3", "smaller"}},
      {"pattern_without_a_layer",
       "train tiny.toml --fp8 --set recipe.keep_bf16=[\"nosuchlayer\"]",
       usage,
       {"recipe.keep_bf16: \"nosuchlayer\" matches no layer", "layers are layers.*.attn.qkv"}},
      {"pattern_with_a_slip",
       "plan tiny.toml --fp8 --set recipe.keep_bf16=[\"layers.*.mpl.down\"]",
       usage,
       {"\"layers.*.mpl.down\" matches no layer", "did you mean \"layers.*.mlp.down\"?"}},
      {"pattern_with_a_range",
       "train tiny.toml --fp8 --set recipe.keep_bf16=[\"layers.[0-12].mlp.down\"]",
       usage,
       {"\"layers.[0-12].mlp.down\" matches no layer", "did you mean \"layers.*.mlp.down\"?"}},
      {"rule_with_a_set",
       "train tiny.toml --fp8 --set recipe.rules=[{path=\"layers.[0].mlp.down\",format=\"e4m3\"}]",
       usage,
       {"\"layers.[0].mlp.down\" matches no layer", "did you mean \"layers.*.mlp.down\"?"}},
      {"pattern_of_a_comparison",
       "compare tiny.toml --recipes current --set recipe.keep_bf16=[\"head\"]",
       usage,
       {"\"head\" matches no layer", "layers are"}},
      {"baseline_in_8_bits", "compare tiny.toml --baseline current", usage, {"--baseline", "bf16"}},
      {"comparison_with_fp8", "compare tiny.toml --fp8 current", usage, {"--fp8", "--recipes"}},
      {"less_than_a_byte", "tokenize -i text/*.txt -o there --max-mb 1e-9", usage, {"--max-mb 1e-09", "less than one byte", "0 takes all"}},
      {"configuration_after_fp8", "train --fp8 tiny.toml", usage, {"--fp8 tiny.toml", "write the configuration before it"}},
      {"command_in_upper_case", "TRAIN tiny.toml", usage, {"no command `TRAIN`", "did you mean `train`?"}},
      {"file_of_a_dataset_as_data",
       "train tiny.toml --data data/dataset.toml",
       usage,
       {"'data/dataset.toml' is a file of a token folder", "--data data"}},
      {"text_as_data", "train tiny.toml --data text", usage, {"'text' is a folder of other files", "octet tokenize --input 'text/**/*'"}},
      {"tokens_of_others_as_data",
       "train tiny.toml --data train.bin",
       usage,
       {"data.sequence_length = ", "needs ", "tokenize more text"},
       [](const Place& p) { p.write("train.bin", "1234"); }},
      {"one_text_as_data", "train tiny.toml --data text/0.txt", usage, {"'text/0.txt' is a file", "octet tokenize --input text/0.txt"}},
      {"format_without_effect_and_unknown", "generate run --format banana", usage, {"--format", "banana"}, take_run},
      {"vocabulary_of_a_plan", "plan tiny.toml --set model.vocabulary=1", usage, {"token ids up to 256", "model.vocabulary"}},
      {"text_that_does_not_end",
       "train bad.toml",
       usage,
       {"bad.toml:2:", "does not end on its line"},
       with_file("bad.toml", "[data]\npath = \"data\n")},
      {"quoted_key_twice",
       "train bad.toml",
       usage,
       {"bad.toml:2:", "'a b' is there already", "only once"},
       with_file("bad.toml", "\"a b\" = 1\n\"a b\" = 2\n")},
      {"finished_run_without_its_record",
       "inspect run",
       data,
       {"run/metrics.jsonl: the file is missing", "restore"},
       [](const Place& p) { take_run(p), fs::remove(p.at("run/metrics.jsonl")); }},
      {"weight_that_is_no_number_eval",
       "eval model --data data --sequence 32 --held-out 0.25",
       data,
       {"model: tensor \"", "not finite", "fetch"},
       put_nan},
      {"weights_whose_squares_are_not_finite",
       "eval model --data data --sequence 32 --held-out 0.25",
       data,
       {"model: the values before layers.0.norm1.weight", "not finite", "fetch"},
       put_largest},
      {"evaluation_of_a_run_without_its_data",
       "eval run",
       usage,
       {"data.path: there is no folder 'data'", "--data", "octet tokenize"},
       [](const Place& p) { take_run(p), fs::remove_all(p.at("data")); }},
      {"weight_that_is_no_number_generate", "generate model", data, {"model: tensor \"", "not finite", "fetch"}, put_nan},
      {"weight_that_is_no_number_export", "export model -o there", data, {"model: tensor \"", "not finite", "fetch"}, put_nan},
  };
}

}  // namespace

std::vector<Case> surroundings() {
  return all_of({of_descriptors(), of_special_files(), of_paths(), of_limits(), of_permissions(), of_values()});
}

}  // namespace octet::bad_input

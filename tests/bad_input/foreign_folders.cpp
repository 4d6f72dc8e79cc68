#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "octet/base/text.hpp"
#include "octet/tokenizer/bpe_training.hpp"
#include "octet/tokenizer/pre_tokenizer.hpp"
#include "tests/bad_input/case.hpp"

// Folders that another user could have prepared: links in them, and programs that their configurations name.

namespace octet::bad_input {
namespace {
namespace fs = std::filesystem;

constexpr const char* resume = "train --resume run --steps 3 --quiet";

// `name` becomes a link to its file, which moves out of the folder.
void lead_outside(const Place& p, const std::string& name) {
  if (fs::exists(p.at(name))) fs::rename(p.at(name), p.at("outside"));
  else p.write("outside", "kept");
  fs::create_symlink(p.at("outside"), p.at(name));
}

Case linked(std::string name, std::string line, const std::string& file,
            std::vector<std::string> says = {"symbolic link is not followed"}) {
  says.push_back(file);
  return {"link_" + std::move(name), std::move(line), ExitCode::data, std::move(says),
          [file](const Place& p) { p.take("run"), lead_outside(p, file); }};
}

void write_command(const Place& p) { p.take("run"), p.edit("run/config.toml", "command = []", "command = [\"touch\", \"ran\"]"); }

std::vector<Case> of_links() {
  std::vector<Case> all;
  for (const char* file : {".lock", "metrics.jsonl", "config.toml", "run.json", "report.html", "weights", "checkpoints"}) {
    std::string word = file;
    std::erase_if(word, [](char c) { return c == '.'; });
    all.push_back(linked(word + "_to_resume", resume, format("run/{}", file)));
  }
  all.push_back(linked("of_the_report", "report run", "run/report.html"));
  all.push_back(linked("of_the_facts", "report run", "run/run.json"));
  all.push_back(linked("of_the_metrics", "report run", "run/metrics.jsonl"));
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
    all.push_back({"link_of_" + std::string(file).substr(0, std::string(file).find('.')),
                   "tokenize --input text/*.txt --output there --tokenizer t",
                   ExitCode::data,
                   {"t: '" + std::string(file) + "' is a symbolic link out of the folder", "put the file itself there"},
                   [file](const Place& p) {
                     p.write("t/tokenizer.json", tokenizer::tokenizer_json({tokenizer::byte_tokens(), {}},
                                                                           std::string(tokenizer::default_pattern), {"<|end|>"}));
                     p.write("t/tokenizer_config.json", "{}");
                     lead_outside(p, std::string("t/") + file);
                   }});
  return all;
}

std::vector<Case> of_commands() {
  const std::vector<std::string> says = {"names a program that alerts start: touch ran", "make both yours alone", "--set alerts.command"};
  const auto with = [&](const char* first) {
    std::vector<std::string> all = says;
    all.insert(all.begin(), first);
    return all;
  };
  std::vector<Case> all = {
      {"command_of_a_folder_of_all", resume, ExitCode::usage, with("run can be written by other users"),
       [](const Place& p) { write_command(p), ::chmod(p.at("run").c_str(), 0777); }},
      {"command_of_a_file_of_all", resume, ExitCode::usage, with("run/config.toml can be written by other users"),
       [](const Place& p) { write_command(p), ::chmod(p.at("run/config.toml").c_str(), 0666); }},
  };
  if (::geteuid() == 0)
    all.push_back({.name = "command_of_another_user",
                   .line = resume,
                   .code = ExitCode::usage,
                   .says = with("run belongs to another user"),
                   .prepare = [](const Place& p) { write_command(p), ::chmod(p.folder().c_str(), 0755); },
                   .as_other_user = true});
  return all;
}

}  // namespace

std::vector<Case> foreign_folders() { return all_of({of_links(), of_commands()}); }

}  // namespace octet::bad_input

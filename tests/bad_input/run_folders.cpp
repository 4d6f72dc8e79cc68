#include <filesystem>

#include "tests/bad_input/case.hpp"

namespace octet::bad_input {
namespace {
namespace fs = std::filesystem;

constexpr const char *facts = "run/run.json", *metrics = "run/metrics.jsonl";
const std::string remedy = "restore";

Case report(std::string name, std::vector<std::string> says, std::function<void(const Place&)> change, ExitCode code = ExitCode::data) {
  return {"run_" + std::move(name), "report run", code, std::move(says), [change](const Place& p) { p.take("run"), change(p); }};
}
Case edited(std::string name, std::string file, std::string from, std::string to, std::vector<std::string> says) {
  says.push_back(file);
  says.push_back(remedy);
  return report(std::move(name), std::move(says), [=](const Place& p) { p.edit(file, from, to); });
}
/// A line behind the good ones of metrics.jsonl.
Case line(std::string name, std::string text, std::vector<std::string> says) {
  says.push_back("run/metrics.jsonl:");
  says.push_back(remedy);
  return report("line_" + std::move(name), std::move(says), [=](const Place& p) { p.write(metrics, p.bytes(metrics) + text + "\n"); });
}

std::vector<Case> of_facts() {
  return {
      {"run_nowhere", "report nowhere", ExitCode::usage, {"nowhere: ", "there is no such folder", "name the folder of a run"}},
      {"run_that_is_a_dataset", "report data", ExitCode::usage, {"data: ", "run.json", "name the folder of a run"}},
      {"run_that_is_a_file", "report tiny.toml", ExitCode::usage, {"tiny.toml: ", "run.json", "name the folder of a run"}},
      report("facts_empty", {facts, "a JSON object must begin here", remedy}, [](const Place& p) { p.write(facts, ""); }),
      report("facts_cut_off", {facts, "not valid JSON", remedy}, [](const Place& p) { p.cut(facts, 10); }),
      report("facts_that_are_a_list", {facts, "a JSON object must begin here", remedy}, [](const Place& p) { p.write(facts, "[]"); }),
      report(
          "facts_that_are_a_folder", {"'run/run.json'", "Is a directory", "name a file"},
          [](const Place& p) { fs::remove(p.at(facts)), fs::create_directory(p.at(facts)); }, ExitCode::io),
      report("facts_nested", {facts, "32 deep", remedy}, [](const Place& p) { p.write(facts, "{\"a\":" + std::string(100000, '[')); }),
      report("facts_of_a_gigabyte", {facts, "at most 16,777,216 bytes"}, [](const Place& p) { fs::resize_file(p.at(facts), 1 << 30); }),
      report("facts_of_millions_of_values", {facts, "values", remedy},
             [](const Place& p) {
               std::string text = "{\"a\":[0";
               while (text.size() + 8 < (16 << 20)) text += ",0";
               p.write(facts, text + "]}");
             }),
      report("facts_of_millions_of_names", {facts, "values", remedy},
             [](const Place& p) {
               std::string text = "{\"format\":1";
               for (int i = 0; text.size() + 16 < (16 << 20); ++i) text += ",\"" + std::to_string(i) + "\":0";
               p.write(facts, text + "}");
             }),
      edited("of_a_future_format", facts, "\"format\": 1", "\"format\": 2", {"format must be 1", "this version of octet reads", "got 2"}),
      edited("without_a_name", facts, "\"name\":", "\"nome\":", {"name must be a string, it is missing"}),
      edited("with_a_name_twice", facts, "\"name\":", "\"name\": \"x\", \"name\":", {"\"name\" occurs twice", "remove one"}),
      edited("of_a_negative_seed", facts, "\"seed\": ", "\"seed\": -", {"seed must be an integer of at least 0"}),
      edited("of_a_number_for_a_name", facts, "\"recipe\": \"current\"", "\"recipe\": 3", {"recipe must be a string, got 3"}),
      edited("of_an_unknown_state", facts, "\"state\": \"finished\"", "\"state\": \"\\u001b[31m\"", {"state must be running", "\\x1b[31m"}),
      edited("of_a_number_beyond_doubles", facts, "\"flops_per_step\": ", "\"flops_per_step\": 1e999, \"x\": ", {"number overflow"}),
  };
}

std::vector<Case> of_lines() {
  return {
      line("that_is_no_json", "step 3: loss 2.1", {"column 1: a JSON object must begin here"}),
      line("of_zero_bytes", std::string(10, '\0'), {"a JSON object must begin here"}),
      line(
          "severity_of_an_alert",
          R"({"event":"alert","step":1,"time":0,"rule":"sqnr","severity":"high","path":"","value":1,"threshold":1,"window":1,"text":"","remedy":""})",
          {"severity must be info, warning or critical", "high"}),
      line("not_utf8", "{\"event\":\"incident\",\"step\":1,\"time\":0,\"kind\":\"\xff\",\"path\":\"\",\"text\":\"\"}", {"not valid JSON"}),
      line("of_an_unknown_event", "{\"event\":\"sleep\",\"step\":1,\"time\":0}", {"event must be step, scales", "\"sleep\""}),
      line("without_a_field", "{\"event\":\"eval\",\"step\":1,\"time\":0,\"tokens\":3}", {"loss must be a number or null, it is missing"}),
      line("of_a_text_for_a_number", "{\"event\":\"eval\",\"step\":1,\"time\":0,\"loss\":\"2\",\"tokens\":3}",
           {"loss must be a number or null, got the string \"2\""}),
      line("of_a_negative_step", "{\"event\":\"eval\",\"step\":-1,\"time\":0,\"loss\":2,\"tokens\":3}",
           {"step must be an integer of at least 0, got -1"}),
      line("of_a_fraction_of_a_step", "{\"event\":\"eval\",\"step\":1.5,\"time\":0,\"loss\":2,\"tokens\":3}",
           {"step must be an integer of at least 0, got 1.5"}),
      line("of_too_few_quantizers", "{\"event\":\"scales\",\"step\":3,\"time\":0,\"amax\":[1],\"scale_min\":[1],\"scale_max\":[1]}",
           {"amax must have", "entries"}),
      line("of_two_megabytes", "{\"event\":\"" + std::string(2 << 20, 'x'), {"at most 1,048,576 bytes"}),
      line("nested", "{\"a\":" + std::string(100000, '['), {"32 deep"}),
      line("of_many_values", "{\"a\":[0" + std::string(1000000, ' ') + "]", {"not valid JSON"}),
      report("metrics_that_are_a_folder", {"run/metrics.jsonl", "is a folder, not a regular file", remedy},
             [](const Place& p) { fs::remove(p.at(metrics)), fs::create_directory(p.at(metrics)); }),
  };
}

std::vector<Case> of_reports() {
  const auto comparison = [](std::string name, std::string text, std::vector<std::string> says) {
    says.push_back("compared/compare.json");
    return Case{"comparison_" + std::move(name), "report compared", ExitCode::data, std::move(says),
                with_file("compared/compare.json", text)};
  };
  const std::string head = "{\"format\":2,\"baseline\":\"bf16\",\"tolerance\":0.005,\"confidence\":0.95,";
  return {
      comparison("cut_off", "{\"format\":1,", {"not valid JSON", remedy}),
      comparison("of_a_future_format", "{\"format\":3}", {"format must be 2", "got 3"}),
      comparison("that_leads_outside", head + "\"runs\":[\"../run\"],\"rows\":[]}",
                 {"runs must be names of folders beside the file", "\"../run\"", remedy}),
      comparison("of_an_earlier_version", "{\"format\":1}", {"format must be 2", "this version of octet reads", "got 1"}),
      comparison("of_no_confidence", "{\"format\":2,\"baseline\":\"bf16\",\"tolerance\":0.005,\"confidence\":1,\"runs\":[],\"rows\":[]}",
                 {"confidence must be a number above 0 and below 1, got 1"}),
      {"comparison_of_a_run_that_is_missing",
       "report compared",
       ExitCode::io,
       {"'compared/bf16/run.json'", "check the path"},
       with_file("compared/compare.json", head + "\"runs\":[\"bf16\"],\"rows\":[]}")},
      {"report_below_a_file",
       "report run --output tiny.toml/page.html",
       ExitCode::io,
       {"tiny.toml/page.html", "Not a directory", "choose another"},
       [](const Place& p) { p.take("run"); }},
      {"report_that_is_a_folder",
       "report run --output data",
       ExitCode::io,
       {"'data'", "Is a directory", "name a file"},
       [](const Place& p) { p.take("run"); }},
  };
}

}  // namespace

std::vector<Case> run_folders() { return all_of({of_facts(), of_lines(), of_reports()}); }

}  // namespace octet::bad_input

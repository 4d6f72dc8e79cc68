#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "octet/config/attributes.hpp"
#include "octet/config/read.hpp"
#include "octet/config/write.hpp"
#include "octet/health/alert_rule.hpp"
#include "octet/models/registry.hpp"
#include "octet/scaling/recipe.hpp"
#include "octet/telemetry/event_fields.hpp"
#include "octet/telemetry/metric.hpp"
#include "octet/train/run/config/run_config.hpp"
#include "tests/testing/scratch.hpp"

// Pages of docs/ that list what the program has: they list all of it, and nothing else.

namespace octet {
namespace {

std::string page(const char* name) { return testing::bytes_of(std::string(OCTET_SOURCE_DIR "/docs/") + name); }

// "a | b" as a cell of a Markdown table.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

std::size_t lines_that_begin_with(const std::string& text, const std::string& start) {
  std::size_t count = text.starts_with(start) ? 1 : 0;
  for (std::size_t at = 0; (at = text.find("\n" + start, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(Documents, TheConfigurationPageHasEveryKeyWithItsTypeDefaultAndHelp) {
  const std::string text = page("configuration.md");
  const auto fields = config::describe(train::RunConfig{});
  for (const auto& field : fields) {
    const std::string row = format("| `{}` | {} | `{}` | {} |\n", field.key, cell(field.type), field.value, field.help);
    EXPECT_TRUE(testing::has(text, row)) << "docs/configuration.md lacks the line\n" << row;
  }
  EXPECT_EQ(lines_that_begin_with(text, "| `"), fields.size()) << "docs/configuration.md has keys that do not exist";
}

TEST(Documents, TheModelPageHasEveryFamilyAndSize) {
  const std::string text = page("models.md");
  for (const models::ModelFamily& family : models::model_families()) {
    EXPECT_TRUE(testing::has(text, format("| `{}` |", family.name))) << family.name;
    for (const models::ModelSize& size : family.sizes()) EXPECT_TRUE(testing::has(text, format("`{}`", size.name))) << size.name;
  }
}

TEST(Documents, TheRecipePageDescribesEveryRecipe) {
  const std::string text = page("recipes.md");
  for (const auto& recipe : scaling::recipes()) {
    EXPECT_EQ(lines_that_begin_with(text, format("| `{}` |", recipe.name)), 1u) << recipe.name;
    EXPECT_EQ(lines_that_begin_with(text, format("**`{}`**:", recipe.name)), 1u) << recipe.name;
  }
}

TEST(Documents, TheHealthPageHasEveryRuleWithItsThresholdAndWords) {
  const std::string text = page("health.md");
  for (const health::AlertRule& r : health::alert_rules()) {
    const std::string row = format("| `{}` | {} | {} | {} | {} {} | {} | {} |\n", r.name, telemetry::name(r.severity),
                                   shortest(r.threshold), r.limit, r.window, r.unit, r.explanation, r.remedy);
    EXPECT_TRUE(testing::has(text, row)) << "docs/health.md lacks the line\n" << row;
  }
  const std::string rules = text.substr(0, text.find("## Recovery"));
  EXPECT_EQ(lines_that_begin_with(rules, "| `"), health::alert_rules().size()) << "docs/health.md has rules that do not exist";
  for (const health::RecoveryAction action :
       {health::RecoveryAction::skip, health::RecoveryAction::rate, health::RecoveryAction::layers, health::RecoveryAction::none}) {
    std::vector<std::string> names;
    for (const health::AlertRule& r : health::alert_rules())
      if (r.first == action) names.push_back(format("`{}`", r.name));
    const std::string number = action == health::RecoveryAction::none ? "none" : to_text(int(action) + 1);
    EXPECT_TRUE(testing::has(text, format("| {} | {} |\n", number, joined(names)))) << number;
  }
}

/// The rows of a page's table of an event's own fields.
class FieldRows final : public telemetry::EventVisitor {
 public:
  void field(const telemetry::Field& f, double&) override { add(f); }
  void field(const telemetry::Field& f, std::int64_t&) override { add(f); }
  void field(const telemetry::Field& f, bool&) override { add(f); }
  void field(const telemetry::Field& f, std::string&) override { add(f); }
  void field(const telemetry::Field& f, telemetry::Severity&) override { add(f); }
  void field(const telemetry::Field& f, std::vector<float>&) override { add(f); }
  void field(const telemetry::Field& f, std::vector<std::int64_t>&) override { add(f); }
  void field(const telemetry::Field& f, std::vector<std::string>&) override { add(f); }

  std::string text = "| field | unit | meaning |\n|---|---|---|\n";

 private:
  void add(const telemetry::Field& f) { text += format("| `{}` |{}{} | {} |\n", f.name, *f.unit != 0 ? " " : "", f.unit, cell(f.meaning)); }
};

TEST(Documents, TheRunFolderPageHasTheFieldsOfEveryEventWithTheirWords) {
  const std::string text = page("run-folder.md");
  telemetry::each_event([&]<class E>(E event) {
    FieldRows rows;
    event.fields(rows);
    const std::string section = text.substr(std::min(text.find(format("\n**`{}`**: ", E::event)), text.size()));
    const std::size_t begin = section.find("| field |");
    EXPECT_EQ(section.substr(std::min(begin, section.size()), rows.text.size() + 1), rows.text + "\n") << E::event;
  });
}

TEST(Documents, TheRunFolderPageHasEveryTagOfAMetric) {
  const std::string text = page("run-folder.md");
  for (const telemetry::Metric& m : telemetry::metrics()) EXPECT_TRUE(*m.tag == 0 || testing::has(text, format("`{}`", m.tag))) << m.tag;
}

TEST(Documents, TheErrorPageHasEveryExitCode) {
  const std::string text = page("errors.md");
  for (const ExitCode code : {ExitCode::done, ExitCode::usage, ExitCode::gap, ExitCode::data, ExitCode::device, ExitCode::internal,
                              ExitCode::io, ExitCode::interrupted, ExitCode::diverged})
    EXPECT_EQ(lines_that_begin_with(text, format("| {} |", int(code))), 1u) << int(code);
}

// Fields whose key is `name`, or ends with it behind a section.
std::vector<config::FieldText> fields_named(const std::string& name) {
  std::vector<config::FieldText> out;
  for (const auto& field : config::describe(train::RunConfig{}))
    if (field.key == name || field.key.ends_with("." + name)) out.push_back(field);
  return out;
}

// Rows such as "| `weights` | `cached` (default): ..." of tables of keys.
TEST(Documents, DefaultsInTablesOfKeysAreThoseOfTheProgram) {
  const std::regex row(R"re(\n\| `([a-z_0-9.]+)` \|[^\n]*?`"?([a-z_0-9]+)"?` \(default\))re");
  std::size_t rows = 0;
  for (const char* name : {"recipes.md", "parallel.md", "health.md", "compare.md"}) {
    const std::string text = page(name);
    for (auto it = std::sregex_iterator(text.begin(), text.end(), row); it != std::sregex_iterator(); ++it, ++rows) {
      const std::string key = (*it)[1], value = (*it)[2];
      const auto fields = fields_named(key);
      EXPECT_TRUE(std::ranges::any_of(fields, [&](const auto& f) { return f.value == value || f.value == "\"" + value + "\""; }))
          << name << ": " << value << " is not the default of " << key;
    }
  }
  EXPECT_GE(rows, 3u);
}

// "`recipe.weights = "on_demand"`" anywhere: the key exists and takes the value.
TEST(Documents, EveryKeyWithAValueOnAPageIsTakenByTheProgram) {
  const std::regex assignment(R"re(`([a-z_0-9]+(?:\.[a-z_0-9]+)+) = ("[^"`]*"|[0-9][0-9.e+-]*|true|false|\[[^`]*\])`)re");
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(OCTET_SOURCE_DIR "/docs")) {
    const std::string text = testing::bytes_of(entry.path());
    for (auto it = std::sregex_iterator(text.begin(), text.end(), assignment); it != std::sregex_iterator(); ++it, ++found) {
      train::RunConfig c;
      config::Origins origins;
      const std::string set = std::string((*it)[1]) + "=" + std::string((*it)[2]);
      EXPECT_NO_THROW(config::apply_override(c, set, origins)) << entry.path() << ": " << set;
    }
  }
  EXPECT_GE(found, 50u);
}

// "train.*" on a page means all keys with that prefix.
bool stands_for(const std::string& written, const std::string& key) {
  return written.ends_with('*') ? key.starts_with(written.substr(0, written.size() - 1)) : key == written;
}

TEST(Documents, TheCheckpointPageListsEveryKeyThatAResumedRunMayChange) {
  const std::string text = page("checkpoints.md"), table = text.substr(text.find("## What may change"));
  std::vector<std::string> written;
  for (std::size_t from = 0, to; (from = table.find('`', from)) != table.npos && (to = table.find('`', from + 1)) != table.npos;
       from = to + 1)
    written.push_back(table.substr(from + 1, to - from - 1));
  const std::vector<std::string> changeable = config::keys_that_may_change(train::RunConfig{});
  for (const auto& key : changeable)
    EXPECT_TRUE(std::any_of(written.begin(), written.end(), [&](const auto& w) { return stands_for(w, key); }))
        << "docs/checkpoints.md lacks " << key;
  for (const auto& w : written) {
    std::size_t keys = 0, fixed = 0;
    for (const auto& field : config::describe(train::RunConfig{})) {
      if (!stands_for(w, field.key)) continue;
      ++keys;
      if (std::find(changeable.begin(), changeable.end(), field.key) == changeable.end()) ++fixed;
    }
    EXPECT_TRUE(keys > 0 && fixed == 0) << "docs/checkpoints.md lists " << w << ", which may not change";
  }
}

}  // namespace
}  // namespace octet

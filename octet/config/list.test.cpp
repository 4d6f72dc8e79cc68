#include <gtest/gtest.h>

#include "octet/config/read.hpp"
#include "octet/config/sample.test.hpp"
#include "octet/config/write.hpp"

// A list of configurations under one key.

namespace octet::config {
namespace {

using Job = SampleJob;

constexpr const char* two_stages = R"(
[[plan.stages]]
path = "a\"b"
rate = 2

[[plan.stages]]
parts = ["down", "up"]
path = "c"

[last]
warmup = 3
)";

Job job_of(const std::string& text) {
  Job job;
  read_toml(text, "run.toml", job);
  return job;
}

std::string refused(const std::string& text) {
  Job job;
  job.plan.stages.resize(3);
  const std::string what = refusal_of([&] { read_toml(text, "run.toml", job); });
  EXPECT_EQ(job.plan.stages.size(), 3u) << "a refusal changes nothing";
  return what;
}

TEST(List, IsReadFromTomlAndReplacesWhatWasThere) {
  Job job;
  job.plan.stages.resize(5);
  const Origins origins = read_toml(two_stages, "run.toml", job);
  ASSERT_EQ(job.plan.stages.size(), 2u);
  EXPECT_EQ(job.plan.stages[0].path, "a\"b");
  EXPECT_EQ(job.plan.stages[0].rate, 2);
  EXPECT_EQ(job.plan.stages[1].rate, 1) << "a default";
  EXPECT_EQ(job.plan.stages[1].parts, (std::vector<std::string>{"down", "up"}));
  EXPECT_EQ(job.last.warmup, 3);
  EXPECT_EQ(cite(origins, "plan.stages"), "run.toml:2:8: `plan.stages`");
  EXPECT_TRUE(job_of("plan.stages = []").plan.stages.empty());
  EXPECT_EQ(job_of("[plan]\nstages = [{path = 'x'}, {}, {rate = 0.5}]").plan.stages.size(), 3u);
}

TEST(List, IsSetByAnOverride) {
  Job job;
  Origins origins;
  apply_override(job, "plan.stages=[{path=\"x\", rate=3}, {parts=[\"up\"]}]", origins);
  ASSERT_EQ(job.plan.stages.size(), 2u);
  EXPECT_EQ(job.plan.stages[0].rate, 3);
  apply_override(job, "plan.stages=[]", origins);
  EXPECT_TRUE(job.plan.stages.empty());
  const auto refusal = [&](const char* text) { return refusal_of([&] { apply_override(job, text, origins); }); };
  EXPECT_EQ(refusal("plan.stages=[{rate=0}]"), "--set plan.stages=[{rate=0}]: `plan.stages[1].rate` must be a number > 0, got 0");
  EXPECT_EQ(
      refusal("plan.stages=[{rate=]"),
      "--set plan.stages=[{rate=]: `plan.stages` must be a list of sections, got text that is not TOML (write [{key = value, key = value}, "
      "{...}]); write [[plan.stages]] before the keys of each");
}

TEST(List, IsWrittenAsTomlJsonAndHelpThatShowWhatIsNoDefault) {
  const Job job = job_of(two_stages);
  EXPECT_EQ(to_toml(job), R"([plan]
stages = [
  {path = "a\"b", rate = 2.0},
  {path = "c", parts = ["down", "up"]},
]
steps = 1

[last]
kind = "cosine"
warmup = 3
)");
  Job deep = job;
  deep.plan.stages[1].schedule.warmup = 3;
  for (const Job& one : {job, deep}) EXPECT_TRUE(differences(job_of(to_toml(one)), one).empty()) << to_toml(one);
  EXPECT_TRUE(differences(job_of(to_toml(job, Comments::help)), job).empty());
  EXPECT_NE(to_json_text(job).find(R"("stages": [{"path": "a\"b", "rate": 2.0}, {"path": "c", "parts": ["down", "up"]}],)"),
            std::string::npos)
      << to_json_text(job);
  EXPECT_NE(to_json_text(Job{}).find("\"stages\": [],"), std::string::npos);
  std::string rows;
  for (const FieldText& row : describe(Job{}.plan)) rows += row.key + " | " + row.type + " | " + row.value + "\n";
  EXPECT_EQ(rows,
            "stages | list of sections | []\nstages[].path | text | \"\"\nstages[].rate | number > 0 | 1.0\n"
            "stages[].parts | list of up | down | []\nstages[].schedule.kind | none | cosine | linear | \"cosine\"\n"
            "stages[].schedule.warmup | integer >= 0 | 10\nsteps | integer | 1\n");
}

TEST(List, DiffersAsAWhole) {
  Job a = job_of(two_stages), b = a;
  EXPECT_TRUE(differences(a, b).empty());
  b.plan.stages[1].rate = 5;
  const auto found = differences(a, b);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].key, "plan.stages");
  EXPECT_EQ(found[0].b, R"([{path = "a\"b", rate = 2.0}, {path = "c", rate = 5.0, parts = ["down", "up"]}])");
}

TEST(List, AMistakeInsideIsRefusedAtItsPlaceByTheNumberOfItsSection) {
  EXPECT_EQ(refused("[[plan.stages]]\npth = 'a'"), "run.toml:2:1: unknown key `plan.stages[1].pth`; did you mean `plan.stages[1].path`?");
  EXPECT_EQ(refused("[[plan.stages]]\n[[plan.stages]]\nzzz = 1"),
            "run.toml:3:1: unknown key `plan.stages[2].zzz`; `plan.stages[2]` has path, rate, parts, schedule");
  EXPECT_EQ(refused("[[plan.stages]]\npath = 'a'\n[[plan.stages]]\nrate = -1"),
            "run.toml:4:8: `plan.stages[2].rate` must be a number > 0, got -1");
  EXPECT_EQ(refused("[[plan.stages]]\nparts = ['up', 'dwn']"),
            "run.toml:2:9: `plan.stages[1].parts` must be a list of some of up, down, got [\"up\", \"dwn\"]; did you mean down?");
  EXPECT_EQ(refused("[plan.stages]\npath = 'a'"),
            "run.toml:1:1: `plan.stages` must be a list of sections, got a section; write [[plan.stages]] before the keys of each");
  EXPECT_EQ(refused("plan.stages = 'a'"),
            "run.toml:1:15: `plan.stages` must be a list of sections, got \"a\"; write [[plan.stages]] before the keys of each");
  EXPECT_TRUE(refused("plan.stages = [{}, 'a']").starts_with("run.toml:1:15: `plan.stages` must be a list of sections, got a list with"));
  EXPECT_EQ(refused("[[plan.stages]]\nschedule.warmup = -1"),
            "run.toml:2:19: `plan.stages[1].schedule.warmup` must be an integer >= 0, got -1");
  std::string many = "plan.stages = [";
  for (int i = 0; i <= 1000; ++i) many += "{},";
  EXPECT_TRUE(refused(many + "]").starts_with("run.toml:1:15: `plan.stages` must be a list of sections, got 1001, more than 1000"));
}

}  // namespace
}  // namespace octet::config

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "octet/base/error.hpp"
#include "tests/testing/begun_octet.hpp"
#include "tests/testing/octet.hpp"
#include "tests/testing/run_events.hpp"

// Runs of the program in surroundings that change or fail under it: descriptors that are closed, a folder that goes, a terminal that is
// closed, files that a killed process left. What it refuses before it begins is in bad_input/.

namespace octet {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::BegunOctet, testing::bytes_of, testing::Ended, testing::has, testing::Scratch;

class Surroundings : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::write_dataset(scratch);
    scratch.write("run.toml", "threads = 1\n" + testing::tiny_config("steps = 40\nbatch = 2\n[checkpoint]\nevery = 4\n"));
  }
  Ended octet(const std::string& line) const { return testing::run_octet(line, scratch.folder()); }
  /// What a shell makes of `command`, in which $octet is the program.
  Ended shell(const std::string& command) const {
    return testing::run_child({"/bin/bash", "-c", "octet=\"$0\"; " + command, OCTET_PROGRAM}, scratch.folder());
  }
  void wait_for_step(BegunOctet& run, const std::string& folder) const {
    while (run.running() && !has(bytes_of(scratch.at(folder + "/metrics.jsonl")), "\"event\":\"step\"")) std::this_thread::sleep_for(1ms);
  }

  // The run may make a file in it between the removal of its files and its own.
  static void remove_while_written(const std::string& folder) {
    std::error_code ignored;
    while (fs::remove_all(folder, ignored), fs::exists(folder)) std::this_thread::sleep_for(1ms);
  }

  Scratch scratch;
};

TEST_F(Surroundings, WithoutStandardDescriptorsARunIsTheSame) {
  ASSERT_EQ(octet("train run.toml --quiet --name whole").code, 0);
  const Ended ended = shell("exec <&- >&- 2>&-; $octet train run.toml --name closed");
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(testing::untimed_events(scratch.at("runs/closed")), testing::untimed_events(scratch.at("runs/whole")));
  EXPECT_TRUE(bytes_of(scratch.at("runs/closed/weights/model.safetensors")) ==
              bytes_of(scratch.at("runs/whole/weights/model.safetensors")));
}

TEST_F(Surroundings, ARunGoesOnWhereNobodyReadsItsProgress) {
  for (const char* command :
       {"$octet train run.toml --name full >/dev/full 2>/dev/full", "{ $octet train run.toml --name left; echo $? >code; } 2>&1 | true"}) {
    const Ended ended = shell(command);
    EXPECT_EQ(ended.code, 0) << command;
  }
  while (!fs::exists(scratch.at("code"))) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(bytes_of(scratch.at("code")), "0\n");
  for (const char* run : {"full", "left"})
    EXPECT_TRUE(has(bytes_of(scratch.at(std::string("runs/") + run + "/run.json")), "\"finished\"")) << run;
}

TEST_F(Surroundings, AComparisonWhoseTableIsLostSaysSoAndKeepsItsFiles) {
  const Ended ended = shell("$octet compare run.toml --steps 2 --recipes current --quiet >/dev/full");
  EXPECT_EQ(ended.code, int(ExitCode::io)) << ended.err;
  EXPECT_TRUE(has(ended.err, "standard output")) << ended.err;
  EXPECT_TRUE(fs::exists(scratch.at("runs/compare/compare.json")) && fs::exists(scratch.at("runs/compare/report.html")));
}

TEST_F(Surroundings, OutputsFollowLinksAndAreWrittenIntoPipesAndDevices) {
  ASSERT_EQ(octet("train run.toml --quiet --steps 2 --name run").code, 0);
  fs::create_directory(scratch.at("elsewhere"));
  fs::create_symlink("elsewhere/page.html", scratch.at("page.html"));
  ASSERT_EQ(octet("report runs/run -o page.html").code, 0);
  EXPECT_TRUE(fs::is_symlink(scratch.at("page.html")) && fs::is_regular_file(scratch.at("elsewhere/page.html")));
  EXPECT_EQ(shell("mkfifo pipe; cat pipe >read & $octet report runs/run -o pipe && wait").code, 0);
  EXPECT_TRUE(fs::is_fifo(scratch.at("pipe")));
  EXPECT_EQ(bytes_of(scratch.at("read")), bytes_of(scratch.at("page.html")));
  const Ended full = octet("report runs/run -o /dev/full");
  EXPECT_EQ(full.code, int(ExitCode::io)) << full.err;
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(Surroundings, ARunWhoseFolderGoesWarnsAtOnceAndEndsWithAnError) {
  for (const bool moved : {false, true}) {
    BegunOctet run("train run.toml --quiet --name gone --steps 3000", scratch.folder(), scratch.at("err"));
    wait_for_step(run, "runs/gone");
    if (moved) fs::rename(scratch.at("runs/gone"), scratch.at("runs/away"));
    else remove_while_written(scratch.at("runs/gone"));
    while (run.running() && !has(bytes_of(scratch.at("err")), "is no longer there")) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(run.running()) << "the warning must come when it happens\n" << bytes_of(scratch.at("err"));
    run.signal(SIGTERM);
    EXPECT_EQ(run.end(), int(ExitCode::io));
    EXPECT_TRUE(has(bytes_of(scratch.at("err")), "octet: the run's folder runs/gone was moved or removed")) << bytes_of(scratch.at("err"));
    EXPECT_FALSE(fs::exists(scratch.at("runs/gone")));
  }
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/away/metrics.jsonl")), "\"kind\":\"folder\""));
  fs::rename(scratch.at("runs/away"), scratch.at("runs/gone"));
  const Ended again = octet("train --resume runs/gone --quiet --steps 60");
  EXPECT_TRUE(again.code == 0 || has(again.err, "train.steps")) << again.err;
}

TEST_F(Surroundings, AFolderThatIsPutBackCostsNothing) {
  BegunOctet run("train run.toml --quiet --name back --steps 3000", scratch.folder(), scratch.at("err"));
  wait_for_step(run, "runs/back");
  fs::rename(scratch.at("runs/back"), scratch.at("runs/away"));
  while (run.running() && !has(bytes_of(scratch.at("err")), "is no longer there")) std::this_thread::sleep_for(1ms);
  fs::rename(scratch.at("runs/away"), scratch.at("runs/back"));
  while (run.running() && !has(bytes_of(scratch.at("err")), "is there again")) std::this_thread::sleep_for(1ms);
  run.signal(SIGTERM);
  EXPECT_EQ(run.end(), int(ExitCode::interrupted)) << bytes_of(scratch.at("err"));
  EXPECT_EQ(octet("train --resume runs/back --quiet --set checkpoint.every=0 --max-time 1s").code, 0);
}

TEST_F(Surroundings, AClosedTerminalStopsARunAsSigtermDoes) {
  BegunOctet run("train run.toml --quiet --name hangup --steps 100000", scratch.folder());
  wait_for_step(run, "runs/hangup");
  for (int i = 0; i < 3; ++i) run.signal(SIGHUP);  // a terminal's end is told more than once
  EXPECT_EQ(run.end(), int(ExitCode::interrupted));
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/hangup/run.json")), "\"stopped\""));
  EXPECT_FALSE(fs::is_empty(scratch.at("runs/hangup/checkpoints")));
}

TEST_F(Surroundings, ARunBegunByNohupOutlivesItsTerminal) {
  std::signal(SIGHUP, SIG_IGN);  // what nohup does
  BegunOctet run("train run.toml --quiet --name nohup --steps 200", scratch.folder());
  std::signal(SIGHUP, SIG_DFL);
  wait_for_step(run, "runs/nohup");
  run.signal(SIGHUP);
  EXPECT_EQ(run.end(), 0);
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/nohup/run.json")), "\"finished\""));
}

TEST_F(Surroundings, ADamagedCheckpointIsWarnedOfAlsoQuietlyAndStaysInTheRecord) {
  ASSERT_EQ(octet("train run.toml --quiet --name run --steps 10").code, 0);
  const std::string state = scratch.at("runs/run/checkpoints/step-000000010/state.safetensors");
  fs::resize_file(state, fs::file_size(state) - 1);
  const Ended ended = octet("train --resume runs/run --quiet --steps 12");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(ended.err, "warning: the checkpoint of step 10 cannot be used: ")) << ended.err;
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/run/metrics.jsonl")), "\"kind\":\"checkpoint\""));
}

TEST_F(Surroundings, WhatAKilledProcessLeftIsRemovedOnResume) {
  ASSERT_EQ(octet("train run.toml --quiet --name run --steps 4").code, 0);
  scratch.write("runs/run/.octet-99-3.tmp", "x");
  scratch.write("runs/run/weights.octet-99.tmp/model.safetensors", "x");
  ASSERT_EQ(octet("train --resume runs/run --quiet --steps 6").code, 0);
  EXPECT_FALSE(fs::exists(scratch.at("runs/run/.octet-99-3.tmp")) || fs::exists(scratch.at("runs/run/weights.octet-99.tmp")));
}

TEST_F(Surroundings, AResumeOnAnotherMachineSaysThatItsSumsDiffer) {
  ASSERT_EQ(octet("train run.toml --quiet --name run --steps 4").code, 0);
  EXPECT_EQ(octet("train --resume runs/run --quiet --steps 6").err, "");
  const Ended ended = octet("train --resume runs/run --quiet --steps 8 --set threads=2");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(ended.err, "warning: the run resumes on another machine: threads 2 instead of 1; sums are rounded differently"))
      << ended.err;
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/run/metrics.jsonl")), "\"kind\":\"machine\""));
}

TEST_F(Surroundings, NeitherLocaleNorTimeZoneNorClockChangesWhatIsComputedOrPrinted) {
  const std::string plain = shell("$octet inspect 0.3; $octet plan run.toml | grep -v free").out;
  EXPECT_TRUE(has(plain, "0.3125")) << plain;
  for (const char* where :
       {"LC_ALL=de_DE.UTF-8", "LC_ALL=tr_TR.UTF-8 LANG=tr_TR", "LC_ALL=nowhere TZ=:/nowhere", "LANG= LC_NUMERIC=fr_FR TZ=UTC+99"})
    EXPECT_EQ(shell(std::string("export ") + where + "; $octet inspect 0.3; $octet plan run.toml | grep -v free").out, plain) << where;
  ASSERT_EQ(octet("train run.toml --quiet --name run --steps 4").code, 0);
  const Ended ended =
      shell("find . -exec touch -d 2100-01-01 {} +; $octet train --resume runs/run --quiet --steps 6");  // a clock that was ahead
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
}

// Each step multiplies the weights by some -1e10, until nothing that is computed from them is finite.
TEST_F(Surroundings, ARunWhoseResultIsNotFiniteIsNoSuccessAndSavesNothing) {
  const Ended ended = octet(
      "train run.toml --quiet --name run --set optim.learning_rate=1e5 --set optim.weight_decay=1e5 --set optim.schedule.kind=constant "
      "--set optim.schedule.warmup=0 --set model.size=gpt2-124m --set model.vocabulary=257 --set model.kv_heads=4 --set "
      "train.max_skipped=1000");
  EXPECT_EQ(ended.code, int(ExitCode::diverged)) << ended.err << ended.out;
  EXPECT_TRUE(has(ended.err, "not finite after step 40") && has(ended.err, "optim.learning_rate")) << ended.err;
  EXPECT_FALSE(fs::exists(scratch.at("runs/run/weights")));
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/run/metrics.jsonl")), "\"kind\":\"nonfinite\""));
}

}  // namespace
}  // namespace octet

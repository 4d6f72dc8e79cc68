#include "octet/telemetry/tensorboard/board_writer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "octet/base/error.hpp"
#include "octet/base/log.hpp"
#include "octet/telemetry/tensorboard/event_file.testing.hpp"
#include "octet/telemetry/throttling.hpp"
#include "tests/testing/small_files.hpp"

namespace octet::telemetry {
namespace {
using testing::board_events, testing::board_files, testing::board_of, testing::BoardEvent, testing::bytes_of, testing::Scratch;

const std::vector<QuantizerFacts> quantizers{{"layers.0.mlp.down", "x", "e4m3", "tensor"}, {"layers.0.mlp.down", "w", "e4m3", "128x128"}};

TEST(Crc32c, HasThePublishedValues) {
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) rising += char(i), falling += char(31 - i);
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(crc32c(falling), 0x113FDB5Cu);
}

TEST(SummaryRecord, TheFirstOneOfAFileHasTheBytesThatEveryEventFileBeginsWith) {
  const std::string record = framed(version_message(0));
  EXPECT_EQ(record.substr(0, 13), std::string("\x18\0\0\0\0\0\0\0\xa3\x7fK\"\x09", 13));
  EXPECT_EQ(record.substr(21, 15),
            "\x1a\x0d"
            "brain.Event:2");
}

TEST(SummaryRecord, ComesBackWhateverItsStepAndValue) {
  for (const std::int64_t step : {std::int64_t(0), std::int64_t(127), std::int64_t(128), std::int64_t(1) << 40}) {
    const Scalar scalars[] = {{"a/b", -1.5f}, {"c", INFINITY}};
    const auto events = board_events(framed(scalars_message(12.25, step, scalars)) + framed(restart_message(13.5, step)));
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].time, 12.25);
    EXPECT_EQ(events[0].step, step);
    EXPECT_EQ(events[0].scalars, (std::vector<std::pair<std::string, float>>{{"a/b", -1.5f}, {"c", INFINITY}}));
    EXPECT_FALSE(events[0].restart);
    EXPECT_EQ(events[1].step, step);
    EXPECT_TRUE(events[1].restart);
  }
}

TEST(SummaryRecord, AChangedByteIsFound) {
  std::string record = framed(version_message(1));
  for (std::size_t i = 0; i < record.size(); ++i) {
    record[i] = char(record[i] ^ 1);
    EXPECT_ANY_THROW(board_events(record)) << i;
    record[i] = char(record[i] ^ 1);
  }
}

TEST(BoardWriter, ShowsWhatTheEventsTell) {
  const Scratch folder;
  BoardWriter board(folder.folder(), quantizers, 1, 2);
  board.add(ScalesEvent{.step = 1, .amax = {9, 9}, .scale_min = {9, 9}, .scale_max = {9, 9}});
  board.add(StepEvent{.step = 1, .loss = NAN, .skipped = true});
  board.add(ScalesEvent{.step = 2, .amax = {3, 5}, .scale_min = {128, 32}, .scale_max = {128, 64}});
  board.add(HealthEvent{
      .step = 2, .saturated = {0, 0.25f}, .flushed = {0.5f, 0.125f}, .scale_deviation = {NAN, 1.5f}, .lossy_blocks = {NAN, 0.25f}});
  board.add(StepEvent{.step = 2,
                      .loss = 2.5,
                      .grad_norm = 0.75,
                      .learning_rate = 0.25,
                      .tokens_per_second = 4096,
                      .limit_share = 0.5,
                      .param_norm = 16,
                      .data_wait = 0.125});
  board.add(EvalEvent{.step = 2, .loss = 3.5});
  board.add(EvalEvent{.step = 2, .loss = 3.5, .average_loss = 3.25});
  board.add(IncidentEvent{.step = 2});
  board.add(EndEvent{.step = 2});
  auto shown = board_of(folder.folder());
  EXPECT_TRUE(std::isnan(shown["loss/train"].at(1)));
  shown["loss/train"].erase(1);
  const std::map<std::string, float> wanted{{"loss/train", 2.5f},
                                            {"loss/eval", 3.5f},
                                            {"loss/eval_average", 3.25f},
                                            {"optimizer/learning_rate", 0.25f},
                                            {"optimizer/gradient_norm", 0.75f},
                                            {"optimizer/parameter_norm", 16},
                                            {"optimizer/skipped_steps", 3},
                                            {"speed/tokens_per_second", 4096},
                                            {"speed/limit_share", 0.5f},
                                            {"speed/data_wait", 0.125f},
                                            {"worst/saturated", 0.25f},
                                            {"worst/flushed", 0.5f},
                                            {"worst/scale_deviation", 1.5f},
                                            {"worst/lossy_blocks", 0.25f},
                                            {"tensors/layers.0.mlp.down/x/amax", 3},
                                            {"tensors/layers.0.mlp.down/x/scale", 128},
                                            {"tensors/layers.0.mlp.down/x/saturated", 0},
                                            {"tensors/layers.0.mlp.down/x/flushed", 0.5f},
                                            {"tensors/layers.0.mlp.down/w/amax", 5},
                                            {"tensors/layers.0.mlp.down/w/scale_min", 32},
                                            {"tensors/layers.0.mlp.down/w/scale_max", 64},
                                            {"tensors/layers.0.mlp.down/w/saturated", 0.25f},
                                            {"tensors/layers.0.mlp.down/w/flushed", 0.125f},
                                            {"tensors/layers.0.mlp.down/w/scale_deviation", 1.5f},
                                            {"tensors/layers.0.mlp.down/w/lossy_blocks", 0.25f}};
  EXPECT_EQ(shown.size(), wanted.size());
  for (const auto& [tag, value] : wanted) EXPECT_EQ(shown[tag].at(2), value) << tag;
  EXPECT_EQ(shown["tensors/layers.0.mlp.down/x/amax"].size(), 1u) << "only the steps whose health was measured";
}

TEST(BoardWriter, ShowsThePlanAsATableWhoseCellsAreNotReadAsMarkdown) {
  const Scratch folder;
  BoardWriter board(folder.folder(), {}, 3, 0);
  board.add_plan(3, std::vector<PlanEntry>{{"layers.0.mlp.down", "x e4m3, w e4m3", "matches \"layers.*.mlp.*\""},
                                           {"first moments", "e4m3_expanded", "level O3; 1 byte per value"}});
  const auto events = board_events(bytes_of(board_files(folder.folder()).at(0)));
  EXPECT_EQ(events.back().step, 3);
  EXPECT_TRUE(events.back().scalars.empty());
  EXPECT_EQ(events.back().texts,
            (std::map<std::string, std::string>{{"plan",
                                                 "| layer or variable | precision | reason |\n|---|---|---|\n"
                                                 "| layers.0.mlp.down | x e4m3, w e4m3 | matches \"layers.\\*.mlp.\\*\" |\n"
                                                 "| first moments | e4m3\\_expanded | level O3; 1 byte per value |\n"}}));
}

TEST(BoardWriter, ShowsAnAlertAsATextThatIsNotReadAsMarkdown) {
  const Scratch folder;
  BoardWriter board(folder.folder(), {}, 3, 0);
  board.add(AlertEvent{.step = 7, .rule = "sqnr", .path = "layers.0.mlp.down.x", .text = "*9* dB", .remedy = "Use blocks."});
  const auto events = board_events(bytes_of(board_files(folder.folder()).at(0)));
  EXPECT_EQ(events.back().step, 7);
  EXPECT_EQ(events.back().texts,
            (std::map<std::string, std::string>{{"alerts/sqnr", "**warning** (layers.0.mlp.down.x): \\*9\\* dB\n\nUse blocks.\n"}}));
}

TEST(BoardWriter, ShowsASampleAsABlockOfCode) {
  const Scratch folder;
  BoardWriter board(folder.folder(), {}, 3, 0);
  board.add(SampleEvent{.step = 7, .prompt = "*once*", .text = " upon\n<b>", .tokens = 2});
  const auto events = board_events(bytes_of(board_files(folder.folder()).at(0)));
  EXPECT_EQ(events.back().texts, (std::map<std::string, std::string>{{"sample", "    *once* upon\n    <b>\n"}}));
}

TEST(BoardWriter, DropsTheValuesOfStepsThatFollowAgain) {
  const Scratch folder;
  BoardWriter board(folder.folder(), {}, 3, 0);
  board.add(RecoveryEvent{.step = 7, .rung = "roll_back", .result = "done", .rule = "sqnr", .back_to = 5, .text = "*back*"});
  const auto events = board_events(bytes_of(board_files(folder.folder()).at(0)));
  EXPECT_TRUE(events[events.size() - 2].restart && events[events.size() - 2].step == 6);
  EXPECT_EQ(events.back().step, 6) << "a text of an earlier pass would be dropped, too";
  EXPECT_EQ(events.back().texts.at("recovery/roll_back"), "**done** because of sqnr: \\*back\\*\n");
}

TEST(BoardWriter, ShowsTheSlowestRankAndTheTimeInCollectives) {
  const Scratch folder;
  BoardWriter board(folder.folder(), {}, 1, 0);
  board.add(RanksEvent{.step = 5, .seconds = {2, 2}, .waited = {1, 0.5f}, .slowest = 1, .sent_bytes = 4096});
  board.add(RanksEvent{.step = 6, .seconds = {2, 2}, .waited = {NAN, NAN}, .slowest = 0, .sent_bytes = 4096});
  auto shown = board_of(folder.folder());
  EXPECT_EQ(shown["ranks/slowest"].at(5), 1);
  EXPECT_EQ(shown["ranks/slowest_busy_seconds"].at(5), 1.5f);
  EXPECT_EQ(shown["ranks/exposed_share"].at(5), 0.375f);
  EXPECT_EQ(shown["ranks/sent_bytes"].at(6), 4096);
  EXPECT_FALSE(shown["ranks/exposed_share"].count(6)) << "not known on a GPU";
}

TEST(BoardWriter, ShowsTheMeanTheHottestAndTheSlowestGpu) {
  const Scratch folder;
  BoardWriter board(folder.folder(), {}, 1, 0);
  board.add(GpusEvent{.step = 5,
                      .utilization = {1, 0.5f},
                      .power = {600, NAN},
                      .temperature = {71, 66},
                      .sm_clock = {1980, 1755},
                      .memory_used = {NAN, NAN},
                      .throttling = {heat | power_cap, power_cap}});
  const std::map<std::string, float> wanted{{"speed/gpu_utilization", 0.75f},
                                            {"speed/gpu_power", 600},
                                            {"speed/gpu_temperature", 71},
                                            {"speed/gpu_clock", 1755},
                                            {"speed/gpus_throttled", 1}};
  auto shown = board_of(folder.folder());
  EXPECT_EQ(shown.size(), wanted.size());
  for (const auto& [tag, value] : wanted) EXPECT_EQ(shown[tag].at(5), value) << tag;
}

TEST(BoardWriter, ShowsLoadsOfExpertsByLayer) {
  const Scratch folder;
  BoardWriter board(folder.folder(), {}, 1, 0);
  board.add(ExpertsEvent{.step = 5, .experts = 2, .layers = {1, 13}, .counts = {4, 4, 8, 0}});
  auto shown = board_of(folder.folder());
  EXPECT_EQ(shown["routing/layers.1/entropy"].at(5), 1);
  EXPECT_EQ(shown["routing/layers.13/entropy"].at(5), 0);
  EXPECT_EQ(shown["worst/expert_entropy"].at(5), 0);
}

TEST(BoardWriter, ShowsSharedScalesOfGradientsByTensorAndTheWorst) {
  const Scratch folder;
  BoardWriter board(folder.folder(), {}, 1, 0, std::vector<std::string>{"a", "b"});
  board.add(SharedScalesEvent{.step = 5, .mu = {1, 0.5f}, .overflow = {0.25f, 0}, .underflow = {0, 0.125f}});
  auto shown = board_of(folder.folder());
  const std::map<std::string, float> wanted{{"worst/mu", 0.5f},  {"worst/overflow", 0.25f},  {"worst/underflow", 0.125f},
                                            {"sums/a/mu", 1},    {"sums/a/overflow", 0.25f}, {"sums/a/underflow", 0},
                                            {"sums/b/mu", 0.5f}, {"sums/b/overflow", 0},     {"sums/b/underflow", 0.125f}};
  EXPECT_EQ(shown.size(), wanted.size());
  for (const auto& [tag, value] : wanted) EXPECT_EQ(shown[tag].at(5), value) << tag;
  EXPECT_THROW(board.add(SharedScalesEvent{.step = 6, .mu = {1}, .overflow = {0}, .underflow = {0}}), ContractError);
}

TEST(BoardWriter, AProcessThatGoesOnAddsAFileThatVoidsTheStepsItTellsAgain) {
  const Scratch folder;
  const auto tell = [&](std::int64_t first, std::int64_t last, double loss) {
    BoardWriter board(folder.folder(), {}, first, 0);
    for (std::int64_t step = first; step <= last; ++step) board.add(StepEvent{.step = step, .loss = loss});
  };
  tell(1, 5, 1), tell(4, 6, 2), tell(7, 7, 3);
  EXPECT_EQ(board_files(folder.folder()).size(), 3u);
  EXPECT_EQ(board_of(folder.folder())["loss/train"],
            (std::map<std::int64_t, float>{{1, 1}, {2, 1}, {3, 1}, {4, 2}, {5, 2}, {6, 2}, {7, 3}}));
}

TEST(BoardWriter, AFileComesAfterThoseThatAreThereWhateverTheClockSays) {
  const Scratch folder;
  folder.write("events.out.tfevents.9876543210.octet", "");
  folder.write("events.out.tfevents.x.octet", "");
  const BoardWriter board(folder.folder(), {}, 1, 0);
  const auto files = board_files(folder.folder());
  EXPECT_TRUE(files.at(1).ends_with("events.out.tfevents.9876543211.octet")) << files.at(1);
}

TEST(BoardWriter, TimesAreThoseOfTheClock) {
  const Scratch folder;
  const auto now = [] { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); };
  const double before = now();
  BoardWriter(folder.folder(), {}, 1, 0).add(EvalEvent{.step = 1});
  const double after = now();
  for (const BoardEvent& e : board_events(bytes_of(board_files(folder.folder()).at(0)))) {
    EXPECT_GE(e.time, before);
    EXPECT_LE(e.time, after);
  }
}

TEST(BoardWriter, WhatFindsNoRoomIsLeftOutAndTheFileStaysWhole) {
  const Scratch folder;
  BoardWriter board(folder.folder(), {}, 1, 0);
  board.add(StepEvent{.step = 1});
  log::set_quiet(true);
  {
    const testing::SmallFiles small(std::filesystem::file_size(board_files(folder.folder()).at(0)) + 20);
    board.add(StepEvent{.step = 2});
  }
  log::set_quiet(false);
  board.add(StepEvent{.step = 3});
  const auto shown = board_of(folder.folder())["loss/train"];
  EXPECT_EQ(shown.size(), 2u);
  EXPECT_TRUE(shown.contains(1) && shown.contains(3));
}

TEST(BoardWriter, RefusesAFolderThatCannotBeWrittenAndEventsOfAnotherRun) {
  EXPECT_THROW(BoardWriter("/nonexistent/folder", {}, 1, 0), IoError);
  const Scratch folder;
  BoardWriter board(folder.folder(), quantizers, 1, 0);
  EXPECT_THROW(board.add(HealthEvent{.step = 1, .saturated = {0}, .flushed = {0}}), ContractError);
}

}  // namespace
}  // namespace octet::telemetry

#include "octet/health/command.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "octet/base/clock.hpp"
#include "octet/base/error.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::health {
namespace {
using octet::testing::bytes_of, octet::testing::error_of, octet::testing::has, octet::testing::Scratch;

struct Sent {
  std::vector<std::string> warnings;
  double seconds = 0;  // of all calls of send()
};

Sent send(const std::vector<std::string>& words, const std::vector<std::string>& messages, double limit) {
  Sent sent;
  Command command(words, limit, [&](const std::string& text) { sent.warnings.push_back(text); });
  const double begin = monotonic_seconds();
  for (const std::string& message : messages) command.send(message);
  sent.seconds = monotonic_seconds() - begin;
  command.finish();
  return sent;
}

TEST(AlertCommand, GetsTheMessageOnItsStandardInputAndNothingElse) {
  const Scratch scratch;
  const std::string hostile = "{\"text\":\"'; touch " + scratch.at("made") + "; $(touch " + scratch.at("made") + ") `x` \\u001b\"}";
  const Sent sent = send({"sh", "-c", "cat > \"$1\"; echo $# > \"$2\"; ls /proc/self/fd | wc -w > \"$3\"", "sh", scratch.at("got"),
                          scratch.at("words"), scratch.at("files")},
                         {hostile}, 20);
  EXPECT_TRUE(sent.warnings.empty()) << sent.warnings.at(0);
  EXPECT_EQ(bytes_of(scratch.at("got")), hostile);
  EXPECT_EQ(bytes_of(scratch.at("words")), "3\n");
  EXPECT_EQ(bytes_of(scratch.at("files")), "4\n") << "the three standard ones, and that of ls";
  EXPECT_FALSE(std::filesystem::exists(scratch.at("made")));
}

TEST(AlertCommand, GetsALargeMessageThoughItReadsNothing) { EXPECT_TRUE(send({"true"}, {std::string(1 << 20, 'x')}, 20).warnings.empty()); }

TEST(AlertCommand, ThatIsSlowIsKilledWithItsChildrenAndBlocksNothing) {
  const Scratch scratch;
  const double begin = monotonic_seconds();
  const Sent sent = send({"sh", "-c", "sleep 30 & echo $! > \"$1\"; wait", "sh", scratch.at("child")}, {"{}"}, 0.5);
  EXPECT_LT(sent.seconds, 0.3);
  EXPECT_LT(monotonic_seconds() - begin, 10);
  ASSERT_EQ(sent.warnings.size(), 1u);
  EXPECT_TRUE(has(sent.warnings[0], "alerts.command 'sh' was killed after alerts.command_seconds = 0.5")) << sent.warnings[0];
  const std::string child = bytes_of(scratch.at("child"));
  ASSERT_FALSE(child.empty());
  const std::string status = "/proc/" + child.substr(0, child.find('\n')) + "/stat";
  for (int i = 0; i < 200 && !bytes_of(status).empty() && !has(bytes_of(status), ") Z"); ++i) ::usleep(10000);
  EXPECT_TRUE(bytes_of(status).empty() || has(bytes_of(status), ") Z")) << bytes_of(status);
}

TEST(AlertCommand, ThatFailsIsOneWarning) {
  const Sent sent = send({"sh", "-c", "exit 3"}, {"{}", "{}", "{}"}, 20);
  ASSERT_EQ(sent.warnings.size(), 1u);
  EXPECT_TRUE(has(sent.warnings[0], "failed with exit code 3; the alert is in metrics.jsonl, training continues")) << sent.warnings[0];
}

TEST(AlertCommand, ThatIsAbsentIsRefusedByName) {
  for (const std::string program : {"no-such-program", "/no/such/program", "/tmp", ""}) {
    const std::string message = error_of<ConfigError>([&] { require_program({program, "x"}); });
    EXPECT_TRUE(has(message, "alerts.command: there is no executable program '" + program + "'")) << message;
  }
}

TEST(AlertCommand, ThatDisappearsIsOneWarning) {
  const Scratch scratch;
  const std::string program = scratch.write("program", "#!/bin/sh\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  std::vector<std::string> warnings;
  Command command({program}, 20, [&](const std::string& text) { warnings.push_back(text); });
  std::filesystem::remove(program);
  command.send("{}"), command.send("{}");
  command.finish();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(has(warnings[0], "cannot be started: No such file or directory")) << warnings[0];
}

TEST(AlertCommand, RunsAFewAtATimeAndDropsWhatNobodyCanRead) {
  const Scratch scratch;
  const std::vector<std::string> messages(Command::most_running + Command::most_waiting + 10, "{}");
  const Sent sent = send({"sh", "-c", "echo >> \"$1\"; sleep 30", "sh", scratch.at("started")}, messages, 1);
  ASSERT_EQ(sent.warnings.size(), 1u);
  EXPECT_TRUE(has(sent.warnings[0], "is too slow: 64 alerts wait for it")) << sent.warnings[0];
  EXPECT_LE(bytes_of(scratch.at("started")).size(), 2 * Command::most_running) << "and as many after the first ones were killed";
  EXPECT_LT(sent.seconds, 0.5);
}

}  // namespace
}  // namespace octet::health

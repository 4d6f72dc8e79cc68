#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "octet/base/descriptor.hpp"
#include "octet/train/run/record/console.hpp"
#include "tests/testing/octet.hpp"

// What `octet train` shows a person: on a terminal (a pseudo-terminal, whose screen is drawn here), in a file, and with --quiet.

namespace octet {
namespace {
using testing::bytes_of, testing::Ended, testing::has, testing::Scratch;

constexpr int width = 60;

/// What stands on a terminal that was sent `bytes`: its lines, of which each character takes one column; and the longest line so far.
struct Screen {
  std::vector<std::string> lines{""};
  std::size_t widest_status = 0;

  explicit Screen(const std::string& bytes) {
    std::vector<std::string> cells;  // of the last line
    std::size_t at = 0;
    for (std::size_t i = 0; i < bytes.size();) {
      std::size_t length = 1;
      while (i + length < bytes.size() && (bytes[i + length] & 0xC0) == 0x80) ++length;
      const std::string c = bytes.substr(i, length);
      i += length;
      if (c == "\r") {
        at = 0;
      } else if (c == "\n") {
        lines.emplace_back(), cells.clear(), at = 0;
      } else if (c == "\x1b") {
        if (bytes.substr(i, 2) != "[K") throw std::runtime_error("another escape code than that which erases a line");
        i += 2, cells.resize(at);
      } else {
        cells.resize(std::max(cells.size(), at + 1), " ");
        cells[at++] = c;
      }
      lines.back().clear();
      for (const std::string& cell : cells) lines.back() += cell;
      if (lines.back().starts_with("▕")) widest_status = std::max(widest_status, cells.size());
    }
  }
};

class Terminal : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::write_dataset(scratch);
    scratch.write("run.toml", testing::tiny_config("steps = 12\nbatch = 2\neval_every = 5\nsave_weights = false\n"));
  }

  /// What the program sends to a terminal of this kind on which its standard error is shown.
  std::string sent_to(const char* kind) const {
    const Descriptor ours("/dev/ptmx", O_RDWR | O_NOCTTY);
    if (!ours.ok() || ::grantpt(ours.number()) != 0 || ::unlockpt(ours.number()) != 0) throw std::runtime_error("no pseudo-terminal");
    Descriptor theirs(::ptsname(ours.number()), O_RDWR | O_NOCTTY);
    const winsize size{.ws_row = 24, .ws_col = width, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(theirs.number(), TIOCSWINSZ, &size);
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("cannot fork");
    if (child == 0) {
      ::setenv("TERM", kind, 1);
      ::dup2(::open("/dev/null", O_RDWR), 0), ::dup2(0, 1), ::dup2(theirs.number(), 2);
      if (::chdir(scratch.folder().c_str()) == 0) ::execl(OCTET_PROGRAM, OCTET_PROGRAM, "train", "run.toml", nullptr);
      ::_exit(127);
    }
    theirs.close();  // so that reading ends with the child
    std::string out;
    char block[4096];
    for (;;) {
      const ssize_t n = ::read(ours.number(), block, sizeof block);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      out.append(block, std::size_t(n));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << out;
    return out;
  }

  Scratch scratch;
};

TEST_F(Terminal, ShowsABarThatIsRedrawnInItsPlaceBelowTheLines) {
  const std::string sent = sent_to("xterm");
  EXPECT_TRUE(has(sent, " 1/12  loss")) << "the first step";
  EXPECT_TRUE(has(sent, "eta ")) << sent;
  const Screen screen(sent);
  EXPECT_LT(screen.widest_status, std::size_t(width));
  ASSERT_GE(screen.lines.size(), 5u);
  EXPECT_EQ(screen.lines.back(), "") << "the cursor is left below the bar";
  const std::string bar = screen.lines.end()[-2];
  EXPECT_TRUE(bar.starts_with("▕█") && has(bar, "█▏  step 12/12  loss ")) << bar;
  for (int i = 0; i < 3; ++i) {
    const std::string line = screen.lines.end()[i - 5];
    EXPECT_TRUE(line.starts_with("step " + std::to_string(std::min(5 * (i + 1), 12)) + "  eval loss ")) << line;
  }
}

TEST_F(Terminal, ThatIsDumbGetsWholeLines) {
  const std::string sent = sent_to("dumb");
  EXPECT_FALSE(has(sent, "\x1b"));
  EXPECT_TRUE(has(sent, "\nstep  1/12  loss ") && has(sent, "\nstep 12/12  loss ")) << sent;
}

TEST_F(Terminal, AFileGetsWholeLinesWithoutEscapeCodes) {
  const Ended ended = testing::run_octet("train run.toml", scratch.folder());
  EXPECT_EQ(ended.code, 0);
  for (const char* code : {"\r", "\x1b", "▕"}) EXPECT_FALSE(has(ended.err, code)) << ended.err;
  for (const char* part : {"\nstep  1/12  loss ", "\nstep 12/12  loss ", "\nstep 10  eval loss ", " tok/s"})
    EXPECT_TRUE(has(ended.err, part)) << ended.err;
  EXPECT_TRUE(ended.out.starts_with("all steps done: 12 steps, ")) << ended.out;
}

TEST_F(Terminal, QuietPrintsTheResultAlone) {
  const Ended ended = testing::run_octet("train run.toml --quiet", scratch.folder());
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err, "");
  EXPECT_TRUE(ended.out.starts_with("all steps done: 12 steps, ") && has(ended.out, "report runs/bf16/report.html\n")) << ended.out;
  EXPECT_EQ(std::count(ended.out.begin(), ended.out.end(), '\n'), 1);
}

TEST_F(Terminal, IsRestoredWhenAKeyOrASignalEndsTop) {
  ASSERT_EQ(testing::run_octet("train run.toml --quiet --steps 1", scratch.folder()).code, 0);
  for (const char key : {'q', '\x03'}) {  // the second is Ctrl-C
    const Descriptor ours("/dev/ptmx", O_RDWR | O_NOCTTY);
    if (!ours.ok() || ::grantpt(ours.number()) != 0 || ::unlockpt(ours.number()) != 0) throw std::runtime_error("no pseudo-terminal");
    const std::string theirs = ::ptsname(ours.number());
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::setsid();  // the terminal that it opens next is then its own
      const int terminal = ::open(theirs.c_str(), O_RDWR);
      for (int i = 0; i < 3; ++i) ::dup2(terminal, i);
      if (::chdir(scratch.folder().c_str()) == 0) ::execl(OCTET_PROGRAM, OCTET_PROGRAM, "top", "runs/bf16", nullptr);
      ::_exit(127);
    }
    const Descriptor held(theirs, O_RDWR | O_NOCTTY);  // so that its modes last
    char block[4096];
    const ssize_t first = ::read(ours.number(), block, sizeof block);
    ASSERT_GT(first, 0);
    EXPECT_TRUE(has(std::string(block, std::size_t(first)), "\x1b[H"));
    EXPECT_EQ(::write(ours.number(), &key, 1), 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (key == 'q') EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    else EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
    termios modes{};
    ASSERT_EQ(::tcgetattr(held.number(), &modes), 0);
    EXPECT_TRUE((modes.c_lflag & ICANON) != 0 && (modes.c_lflag & ECHO) != 0);
  }
}

TEST(Console, LinesOfALongRunGrowFewer) {
  using namespace std::chrono_literals;
  EXPECT_EQ(train::line_distance(0s), 5s);
  EXPECT_EQ(train::line_distance(250s), 5s);
  EXPECT_EQ(train::line_distance(1h), 72s);
  EXPECT_EQ(train::line_distance(24h), 5min);
}

}  // namespace
}  // namespace octet

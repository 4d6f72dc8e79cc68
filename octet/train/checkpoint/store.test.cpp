#include "octet/train/checkpoint/store.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "octet/base/file.hpp"
#include "octet/base/log.hpp"
#include "octet/numerics/philox.hpp"
#include "octet/train/checkpoint/disk.testing.hpp"
#include "octet/train/run/checkpoints/resume.hpp"
#include "octet/train/run/folder/run_folder.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::train {
namespace {
namespace fs = std::filesystem;
using octet::testing::bytes_of, octet::testing::error_of, octet::testing::has, octet::testing::Scratch;

/// What happens at call number `at` to the file system, of the calls that change it and of those that read what was written.
struct Fault {
  enum class Kind { none, dies_before, dies_after, refused, half_written, power_cut } kind = Kind::none;
  int at = 0, error = 0, calls = 0;
  std::uint64_t number = 0;  // Disk::cut
} fault;
std::unique_ptr<testing::Disk> disk;  // where there is one, it learns of every call

void cut_power() {
  const std::unique_ptr<testing::Disk> left = std::move(disk);
  fault.kind = Fault::Kind::none;
  left->cut(fault.number);
}

template <class Call>
auto guarded(Call call) -> decltype(call()) {
  if (fault.kind == Fault::Kind::none || ++fault.calls != fault.at) return call();
  if (fault.kind == Fault::Kind::power_cut) cut_power(), ::_exit(1);
  if (fault.kind == Fault::Kind::dies_before) ::_exit(1);
  if (fault.kind == Fault::Kind::refused) return errno = fault.error, decltype(call())(-1);
  const auto result = call();
  if (fault.kind == Fault::Kind::dies_after) ::_exit(1);
  return result;
}

/// call(), of which the disk learns when it succeeds.
template <class Call, class Tell>
auto told(Call call, Tell tell) -> decltype(call()) {
  const auto result = guarded(call);
  if (disk && result != decltype(result)(-1)) tell(*disk);
  return result;
}

std::string path_of(int file) {
  std::error_code none;
  return fs::read_symlink(format("/proc/self/fd/{}", file), none).string();
}

template <class F>
F real(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// The linker takes these for the program's calls of the same name, in Octet and in the standard library.
extern "C" {
int open(const char* path, int flags, ...) {
  static const auto next = real<int (*)(const char*, int, ...)>("open");
  va_list rest;
  va_start(rest, flags);
  const int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0;
  va_end(rest);
  return told([&] { return next(path, flags, mode); },
              [&](auto& d) {
                if (flags & O_CREAT) d.make(path, false);
              });
}
ssize_t pwrite(int file, const void* bytes, size_t n, off_t at) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return told([&] { return next(file, bytes, fault.kind == Fault::Kind::half_written ? (n + 1) / 2 : n, at); },
              [&](auto& d) {
                d.write(path_of(file), std::size_t(at), {static_cast<const char*>(bytes), n});
              });
}
// Of an open file it succeeds at once: what a power cut leaves is for Disk to say, and the tests of the program wait for the real one.
int fsync(int file) {
  return told([&] { return ::fcntl(file, F_GETFD) == -1 ? -1 : 0; }, [&](auto& d) { d.sync(path_of(file)); });
}
int fallocate(int file, int mode, off_t at, off_t n) {
  static const auto next = real<int (*)(int, int, off_t, off_t)>("fallocate");
  return told([&] { return next(file, mode, at, n); }, [&](auto& d) { d.reserve(path_of(file), std::size_t(at + n)); });
}
int close(int file) {
  static const auto next = real<int (*)(int)>("close");
  return guarded([&] { return next(file); });
}
int rename(const char* from, const char* to) noexcept {
  static const auto next = real<int (*)(const char*, const char*)>("rename");
  return told([&] { return next(from, to); }, [&](auto& d) { d.rename(from, to); });
}
int mkdir(const char* path, mode_t mode) noexcept {
  static const auto next = real<int (*)(const char*, mode_t)>("mkdir");
  return told([&] { return next(path, mode); }, [&](auto& d) { d.make(path, true); });
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  static const auto next = real<int (*)(int, const char*, int)>("unlinkat");
  return told([&] { return next(folder, path, flags); },
              [&](auto& d) { d.remove(folder == AT_FDCWD ? path : path_of(folder) + "/" + path); });
}
}

namespace {

Snapshot snapshot(std::int64_t step, std::size_t values = 5000) {
  std::vector<double> numbers(values, double(step));
  for (std::size_t i = 0; i < values; ++i) numbers[i] += double(philox(std::uint64_t(step), i).w[0]);
  Stream stream(Device::cpu);
  Capture capture(stream);
  capture.state("numbers", numbers);
  Snapshot out = capture.take();
  out.step = step, out.config = "seed = 1\n", out.text = "0";
  return out;
}

bool holds(const CheckpointStore& store, std::int64_t step) {
  const Snapshot wanted = snapshot(step);
  return bytes_of(store.path(step) + "/state.safetensors") == std::string(reinterpret_cast<const char*>(wanted.file.get()), wanted.bytes);
}

/// A store with checkpoints of steps 1 and 2, in a folder of its own.
struct Store : ::testing::Test {
  Scratch scratch, intact;
  CheckpointStore store{scratch.at("checkpoints")};

  Store() {
    log::set_quiet(true);
    for (const std::int64_t step : {1, 2}) CheckpointStore(intact.at("checkpoints")).write(snapshot(step));
    reset();
  }
  ~Store() override { log::set_quiet(false); }
  void reset() const {
    fs::remove_all(scratch.at("checkpoints"));
    fs::copy(intact.at("checkpoints"), scratch.at("checkpoints"), fs::copy_options::recursive);
  }
  std::size_t entries() const {
    std::error_code none;
    return std::size_t(std::distance(fs::directory_iterator(scratch.at("checkpoints"), none), fs::directory_iterator()));
  }
};

std::int64_t times(const char* variable, std::int64_t usual) {
  const char* text = std::getenv(variable);
  return text == nullptr ? usual : std::strtoll(text, nullptr, 10);
}

/// Runs `save` in a child process with a fault at each of its calls in turn, until it has no call of that number; `check` looks at what
/// is left.
void at_every_call(Fault::Kind kind, int error, const std::function<void()>& before, const std::function<void()>& save,
                   const std::function<void(int)>& check) {
  for (int at = 1;; ++at) {
    before();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      fault = {kind, at, error};
      try {
        save();
      } catch (const IoError&) {
      } catch (...) {
        ::_exit(3);
      }
      ::_exit(fault.calls >= at ? 1 : 2);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 3 && WEXITSTATUS(status) != 0)
        << "call " << at << " ended with status " << status;
    check(at);
    if (::testing::Test::HasFailure() || WEXITSTATUS(status) == 2) {
      EXPECT_GT(at, 20) << "so few calls cannot be a save";
      return;
    }
  }
}

TEST_F(Store, GivesBackWhatWasWrittenAndKnowsTheNewest) {
  EXPECT_EQ(store.steps(), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(entries(), 2u) << "nothing but the checkpoints may stay";
  const Manifest m = store.verify(2);
  EXPECT_EQ(m.step, 2);
  EXPECT_EQ(m.config, "seed = 1\n");
  EXPECT_TRUE(holds(store, 1) && holds(store, 2));
  for (const char* name : {"step-7", "step-00000000x", "step--00000003", "step-99999999999999999999", "step_000000009", "other"})
    fs::create_directory(scratch.at("checkpoints/") + name);
  EXPECT_EQ(store.steps(), (std::vector<std::int64_t>{1, 2})) << "only names that Octet gives are looked at";
  EXPECT_FALSE(newest_good(CheckpointStore(scratch.at("none"))));
}

TEST_F(Store, KeepsTheNewestAndCollectsWhatTheKilledLeft) {
  for (const std::int64_t step : {3, 4, 9}) store.write(snapshot(step));
  store.retain(4, 2);
  EXPECT_EQ(store.steps(), (std::vector<std::int64_t>{3, 4, 9}));
  fs::create_directories(scratch.at("checkpoints/.tmp-5-1/x"));
  fs::create_directories(scratch.at("checkpoints/.trash-step-000000001-1"));
  store.collect_garbage();
  EXPECT_EQ(entries(), 3u);
}

TEST_F(Store, KilledAtAnyCallOfASaveHasTheOldOrTheNewCheckpoint) {
  for (const auto kind : {Fault::Kind::dies_before, Fault::Kind::dies_after})
    at_every_call(
        kind, 0, [&] { reset(); }, [&] { store.write(snapshot(3)), store.retain(3, 1); },
        [&](int at) {
          const auto good = newest_good(store);
          ASSERT_TRUE(good && (good->step == 2 || good->step == 3) && holds(store, good->step)) << "call " << at;
          store.collect_garbage();
          EXPECT_EQ(entries(), store.steps().size()) << "call " << at;
        });
}

TEST_F(Store, AfterAPowerCutAtAnyCallOfASaveHasTheOldOrTheNewCheckpoint) {
  const auto cuts = std::uint64_t(times("OCTET_POWER_CUTS", 4));
  for (std::uint64_t number = 0; number < cuts; ++number) {
    bool whole = false;
    at_every_call(
        Fault::Kind::power_cut, 0, [&] { reset(); },
        [&] {
          disk = std::make_unique<testing::Disk>(scratch.folder());
          fault.number = number;
          store.write(snapshot(3)), store.retain(3, 1);
          if (disk) cut_power();
        },
        [&](int at) {
          const auto good = newest_good(store);
          ASSERT_TRUE(good && (good->step == 2 || good->step == 3) && holds(store, good->step)) << "cut " << number << " at call " << at;
          EXPECT_TRUE(good->step == 3 || !whole) << "cut " << number << " at call " << at << ": it was there already";
          whole = good->step == 3 && number == 0;
          store.collect_garbage();
        });
    EXPECT_TRUE(holds(store, 3)) << "cut " << number << " after the save";
  }
}

TEST_F(Store, ARunFolderOutlivesAPowerCut) {
  disk = std::make_unique<testing::Disk>(scratch.folder());
  const std::string folder = make_run_folder(scratch.at("runs/of/today"), "current");
  CheckpointStore(folder + "/checkpoints").write(snapshot(5));
  cut_power();
  EXPECT_TRUE(holds(CheckpointStore(folder + "/checkpoints"), 5));
}

TEST_F(Store, KilledWhileItReplacesADamagedCheckpointStillHasAnOlderOne) {
  at_every_call(
      Fault::Kind::dies_before, 0,
      [&] {
        reset();
        fs::resize_file(store.path(2) + "/state.safetensors", 10);
      },
      [&] { store.write(snapshot(2)); },
      [&](int at) {
        const auto good = newest_good(store);
        ASSERT_TRUE(good && holds(store, good->step)) << "call " << at;
      });
}

TEST_F(Store, RefusedByTheSystemAtAnyCallKeepsWhatWasThereAndLeavesNothingHalfDone) {
  for (const int error : {ENOSPC, EIO})
    at_every_call(
        Fault::Kind::refused, error, [&] { reset(); }, [&] { store.write(snapshot(3)); },
        [&](int at) {
          const auto good = newest_good(store);
          ASSERT_TRUE(good && (good->step == 2 || good->step == 3) && holds(store, good->step)) << "call " << at;
          EXPECT_TRUE(holds(store, 1)) << "call " << at;
          store.collect_garbage();
          EXPECT_EQ(entries(), store.steps().size()) << "call " << at;
        });
}

TEST_F(Store, GoesOnWhereTheSystemWroteOnlyAPartOrWasInterrupted) {
  for (const auto& [kind, error] : {std::pair{Fault::Kind::half_written, 0}, std::pair{Fault::Kind::refused, EINTR}}) {
    reset();
    for (int at = 1; at < 6; ++at) {
      fault = {kind, 0, error};  // of every write the first half, or no fault: call 0 never comes
      const std::string message = error_of<IoError>([&] { store.write(snapshot(3)); });
      fault = {};
      EXPECT_EQ(message, "no error");
    }
    EXPECT_TRUE(store.verify(3).step == 3 && holds(store, 3));
  }
}

/// One random injury of the checkpoint of step 2; says which file it hurt.
std::string injure(const CheckpointStore& store, std::uint64_t number) {
  const RandomWords r = philox(99, number);
  const std::string name = r.w[0] % 2 ? "state.safetensors" : "MANIFEST.json", path = store.path(2) + "/" + name;
  std::string bytes = bytes_of(path);
  switch (r.w[1] % 6) {
    case 0: bytes.resize(r.w[2] % bytes.size()); break;
    case 1: bytes += std::string(1 + r.w[2] % 9, '\0'); break;
    case 2: bytes = bytes_of(store.path(1) + "/" + name); break;  // the same file of another step
    case 3: fs::remove(path); return path;
    default:
      for (std::uint32_t flips = 1 + r.w[3] % 3, i = 0; i < flips; ++i)
        bytes[(r.w[2] + i * 7919) % bytes.size()] ^= char(1 << (r.w[3] >> 8) % 8);
  }
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST_F(Store, FindsEveryRandomInjuryByNameAndUsesTheOlderCheckpoint) {
  const std::int64_t wanted = times("OCTET_CORRUPTIONS", 200);
  for (std::int64_t i = 0; i < wanted; ++i) {
    const std::string path = injure(store, std::uint64_t(i));
    const std::string message = error_of<Error>([&] { store.verify(2); });
    EXPECT_TRUE(has(message, path) || has(message, store.path(2) + "/MANIFEST.json"))
        << "injury " << i << " of " << path << ": " << message;
    const auto good = newest_good(store);
    ASSERT_TRUE(good && good->step == 1) << "injury " << i;
    reset();
  }
}

TEST_F(Store, RefusesFoldersThatWereRenamed) {
  fs::remove_all(store.path(1));
  fs::rename(store.path(2), store.path(1));
  EXPECT_TRUE(has(error_of<DataError>([&] { store.verify(1); }), "belongs to step 2"));
}

TEST_F(Store, RefusesAManifestThatNamesFilesElsewhere) {
  Manifest m = store.verify(2);
  for (const char* name : {"../step-000000001/state.safetensors", "/etc/passwd", "", ".hidden", "a\nb"}) {
    m.files[0].name = name;
    EXPECT_TRUE(has(error_of<DataError>([&] { parse_manifest(manifest_text(m), "x/MANIFEST.json"); }), "x/MANIFEST.json")) << name;
  }
}

}  // namespace
}  // namespace octet::train

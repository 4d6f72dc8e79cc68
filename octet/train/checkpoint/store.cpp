#include "octet/train/checkpoint/store.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "octet/base/file.hpp"
#include "octet/base/folder.hpp"
#include "octet/base/new_file.hpp"
#include "octet/io/input_file.hpp"
#include "octet/train/checkpoint/state_files.hpp"

namespace octet::train {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view prefix = "step-", temporary = ".tmp-", trash = ".trash-";
constexpr std::size_t block = std::size_t(4) << 20;

// -1 for any other name.
std::int64_t step_of(const std::string& name) {
  std::int64_t step = -1;
  if (!name.starts_with(prefix)) return -1;
  const char *begin = name.data() + prefix.size(), *end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(begin, end, step);
  return error == std::errc() && stop == end && *begin != '-' ? step : -1;
}

std::string name_of(std::int64_t step) {
  const std::string digits = to_text(step);
  return std::string(prefix) + std::string(digits.size() < 9 ? 9 - digits.size() : 0, '0') + digits;
}

void require_folder(const std::string& path) {
  const int reason = make_folder(path);
  if (reason != 0 && reason != EEXIST) refuse_file("make the folder", path, reason);
}

void move(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) refuse_file("rename", from, errno);
}

// From the disk rather than the page cache, where the system can drop that.
void forget_cached(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  if (file.ok()) ::posix_fadvise(file.number(), 0, 0, POSIX_FADV_DONTNEED);
}

data::Checksum checksum_of_file(const io::InputFile& file) {
  data::Checksummer sum;
  std::vector<std::byte> buffer(std::size_t(std::min<std::uint64_t>(file.size(), block)));
  for (std::uint64_t at = 0; at < file.size(); at += buffer.size()) {
    const std::span<std::byte> part(buffer.data(), std::size_t(std::min<std::uint64_t>(buffer.size(), file.size() - at)));
    file.read(at, part);
    sum.add(part);
  }
  return sum.sum();
}

io::InputFile file_of_size(const std::string& folder, const Manifest::File& file) {
  io::InputFile in(folder + "/" + file.name, io::Link::refuse);
  if (in.size() != file.bytes)
    throw DataError(
        format("{}: it has {} bytes, {} were written: the file was cut off or replaced", printable(in.path()), in.size(), file.bytes));
  return in;
}

// check(); of files that were just written, damage is a failure of the disk.
template <class Check>
void read_back(const Check& check) {
  try {
    check();
  } catch (const DataError& e) {
    throw IoError(format("the written files do not read back: {}", e.what()));
  }
}

}  // namespace

std::string CheckpointStore::path(std::int64_t step) const { return folder_ + "/" + name_of(step); }

std::vector<std::int64_t> CheckpointStore::steps() const {
  std::vector<std::int64_t> out;
  std::error_code reason;
  if (!fs::exists(folder_, reason)) return out;
  for (fs::directory_iterator at(folder_, reason), end; !reason && at != end; at.increment(reason)) {
    const std::string name = at->path().filename().string();
    const std::int64_t step = step_of(name);
    if (step >= 0 && name == name_of(step)) out.push_back(step);
  }
  if (reason) refuse_file("read the folder", folder_, reason.value());
  std::sort(out.begin(), out.end());
  return out;
}

Manifest CheckpointStore::verify(std::int64_t step) const {
  Manifest all = manifest(step);
  for (const Manifest::File& file : all.files) verify_file(step, file);
  return all;
}

Manifest CheckpointStore::read_manifest(const std::string& folder, std::int64_t step) const {
  Manifest manifest = train::read_manifest(folder);
  if (manifest.step != step)
    throw DataError(format("{}/{}: it belongs to step {}; the folder was renamed or its files were exchanged", printable(folder),
                           Manifest::file_name, manifest.step));
  return manifest;
}

void CheckpointStore::verify_file(const std::string& folder, const Manifest::File& file) const {
  const io::InputFile in = file_of_size(folder, file);
  if (!(checksum_of_file(in) == file.checksum))
    throw DataError(format("{}: its checksum does not fit: the file was damaged or replaced", printable(in.path())));
}

std::string CheckpointStore::working_folder(std::int64_t step) const { return format("{}/{}{}", folder_, temporary, step); }

void CheckpointStore::prepare(std::int64_t step) const {
  require_folder(folder_);
  abandon(step);
  require_folder(working_folder(step));
}

void CheckpointStore::abandon(std::int64_t step) const {
  std::error_code ignored;
  fs::remove_all(working_folder(step), ignored);
}

Manifest::File CheckpointStore::write_file(const Snapshot& snapshot, int rank) const {
  const std::string name = state_file_name(rank), path = working_folder(snapshot.step) + "/" + name;
  NewFile state(path, snapshot.bytes);
  data::Checksummer sum;
  for (std::size_t at = 0; at < snapshot.bytes; at += block) {
    const auto part = snapshot.span().subspan(at, std::min(block, snapshot.bytes - at));
    state.write(at, part), sum.add(part);
  }
  state.publish();
  forget_cached(path);
  const Manifest::File written{name, snapshot.bytes, sum.sum()};
  read_back([&] { verify_file(working_folder(snapshot.step), written); });
  return written;
}

void CheckpointStore::commit(const Snapshot& facts, const std::vector<Manifest::File>& files) const {
  const std::string working = working_folder(facts.step), place = path(facts.step);
  octet::write_file(working + "/" + Manifest::file_name, manifest_text({facts.step, facts.config, facts.text, files}));
  read_back([&] {
    for (const Manifest::File& file : read_manifest(working, facts.step).files) file_of_size(working, file);
  });
  std::error_code ignored;
  if (fs::exists(place, ignored)) remove(place);  // it was refused when this run was resumed
  move(working, place);
  sync_folder_of(place);
}

void CheckpointStore::write(const Snapshot& snapshot) const {
  try {
    prepare(snapshot.step);
    commit(snapshot, {write_file(snapshot, 0)});
  } catch (const IoError&) {
    abandon(snapshot.step);
    throw;
  }
}

void CheckpointStore::remove(const std::string& path) const {
  const std::string away = format("{}/{}{}-{}", folder_, trash, fs::path(path).filename().string(), ::getpid());
  std::error_code reason;
  fs::remove_all(away, reason);
  move(path, away);
  fs::remove_all(away, reason);
  if (reason) refuse_file("remove", away, reason.value());
}

void CheckpointStore::retain(std::int64_t newest, std::int64_t keep) const {
  std::vector<std::int64_t> all = steps();
  std::erase_if(all, [&](std::int64_t step) { return step > newest; });
  for (std::size_t i = 0; i + std::size_t(keep) < all.size(); ++i) remove(path(all[i]));
}

void CheckpointStore::forget_after(std::int64_t last) const {
  for (const std::int64_t step : steps())
    if (step > last) remove(path(step));
}

void CheckpointStore::collect_garbage() const {
  std::error_code ignored;
  std::vector<fs::path> left;
  for (fs::directory_iterator at(folder_, ignored), end; !ignored && at != end; at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(temporary) || name.starts_with(trash)) left.push_back(at->path());
  }
  for (const auto& path : left) fs::remove_all(path, ignored);
}

}  // namespace octet::train

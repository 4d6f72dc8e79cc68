#include "octet/data/dataset_writer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/base/folder.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/base/wildcard.hpp"

namespace octet::data {
namespace {
namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& folder, const std::string& reason) {
  throw IoError(format("cannot write a dataset to '{}': {}; choose another --output folder", printable(folder), reason));
}

constexpr std::size_t most_config_bytes = std::size_t(16) << 20;

/// "shard-00003-1f0c93ab.tok"
std::string shard_name(std::size_t number, const Checksum& identity) {
  const std::string digits = std::to_string(number);
  return "shard-" + std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits + "-" + to_text(identity).substr(0, 8) + ".tok";
}

}  // namespace

DatasetWriter::DatasetWriter(const std::string& folder, bool force) : folder_(folder) {
  if (const int reason = make_folders(folder)) refuse(folder, std::generic_category().message(reason));
  std::error_code error;
  if (!force && fs::exists(fs::path(folder) / Manifest::file_name, error))
    throw ConfigError(format("'{}' already holds a dataset; give --force to replace it, or another --output folder", printable(folder)));
  if (::access(folder.c_str(), W_OK | X_OK) != 0) refuse(folder, std::generic_category().message(errno));
  lock_ = Descriptor(folder, O_RDONLY | O_DIRECTORY);
  if (!lock_.ok()) refuse(folder, std::generic_category().message(errno));
  // A file system without locks goes without.
  if (::flock(lock_.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) refuse(folder, "another process is writing there");
}

DatasetWriter::~DatasetWriter() {
  std::error_code ignored;
  for (const std::string& path : uncommitted_) fs::remove(path, ignored);
}

void DatasetWriter::add(const ShardBuilder::Finished& shard) {
  const Checksum identity = checksum_of(std::string_view(shard.bytes).substr(0, ShardHeader::bytes));
  const std::string name = shard_name(manifest_.shards.size(), identity), path = (fs::path(folder_) / name).string();
  std::error_code ignored;
  const bool fresh = !fs::exists(path, ignored);  // else the dataset that is there has the same one
  write_own_file(path, shard.bytes);
  if (fresh) uncommitted_.push_back(path);
  const ShardHeader& h = shard.header;
  manifest_.shards.push_back({name, h.token_count, h.document_count, to_text(identity)});
  manifest_.tokenizer = h.tokenizer, manifest_.vocab_size = h.vocab_size;
  manifest_.tokens += h.token_count, manifest_.documents += h.document_count;
}

void DatasetWriter::set_tokenizer(const tokenizer::Tokenizer& tokenizer, const std::string& path) {
  if (tokenizer.source().empty()) return;
  files_[tokenizer::file_name] = tokenizer.source();
  const std::string folder = is_folder(path) ? path : folder_of(path);
  if (exists(folder + "/" + tokenizer::config_file_name))
    files_[tokenizer::config_file_name] = read_file(path_within(folder, tokenizer::config_file_name), most_config_bytes, Link::refuse);
}

/// Removes a tokenizer's files that are not those of this dataset; whether there were any.
bool DatasetWriter::remove_other_files() const {
  bool removed = false;
  for (const std::string name : {tokenizer::file_name, tokenizer::config_file_name}) {
    const std::string path = (fs::path(folder_) / name).string();
    const auto own = files_.find(name);
    if (!exists(path) || (own != files_.end() && own->second == read_file(path, tokenizer::most_source_bytes))) continue;
    std::error_code error;
    if (!fs::remove(path, error)) refuse(folder_, "cannot remove " + name + ": " + error.message());
    removed = true;
  }
  return removed;
}

void DatasetWriter::write_files() const {
  for (const auto& [name, bytes] : files_) write_own_file((fs::path(folder_) / name).string(), bytes);
}

/// A folder never has a manifest and the tokenizer of another dataset: if the program is killed, the tokenizer may be missing.
const Manifest& DatasetWriter::commit() {
  const bool replaces = remove_other_files();
  if (!replaces) write_files();
  write_manifest(folder_, manifest_);
  if (replaces) write_files();
  uncommitted_.clear();
  remove_other_shards();
  return manifest_;
}

void DatasetWriter::remove_other_shards() const {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    const bool ours = wildcard_match("shard-[0-9][0-9][0-9][0-9][0-9]*-????????.tok", name);
    if (ours && std::ranges::find(manifest_.shards, name, &Manifest::Entry::file) == manifest_.shards.end())
      fs::remove(entry.path(), error);
  }
}

}  // namespace octet::data

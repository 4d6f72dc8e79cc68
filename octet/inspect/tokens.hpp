#pragma once

#include <string>

namespace octet::inspect {

/// A dataset folder: header, documents, tokens and checksum of every shard, all verified, and the most frequent ids.
/// Throws as data::Dataset does.
std::string dataset_text(const std::string& folder);
/// The same of one token shard. Throws as data::Shard does.
std::string shard_text(const std::string& path);
/// The same of token files of another program, which have no checksum. Throws as data::Dataset does.
std::string foreign_tokens_text(const std::string& path);

}  // namespace octet::inspect

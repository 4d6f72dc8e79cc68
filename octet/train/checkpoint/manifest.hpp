#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/base/checksum.hpp"

namespace octet::train {

/// The file MANIFEST.json of a checkpoint: written last, it describes all other files.
struct Manifest {
  struct File {
    std::string name;  // in the checkpoint's folder
    std::uint64_t bytes = 0;
    data::Checksum checksum;
  };
  std::int64_t step = 0;  // optimizer steps done
  std::string config;     // resolved, as TOML
  std::string text;       // fingerprint of the dataset
  std::vector<File> files;

  static constexpr const char* file_name = "MANIFEST.json";
};

/// That of a checkpoint's folder. Throws IoError, or DataError as parse_manifest().
Manifest read_manifest(const std::string& folder);
/// JSON whose last member is the checksum of all before it.
std::string manifest_text(const Manifest&);
/// Throws DataError, which names `path`, when one byte is not as manifest_text() wrote it.
Manifest parse_manifest(const std::string& text, const std::string& path);

}  // namespace octet::train

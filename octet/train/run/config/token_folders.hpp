#pragma once

#include <optional>
#include <string>

#include "octet/comm/communicator.hpp"
#include "octet/config/read.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::train {

/// Token folders of text files (data::names_text), for one model. Each is made once, when it is first asked for: by the tokenizer of the
/// model's folder, and conversations by its chat template. Its name has a checksum of all that decides the tokens: the bytes of the files,
/// the tokenizer and the template. So other text has another folder, and a run that is resumed finds its own.
struct TokenFolders {
  /// Of a run's folders, the folder beside them that has token folders.
  static constexpr const char* folder_name = ".tokens";

  std::string model;          // with tokenizer.json; "": none is known, and plain text is left to the reader of token folders
  std::string chat_template;  // models::ChatTemplate::named; "": the model's own
  std::string output;         // that has the runs' folders

  /// The token folder of the files, made where it is missing, or `path` itself where that names no text. `key` names the path in messages.
  /// Throws ConfigError (no such file, no tokenizer, no template), DataError (a bad line, files that change meanwhile), IoError.
  std::string of(const std::string& path, const std::string& key) const;
  /// The same without making it: nothing where it is missing.
  std::optional<std::string> found(const std::string& path, const std::string& key) const;
};

TokenFolders token_folders_of(const RunConfig&);

/// The data of a run with token folders in place of text files. All ranks call it: the first one makes them, and its errors are all ranks'.
data::DataConfig with_token_folders(const RunConfig&, comm::Communicator&);
/// The same without making them: nothing where one is missing.
std::optional<data::DataConfig> with_found_token_folders(const RunConfig&);

/// Sets data.document_mask where the data has text files with conversations or pairs, unless `origins` has the key.
void keep_conversations_apart(RunConfig&, const config::Origins& origins);
/// Whether a path of data names text files that exist, with conversations or pairs.
bool names_conversations(const std::string& path);

}  // namespace octet::train

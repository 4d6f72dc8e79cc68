#include "octet/base/error.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/data/dataset.hpp"
#include "octet/tokenizer/byte_tokenizer.hpp"

namespace octet::data {
namespace {

/// "the byte tokenizer", or "the tokenizer bpe:0f..".
std::string shown(const std::string& identity) {
  return identity == tokenizer::ByteTokenizer::tokenizer_name ? "the byte tokenizer" : "the tokenizer " + printable(identity);
}

void require_identity(const std::string& identity, const std::string& folder, const std::optional<std::string>& found) {
  if (!found)
    throw DataError(format("{}: {} of {} is missing; copy it into this folder, or run `octet tokenize` again", printable(folder),
                           tokenizer::file_name, shown(identity)));
  if (*found != identity)
    throw DataError(format("{}/{}: it must be {}, it is {}; copy the right one, or run `octet tokenize` again", printable(folder),
                           tokenizer::file_name, shown(identity), shown(*found)));
}

}  // namespace

std::unique_ptr<const tokenizer::Tokenizer> open_tokenizer_of(const std::string& identity, const std::string& folder) {
  if (identity == tokenizer::ByteTokenizer::tokenizer_name) return tokenizer::open_tokenizer(identity);
  if (identity == unknown_tokenizer)
    throw DataError(format("{}: token files of another program do not tell their tokenizer; put its {} beside them", printable(folder),
                           tokenizer::file_name));
  require_identity(identity, folder, tokenizer::identity_in(folder));
  return tokenizer::open_tokenizer(folder);
}

void require_tokenizer_of(const std::string& identity, const std::string& folder, const std::string* source) {
  if (identity == unknown_tokenizer) return;
  if (source != nullptr) require_identity(identity, folder, tokenizer::identity_of(*source));
  else if (identity != tokenizer::ByteTokenizer::tokenizer_name) require_identity(identity, folder, std::nullopt);
}

std::unique_ptr<const tokenizer::Tokenizer> Dataset::open_tokenizer() const { return open_tokenizer_of(tokenizer(), folder_); }

bool require_same_tokenizer(const Dataset& dataset, const std::string& model_folder, std::int64_t model_vocabulary) {
  const auto found = tokenizer::identity_in(model_folder);
  if (dataset.tokenizer() == unknown_tokenizer) return false;
  const tokenizer::ByteTokenizer bytes;
  if (!found) return dataset.tokenizer() == bytes.name() && model_vocabulary == bytes.vocab_size();
  if (*found != dataset.tokenizer())
    throw ConfigError(format("'{}' was made with {}, the model in '{}' has {}; run `octet tokenize --tokenizer {}` on the text",
                             printable(dataset.folder()), shown(dataset.tokenizer()), printable(model_folder), shown(*found),
                             printable(model_folder)));
  return true;
}

}  // namespace octet::data

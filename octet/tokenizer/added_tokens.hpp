#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "octet/json/fields.hpp"

namespace octet::tokenizer {

/// A token that is found in the text before the model sees it: one entry of tokenizer.json's "added_tokens".
struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool single_word = false;             // only between characters of no word
  bool lstrip = false, rstrip = false;  // with the white space before or after it
  bool normalized = true;               // found in the normalized text, otherwise in the text as it is
  bool special = false;                 // has no text when decoded
};

/// The entries of "added_tokens". Throws DataError for an unsupported key, or a content that is empty, too long or occurs twice.
std::vector<AddedToken> read_added_tokens(const json::Fields& fields);

/// Finds tokens in a text: at each position the longest one, from left to right, without overlap.
class TokenFinder {
 public:
  /// `content`: the text to find, as it may have been normalized.
  void add(const std::string& content, const AddedToken& token);
  bool empty() const { return tokens_.empty(); }

  /// Calls `between` with each text between tokens, which is not empty, and `found` with the id of each token.
  void divide(std::string_view text, const std::function<void(std::string_view)>& between,
              const std::function<void(std::int32_t)>& found) const;

 private:
  struct Node {
    std::int32_t token = -1;  // place in tokens_ of the token that ends here
  };
  /// The longest token at the beginning of `text`, or null; `bytes`: its length.
  const AddedToken* longest(std::string_view text, std::size_t& bytes) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_ = {{}};
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;  // node and byte -> node
  bool first_bytes_[256] = {};
};

}  // namespace octet::tokenizer

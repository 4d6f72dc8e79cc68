#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octet::tokenizer {

/// A text that comes piece by piece, up to the first place at which one of some strings begins. The string and all text behind it are left
/// out. Bytes that may begin one are kept back until that is decided.
class StoppedText {
 public:
  /// None of the strings may be empty; throws ContractError.
  explicit StoppedText(std::vector<std::string> stops);
  /// The bytes that surely belong to the text after this piece.
  std::string next(std::string_view piece);
  /// The rest of a text that ends without such a string.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string waiting_;
  bool stopped_ = false;
};

}  // namespace octet::tokenizer

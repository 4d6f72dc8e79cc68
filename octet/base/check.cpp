#include "octet/base/check.hpp"

namespace octet {

void broken_contract(const Message& message, std::initializer_list<std::string> values) {
  std::string_view file = message.file;
  if (const auto root = file.rfind("octet/"); root != std::string_view::npos) file.remove_prefix(root);
  throw ContractError(fill(message.text, values) + "  [" + std::string(file) + ":" + std::to_string(message.line) + "]");
}

}  // namespace octet

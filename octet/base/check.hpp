#pragma once

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet {

/// A format text that remembers where it was written, so that check() need not be a macro.
struct Message {
  std::string_view text;
  const char* file;
  int line;
  Message(const char* text, const char* file = __builtin_FILE(), int line = __builtin_LINE()) : text(text), file(file), line(line) {}
};

[[noreturn]] void broken_contract(const Message&, std::initializer_list<std::string> values);

/// Throws ContractError unless `ok`. Every "{}" of the message is filled with the next argument.
template <class... Args>
void check(bool ok, Message message, const Args&... args) {
  if (!ok) [[unlikely]]
    broken_contract(message, {to_text(args)...});
}

}  // namespace octet

#include "octet/data/tokenizer.hpp"

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/data/byte_tokenizer.hpp"

namespace octet::data {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<const Tokenizer> (*make)();
};

template <class T>
std::unique_ptr<const Tokenizer> make() {
  return std::make_unique<T>();
}

constexpr Entry entries[] = {
    {ByteTokenizer::tokenizer_name, make<ByteTokenizer>},
};

}  // namespace

std::unique_ptr<const Tokenizer> make_tokenizer(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Entry& entry : entries) {
    if (entry.name == name) return entry.make();
    known.push_back(entry.name);
  }
  const std::string near = nearest_of(name, known);
  throw ConfigError(format("no tokenizer is called '{}'{}; there is: {}", printable(name),
                           near.empty() ? "" : ", did you mean '" + near + "'?", joined(known)));
}

}  // namespace octet::data

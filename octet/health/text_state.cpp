#include "octet/health/text_state.hpp"

#include <utility>

namespace octet::health {

void visit_texts(StateVisitor& v, std::string_view name, std::vector<std::string>& texts) {
  std::vector<double> bytes;
  for (const std::string& text : texts) {
    for (const char c : text) bytes.push_back(double(static_cast<unsigned char>(c)));
    bytes.push_back(double('\n'));
  }
  v.state(name, bytes);
  if (v.restoring()) texts = texts_of(bytes);
}

std::vector<std::string> texts_of(std::span<const double> bytes) {
  std::vector<std::string> texts;
  std::string text;
  for (const double byte : bytes) {
    if (byte == double('\n')) texts.push_back(std::exchange(text, {}));
    else text += char(static_cast<unsigned char>(byte));
  }
  return texts;
}

void visit_text(StateVisitor& v, std::string_view name, std::string& text) {
  std::vector<std::string> one{text};
  visit_texts(v, name, one);
  if (v.restoring()) text = one.empty() ? "" : one[0];
}

}  // namespace octet::health

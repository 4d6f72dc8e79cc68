#include "octet/data/multiple_choice.hpp"

#include <algorithm>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/base/text.hpp"
#include "octet/data/python_text.hpp"
#include "octet/json/fields.hpp"

namespace octet::data {
namespace {

constexpr std::size_t most_file_bytes = std::size_t(1) << 30;
constexpr std::size_t most_line_bytes = std::size_t(1) << 20;

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) text.replace(at, what.size(), by);
}

// HellaSwag's texts of WikiHow have marks such as [title] and [substeps].
std::string without_marks(std::string_view raw) {
  std::string text(stripped(raw));
  replace_all(text, " [title]", ". ");
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text[at] == '[' ? text.find_first_of("]\n", at) : std::string::npos;
    if (end != std::string::npos && text[end] == ']') at = end + 1;
    else out += text[at++];
  }
  replace_all(out, "  ", " ");
  return out;
}

// A number, or a text that is one, as in HellaSwag's label.
std::size_t number_of(const json::Fields& line, std::string_view key, std::size_t choices) {
  const json::Value& value = line.value(key);
  if (const std::string* text = value.text()) {
    if (text->size() == 1 && (*text)[0] >= '0' && std::size_t((*text)[0] - '0') < choices) return std::size_t((*text)[0] - '0');
    line.refuse(key, format("the number of the right choice, 0 to {}", choices - 1));
  }
  return std::size_t(line.integer(key, 0, std::int64_t(choices) - 1));
}

MultipleChoice hellaswag(const json::Fields& line) {
  MultipleChoice out;
  out.context = without_marks(line.text("activity_label") + ": " + line.text("ctx_a") + " " + capitalized(line.text("ctx_b")));
  for (const std::string& ending : line.texts("endings")) out.choices.push_back(without_marks(ending));
  if (out.choices.size() >= 2) out.answer = number_of(line, "label", out.choices.size());
  return out;
}

MultipleChoice arc(const json::Fields& line) {
  const json::Fields choices = line.object("choices");
  MultipleChoice out{.context = "Question: " + line.text("question") + "\nAnswer:", .choices = choices.texts("text")};
  const std::vector<std::string> labels = choices.texts("label");
  if (labels.size() != out.choices.size()) choices.refuse("label", format("{} texts, one for each choice", out.choices.size()));
  const auto found = std::ranges::find(labels, line.text("answerKey"));
  if (found == labels.end()) line.refuse("answerKey", "one of choices.label");
  out.answer = std::size_t(found - labels.begin());
  return out;
}

MultipleChoice mmlu(const json::Fields& line) {
  const std::vector<std::string> texts = line.texts("choices");
  if (texts.size() > 26) line.refuse("choices", "at most 26 texts, which the letters A to Z name");
  MultipleChoice out;
  if (line.has("subject")) {
    std::string subject = line.text("subject");
    std::ranges::replace(subject, '_', ' ');
    out.context = "The following are multiple choice questions (with answers) about " + subject + ".\n\n";
  }
  out.context += std::string(stripped(line.text("question"))) + "\n";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string letter(1, char('A' + i));
    out.context += letter + ". " + texts[i] + "\n", out.choices.push_back(letter);
  }
  out.context += "Answer:";
  if (texts.size() >= 2) out.answer = number_of(line, "answer", texts.size());
  return out;
}

MultipleChoice plain(const json::Fields& line) {
  MultipleChoice out{.context = line.text("context"), .choices = line.texts("choices")};
  if (out.choices.size() >= 2) out.answer = number_of(line, "answer", out.choices.size());
  return out;
}

}  // namespace

MultipleChoice multiple_choice_of(std::string_view line, const std::string& place) {
  const json::Value value = json::parse({.text = line, .file = place, .place = json::Place::column});
  const json::Fields fields(value, place);
  const bool known = fields.has("endings") || fields.has("answerKey") || fields.has("question") || fields.has("context");
  if (!known)
    throw DataError(
        format("{}: it is no question of HellaSwag (\"endings\"), ARC (\"answerKey\") or MMLU (\"question\"), and has no \"context\" with "
               "\"choices\" and \"answer\"; write each question in one of these forms",
               place));
  MultipleChoice out = fields.has("endings")     ? hellaswag(fields)
                       : fields.has("answerKey") ? arc(fields)
                       : fields.has("question")  ? mmlu(fields)
                                                 : plain(fields);
  if (out.choices.size() < 2 || std::ranges::find(out.choices, "") != out.choices.end())
    throw DataError(format("{}: a question must have two or more choices, none of them empty", place));
  return out;
}

std::vector<MultipleChoice> read_multiple_choice(const std::string& path) {
  const std::string text = read_file(path, most_file_bytes);
  std::vector<MultipleChoice> out;
  std::string_view lines = text;
  for (std::size_t number = 1; !lines.empty(); ++number) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.size() > most_line_bytes) throw DataError(format("{}:{}: a question has at most 1 MiB", printable(path), number));
    if (line.find_first_not_of(" \t\r\v\f") != line.npos) out.push_back(multiple_choice_of(line, format("{}:{}", printable(path), number)));
  }
  if (out.empty()) throw DataError(format("{}: there is no question in it; write one JSON object per line", printable(path)));
  return out;
}

}  // namespace octet::data

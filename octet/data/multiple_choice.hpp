#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace octet::data {

/// A question with several answers, as lm-evaluation-harness shows it to a model: each choice follows the context and one blank.
struct MultipleChoice {
  std::string context;
  std::vector<std::string> choices;  // two or more, none empty
  std::size_t answer = 0;            // the right one's number
};

/// The question of a JSON line. Its members tell the form:
///
///   HellaSwag  activity_label, ctx_a, ctx_b, endings, label    "label: ctx_a Ctx_b", with marks in brackets removed
///   ARC        question, choices {text, label}, answerKey      "Question: ...\nAnswer:"
///   MMLU       question, choices, answer, and maybe subject    the choices behind A. to D., "Answer:"; the letters are the choices
///   any other  context, choices, answer                        as they are
///
/// `place`: file and line, for messages. Throws DataError for another form, a missing member, an answer that is none of the choices.
/// Source: lm-evaluation-harness 0.4, lm_eval/tasks/{hellaswag,arc,mmlu}.
MultipleChoice multiple_choice_of(std::string_view line, const std::string& place);

/// The questions of a file of JSON lines; blank lines are ignored. Throws DataError as above, and where there is no question, IoError.
std::vector<MultipleChoice> read_multiple_choice(const std::string& path);

}  // namespace octet::data

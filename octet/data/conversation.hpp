#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "octet/tokenizer/message.hpp"
#include "octet/tokenizer/tokenizer.hpp"

namespace octet::data {

/// The conversation of a JSON line. Its members tell the form:
///
///   messages                            [{"role": "user", "content": "..."}, ...]
///   conversations (ShareGPT)            [{"from": "human", "value": "..."}, ...], and maybe "system"
///   prompt, completion                  a question and its answer, each a text or a list of messages
///   instruction, output, maybe input    the same; the input follows the instruction after a blank line; and maybe "system"
///
/// Throws DataError, with `place`, for another form, another role (such as "tool"), calls of tools, contents that are no text, and where
/// there is no answer.
std::vector<tokenizer::Message> conversation_of(std::string_view line, const std::string& place);

/// A question and two answers to it, of which the first one is preferred.
struct AnswerPair {
  std::vector<tokenizer::Message> question, chosen, rejected;
};

/// The pair of a JSON line. Its members tell the form:
///
///   prompt, chosen, rejected      each a text or a list of messages; answers may repeat the question before them
///   chosen, rejected              two conversations, which begin with the same messages: these are the question
///
/// and maybe "system". Throws DataError, with `place`, as conversation_of(), for an answer that is empty or does not begin and end as one
/// of the assistant, and where both answers are equal.
AnswerPair answer_pair_of(std::string_view line, const std::string& place);
/// The text of one of its answers behind the question. Earlier answers in the question are context.
std::vector<tokenizer::ChatSpan> parts_of_answer(const tokenizer::ChatForm&, const AnswerPair&,
                                                 const std::vector<tokenizer::Message>& answer);

/// Appends the ids of a conversation, which has no other prefix and end than its template gives it: those of its whole text, as
/// transformers encodes it. Ids that are not wholly in an answer have a context_mark. Returns the bytes of the text.
std::size_t encode_conversation(const tokenizer::Tokenizer&, const std::vector<tokenizer::ChatSpan>&, std::vector<std::int32_t>& ids);

}  // namespace octet::data

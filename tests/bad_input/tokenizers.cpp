#include "octet/base/text.hpp"
#include "octet/tokenizer/bpe_training.hpp"
#include "octet/tokenizer/pre_tokenizer.hpp"
#include "tests/bad_input/case.hpp"

namespace octet::bad_input {
namespace {

constexpr const char* file = "t/tokenizer.json";
const std::string tokenize = "tokenize --input text/*.txt --output there --tokenizer t";

std::string good() {
  return tokenizer::tokenizer_json({tokenizer::byte_tokens(), {}}, std::string(tokenizer::default_pattern), {"<|end|>"});
}

/// A tokenizer.json whose first `from` is `to`.
Case edited(std::string name, const std::string& from, const std::string& to, std::vector<std::string> says) {
  says.insert(says.end(), {"t/tokenizer.json: ", "fetch the file again"});
  std::string text = good();
  const std::size_t at = text.find(from);
  if (at == text.npos) throw std::runtime_error("the tokenizer has no " + from);
  text.replace(at, from.size(), to);
  return {"tokenizer_" + std::move(name), tokenize, ExitCode::data, std::move(says), with_file(file, text)};
}

Case of_text(std::string name, std::string text, std::vector<std::string> says) {
  says.push_back("t/tokenizer.json: ");
  return {"tokenizer_" + std::move(name), tokenize, ExitCode::data, std::move(says), with_file(file, std::move(text))};
}

std::string repeated(std::string_view part, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += part;
  return out;
}

/// A tokenizer of that many added tokens of 1000 bytes.
std::string with_added(int count) {
  std::string text = good(), all;
  for (int i = 0; i < count; ++i) all += format("{\"id\": {}, \"content\": \"{}{}\"},", 256 + i, 10000 + i, repeated("x", 995));
  const std::string list = "\"added_tokens\": [";
  return text.insert(text.find(list) + list.size(), all);
}

std::vector<Case> of_files() {
  const std::string pattern = "\"Regex\": \"";
  return {
      of_text("empty", "", {"a JSON object must begin here", "fetch the file again"}),
      of_text("cut_off", good().substr(0, 3000), {"not valid JSON", "fetch the file again"}),
      of_text("of_deep_brackets", "{\"model\": " + repeated("[", 100'000), {"nested 16 deep", "fetch the file again"}),
      of_text("of_many_values", "{\"added_tokens\": [" + repeated("0,", 4'200'000) + "0]}", {"at most 4,194,304 JSON values", "fetch"}),
      of_text("without_a_model", "{\"version\": \"1.0\"}", {"model must be", "missing"}),
      edited("of_another_model", "\"BPE\"", "\"Unigram\"", {"model.type must be BPE", "\"Unigram\""}),
      edited("of_another_pre_tokenizer", "\"Split\"", "\"Punctuation\"", {"pretokenizers[0].type must be", "\"Punctuation\""}),
      edited("with_another_key", "\"version\"", "\"versions\"", {"versions must be absent"}),
      edited("of_random_ids", "\"dropout\": null", "\"dropout\": 0.1", {"model.dropout must be", "0.1"}),
      edited("of_an_anchor", pattern, pattern + "^", {"the anchor ^", "not supported"}),
      edited("of_an_open_group", pattern, pattern + "(", {"is invalid", "parenthes"}),
      edited("of_deep_groups", pattern, pattern + repeated("(", 1000), {"is invalid", "nest"}),
      edited("of_a_huge_repetition", pattern, pattern + "(?:(?:(?:a{1000}){1000}){1000})|", {"is invalid", "large"}),
      edited("of_an_id_twice", "\"!\": 0", "\"!\": 1", {"model.vocab must be tokens of different ids"}),
      edited("of_a_huge_id", "\"!\": 0", "\"!\": 4000000000", {"model.vocab must be ids from 0 to"}),
      edited("of_an_id_beyond_all", "\"!\": 0", "\"!\": 16777215", {"model.vocab must be ids from 0 to 2097151"}),
      edited("of_an_added_token_beyond_all", "\"id\": 256", "\"id\": 16777215", {"id must be an integer from 0 to 2097151"}),
      of_text("of_long_added_tokens", with_added(2'200), {"all added tokens may have 2,097,152 bytes together", "fetch the file again"}),
      edited("of_an_added_token_elsewhere", "\"id\": 256", "\"id\": 300", {"must have the id 256", "got 300"}),
      edited("of_merges_without_tokens", "\"merges\": []", "\"merges\": [\"a b\"]", {"model.merges must be"}),
  };
}

/// Four entries of 100 each under `key` make 10^8 letters of one.
std::string lengthening(const std::string& key, const std::string& list) {
  std::string each;
  for (int i = 0; i < 4; ++i)
    each += (i > 0 ? "," : "") + ("{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, \"content\": \"" + repeated("a", 100) + "\"}");
  std::string text = good();
  const std::size_t at = text.find("\"" + key + "\": "), value = at + key.size() + 4;
  const std::size_t end = key == "normalizer" ? text.find(',', value) : text.find('}', value) + 1;
  if (at == text.npos) throw std::runtime_error("the tokenizer has no " + key);
  return text.replace(value, end - value, "{\"type\": \"Sequence\", \"" + list + "\": [" + each + "]}");
}

std::vector<Case> of_uses() {
  const auto with_text = [](const std::string& tokenizer, const std::string& text) {
    return [=](const Place& p) { p.write(file, tokenizer), p.write("text/evil.txt", text); };
  };
  std::string evil = good();
  const std::string from = "\"Regex\": \"";
  evil.insert(evil.find(from) + from.size(), "(?:(?:a+)+)+b|");
  return {
      {"tokenizer_that_backtracks",
       tokenize + " --end-of-document <|end|>",
       ExitCode::data,
       {"needs too much work", "simplify the pattern"},
       with_text(evil, format("{}cb", std::string(60, 'a')))},
      {"tokenizer_that_lengthens_text",
       tokenize + " --end-of-document <|end|>",
       ExitCode::data,
       {"t/tokenizer.json: normalizer makes more than", "choose a tokenizer"},
       with_text(lengthening("normalizer", "normalizers"), std::string(2'000'000, 'a'))},
      {"tokenizer_that_lengthens_decoded_text",
       "tokenizer decode --tokenizer t --input text/evil.txt",
       ExitCode::data,
       {"t/tokenizer.json: decoder makes more than", "choose a tokenizer"},
       with_text(lengthening("decoder", "decoders"), "64 64 64 64")},
      {"tokenizer_without_an_end", tokenize, ExitCode::usage, {"which token ends a document", "--end-of-document"}, with_text(good(), "x")},
      {"tokenizer_with_another_end",
       tokenize + " --end-of-document <|stop|>",
       ExitCode::usage,
       {"'<|stop|>'", "t/tokenizer.json"},
       with_text(good(), "x")},
      {"tokenizer_that_is_not_there", "tokenizer inspect --tokenizer t", ExitCode::usage, {"'t'", "name a tokenizer.json"}},
      {"tokenizer_of_an_empty_folder",
       "tokenizer inspect --tokenizer text",
       ExitCode::usage,
       {"'text' has no tokenizer.json", "another folder"},
       with_file("text/x.txt", "x")},
      {"tokenizer_named_twice", tokenize + " --model t", ExitCode::usage, {"--tokenizer and --model", "leave one out"}},
      {"tokenizer_of_another_action", "tokenizer trane", ExitCode::usage, {"'trane'", "did you mean 'train'?"}},
      {"tokenizer_of_few_ids",
       "tokenizer train --input text/*.txt --output t.json --vocabulary 256",
       ExitCode::usage,
       {"--vocabulary", "at least 257"}},
      {"tokenizer_over_another",
       "tokenizer train --input text/*.txt --output data/tokenizer.json --vocabulary 300",
       ExitCode::usage,
       {"--output data/tokenizer.json: the file is there already", "give --force"},
       [](const Place& p) { p.write("data/tokenizer.json", "{}"); }},
      {"tokenizer_of_no_text", "tokenizer train --input text/*.md --output t.json", ExitCode::usage, {"text/*.md", "check the path"}},
      {"model_of_another_tokenizer_trained",
       "train tiny.toml --set model.init=model",
       ExitCode::usage,
       {"the byte tokenizer", "octet tokenize --tokenizer model"},
       [](const Place& p) { p.take("model"), p.write("model/tokenizer.json", good()); }},
      {"model_of_another_tokenizer_evaluated",
       "eval model --data data",
       ExitCode::usage,
       {"the byte tokenizer", "octet tokenize --tokenizer model"},
       [](const Place& p) { p.take("model"), p.write("model/tokenizer.json", good()); }},
      {"ids_that_are_none",
       "tokenizer decode --tokenizer byte --input ids.txt",
       ExitCode::data,
       {"from 0 to 256", "'257'"},
       with_file("ids.txt", "1 2 257")},
  };
}

}  // namespace

std::vector<Case> tokenizers() { return all_of({of_files(), of_uses()}); }

}  // namespace octet::bad_input

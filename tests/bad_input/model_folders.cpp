#include <filesystem>

#include "octet/io/safetensors_writer.hpp"
#include "tests/bad_input/case.hpp"

namespace octet::bad_input {
namespace {
namespace fs = std::filesystem;

constexpr const char *config = "model/config.json", *weights = "model/model.safetensors",
                     *index_file = "model/model.safetensors.index.json";

/// A case that reads a model whose config.json was made bad.
Case bad_config(std::string name, std::vector<std::string> says, std::function<void(const Place&)> spoil) {
  says.insert(says.end(), {"model/config.json: ", "fetch it again"});
  return {"model_" + std::move(name), "export model --output there", ExitCode::data, std::move(says), [spoil](const Place& p) {
            p.take("model");
            spoil(p);
          }};
}

/// One that has other words.
Case configured(std::string name, std::string from, std::string to, std::vector<std::string> says) {
  return bad_config(std::move(name), std::move(says), [=](const Place& p) { p.edit(config, from, to); });
}

/// One that is `text`.
Case with_config(const std::string& name, std::string text, std::vector<std::string> says) {
  return bad_config("config_" + name, std::move(says), with_file(config, std::move(text)));
}

/// A case that reads a model of two files, "a.safetensors" the whole of it, by this index.
Case indexed(std::string name, std::string index, std::vector<std::string> says) {
  says.push_back("model");
  return {"index_" + std::move(name), "export model --output there", ExitCode::data, std::move(says), [=](const Place& p) {
            p.take("model");
            fs::copy(p.at(weights), p.at("outside.safetensors"));
            fs::copy(p.at(weights), p.at("model/a.safetensors"));
            fs::copy(p.at(weights), p.at("model/b.safetensors"));
            fs::create_symlink("../outside.safetensors", p.at("model/link.safetensors"));
            fs::remove(p.at(weights));
            p.write(index_file, index);
          }};
}

std::string map_of(const std::string& members) { return "{\"metadata\":{\"total_size\":1},\"weight_map\":{" + members + "}}"; }

std::vector<Case> of_configs() {
  const std::string size = "\"hidden_size\": 64";
  return {
      configured("of_no_width", size, "\"hidden_size\": 0", {"hidden_size must be an integer from 1", "got 0"}),
      configured("of_negative_width", size, "\"hidden_size\": -1", {"hidden_size must be", "got -1"}),
      configured("of_2_to_the_31_columns", size, "\"hidden_size\": 2147483648", {"hidden_size must be", "got 2147483648"}),
      configured("of_a_text_for_its_width", size, "\"hidden_size\": \"64\"", {"hidden_size must be", "got the string \"64\""}),
      configured("without_a_width", size, "\"hidden_size\": null", {"hidden_size must be", "got null"}),
      configured("of_a_width_twice", size, size + ", " + size, {"\"hidden_size\" occurs twice", "remove one"}),
      configured("of_heads_that_do_not_divide", "\"num_attention_heads\": 4", "\"num_attention_heads\": 5",
                 {"num_attention_heads = 5", "must be"}),
      configured("of_no_kv_heads", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 0", {"num_key_value_heads must be", "got 0"}),
      configured("of_many_kv_heads", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 64",
                 {"num_key_value_heads must be", "got 64"}),
      configured("of_a_rotation_without_base", "\"rope_theta\": ", "\"rope_theta\": NaN, \"was\": ", {"line ", "not valid JSON"}),
      configured("of_a_rotation_by_zero", "\"rope_theta\": ", "\"rope_theta\": 0, \"was\": ", {"rope_theta must be", "got 0"}),
      configured("quantized_by_others", size, size + ", \"quantization_config\": {}", {"quantization_config.quant_method", "must be"}),
      with_config("empty", "", {"line 1, column 1"}),
      with_config("cut_off", "{\"model_type\": \"llama\"", {"line 1", "not valid JSON"}),
      with_config("utf16", std::string("\xff\xfe{\0}\0", 6), {"line 1, column 1", "UTF-8 without byte order mark"}),
      with_config("deep", "{\"a\":" + std::string(1000, '['), {"line 1", "32 deep"}),
      {"model_config_of_a_gigabyte",
       "export model --output there",
       ExitCode::data,
       {"model/config.json: ", "at most 16,777,216 bytes", "fetch it again"},
       [](const Place& p) { p.take("model"), fs::resize_file(p.at(config), 1 << 30); }},
      {"model_config_that_is_a_folder",
       "export model --output there",
       ExitCode::io,
       {"'model/config.json'", "Is a directory", "name a file"},
       [](const Place& p) { p.take("model"), fs::remove(p.at(config)), fs::create_directory(p.at(config)); }},
  };
}

std::vector<Case> of_indexes() {
  const std::string a = "\"model.norm.weight\":\"a.safetensors\"";
  return {
      indexed("that_leads_outside", map_of("\"w\":\"../../etc/passwd\""), {"weight_map \"w\"", "no path", "../../etc/passwd"}),
      indexed("that_leads_to_the_root", map_of("\"w\":\"/etc/w.safetensors\""), {"weight_map \"w\"", "no path"}),
      indexed("of_control_bytes", map_of("\"w\":\"a\\n\\u001b.safetensors\""),
              {"weight_map \"w\"", "no control characters", "a\\x0a\\x1b.safetensors"}),
      indexed("of_numbers", map_of("\"w\":1"), {"weight_map \"w\"", "must name a file, got 1"}),
      indexed("of_a_file_that_is_missing", map_of("\"w\":\"c.safetensors\""), {"'c.safetensors' is missing", "fetch it again"}),
      indexed("of_a_link_outside", map_of("\"w\":\"link.safetensors\""),
              {"'link.safetensors'", "symbolic link", "put the file itself there"}),
      indexed("of_a_tensor_that_is_missing", map_of(a + ",\"w\":\"a.safetensors\""),
              {"tensor \"w\" in 'a.safetensors', which lacks it", "fetch both again"}),
      indexed("of_a_tensor_in_two_files", map_of(a + ",\"model.norm.weight.\":\"b.safetensors\""),
              {"is in two files", "a.safetensors", "b.safetensors"}),
      indexed("of_a_tensor_twice", map_of(a + "," + a), {"tensor \"model.norm.weight\" twice"}),
      indexed("without_a_map", "{\"metadata\":{}}", {"weight_map is missing", "fetch it again"}),
      indexed("cut_off", "{\"weight_map\":{", {"line 1", "not valid JSON"}),
  };
}

std::vector<Case> of_folders() {
  constexpr ExitCode usage = ExitCode::usage, data = ExitCode::data, io = ExitCode::io;
  const auto model = [](const Place& p) { p.take("model"); };
  const auto one_tensor = [](std::vector<std::int64_t> shape, io::StoredDType type) {
    return [=](const Place& p) {
      p.take("model");
      const std::vector<std::byte> zeros(io::stored_bits(type, shape).value() / 8);
      io::SafetensorsWriter writer(p.at(weights), {{"model.embed_tokens.weight", type, shape}});
      writer.append("model.embed_tokens.weight", zeros);
      writer.commit();
    };
  };
  return {
      {"model_nowhere", "export nowhere --output there", usage, {"nowhere: ", "no such folder", "hf download"}},
      {"model_that_is_a_dataset", "export data --output there", usage, {"data: ", "config.json", "finished run"}},
      {"model_that_is_a_dataset_to_evaluate", "eval data --data data", usage, {"data: ", "config.json", "finished run"}},
      {"model_that_is_a_dataset_to_sample", "generate data", usage, {"data: ", "config.json", "finished run"}},
      {"model_without_weights",
       "export model --output there",
       data,
       {"model: ", "must hold model.safetensors"},
       [](const Place& p) { p.take("model"), fs::remove(p.at(weights)); }},
      {"model_of_pickled_weights",
       "export model --output there",
       data,
       {"model: ", "convert it to safetensors"},
       [](const Place& p) { p.take("model"), fs::rename(p.at(weights), p.at("model/pytorch_model.bin")); }},
      {"model_of_two_kinds_of_weights",
       "export model --output there",
       data,
       {"model: holds both", "remove the one"},
       [](const Place& p) { p.take("model"), p.write(index_file, "{}"); }},
      {"model_weights_that_lead_outside",
       "export model --output there",
       data,
       {"'model.safetensors' is a symbolic link", "put the file itself there"},
       [](const Place& p) { p.take("model"), fs::rename(p.at(weights), p.at("w")), fs::create_symlink("../w", p.at(weights)); }},
      {"model_with_more_rows_than_its_vocabulary",
       "export model --output there",
       data,
       {"model.embed_tokens.weight", "[258, 64]", "config.json", "fetch"},
       one_tensor({258, 64}, io::StoredDType::f32)},
      {"model_of_integers",
       "export model --output there",
       data,
       {"model.embed_tokens.weight", "F32, BF16 or F16", "convert"},
       one_tensor({257, 64}, io::StoredDType::i32)},
      {"model_that_lacks_a_tensor",
       "export model --output there",
       data,
       {"tensor \"model.", "is missing", "fetch"},
       one_tensor({257, 64}, io::StoredDType::bf16)},
      {"model_of_another_size",
       "train tiny.toml --set model.width=128 --set model.init=model",
       usage,
       {"model.init = \"model\": model/config.json decides", "model.width = 128 (it has 64)", "leave these keys out"},
       model},
      {"model_of_another_named_size",
       "train tiny.toml --set model.size=gpt2-124m --set model.init=model",
       usage,
       {"model/config.json decides", "model.size = \"gpt2-124m\", whose family is gpt2 (it has llama)", "leave these keys out"},
       model},
      {"model_of_another_context_to_plan",
       "plan tiny.toml --set model.context=7 --set model.init=model",
       usage,
       {"model.context = 7 (it has ", "leave these keys out"},
       model},
      {"model_of_an_unknown_family",
       "export model --output there",
       data,
       {"model/config.json: ", "model_type \"falcon\" is a family that octet does not support", "llama, qwen2, qwen3, gpt2"},
       [](const Place& p) { p.take("model"), p.edit(config, "\"model_type\": \"llama\"", "\"model_type\": \"falcon\""); }},
      {"model_whose_tokenizer_leads_outside",
       "export model --output there",
       data,
       {"model: 'tokenizer.json' is a symbolic link", "put the file itself there"},
       [](const Place& p) { p.take("model"), fs::create_symlink("/etc/passwd", p.at("model/tokenizer.json")); }},
      {"model_whose_tokenizer_is_a_gigabyte",
       "train tiny.toml --set model.init=model",
       data,
       {"model/tokenizer.json", "the file may have at most 67,108,864 bytes"},
       [](const Place& p) {
         p.take("model"), p.write("model/tokenizer.json", ""), fs::resize_file(p.at("model/tokenizer.json"), 1 << 30);
       }},
      {"dataset_whose_tokenizer_is_damaged",
       "train tiny.toml",
       data,
       {"data/tokenizer.json: it must be the byte tokenizer, it is the tokenizer bpe:", "copy the right one"},
       [](const Place& p) { p.write("data/tokenizer.json", "{"), p.write("data/tokenizer_config.json", "{}"); }},
      {"ids_of_logits_that_are_weights",
       "eval model --logits there --ids model/model.safetensors",
       data,
       {"model/model.safetensors: must hold a tensor \"ids\"", "I32 or I64 [rows, length]"},
       model},
      {"checkpoint_of_a_model_folder",
       "export model --step 3 --output there",
       usage,
       {"--step 3: model is no run's folder", "it has no checkpoints; name a run"},
       model},
      {"checkpoint_of_no_such_step",
       "export run --step 7 --output there",
       usage,
       {"--step 7: run has no checkpoint of that step", "there are 1, 2"},
       [](const Place& p) { p.take("run"); }},
      {"checkpoint_to_export_that_is_damaged",
       "export run --step 2 --output there",
       data,
       {"step-000000002", "state.safetensors"},
       [](const Place& p) { p.take("run"), p.cut("run/checkpoints/step-000000002/state.safetensors", 10); }},
      {"model_to_begin_with_that_lacks_a_tensor",
       "train tiny.toml --set model.init=model",
       data,
       {"tensor \"model.", "is missing", "fetch"},
       one_tensor({257, 64}, io::StoredDType::bf16)},
      {"model_evaluated_on_nothing",
       "eval model --data data --sequence 32 --held-out 0",
       usage,
       {"held-out part of 'data' is empty", "--held-out"},
       model},
      {"model_evaluated_without_data", "eval model", usage, {"--data is missing", "token folder"}, model},
      {"model_evaluated_on_all_and_on_some",
       "eval model --data data --all --held-out 0.5",
       usage,
       {"--all", "--held-out", "leave one out"},
       model},
      {"model_evaluated_beyond_the_text",
       "eval model --data data --sequence 100000",
       usage,
       {"held-out part of 'data'", "--sequence"},
       model},
      {"model_evaluated_by_an_unknown_recipe",
       "eval model --data data --recipe curent",
       usage,
       {"\"curent\"", "did you mean \"current\"?"},
       model},
      {"model_sampled_by_no_heat",
       "generate model --temperature -1",
       usage,
       {"--temperature", "at least 0", "octet generate --help"},
       model},
      {"model_sampled_by_no_penalty", "generate model --repetition-penalty 0", usage, {"--repetition-penalty", "above 0"}, model},
      {"model_sampled_into_another_cache", "generate model --cache fp4", usage, {"--cache", "fp4", "e4m3"}, model},
      {"model_sampled_from_no_lines", "generate model --prompts tiny.toml", data, {"tiny.toml:1", "{\"prompt\": \"...\"}"}, model},
      {"model_sampled_from_other_lines",
       "generate model --prompts lines",
       data,
       {"lines:1", "prompt must be a string", "it is missing"},
       [](const Place& p) { p.take("model"), p.write("lines", "{\"text\": \"no prompt\"}\n"); }},
      {"model_sampled_beyond_its_context",
       "generate model --prompts lines",
       usage,
       {"prompt 2 of lines has 2", "reads at most", "shorten it"},
       [](const Place& p) { p.take("model"), p.write("lines", "{\"prompt\":\"a\"}\n{\"prompt\":\"" + std::string(2000, 'a') + "\"}\n"); }},
      {"model_without_a_tokenizer_of_conversations",
       "eval model --data chat.jsonl",
       usage,
       {"--data: 'chat.jsonl' becomes tokens by the model's tokenizer", "model has no tokenizer.json; copy it there"},
       [](const Place& p) { p.take("model"), p.write("chat.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}\n"); }},
      {"model_evaluated_on_text_that_is_missing",
       "eval model --data none.jsonl",
       usage,
       {"--data: there is no file 'none.jsonl'", "check the path"},
       model},
      {"model_without_a_template_in_a_chat", "chat model", usage, {"model has no chat template", "--chat-template"}, model},
      {"model_written_below_a_file",
       "export model --output tiny.toml/model",
       io,
       {"tiny.toml/model", "Not a directory", "choose another"},
       model},
      {"model_written_over_another",
       "export run --output model",
       usage,
       {"model: already holds a model ('", "--force", "another --output folder"},
       [](const Place& p) { p.take("run"), p.take("model"); }},
      {"model_written_over_itself",
       "export model --output ./model/ --force",
       usage,
       {"--output ./model/", "never replaced", "name another folder"},
       model},
      {"model_written_through_a_link",
       "export run --output cache --force",
       usage,
       {"cache: is a symbolic link", "name the folder itself"},
       [](const Place& p) { p.take("run"), p.take("model"), fs::create_directory_symlink("model", p.at("cache")); }},
      {"model_written_over_a_cache",
       "export run --output there --force",
       usage,
       {"there: contains the symbolic link 'model.safetensors'", "name another folder"},
       [](const Place& p) {
         p.take("run"), p.take("model"), fs::create_directory(p.at("there"));
         fs::create_symlink("../model/model.safetensors", p.at("there/model.safetensors"));
       }},
      {"model_written_over_other_files",
       "export model --output data",
       usage,
       {"data: contains 'dataset.toml'", "name another folder"},
       [](const Place& p) { p.take("model"), fs::remove(p.at(p.shard())); }},
  };
}

}  // namespace

std::vector<Case> model_folders() { return all_of({of_configs(), of_indexes(), of_folders()}); }

}  // namespace octet::bad_input

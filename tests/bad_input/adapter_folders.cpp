#include "tests/bad_input/case.hpp"

namespace octet::bad_input {
namespace {

constexpr const char *config = "adapters/adapter_config.json", *tensors = "adapters/adapter_model.safetensors";

/// A case that reads adapters of "model" by this adapter_config.json; its tensors have no name that adapters have.
Case folder(std::string name, std::string text, ExitCode code, std::vector<std::string> says) {
  return {"adapters_" + std::move(name), "export adapters --output there", code, std::move(says), [=](const Place& p) {
            p.take("model");
            p.write(config, text), p.write(tensors, p.bytes("model/model.safetensors"));
          }};
}

std::string with(const std::string& more, const std::string& base = "model") {
  return R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "base_model_name_or_path": ")" + base + "\"" + more + "}";
}

}  // namespace

std::vector<Case> adapter_folders() {
  return {
      folder("that_are_no_json", "{", ExitCode::data, {config, "line 1, column 2: not valid JSON"}),
      folder("of_no_model", with("", "nowhere"), ExitCode::usage, {config, "base_model_name_or_path = \"nowhere\"", "write the path"}),
      folder("of_another_kind", with(R"(, "use_dora": true)"), ExitCode::data, {config, "use_dora must be false"}),
      folder("with_a_pattern_of_ranks", with(R"(, "rank_pattern": {"q_proj": 2})"), ExitCode::data, {config, "rank_pattern must be empty"}),
      folder("with_whole_modules", with(R"(, "modules_to_save": ["lm_head"])"), ExitCode::data, {config, "modules_to_save must be null"}),
      folder("of_other_parameters", with(R"(, "target_parameters": ["mlp.router.weight"])"), ExitCode::data,
             {config, "target_parameters must be of experts", "mlp.experts.gate_up_proj"}),
      folder("with_tensors_of_a_model", with(""), ExitCode::data, {tensors, "is unexpected", "lora_A.weight"}),
      {"adapters_of_random_weights",
       "train tiny.toml --set lora.rank=4",
       ExitCode::usage,
       {"lora.rank needs model.init", "name one, or set lora.rank = 0"}},
      {"adapters_that_drop_everything",
       "train tiny.toml --set model.init=model --set lora.rank=4 --set lora.dropout=1",
       ExitCode::usage,
       {"lora.dropout", "[0, 1)"}},
      {"adapters_with_gradients_of_one_scale_on_tensor_ranks",
       "plan tiny.toml --set model.init=model --set lora.rank=4 --set ranks.tensor=2 --set optim.gradients=e4m3_tensor",
       ExitCode::usage,
       {"ranks.tensor = 2", "2 ranks have copies of values of", "set optim.gradients = \"bf16\""},
       [](const Place& p) { p.take("model"); }},
      {"adapters_of_a_rank_beyond_a_matrix",
       "train tiny.toml --set model.init=model --set lora.rank=9999",
       ExitCode::usage,
       {"lora.rank = 9999", "whose rank is at most", "lower it"},
       [](const Place& p) { p.take("model"); }},
  };
}

}  // namespace octet::bad_input

#include <filesystem>

#include "tests/bad_input/case.hpp"

namespace octet::bad_input {
namespace {

/// A case that trains by the text of bad.toml.
Case text(std::string name, std::string toml, std::vector<std::string> says) {
  return {"configuration_" + std::move(name), "train bad.toml", ExitCode::usage, std::move(says), with_file("bad.toml", std::move(toml))};
}

/// A case that trains by tiny.toml and other values.
Case values(std::string name, const std::string& options, std::vector<std::string> says, ExitCode code = ExitCode::usage) {
  return {"values_" + std::move(name), "train tiny.toml " + options, code, std::move(says)};
}

std::string utf16(const std::string& ascii) {
  std::string out = "\xff\xfe";
  for (const char c : ascii) out += c, out += '\0';
  return out;
}

std::string many_keys() {
  std::string out;
  for (int i = 0; out.size() + 16 < (1 << 20); ++i) out += "k" + std::to_string(i) + "=1\n";
  return out;
}

std::vector<Case> of_text() {
  return {
      text("unknown_key", "[train]\nstepps = 2\n", {"bad.toml:2:1: ", "`train.stepps`", "did you mean `train.steps`?"}),
      text("unknown_section", "[trian]\nsteps = 2\n", {"bad.toml:1:", "`trian", "did you mean `train"}),
      text("key_of_another_section", "learning_rate = 1\n", {"bad.toml:1:1: ", "did you mean `optim.learning_rate`?"}),
      text("text_for_an_integer", "[train]\nsteps = \"2\"\n", {"bad.toml:2:9: ", "`train.steps` must be an integer >= 0", "got \"2\""}),
      text("number_for_an_integer", "[train]\nsteps = 2.0\n", {"bad.toml:2:9: ", "`train.steps` must be an integer", "got 2"}),
      text("integer_for_a_text", "[data]\npath = 3\n", {"bad.toml:2:8: ", "`data.path` must be text", "got 3"}),
      text("integer_for_a_truth_value", "deterministic = 1\n", {"bad.toml:1:17: ", "`deterministic` must be true or false", "got 1"}),
      text("text_for_a_list", "[recipe]\nkeep_bf16 = \"a\"\n", {"bad.toml:2:13: ", "`recipe.keep_bf16`", "write [\"a\"]"}),
      text("date", "[train]\nsteps = 2026-01-01\n", {"bad.toml:2:9: ", "`train.steps` must be an integer", "got a date"}),
      text("number_out_of_range", "[optim]\nlearning_rate = -1\n",
           {"bad.toml:2:17: ", "`optim.learning_rate` must be a number > 0", "got -1"}),
      text("number_not_finite", "[optim]\nlearning_rate = nan\n",
           {"bad.toml:2:17: ", "`optim.learning_rate` must be a number > 0", "not finite"}),
      text("integer_beyond_64_bits", "[train]\nsteps = 99999999999999999999\n", {"bad.toml:2:", "not TOML"}),
      text("choice_unknown", "device = \"gpus\"\n", {"bad.toml:1:10: ", "`device`", "did you mean gpu?"}),
      text("key_twice", "[train]\nsteps = 2\nsteps = 3\n", {"bad.toml:3:", "'steps'", "may occur only once"}),
      text("section_twice", "[train]\nsteps = 2\n[train]\nbatch = 3\n", {"bad.toml:3:", "'train'", "may occur only once"}),
      text("section_as_a_value", "train = 3\n", {"bad.toml:1:1: ", "`train` is a section", "`train.steps`"}),
      text("value_as_a_section", "[train.steps]\nx = 3\n", {"bad.toml:1:", "`train.steps`"}),
      text("evaluation_set_missing", "[data]\npath = \"data\"\neval_path = \"nowhere\"\n[train]\nsteps = 2\n",
           {"data.eval_path: there is no folder 'nowhere'", "octet tokenize"}),
      text("evaluation_set_that_is_text", "[data]\npath = \"data\"\neval_path = \"tiny.toml\"\n[train]\nsteps = 2\n",
           {"data.eval_path: 'tiny.toml' is a file", "tokenize it first"}),
      text("mixture_without_a_share", "[data]\npath = \"data\"\nmix = [\"more\"]\n[train]\nsteps = 2\n",
           {"data.mix: \"more\" must be PATH:SHARE", "such as data/code:0.3"}),
      text("mixture_of_more_than_all", "[data]\npath = \"data\"\nmix = [\"data:0.6\", \"data:0.4\"]\n[train]\nsteps = 2\n",
           {"data.mix: its shares have the sum 1", "keep the sum below 1"}),
      text("mixture_with_a_missing_text", "[data]\npath = \"data\"\nmix = [\"nowhere:0.5\"]\n[train]\nsteps = 2\n",
           {"data.mix: there is no folder 'nowhere'", "octet tokenize"}),
      text("section_in_a_list", "[[train]]\nsteps = 2\n", {"bad.toml:1:", "write [train] once, not [[train]]"}),
      text("rule_with_an_unknown_key", "[[recipe.rules]]\npath = \"*\"\nrecpie = \"bf16\"\n",
           {"bad.toml:3:1: ", "unknown key `recipe.rules[1].recpie`", "did you mean `recipe.rules[1].recipe`?"}),
      text("rule_of_an_unknown_recipe", "[[recipe.rules]]\npath = \"*\"\nrecipe = \"blok128\"\n",
           {"bad.toml:3:10: ", "`recipe.rules[1].recipe`", "did you mean block128?"}),
      text("rule_of_an_unknown_operand", "[[recipe.rules]]\n[[recipe.rules]]\noperands = [\"x\", \"y\"]\n",
           {"bad.toml:3:12: ", "`recipe.rules[2].operands` must be a list of some of x, w, dy"}),
      text("rules_as_a_section", "[recipe.rules]\npath = \"*\"\n",
           {"bad.toml:1:1: ", "`recipe.rules` must be a list of sections", "write [[recipe.rules]]"}),
      text("broken_bracket", "[train\nsteps = 2\n", {"bad.toml:1:", "not TOML"}),
      text("text_without_its_end", "[data]\npath = \"data\n", {"bad.toml:2:", "not TOML"}),
      text("text_that_breaks_the_parser", "[[=", {"bad.toml", "not TOML"}),
      text("json", "{\"train\": {\"steps\": 2}}", {"bad.toml:1:", "not TOML"}),
      text("deeper_than_any_section", "a = " + std::string(100000, '['), {"bad.toml:1:21: ", "16 levels"}),
      text("longer_than_any_run_needs", std::string((1 << 20) + 1, '\n'), {"bad.toml", "at most 1,048,576 bytes"}),
      text("a_hundred_thousand_keys", many_keys(), {"bad.toml:1:1: ", "unknown key `k0`"}),
      text("byte_order_mark", "\xef\xbb\xbf[train]\nsteps = 2\n", {"bad.toml", "byte-order mark", "UTF-8 without one"}),
      text("utf16", utf16("[train]\nsteps = 2\n"), {"bad.toml", "UTF-16", "save it as UTF-8"}),
      text("latin1", "[data]\npath = \"caf\xe9\"\n", {"bad.toml:2:", "is not UTF-8", "save the file as UTF-8"}),
      text("zero_bytes", std::string("[train]\nsteps = 2\n\0\0\0", 21), {"bad.toml:3:1: ", "TOML"}),
      text("escape_bytes", "[train]\n\"\\u001b[31m\" = 2\n", {"bad.toml:2:1: ", "unknown key"}),
      {"configuration_missing", "train missing.toml", ExitCode::usage, {"missing.toml", "check the path"}},
      {"configuration_that_is_a_folder", "train data", ExitCode::io, {"'data'", "Is a directory", "name a file"}},
  };
}

std::vector<Case> of_values() {
  return {
      values("layers_beyond_any_model", "--set model.layers=9999999", {"--set model.layers=9999999", "`model.layers`", "[0, 4096]"}),
      values("alerts_to_no_program", "--set alerts.command=[\"no-such-mailer\",\"me\"]",
             {"alerts.command: there is no executable program 'no-such-mailer'", "a list of a program, in PATH"}),
      values("threshold_below_zero", "--set alerts.loss_spike=-1", {"`alerts.loss_spike`", "[0, 1000000000]"}),
      values("rule_of_alerts_unknown", "--set alerts.loss_spikes=6", {"`alerts.loss_spikes`", "did you mean `alerts.loss_spike`?"}),
      values("recipe_unknown", "--set recipe.name=curent", {"`recipe.name`", "did you mean current?"}),
      values("format_that_a_recipe_has_not", "--fp8 rowwise --set recipe.format=hybrid",
             {"recipe.format = \"hybrid\"", "leave the key out"}),
      values("eight_bits_that_fit_no_layer", "--fp8 --set model.width=72",
             {"recipe.name = \"current\": none of the model's", "72 is not a multiple of 16", "set recipe.name = \"bf16\""}),
      values("rule_without_a_path", "--fp8 --set recipe.rules=[{recipe=\"bf16\"}]", {"recipe.rules[1].path is empty", "layers.*.mlp.down"}),
      values("rule_that_says_nothing", "--fp8 --set recipe.rules=[{path=\"*\"}]",
             {"recipe.rules[1] says nothing", "its recipe, its format or its attention"}),
      values("attention_in_an_unknown_precision", "--set recipe.attention=fp8_backward", {"`recipe.attention`", "bf16, fp8_forward, fp8"}),
      values("attention_of_a_rule_unknown", "--set recipe.rules=[{path=\"*\",attention=\"fp16\"}]",
             {"`recipe.rules[1].attention`", "default, bf16, fp8_forward, fp8"}),
      values("attention_in_eight_bits_of_wider_activations", "--fp8 fp32 --set recipe.attention=fp8",
             {"recipe.attention in 8 bits", "activations are f32", "\"bf16\""}),
      values("attention_in_eight_bits_of_narrow_heads", "--set recipe.attention=fp8 --set model.heads=8",
             {"recipe.attention = \"fp8\"", "heads of 8 columns are not a multiple of 16", "set recipe.attention = \"bf16\""}),
      values("rule_that_matches_no_layer", "--fp8 --set recipe.rules=[{path=\"layers.*.mpl.down\",recipe=\"bf16\"}]",
             {"recipe.rules[1].path: \"layers.*.mpl.down\" matches no layer", "did you mean \"layers.*.mlp.down\"?"}),
      values("recovery_without_alerts", "--set recovery.mode=act --set alerts.enabled=false",
             {"recovery.mode needs alerts", "set alerts.enabled = true"}),
      values("recovery_in_no_recipe", "--set recovery.mode=act --set recovery.layers.recipe=bf61", {"recovery.layers.recipe: ", "bf61"}),
      values("recovery_in_other_activations", "--set recovery.mode=act --set recovery.layers.recipe=fp16",
             {"recovery.layers.recipe = \"fp16\"", "choose another recipe"}),
      values("recovery_mode_unknown", "--set recovery.mode=acts", {"`recovery.mode`", "off, advise"}),
      values("rule_after_one_that_decides_all", "--fp8 --set recipe.keep_bf16=[\"*\"] --set recipe.rules=[{path=\"*\",format=\"e4m3\"}]",
             {"recipe.rules[1].path: \"*\" has nothing to decide", "leave it out or put it first"}),
      values("rule_of_a_format_that_its_recipe_has_not", "--fp8 --set recipe.rules=[{path=\"*\",recipe=\"rowwise\",format=\"e5m2\"}]",
             {"recipe.rules[1].format = \"e5m2\": recipe rowwise has e4m3 only", "leave it out"}),
      values("size_unknown", "--set model.size=llama-tini", {"model.size = \"llama-tini\"", "did you mean \"llama-tiny\"?"}),
      values("width_that_heads_do_not_divide", "--set model.width=65", {"model.width = 65", "a multiple of model.heads = 4"}),
      values("heads_that_kv_heads_do_not_divide", "--set model.heads=8 --set model.kv_heads=3", {"model.heads = 8", "model.kv_heads = 3"}),
      values("kv_heads_without_heads_enough", "--set model.kv_heads=16", {"model.heads = 4", "model.kv_heads = 16"}),
      values("head_of_odd_width", "--set model.width=60", {"model.width = 60", "model.heads", "15 columns, which must be even"}),
      values("saved_activations_unknown", "--set recipe.activations=fp4", {"recipe.activations", "\"fp4\"", "bf16", "fp8"}),
      values("part_to_recompute_unknown", "--set model.recompute=[\"norms\"]", {"model.recompute", "\"norms\"", "did you mean \"norm\"?"}),
      values("fewer_than_no_blocks_to_recompute", "--set model.recompute_layers=-1", {"`model.recompute_layers`", "[0, 4096]"}),
      values("more_blocks_to_recompute_than_there_are", "--set model.recompute=[\"mlp\"] --set model.recompute_layers=3",
             {"model.recompute_layers = 3", "between 0 (all blocks) and model.layers = 1"}),
      values("blocks_to_recompute_without_what", "--set model.recompute_layers=1",
             {"model.recompute_layers = 1", "set model.recompute too"}),
      values("sequence_longer_than_the_model_takes", "--set data.sequence_length=2000 --set data.eval_fraction=0",
             {"data.sequence_length = 2000", "at most 1024", "shorten"}),
      values("sequence_longer_than_the_text", "--set data.sequence_length=100000",
             {"data.sequence_length = 100000", "training part of 'data'", "shorten"}),
      values("all_text_held_out", "--set data.eval_fraction=1", {"`data.eval_fraction`", "[0, 1)"}),
      values("vocabulary_below_the_text", "--set model.vocabulary=100",
             {"'data'", "token ids up to 256", "set model.vocabulary to at least 257"}),
      values("first_weights_that_are_not_there", "--set model.init=nowhere", {"nowhere: there is no such folder", "hf download"}),
      values("memory_that_no_machine_has", "--set model.width=65536 --set model.hidden=65536 --set model.layers=4",
             {"TiB", "are free", "at any batch size", "smaller model"}, ExitCode::device),
      values("memory_beyond_64_bits",
             "--set model.width=1048576 --set model.hidden=4194304 --set model.layers=4096 --set train.batch=65536 --set "
             "train.accumulate=65536 --set model.vocabulary=16777216",
             {"out of memory", "use a smaller batch"}, ExitCode::device),
  };
}

/// Storages of weights, gradients and moments, levels, and the factor of the loss.
std::vector<Case> of_states() {
  const std::string anyway = "optim.allow_unsafe = true trains with it";
  return {
      values("master_that_loses_small_updates", "--set optim.master=bf16_nearest",
             {"optim.master = \"bf16_nearest\"", "half of a weight's last place", "set it to \"bf16\"", "or to \"f16\"", anyway}),
      values("master_of_four_bits", "--set optim.master=e4m3_tensor",
             {"optim.master = \"e4m3_tensor\"", "4 bits of precision", "set it to \"f16\"", anyway}),
      values("moments_both_with_one_scale_per_tensor", "--set optim.m=e4m3_tensor --set optim.v=e4m3_tensor",
             {"optim.m and optim.v = \"e4m3_tensor\"", "one scale per tensor", "set optim.v to \"f16\" or \"e4m3_expanded\"", anyway}),
      values("moments_of_a_level_beside_an_unsafe_master", "--level O3 --set optim.master=bf16_nearest",
             {"optim.master = \"bf16_nearest\"", "set it to \"bf16\"", anyway}),
      {"study_of_an_arm_with_an_unsafe_storage",
       "compare tiny.toml --arm low:optim.master=e4m3_tensor",
       ExitCode::usage,
       {"arm low: ", "optim.master = \"e4m3_tensor\"", "set it to \"f16\"", anyway}},
      values("unsafe_storage_allowed_by_no_truth_value", "--set optim.master=bf16_nearest --set optim.allow_unsafe=yes",
             {"`optim.allow_unsafe` must be true or false", "\"yes\""}),
      text("moments_that_m_and_v_replaced", "[optim]\nmoments = \"bf16\"\n",
           {"bad.toml:2:1: ", "`optim.moments` was replaced", "set `optim.m` and `optim.v`"}),
      values("moments_that_m_and_v_replaced", "--set optim.moments=bf16",
             {"--set optim.moments=bf16", "`optim.moments` was replaced", "set `optim.m` and `optim.v`"}),
      text("level_unknown", "[optim]\nlevel = \"O4\"\n", {"bad.toml:2:9: ", "`optim.level` must be one of O0, O1, O2, O3", "\"O4\""}),
      {"level_of_the_option_unknown",
       "train tiny.toml --fp8 --level 3",
       ExitCode::usage,
       {"--level", "must be one of O0, O1, O2, O3", "\"3\""}},
      text("optimizer_unknown", "[optim]\nname = \"moun\"\n",
           {"bad.toml:2:8: ", "`optim.name` must be one of adamw, muon", "did you mean muon?"}),
      values("too_little_room_for_experts", "--set model.size=moe-tiny --set ranks.data=2 --set ranks.expert=2 --set ranks.expert_room=0.5",
             {"ranks.expert_room = 0.5 is less memory than rows of equal loads need", "set it to 1 or more", "or to 0"}),
      values("whole_matrices_in_parts_of_layers", "--set optim.name=muon --set ranks.tensor=2",
             {"ranks.tensor = 2", "optim.name = \"muon\" reads all values of a matrix at once", "set ranks.tensor = 1", "\"adamw\""}),
      values("whole_matrices_in_slices", "--set optim.name=muon --set ranks.data=2 --set ranks.zero=1",
             {"ranks.zero = 1", "optim.name = \"muon\" reads all values of a matrix at once", "set ranks.zero = 0", "\"adamw\""}),
      values("momentum_that_never_decays", "--set optim.name=muon --set optim.muon.momentum=1", {"`optim.muon.momentum`", "[0, 1)"}),
      values("gradients_in_fp16", "--set optim.gradients=f16",
             {"`optim.gradients` must be one of level, f32, bf16, e4m3, e4m3_tensor", "\"f16\""}),
      values("gradients_with_the_exponents_of_moments", "--set optim.gradients=e4m3_expanded",
             {"`optim.gradients` must be one of level, f32, bf16, e4m3, e4m3_tensor", "\"e4m3_expanded\""}),
      values("gradients_in_e5m2", "--level O1 --set optim.gradients=e5m2",
             {"`optim.gradients` must be one of", "\"e5m2\"", "did you mean e4m3?"}),
      values("second_moments_in_blocks_without_expansion", "--set optim.v=e4m3", {"`optim.v` must be one of", "e4m3_expanded", "\"e4m3\""}),
      values("activations_in_8_bits_under_fp16", "--set recipe.name=fp16 --set recipe.activations=fp8",
             {"recipe.activations = \"fp8\"", "no 8-bit codes of FP16 activations", "recipe.name = \"fp16\"", "set it to \"bf16\""}),
      values("gradients_with_a_scale_per_tensor_in_parts", "--set ranks.data=2 --set ranks.zero=2 --set optim.gradients=e4m3_tensor",
             {"ranks.zero = 2", "one scale for a whole tensor", "set optim.gradients = \"e4m3\", or ranks.zero = 1"}),
      values("fp16_activations_with_weights_in_parts", "--set recipe.name=fp16 --set ranks.data=2 --set ranks.zero=3",
             {"ranks.zero = 3", "FP16 activations", "set ranks.zero = 2"}),
      values("gradients_of_one_scale_of_heads_that_ranks_share",
             "--set ranks.tensor=2 --set model.kv_heads=1 --set optim.gradients=e4m3_tensor",
             {"ranks.tensor = 2", "2 ranks have copies of values of layers.0.attn.qkv.weight", "set optim.gradients = \"bf16\""}),
      values("more_ranks_than_heads", "--set ranks.tensor=3",
             {"ranks.tensor = 3", "model.heads = ", "must be a multiple of it", "the nearest number for this model is 2"}),
      values("fp16_activations_in_parts_of_layers", "--set recipe.name=fp16 --set ranks.tensor=2",
             {"ranks.tensor = 2", "FP16", "choose another recipe"}),
      values("moments_in_blocks_that_ranks_cut", "--set ranks.tensor=2 --set model.hidden=192 --set optim.m=e4m3",
             {"optim.m = \"e4m3\"", "a scale per 128 values", "set optim.m = \"bf16\""}),
      values("a_sequence_that_ranks_do_not_divide", "--set ranks.context=3",
             {"ranks.context = 3", "data.sequence_length = ", "must be a multiple of 6", "the nearest number for this length is 2"}),
      values("attention_in_eight_bits_of_parts_of_sequences", "--set recipe.attention=fp8_forward --set ranks.context=2",
             {"ranks.context = 2", "no attention in 8 bits", "set recipe.attention = \"bf16\""}),
      values("experts_of_a_dense_family", "--set model.size=llama-tiny --set model.experts=8",
             {"model.experts", "family llama have no experts", "docs/experts.md"}),
      values("a_router_of_a_dense_family", "--set model.size=qwen3-tiny --set model.router_loss=0.1",
             {"model.router_loss", "family qwen3 have no experts"}),
      values("a_shard_group_without_all_experts",
             "--set model.size=moe-tiny --set ranks.data=4 --set ranks.zero=1 --set ranks.expert=4 --set ranks.shard=2",
             {"ranks.shard = 2", "must be a multiple of ranks.expert = 4", "the nearest number is 4"}),
      values("more_experts_per_token_than_there_are", "--set model.size=moe-tiny --set model.experts_per_token=9",
             {"model.experts_per_token = 9", "must be between 1 and model.experts = 8"}),
      values("groups_of_experts_of_unequal_size",
             "--set model.size=deepseek-moe-tiny --set train.save_weights=false --set model.layers=2 --set model.router_groups=3",
             {"model.router_groups = 3", "must be between 1 and 64, and divide model.experts = 8"}),
      values("groups_of_one_expert_ranked_by_two",
             "--set model.size=deepseek-moe-tiny --set train.save_weights=false --set model.layers=2 --set model.router_groups=8",
             {"model.router_groups = 8", "a group has at least 2 of the 8 experts"}),
      values("fewer_experts_in_the_chosen_groups_than_are_chosen",
             "--set model.size=deepseek-moe-tiny --set train.save_weights=false --set model.layers=2 --set model.router_kept_groups=1 "
             "--set model.experts_per_token=3",
             {"model.router_kept_groups = 1", "at least model.experts_per_token = 3 of the 8 experts"}),
      values("further_tokens_of_another_family", "--set model.size=llama-tiny --set model.mtp_depth=1",
             {"model.mtp_depth = 1", "family llama predict no further tokens", "choose deepseek_v3"}),
      values("no_block_with_experts", "--set model.size=moe-tiny --set model.dense_layers=4096",
             {"none of the blocks has experts", "model.dense_layers = 4096"}),
      values("a_score_of_routers_unknown", "--set model.size=moe-tiny --set model.router_score=sigmod",
             {"`model.router_score` must be one of", "did you mean sigmoid?"}),
      values("fp16_activations_in_parts_of_sequences", "--set recipe.name=fp16 --set ranks.context=2",
             {"ranks.context = 2", "FP16", "choose another recipe"}),
      values("a_schedule_without_chunks",
             "--set model.layers=4 --set ranks.pipeline=2 --set ranks.pipeline_schedule=zero_bubble --set ranks.pipeline_chunks=2",
             {"ranks.pipeline = 2", "ranks.pipeline_chunks = 2", "interleaved"}),
      values("more_stages_than_blocks", "--set ranks.pipeline=1000", {"ranks.pipeline = 1000", "model.layers = ", "the largest number"}),
      values("a_stage_of_zero_that_does_not_exist", "--set ranks.zero=4", {"`ranks.zero` must be an integer in [0, 3]", "got 4"}),
      values("loss_scale_that_rounds", "--set recipe.name=fp16 --set loss_scale.start=1000",
             {"loss_scale.start = 1000", "must be a power of two", "such as 1024"}),
      values("loss_scale_that_grows_by_a_factor_that_rounds", "--fp8 --set loss_scale.mode=dynamic --set loss_scale.growth=3",
             {"loss_scale.growth = 3", "must be a power of two", "such as 4"}),
      values("loss_scale_that_shrinks_by_a_factor_that_rounds", "--fp8 --set loss_scale.mode=dynamic --set loss_scale.backoff=0.3",
             {"loss_scale.backoff = 0.3", "must be a power of two", "such as 0.25"}),
      values("loss_scale_of_nothing", "--set loss_scale.mode=static --set loss_scale.start=0",
             {"`loss_scale.start` must be a number in [1e-9, 1e+18]", "got 0"}),
      values("loss_scale_that_never_grows", "--set loss_scale.mode=dynamic --set loss_scale.growth=1",
             {"`loss_scale.growth` must be a number in (1, 1000000000]", "got 1"}),
      values("loss_scale_that_an_overflow_leaves", "--set loss_scale.mode=dynamic --set loss_scale.backoff=1",
             {"`loss_scale.backoff` must be a number in [1e-9, 1)", "got 1"}),
      values("loss_scale_that_starts_below_its_bound", "--set recipe.name=fp16 --set loss_scale.smallest=131072",
             {"loss_scale.start = 65536", "loss_scale.smallest = 131072 and loss_scale.largest = 16777216", "change one"}),
      values("loss_scale_that_starts_above_its_bound", "--set recipe.name=fp16 --set loss_scale.largest=1024",
             {"loss_scale.start = 65536", "loss_scale.smallest = 1 and loss_scale.largest = 1024", "change one"}),
      values("loss_scale_of_a_mode_unknown", "--set loss_scale.mode=statik", {"`loss_scale.mode` must be one of", "did you mean static?"}),
  };
}

}  // namespace

std::vector<Case> configurations() { return all_of({of_text(), of_values(), of_states()}); }

}  // namespace octet::bad_input

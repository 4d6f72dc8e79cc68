#include "tests/bad_input/case.hpp"

namespace octet::bad_input {

std::vector<Case> command_lines() {
  constexpr ExitCode usage = ExitCode::usage, io = ExitCode::io;
  return {
      {"no_command", "", usage, {"subcommand is required", "octet --help"}},
      {"unknown_command", "trian", usage, {"no command `trian`", "did you mean `train`?"}},
      {"command_of_escape_bytes", "\x1b[31mtrain", usage, {"no command `\\x1b[31mtrain`", "octet --help"}},
      {"empty_command", "\"\"", usage, {"no command ``", "octet --help"}},
      {"unknown_option", "train --stpes 3", usage, {"no option `--stpes`", "did you mean `--steps`?", "octet train --help"}},
      {"option_that_is_no_integer", "train --steps x", usage, {"--steps", "octet train --help"}},
      {"option_below_its_range", "train tiny.toml --steps -3", usage, {"--steps", "at least 1", "octet train --help"}},
      {"option_beyond_64_bits", "train tiny.toml --steps 99999999999999999999", usage, {"--steps", "99999999999999999999", "octet train --help"}},
      {"option_with_a_fraction", "train tiny.toml --steps 2.5", usage, {"--steps", "2.5", "octet train --help"}},
      {"option_that_is_not_a_number", "tokenize --input text/*.txt --output there --max-mb nan", usage, {"--max-mb", "must be a number", "octet tokenize --help"}},
      {"option_without_its_value", "train tiny.toml --steps", usage, {"--steps", "octet train --help"}},
      {"option_given_twice", "train tiny.toml --steps 2 --steps 3", usage, {"--steps", "octet train --help"}},
      {"option_of_other_values", "export model --output there --dtype f64", usage, {"--dtype", "f64", "octet export --help"}},
      {"option_that_is_required", "tokenize --output there", usage, {"--input is required", "octet tokenize --help"}},
      {"number_beyond_doubles", "tokenize --input text/*.txt --output there --max-mb 1e999", usage, {"--max-mb", "1e999", "octet tokenize --help"}},
      {"word_too_many", "train tiny.toml another.toml", usage, {"another.toml", "octet train --help"}},
      {"time_without_its_unit", "train tiny.toml --max-time 5x", usage, {"--max-time \"5x\"", "90s, 5m or 1h30m"}},
      {"time_below_zero", "train tiny.toml --max-time -5m", usage, {"--max-time", "90s, 5m or 1h30m"}},
      {"run_without_length", "train --data data", usage, {"no length", "train.steps", "--max-time"}},
      {"run_without_data", "train --steps 2", usage, {"data.path is not set", "--data", "octet tokenize"}},
      {"run_name_with_a_slash", "train tiny.toml --name a/b", usage, {"name = \"a/b\"", "without \"/\""}},
      {"run_name_of_a_hidden_folder", "train tiny.toml --name ..", usage, {"name = \"..\"", "not starting with a dot"}},
      {"recipe_twice", "compare tiny.toml --recipes current,current", usage, {"--recipes", "current twice"}},
      {"recipe_unknown", "train tiny.toml --fp8 mxfp9", usage, {"\"mxfp9\"", "did you mean \"mxfp8\"?", "recipes are fp32, bf16"}},
      {"recipes_without_a_name", "compare tiny.toml --recipes current,,mxfp8", usage, {"--recipes", "empty part", "octet compare --help"}},
      {"tolerance_that_is_no_share", "compare tiny.toml --tolerance x", usage, {"--tolerance \"x\"", "0.005 or 0.5%"}},
      {"seeds_without_number", "compare tiny.toml --seeds 0", usage, {"--seeds", "from 1 to 100", "octet compare --help"}},
      {"override_without_key", "train tiny.toml --set =3", usage, {"--set =3: ", "no key", "section.key=value"}},
      {"override_without_value", "train tiny.toml --set train.steps", usage, {"--set train.steps: ", "section.key=value"}},
      {"override_of_nothing", "train tiny.toml --set \"\"", usage, {"--set ", "section.key=value"}},
      {"override_with_empty_parts", "train tiny.toml --set train..steps=3", usage, {"--set train..steps=3: ", "empty part", "section.key=value"}},
      {"override_of_a_section", "train tiny.toml --set train=3", usage, {"--set train=3: ", "`train` is a section", "`train.steps`"}},
      {"override_that_is_not_utf8", "train tiny.toml --set name=\xff", usage, {"--set name=", "not UTF-8"}},
      {"override_unknown", "train tiny.toml --set optim.learning_rat=1", usage, {"--set optim.learning_rat=1: ", "did you mean `optim.learning_rate`?"}},
      {"input_that_matches_nothing", "tokenize --input text/*.md --output there", usage, {"text/*.md", "matches no file", "check the path"}},
      {"input_of_folders", "tokenize --input text --output there", usage, {"'text' is a folder", "'text/**/*.txt'"}},
      {"output_that_is_a_dataset", "tokenize --input text/*.txt --output data", usage, {"'data' already holds a dataset", "--force"}},
      {"tokenizer_unknown", "tokenize --input text/*.txt --output there --tokenizer bytes", usage, {"'bytes'", "did you mean 'byte'?"}},
      {"output_of_runs_below_a_file", "train tiny.toml --output tiny.toml/runs", io, {"tiny.toml/runs", "Not a directory", "--set output=FOLDER"}},
      {"output_of_tokens_below_a_file", "tokenize --input text/*.txt --output tiny.toml/data", io, {"tiny.toml/data", "Not a directory", "another --output"}},
      {"benchmark_unknown", "bench gemms", usage, {"\"gemms\"", "gemm, quantize"}},
      {"inspection_of_nothing", "inspect nowhere", usage, {"nowhere: ", "neither a number nor a file", "check the path"}},
      {"inspection_of_a_folder_of_text", "inspect text", usage, {"text: holds no run.json", "name a run"}},
      {"inspection_of_a_text_file", "inspect tiny.toml", ExitCode::data, {"tiny.toml: bytes 0 to 7", "fetch it again"}},
      {"inspection_in_an_unknown_format", "inspect 0.3 --format e4m4", usage, {"--format \"e4m4\"", "did you mean e"}},
      {"inspection_of_a_file_in_a_format", "inspect tiny.toml --format e4m3", usage, {"--format is for numbers", "leave it out"}},
      {"gpu_that_is_not_there", "plan tiny.toml --set device=gpus", usage, {"`device`", "did you mean gpu?"}},
  };
}

}  // namespace octet::bad_input

#include <cmath>
#include <cstring>

#include "octet/io/safetensors_file.hpp"
#include "tests/bad_input/case.hpp"

namespace octet::bad_input {
namespace {

constexpr const char *config = "codes/config.json", *weights = "codes/model.safetensors";

/// A case that reads weights of codes in which bytes at the begin of a tensor were made others.
Case spoiled(std::string name, const std::string& tensor, std::string bytes, std::vector<std::string> says) {
  says.insert(says.end(), {"codes: ", "tensor \"" + tensor.substr(0, tensor.find("_scale_inv")), "fetch"});
  return {"codes_" + std::move(name), "export codes --output there", ExitCode::data, std::move(says), [=](const Place& p) {
            p.take("codes");
            std::string file = p.bytes(weights);
            const auto opened = io::SafetensorsFile::open(p.at(weights));
            for (const io::TensorEntry& t : opened.header().tensors)
              if (t.spec.name == tensor) file.replace(opened.header().data_offset + t.begin, bytes.size(), bytes);
            p.write(weights, file);
          }};
}

/// One whose config.json or header was edited.
Case edited(std::string name, const char* file, std::string from, std::string to, std::vector<std::string> says) {
  return {"codes_" + std::move(name), "export codes --output there", ExitCode::data, std::move(says),
          [=](const Place& p) { p.take("codes"), p.edit(file, from, to); }};
}

std::string bytes_of(float x) {
  std::string out(4, '\0');
  std::memcpy(out.data(), &x, 4);
  return out;
}

}  // namespace

std::vector<Case> coded_folders() {
  const std::string codes = "model.layers.0.mlp.down_proj.weight", scales = codes + "_scale_inv";
  const std::string block = "\"weight_block_size\": [128, 128]";
  return {
      spoiled("of_a_code_that_is_no_number", codes, "\x7f", {"a code that is NaN"}),
      spoiled("of_a_negative_code_that_is_no_number", codes, "\xff", {"a code that is NaN"}),
      spoiled("of_a_scale_of_zero", scales, bytes_of(0), {"the scale 0", "positive and finite"}),
      spoiled("of_a_negative_scale", scales, bytes_of(-1), {"the scale -1", "positive and finite"}),
      spoiled("of_an_infinite_scale", scales, bytes_of(INFINITY), {"positive and finite"}),
      spoiled("of_a_scale_that_is_no_number", scales, bytes_of(NAN), {"positive and finite"}),
      spoiled("of_values_beyond_fp32", scales, bytes_of(3e38f), {"a value that FP32 cannot hold"}),
      edited("of_other_blocks", config, block, "\"weight_block_size\": [64, 128]",
             {"tensor \"", "_scale_inv\" must be [", "64x128", "fetch"}),
      edited("of_half_a_block_size", config, block, "\"weight_block_size\": [128]", {"weight_block_size must be two numbers", "fetch"}),
      edited("of_another_method", config, "\"quant_method\": \"fp8\"", "\"quant_method\": \"gptq\"",
             {"quant_method must be \"fp8\"", "fetch"}),
      edited("of_another_format", config, "\"fmt\": \"e4m3\"", "\"fmt\": \"e5m2\"", {"fmt must be \"e4m3\"", "fetch"}),
      edited("without_a_configuration", config, "\"quantization_config\"", "\"was\"", {"it is F8_E4M3", "convert"}),
      edited("without_scales", weights, "down_proj.weight_scale_inv", "down_proj.weight_scale_no_", {"weight_scale\" is missing", "fetch"}),
  };
}

}  // namespace octet::bad_input

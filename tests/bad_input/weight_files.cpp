#include <filesystem>
#include <fstream>

#include "tests/bad_input/case.hpp"

namespace octet::bad_input {
namespace {
namespace fs = std::filesystem;

constexpr const char* weights = "model/model.safetensors";
const std::string again = "fetch it again";

std::string length_bytes(std::uint64_t n) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += char(n >> (8 * i));
  return out;
}

/// A case that reads a model whose weights are `bytes`.
Case file(std::string name, std::string bytes, std::vector<std::string> says) {
  says.push_back(weights);
  says.push_back(again);
  return {"weights_" + std::move(name), "export model --output there", ExitCode::data, std::move(says), [bytes](const Place& p) {
            p.take("model");
            p.write(weights, bytes);
          }};
}

/// A file of this header and so many bytes of data.
Case header(std::string name, const std::string& json, std::size_t data, std::vector<std::string> says) {
  return file("header_" + std::move(name), length_bytes(json.size()) + json + std::string(data, '\0'), std::move(says));
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}
/// One tensor "w" of 4 bytes, one of whose fields is another.
std::string shape(const std::string& s) { return "{" + tensor("w", "\"F32\"", s, "[0,4]") + "}"; }
std::string offsets(const std::string& o) { return "{" + tensor("w", "\"F32\"", "[1]", o) + "}"; }

std::vector<Case> of_lengths() {
  return {
      file("empty", "", {"has 0 bytes"}),
      file("seven_bytes", "1234567", {"has 7 bytes"}),
      file("header_of_all_memory", length_bytes(~std::uint64_t(0)) + "{}", {"bytes 0 to 7", "18446744073709551615"}),
      file("header_just_too_long", length_bytes(100'000'001) + "{}", {"bytes 0 to 7", "100000001"}),
      file("header_beyond_the_file", length_bytes(100) + "{}", {"must end within the file"}),
      file("git_lfs_pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", {"Git LFS pointer"}),
      {"weights_cut_off",
       "export model --output there",
       ExitCode::data,
       {weights, "cut off", again},
       [](const Place& p) { p.take("model"), p.cut(weights, 100); }},
      {"weights_cut_off_before_an_evaluation",
       "eval model --data data --sequence 32",
       ExitCode::data,
       {weights, "cut off", again},
       [](const Place& p) { p.take("model"), p.cut(weights, 100); }},
      {"weights_cut_off_before_a_text",
       "generate model",
       ExitCode::data,
       {weights, "cut off", again},
       [](const Place& p) { p.take("model"), p.cut(weights, 100); }},
      {"weights_with_more_behind",
       "export model --output there",
       ExitCode::data,
       {weights, "belong to no tensor", again},
       [](const Place& p) { p.take("model"), p.write(weights, p.bytes(weights) + "<html>"); }},
      {"weights_sparse",
       "export model --output there",
       ExitCode::data,
       {weights, again},
       [](const Place& p) {
         p.take("model");
         p.write(weights, length_bytes(2) + "{}");
         fs::resize_file(p.at(weights), std::uintmax_t(10) << 40);
       }},
      {"weights_header_of_zeros",
       "export model --output there",
       ExitCode::data,
       {weights, "byte 8", again},
       [](const Place& p) {
         p.take("model");
         p.write(weights, length_bytes(99'999'992));
         fs::resize_file(p.at(weights), 100'000'000);
       }},
      {"weights_header_of_a_million_tensors",
       "export model --output there",
       ExitCode::data,
       {weights, "131072 tensors", again},
       [](const Place& p) {
         p.take("model");
         std::string json = "{";
         for (int i = 0; json.size() < 8 << 20; ++i) json += (i ? "," : "") + tensor(std::to_string(i), "\"U8\"", "[0]", "[0,0]");
         std::ofstream out(p.at(weights), std::ios::binary);
         out << length_bytes(json.size() * 11 + 1);
         for (int i = 0; i < 11; ++i) out << json, json[0] = ',';
         out << "}";
       }},
  };
}

std::vector<Case> of_headers() {
  const std::string good = tensor("w", "\"F32\"", "[1]", "[0,4]");
  return {
      header("not_utf8", "{\"\xff\":1}", 0, {"byte 1"}),
      header("not_an_object", "[1]", 0, {"byte 8"}),
      header("null", "null", 0, {"byte 8"}),
      header("cut_off", "{\"w\":{\"dtype\":\"F32\"", 0, {"byte 2"}),
      header("deep", "{\"w\":" + std::string(100000, '['), 0,
             {"tensor \"w\"", "must be an object with dtype, shape and data_offsets, got an array"}),
      header("tensor_that_is_a_number", "{\"w\":3}", 0, {"tensor \"w\"", "must be an object", "got 3"}),
      header("tensor_twice", "{" + good + "," + tensor("w", "\"F32\"", "[1]", "[4,8]") + "}", 8, {"tensor \"w\" occurs twice"}),
      header("metadata_of_numbers", "{\"__metadata__\":{\"a\":1}}", 0, {"__metadata__ \"a\"", "must be a string", "got 1"}),
      header("metadata_that_is_a_list", "{\"__metadata__\":[]}", 0, {"__metadata__", "object of strings"}),
      header("metadata_of_megabytes",
             "{\"__metadata__\":{\"a\":\"" + std::string(900000, 'x') + "\",\"b\":\"" + std::string(900000, 'x') + "\"}}", 0,
             {"__metadata__ \"b\"", "1048576 bytes"}),
      header("without_dtype", "{\"w\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, {"tensor \"w\"", "no dtype"}),
      header("without_shape", "{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, {"tensor \"w\"", "no shape"}),
      header("without_offsets", "{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, {"tensor \"w\"", "no data_offsets"}),
      header("dtype_unknown", "{" + tensor("w", "\"F33\"", "[1]", "[0,4]") + "}", 4, {"tensor \"w\"", "dtype", "\"F33\""}),
      header("dtype_that_is_a_number", "{" + tensor("w", "32", "[1]", "[0,4]") + "}", 4,
             {"tensor \"w\"", "dtype must be a string", "got 32"}),
      header("dtype_twice", "{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
             {"tensor \"w\"", "dtype twice"}),
      header("shape_negative", shape("[-1]"), 4, {"tensor \"w\"", "shape must be", "got -1"}),
      header("shape_of_fractions", shape("[2.5]"), 4, {"tensor \"w\"", "shape must be", "got 2.5"}),
      header("shape_of_reals", shape("[1e300]"), 4, {"tensor \"w\"", "shape must be", "got 1e+300"}),
      header("shape_of_texts", shape("[\"2\"]"), 4, {"tensor \"w\"", "shape must be", "got the string \"2\""}),
      header("shape_of_truth_values", shape("[true]"), 4, {"tensor \"w\"", "shape must be", "got true"}),
      header("shape_beyond_2_to_the_48", shape("[2,18446744073709551614]"), 4, {"tensor \"w\"", "shape must be", "18446744073709551614"}),
      header("shape_that_overflows", shape("[65536,281474976710656]"), 4, {"tensor \"w\"", "2^64 bits"}),
      header("shape_of_rank_nine", shape("[1,1,1,1,1,1,1,1,1]"), 4, {"tensor \"w\"", "at most 8 integers"}),
      header("shape_of_another_size", shape("[2]"), 4, {"tensor \"w\"", "needs 8 bytes"}),
      header("offsets_that_fall", offsets("[4,0]"), 4, {"tensor \"w\"", "must not fall"}),
      header("offsets_negative", offsets("[0,-4]"), 4, {"tensor \"w\"", "data_offsets must be", "got -4"}),
      header("offsets_beyond_63_bits", offsets("[0,9223372036854775808]"), 4,
             {"tensor \"w\"", "data_offsets must be", "9223372036854775808"}),
      header("offsets_of_one_number", offsets("[4]"), 4, {"tensor \"w\"", "data_offsets must be two"}),
      header("offsets_of_three_numbers", offsets("[0,4,8]"), 4, {"tensor \"w\"", "data_offsets must be two"}),
      header("offsets_beyond_the_file", "{" + tensor("w", "\"F32\"", "[1]", "[0,4]") + "," + tensor("v", "\"F32\"", "[9]", "[4,40]") + "}",
             4, {"need 40 bytes of data, the file has 4"}),
      header("offsets_that_overlap", "{" + good + "," + tensor("v", "\"F32\"", "[1]", "[0,4]") + "}", 4,
             {"tensor \"", "must begin at byte 4", "begins at 0"}),
      header("offsets_with_a_hole", "{" + good + "," + tensor("v", "\"F32\"", "[1]", "[8,12]") + "}", 12,
             {"tensor \"v\"", "must begin at byte 4", "begins at 8"}),
      header("half_a_byte", "{" + tensor("w", "\"F4\"", "[1]", "[0,1]") + "}", 1, {"tensor \"w\"", "whole bytes"}),
      header("name_of_escape_bytes", "{\"\\u001b[31mw\":3}", 0, {"tensor \"\\x1b[31mw\""}),
  };
}

}  // namespace

std::vector<Case> weight_files() { return all_of({of_lengths(), of_headers()}); }

}  // namespace octet::bad_input

#include "octet/io/safetensors_writer.hpp"

#include <gtest/gtest.h>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/base/text.hpp"
#include "octet/io/safetensors_file.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::io {
namespace {
using testing::error_of, testing::has, testing::Scratch;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string pattern(std::size_t n, int seed) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += char(i * 31 + std::size_t(seed) * 7);
  return out;
}
std::string text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
std::size_t size_of(const TensorSpec& spec) { return std::size_t(*stored_bits(spec.dtype, spec.shape) / 8); }

/// Writes the tensors with a pattern each, reads them back, compares names, types, shapes, bytes and metadata.
void survive_a_round_trip(const std::vector<TensorSpec>& tensors, const Metadata& metadata) {
  const Scratch scratch;
  SafetensorsWriter writer(scratch.at("x"), tensors, metadata);
  for (std::size_t i = 0; i < tensors.size(); ++i) writer.append(tensors[i].name, bytes_of(pattern(size_of(tensors[i]), int(i))));
  EXPECT_TRUE(writer.complete());
  writer.commit();
  EXPECT_EQ(scratch.entries(), 1u) << "a temporary file was left behind";
  const SafetensorsFile file = SafetensorsFile::open(scratch.at("x"));
  EXPECT_EQ(file.tensors().size(), tensors.size());
  EXPECT_EQ(file.metadata(), metadata);
  EXPECT_EQ(file.header().data_offset % 8, 0u);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto read = file.find(tensors[i].name);
    ASSERT_TRUE(read) << tensors[i].name;
    EXPECT_EQ(read->dtype, tensors[i].dtype);
    EXPECT_EQ(std::vector<std::int64_t>(read->shape.begin(), read->shape.end()), tensors[i].shape);
    EXPECT_EQ(text_of(read->bytes), pattern(size_of(tensors[i]), int(i)));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(read->bytes.data()) % (std::size_t(std::max(element_bits(read->dtype), 8)) / 8), 0u);
  }
}

TEST(SafetensorsWriter, EveryTypeSurvivesARoundTripAtItsAlignment) {
  std::vector<TensorSpec> tensors;
  for (int t = 0; t <= int(StoredDType::u64); ++t) {
    const StoredDType type = StoredDType(t);
    EXPECT_EQ(stored_dtype(name(type)), type);
    tensors.push_back({"t." + std::string(name(type)), type, {3, 8}});
    tensors.push_back({"odd." + std::string(name(type)), type, {5, 1, 4}});
  }
  survive_a_round_trip(tensors, {{"format", "pt"}, {"written by", "a \"test\"\n"}});
}

TEST(SafetensorsWriter, NoTensorEmptyTensorsAndExtremeRanksSurviveARoundTrip) {
  survive_a_round_trip({}, {});
  survive_a_round_trip({}, {{"only", "metadata"}});
  survive_a_round_trip({{"none", StoredDType::f32, {0}}}, {});
  survive_a_round_trip(
      {{"", StoredDType::f32, {}}, {"empty", StoredDType::bf16, {2, 0, 3}}, {"one", StoredDType::u8, {1, 1, 1, 1, 1, 1, 1, 1}}}, {});
  survive_a_round_trip({{"quote\" back\\ line\n \xC3\xA9 \x01", StoredDType::u8, {3}}}, {});
}

TEST(SafetensorsWriter, ThousandsOfTensorsSurviveARoundTrip) {
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < 3000; ++i)
    tensors.push_back({format("layers.{}.weight", i), i % 3 ? StoredDType::bf16 : StoredDType::f32, {i % 5, 3}});
  survive_a_round_trip(tensors, {});
}

TEST(SafetensorsWriter, TheFileIsThisToTheByte) {
  const Scratch scratch;
  SafetensorsWriter writer(
      scratch.at("x"),
      {{"b", StoredDType::u8, {3}}, {"z", StoredDType::f32, {1}}, {"a", StoredDType::f32, {1}}, {"c", StoredDType::i64, {}}}, {{"k", "v"}});
  writer.append("c", bytes_of("cccccccc"));
  writer.append("a", bytes_of("aaaa"));
  writer.append("z", bytes_of("zzzz"));
  writer.append("b", bytes_of("b"));
  writer.append("b", bytes_of("bb"));
  writer.commit();
  const std::string header =
      R"({"__metadata__":{"k":"v"},"c":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},"z":{"dtype":"F32","shape":[1],"data_offsets":[12,16]},)"
      R"("b":{"dtype":"U8","shape":[3],"data_offsets":[16,19]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(read_file(scratch.at("x"), 1000), std::string({char(padded.size()), 0, 0, 0, 0, 0, 0, 0}) + padded + "ccccccccaaaazzzzbbb");
}

TEST(SafetensorsWriter, TheOldFileStandsUntilTheNewOneIsWhole) {
  const Scratch scratch;
  write_file(scratch.at("x"), "old");
  {
    SafetensorsWriter writer(scratch.at("x"), {{"a", StoredDType::u8, {4}}});
    writer.append("a", bytes_of("abc"));
    EXPECT_TRUE(has(error_of<ContractError>([&] { writer.commit(); }), "tensor a has 4 bytes, only 3 were written"));
    EXPECT_EQ(read_file(scratch.at("x"), 100), "old");
  }
  EXPECT_EQ(scratch.entries(), 1u) << "a temporary file was left behind";
  SafetensorsWriter writer(scratch.at("x"), {{"a", StoredDType::u8, {4}}});
  writer.append("a", bytes_of("abcd"));
  writer.commit();
  EXPECT_EQ(text_of(SafetensorsFile::open(scratch.at("x")).find("a")->bytes), "abcd");
}

TEST(SafetensorsWriter, WhatTheFormatCannotHoldIsTheCallersFault) {
  const Scratch scratch;
  const auto refusal = [&](std::vector<TensorSpec> tensors, const Metadata& metadata = {}) {
    return error_of<ContractError>([&] { SafetensorsWriter(scratch.at("x"), tensors, metadata); });
  };
  EXPECT_TRUE(has(refusal({{"a", StoredDType::u8, {1}}, {"a", StoredDType::f32, {1}}}), "tensor a is given twice"));
  EXPECT_TRUE(has(refusal({{"__metadata__", StoredDType::u8, {1}}}), "cannot be called __metadata__"));
  EXPECT_TRUE(has(refusal({{"a", StoredDType::u8, {-1}}}), "a dimension must be from 0 to 2^48, got -1"));
  EXPECT_TRUE(has(refusal({{"a", StoredDType::u8, std::vector<std::int64_t>(9, 1)}}), "a rank of at most 8"));
  EXPECT_TRUE(has(refusal({{"a", StoredDType::f4, {3}}}), "whole bytes"));
  EXPECT_TRUE(has(refusal({{"a", StoredDType::f64, {std::int64_t(1) << 48, 1024}}}), "below 2^64"));
  EXPECT_TRUE(has(refusal({{"\xFF", StoredDType::u8, {1}}}), "must be UTF-8"));
  EXPECT_TRUE(has(refusal({}, {{"k", "\xFF"}}), "must be UTF-8"));
  EXPECT_EQ(scratch.entries(), 0u);

  SafetensorsWriter writer(scratch.at("x"), {{"a", StoredDType::u8, {4}}});
  EXPECT_TRUE(has(error_of<ContractError>([&] { writer.append("b", bytes_of("1")); }), "tensor b was not announced"));
  EXPECT_TRUE(has(error_of<ContractError>([&] { writer.append("a", bytes_of("12345")); }), "tensor a has 4 bytes, got 5 after 0"));
}

TEST(SafetensorsWriter, AnUnwritablePlaceSaysWhy) {
  const Scratch scratch;
  EXPECT_EQ(error_of<IoError>([&] {
              SafetensorsWriter(scratch.at("no/x"), {{"a", StoredDType::u8, {1}}});
            }),
            "cannot write '" + scratch.at("no/x") + "': No such file or directory; check the path");
}

}  // namespace
}  // namespace octet::io

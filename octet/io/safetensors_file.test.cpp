#include "octet/io/safetensors_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/base/log.hpp"
#include "octet/io/safetensors_writer.hpp"
#include "octet/numerics/philox.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::io {
namespace {
using testing::error_of, testing::has, testing::Scratch;

/// A file with this header and this many bytes of data.
std::string file_of(std::string_view header, std::size_t data_bytes = 0) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += char(header.size() >> (8 * i));
  out += header;
  for (std::size_t i = 0; i < data_bytes; ++i) out += char(i * 37 + 1);
  return out;
}
/// The same around one tensor's entry.
std::string tensor_file(std::string_view entry, std::size_t data_bytes = 4) { return file_of(format("{\"a\":{}}", entry), data_bytes); }

struct Safetensors : ::testing::Test {
  Scratch scratch;
  std::string path = scratch.at("x.safetensors");
  Safetensors() { log::set_quiet(true); }
  ~Safetensors() override { log::set_quiet(false); }

  void put(std::string_view bytes) {
    std::filesystem::remove(path);  // truncating a file that is there makes some file systems flush it
    std::ofstream(path, std::ios::binary) << bytes;
  }
  SafetensorsFile opened(std::string_view bytes) {
    put(bytes);
    return SafetensorsFile::open(path);
  }
  void refuses(std::string_view bytes, std::string_view part) {
    const std::string message = error_of<DataError>([&] { opened(bytes); });
    EXPECT_TRUE(message.starts_with(path + ": ") && has(message, part)) << message << "\nwanted: " << part;
    EXPECT_LT(message.size(), 700u);
    EXPECT_FALSE(has(message, "\x1b") || has(message, "\n") || has(message, "\xFF")) << message;
  }
};

constexpr const char* good =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},"c":{"dtype":"U8","shape":[0,7],"data_offsets":[8,8]}})";

TEST_F(Safetensors, AGoodFileShowsItsTensorsInOrderOfOffsetAndByName) {
  const SafetensorsFile file = opened(file_of(good, 10));
  const auto tensors = file.tensors();
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[1].name, "c") << "an empty tensor lies before the one that begins where it ends";
  EXPECT_EQ(tensors[2].name, "b");
  const auto b = file.find("b");
  ASSERT_TRUE(b);
  EXPECT_EQ(b->dtype, StoredDType::bf16);
  EXPECT_EQ(b->count(), 1);
  EXPECT_EQ(int(b->bytes[0]), (8 * 37 + 1) & 255);
  EXPECT_EQ(file.find("c")->count(), 0);
  EXPECT_FALSE(file.find("d"));
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}}));
  EXPECT_FALSE(file.header().leading_blank);
}

TEST_F(Safetensors, ViewsLiveOnWhenTheFileMoves) {
  SafetensorsFile file = opened(file_of(good, 10));
  const TensorView before = *file.find("a");
  const SafetensorsFile moved = std::move(file);
  EXPECT_EQ(before.name, "a");
  EXPECT_EQ(int(before.bytes[1]), 38);
  EXPECT_EQ(before.bytes.data(), moved.find("a")->bytes.data());
}

TEST_F(Safetensors, TheHeaderLengthIsCheckedBeforeItIsBelieved) {
  refuses("", "has 0 bytes");                                                                                          // S1
  refuses("1234567", "has 7 bytes");                                                                                   // S2
  refuses(std::string(8, '\xFF') + "{}", "header length of at most 100000000 bytes, they give 18446744073709551615");  // S4
  refuses(std::string("\x01\xE1\xF5\x05\0\0\0\0{}", 10), "they give 100000001");                                       // S5
  refuses(std::string("\x64\0\0\0\0\0\0\0{}", 10), "it has 100 bytes and the file 10");                                // S7
  refuses("version https://git-lfs.github.com/spec/v1", "Git LFS pointer");
}

TEST_F(Safetensors, ALowerLimitOfTheCallersHolds) {
  opened(file_of(good, 10));
  EXPECT_TRUE(has(error_of<DataError>([&] { SafetensorsFile::open(path, Link::follow, {.header_bytes = 64}); }), "at most 64 bytes"));
  EXPECT_TRUE(has(error_of<DataError>([&] { SafetensorsFile::open(path, Link::follow, {.tensors = 2}); }), "at most 2 tensors"));
  EXPECT_TRUE(has(error_of<DataError>([&] { SafetensorsFile::open(path, Link::follow, {.name_bytes = 2}); }), "names may have 2 bytes"));
  EXPECT_TRUE(
      has(error_of<DataError>([&] { SafetensorsFile::open(path, Link::follow, {.metadata_bytes = 7}); }), "may have 7 bytes together"));
}

TEST_F(Safetensors, AHeaderThatIsNoUtf8JsonObjectIsRefused) {
  refuses(file_of("{\"a\xFF\":1}"), "byte 11: not valid JSON");  // S8
  for (const char* header : {"[]", "null", "\"x\"", "", "   ", "\xEF\xBB\xBF{}"})
    refuses(file_of(header), "a JSON object must begin here");  // S10
  refuses(file_of("{} {}"), "not valid JSON");
  refuses(file_of(std::string("{}\0{}", 5)), "NUL byte");
  refuses(file_of("{\"a\x1b[2J\":1}"), "not valid JSON");
  refuses(file_of("{"), "not valid JSON");
  refuses(file_of("{\"a\":{\"x\":" + std::string(10, '[')), "4 deep");
  refuses(file_of("{\"a\":{\"x\":" + std::string(1'000'000, '[')), "4 deep");
}

TEST_F(Safetensors, BlanksAroundTheHeaderAreReadAndThoseBeforeItAreNoted) {  // S11
  const SafetensorsFile file = opened(file_of(std::string(" \t\r\n") + good + "   \n", 10));
  EXPECT_TRUE(file.header().leading_blank);
  EXPECT_EQ(int(file.find("a")->bytes[0]), 1);
}

TEST_F(Safetensors, NamesThatStandTwiceAreRefused) {  // S14
  const char* u8 = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  refuses(file_of(format(R"({"a":{},"b":{},"a":{}})", u8, u8, u8)), "tensor \"a\" occurs twice");
  refuses(tensor_file(R"({"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]})"), "dtype twice");
  refuses(file_of(R"({"__metadata__":{"k":"1","k":"2"}})"), "__metadata__ \"k\" occurs twice");
  refuses(file_of(R"({"__metadata__":{},"__metadata__":{}})"), "__metadata__ occurs twice");
  refuses(file_of(format(R"({"a":{},"\u0061":{}})", u8, u8)), "tensor \"a\" occurs twice");
}

TEST_F(Safetensors, MetadataOtherThanStringsIsRefused) {  // S16
  refuses(file_of(R"({"__metadata__":{"k":1}})"), "__metadata__ \"k\": must be a string, got 1");
  refuses(file_of(R"({"__metadata__":{"k":{"x":"y"}}})"), "must be a string, got an object");
  refuses(file_of(R"({"__metadata__":{"k":null}})"), "must be a string, got null");
  refuses(file_of(R"({"__metadata__":"k"})"), "must be an object of strings, got the string \"k\"");
  refuses(file_of(R"({"__metadata__":[]})"), "must be an object of strings, got an array");
}

TEST_F(Safetensors, EntriesThatLackAFieldAreRefused) {  // S17
  refuses(tensor_file(R"({"shape":[4],"data_offsets":[0,4]})"), "tensor \"a\": must have dtype, shape and data_offsets, got no dtype");
  refuses(tensor_file(R"({"dtype":"U8","data_offsets":[0,4]})"), "got no shape");
  refuses(tensor_file(R"({"dtype":"U8","shape":[4]})"), "got no data_offsets");
  refuses(file_of(R"({"a":5})"), "tensor \"a\": must be an object with dtype, shape and data_offsets, got 5");
  refuses(file_of(R"({"a":[]})"), "got an array");
}

TEST_F(Safetensors, TypesTheFormatDoesNotKnowAreRefused) {
  refuses(tensor_file(R"({"dtype":"F33","shape":[4],"data_offsets":[0,4]})"),
          "dtype must be one of the format's types (F32, BF16, F16, F8_E4M3, ...), got \"F33\"");
  refuses(tensor_file(R"({"dtype":"f32","shape":[1],"data_offsets":[0,4]})"), "got \"f32\"");
  refuses(tensor_file(R"({"dtype":7,"shape":[4],"data_offsets":[0,4]})"), "dtype must be a string, got 7");
  refuses(tensor_file(R"({"dtype":["U8"],"shape":[4],"data_offsets":[0,4]})"), "dtype must be a string, got an array");
}

TEST_F(Safetensors, ShapesThatOverflowOrAreNoWholeNumbersAreRefused) {
  refuses(tensor_file(R"({"dtype":"U8","shape":[2,18446744073709551614],"data_offsets":[0,4]})"), "got 18446744073709551614");  // S19
  refuses(tensor_file(R"({"dtype":"U8","shape":[281474976710657],"data_offsets":[0,4]})"), "0 to 2^48, got 281474976710657");
  refuses(tensor_file(R"({"dtype":"U8","shape":[281474976710656,65536],"data_offsets":[0,4]})"), "2^64 bits or more");
  refuses(tensor_file(R"({"dtype":"F64","shape":[281474976710656,1024],"data_offsets":[0,4]})"), "2^64 bits or more");
  refuses(tensor_file(R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,4],"data_offsets":[0,4]})"), "at most 8 integers from 0 to 2^48, got more");
  const char* bad[][2] = {{"-1", "-1"},     {"2.5", "2.5"},      {"1e300", "1e+300"}, {"\"2\"", "the string \"2\""},
                          {"true", "true"},  // S20
                          {"null", "null"}, {"[4]", "an array"}, {"{}", "an object"}, {"-0", "-0"},
                          {"4.0", "4.0"}};
  for (const auto& [value, shown] : bad) {
    refuses(tensor_file(format(R"({"dtype":"U8","shape":[{}],"data_offsets":[0,4]})", value)),
            format("shape must be an array of at most 8 integers from 0 to 2^48, got {}", shown));
  }
  refuses(tensor_file(R"({"dtype":"U8","shape":4,"data_offsets":[0,4]})"), "shape must be an array");
  refuses(tensor_file(R"({"dtype":"F4","shape":[7],"data_offsets":[0,4]})"), "must give whole bytes, it gives 28 bits of F4");
}

TEST_F(Safetensors, OffsetsThatAreNoRangeAreRefused) {  // S22
  refuses(tensor_file(R"({"dtype":"U8","shape":[4],"data_offsets":[4,0]})"), "data_offsets must not fall, they are [4, 0]");
  refuses(tensor_file(R"({"dtype":"U8","shape":[4],"data_offsets":[0,-1]})"), "two integers from 0 to 2^63 - 1, got -1");
  refuses(tensor_file(R"({"dtype":"U8","shape":[4],"data_offsets":[0,9223372036854775808]})"), "got 9223372036854775808");
  refuses(tensor_file(R"({"dtype":"U8","shape":[4],"data_offsets":[4]})"), "two integers from 0 to 2^63 - 1, got 1");
  refuses(tensor_file(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4,4]})"), "two integers from 0 to 2^63 - 1, got more");
  refuses(tensor_file(R"({"dtype":"U8","shape":[4],"data_offsets":4})"), "data_offsets must be two integers");
  refuses(tensor_file(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), "needs 8 bytes, data_offsets [0, 4] give 4");
}

TEST_F(Safetensors, HolesOverlapsAndBytesTooManyOrFewAreRefused) {
  std::string ten = "{";
  for (int i = 0; i < 10; ++i) ten += format("{}\"t{}\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0,16]}", i ? "," : "", i);
  refuses(file_of(ten + "}", 16), "must begin at byte 16 of the data section, where the one before ends, it begins at 0");  // S23
  refuses(tensor_file(R"({"dtype":"U8","shape":[2],"data_offsets":[2,4]})"), "must begin at byte 0 of the data section");
  refuses(file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})", 4),
          "tensor \"b\": its data must begin at byte 1");
  refuses(tensor_file(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})", 6), "need 4 bytes of data, the file has 6");  // S25
  refuses(tensor_file(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})", 2), "need 4 bytes of data, the file has 2; it was cut off");
  refuses(file_of("{}", 1), "need 0 bytes of data, the file has 1");
  EXPECT_EQ(opened(file_of("{}")).tensors().size(), 0u);
}

TEST_F(Safetensors, UnknownFieldsAreReadOverAndNoted) {
  const SafetensorsFile file =
      opened(tensor_file(R"({"new":{"x":[1,"dtype"]},"dtype":"U8","shape":[4],"more":null,"data_offsets":[0,4],"new":-1.5})"));
  EXPECT_EQ(file.header().unknown_fields, (std::vector<std::string>{"new", "more"}));
  EXPECT_EQ(file.find("a")->bytes.size(), 4u);
}

TEST_F(Safetensors, AFileCutAtAnyByteIsRefused) {
  const std::string whole = file_of(good, 10);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    EXPECT_NE(error_of<DataError>([&] { opened(std::string_view(whole).substr(0, n)); }), "no error") << n;
  }
  EXPECT_NO_THROW(opened(whole));
}

TEST_F(Safetensors, AThousandChangedBytesAreReadOrRefusedAndNothingElse) {
  const std::string whole = file_of(good, 10);
  std::size_t refused = 0, sum = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    std::string changed = whole;
    const RandomWords r = philox(20, i);
    changed[r.w[0] % whole.size()] = char(r.w[1]);
    try {
      const SafetensorsFile file = opened(changed);
      for (const TensorView& t : file.tensors())
        for (const std::byte b : t.bytes) sum += std::size_t(b);
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500u);
  EXPECT_GT(sum, 0u);
}

TEST_F(Safetensors, AFileThatChangesWhileOpenIsRefused) {  // S26
  const std::string whole = file_of(good, 10);
  const auto after = [&](auto change) {
    const SafetensorsFile file = opened(whole);
    EXPECT_TRUE(file.find("a"));
    change();
    const std::string message = error_of<DataError>([&] { file.find("a"); });
    EXPECT_EQ(message, error_of<DataError>([&] { file.tensors(); }));
    return message;
  };
  const auto size = whole.size();
  EXPECT_TRUE(has(after([&] { std::filesystem::resize_file(path, 9); }), format("changed from {} to 9 bytes while it was open", size)));
  EXPECT_TRUE(has(after([&] { std::filesystem::resize_file(path, size + 1); }), format("changed from {} to {} bytes", size, size + 1)));
  EXPECT_TRUE(has(after([&] { write_file(path, whole); }), "replaced while it was open"));
  EXPECT_TRUE(has(after([&] { std::filesystem::remove(path); }), "removed while it was open"));
}

TEST_F(Safetensors, ASparseFileOfTenTerabytesCostsOnlyItsHeader) {  // S26
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer leaves no 10 terabytes of addresses";
#endif
  opened(file_of(good, 10));
  std::error_code reason;
  std::filesystem::resize_file(path, std::uintmax_t(10) << 40, reason);
  if (reason) GTEST_SKIP() << "this file system holds no such file";
  EXPECT_TRUE(has(error_of<DataError>([&] { SafetensorsFile::open(path); }), "need 10 bytes of data, the file has 10995116277"));
  put(file_of(R"({"a":{"dtype":"U8","shape":[10000000000000],"data_offsets":[0,10000000000000]}})"));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + 10'000'000'000'000);
  const SafetensorsFile file = SafetensorsFile::open(path);
  EXPECT_EQ(file.find("a")->count(), 10'000'000'000'000);
  EXPECT_EQ(int(file.find("a")->bytes.back()), 0);
}

TEST_F(Safetensors, WhatIsNoRegularFileIsRefusedAtOnce) {
  EXPECT_TRUE(has(error_of<DataError>([&] { SafetensorsFile::open(scratch.folder()); }), "is a folder, not a regular file"));
  ASSERT_EQ(::mkfifo(scratch.at("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(has(error_of<DataError>([&] { SafetensorsFile::open(scratch.at("pipe")); }), "is a pipe, not a regular file"));
  EXPECT_TRUE(has(error_of<DataError>([&] { SafetensorsFile::open("/dev/zero"); }), "is a device, not a regular file"));
  EXPECT_TRUE(has(error_of<IoError>([&] { SafetensorsFile::open(scratch.at("none")); }), "No such file"));
}

std::size_t peak_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::size_t(usage.ru_maxrss) * 1024;
}

TEST_F(Safetensors, AHostileHeaderCostsAtMostItsSizeAnd64Mebibytes) {  // S13
  const std::size_t length = 12'000'000;
  const auto header = [&](std::string_view begin, auto piece) {
    std::filesystem::remove(path);
    std::ofstream out(path, std::ios::binary);
    for (int i = 0; i < 8; ++i) out.put(char(length >> (8 * i)));
    std::size_t n = begin.size();
    for (out << begin; n + 1000 < length;) {
      const std::string next = piece(n);
      out << next, n += next.size();
    }
    out << std::string(length - n, ' ');
  };
  std::size_t before = peak_bytes();
  const auto costs_little = [&] {
#ifndef __SANITIZE_ADDRESS__
    EXPECT_LT(peak_bytes() - before, length + (std::size_t(64) << 20));
#endif
    before = peak_bytes();
  };
  header("{", [](std::size_t n) { return format("\"t{}\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},", n); });
  EXPECT_TRUE(has(error_of<DataError>([&] { SafetensorsFile::open(path); }), "at most 131072 tensors can be read"));
  costs_little();
  header("{\"", [](std::size_t) { return std::string(1000, 'x'); });
  EXPECT_TRUE(has(error_of<DataError>([&] { SafetensorsFile::open(path); }),
                  "byte 9: a string, a number or a run of blanks may have at most 1,048,576 bytes"));
  costs_little();
}

}  // namespace
}  // namespace octet::io

#include "octet/io/tensor_folder.hpp"

#include <gtest/gtest.h>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/json/fields.hpp"
#include "octet/io/tensor_folder_writer.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::io {
namespace {
using testing::error_of, testing::has, testing::Scratch;
namespace fs = std::filesystem;

std::vector<std::byte> filled(std::size_t n, char c) { return std::vector<std::byte>(n, std::byte(c)); }

/// One U8 tensor of four bytes in a file of its own.
void write_shard(const std::string& path, const std::string& tensor, char fill) {
  SafetensorsWriter writer(path, {{tensor, StoredDType::u8, {4}}});
  writer.append(tensor, filled(4, fill));
  writer.commit();
}

struct Folder : ::testing::Test {
  Scratch scratch;
  Folder() {
    write_shard(scratch.at("one.safetensors"), "a", 'a');
    write_shard(scratch.at("two.safetensors"), "b", 'b');
  }
  void index(std::string_view text) { write_file(scratch.at("model.safetensors.index.json"), text); }
  void map(std::string_view entries) { index(format("{\"metadata\":{\"total_size\":8},\"weight_map\":{{}}}", entries)); }
  std::string refusal() {
    return error_of<DataError>([&] { TensorFolder::open(scratch.folder()); });
  }
  void refuses(std::string_view part) {
    const std::string message = refusal();
    EXPECT_TRUE(message.starts_with(scratch.folder()) && has(message, part)) << message << "\nwanted: " << part;
    EXPECT_FALSE(has(message, "\x1b") || has(message, "\n")) << message;
  }
};

TEST_F(Folder, AnIndexLeadsToTheTensorsOfAllItsFiles) {
  map(R"("a":"one.safetensors","b":"two.safetensors")");
  const TensorFolder folder = TensorFolder::open(scratch.folder());
  EXPECT_EQ(folder.names(), (std::vector<std::string_view>{"a", "b"}));
  EXPECT_EQ(char(folder.tensor("b").bytes[0]), 'b');
  EXPECT_EQ(folder.files().size(), 2u);
  EXPECT_FALSE(folder.find("c"));
}

TEST_F(Folder, ASingleFileNeedsNoIndexAndAMissingTensorNamesTheNearest) {
  write_shard(scratch.at("model.safetensors"), "model.embed_tokens.weight", 'e');
  const TensorFolder folder = TensorFolder::open(scratch.folder());
  EXPECT_EQ(char(folder.tensor("model.embed_tokens.weight").bytes[3]), 'e');
  EXPECT_EQ(error_of<DataError>([&] { folder.tensor("model.embed_token.weight"); }),
            scratch.folder() +
                ": tensor \"model.embed_token.weight\" is missing from the weights, the nearest name is "
                "\"model.embed_tokens.weight\"; fetch them again");
}

TEST_F(Folder, ItsChecksumIsThatOfItsTensorsInAnyFiles) {
  const auto sum = [&] { return to_text(checksum_of(TensorFolder::open(scratch.folder()))); };
  map(R"("a":"one.safetensors","b":"two.safetensors")");
  const std::string divided = sum();
  const auto together = [&](const char* second, std::vector<std::int64_t> shape, char fill) {
    const Scratch other;
    SafetensorsWriter writer(other.at("model.safetensors"), {{"a", StoredDType::u8, {4}}, {second, StoredDType::u8, shape}});
    writer.append("a", filled(4, 'a')), writer.append(second, filled(4, fill));
    writer.commit();
    return to_text(checksum_of(TensorFolder::open(other.folder())));
  };
  EXPECT_EQ(together("b", {4}, 'b'), divided);
  EXPECT_NE(together("b", {4}, 'c'), divided) << "another value";
  EXPECT_NE(together("b", {2, 2}, 'b'), divided) << "another shape";
  EXPECT_NE(together("c", {4}, 'b'), divided) << "another name";
}

TEST_F(Folder, AFolderWithoutWeightsOrWithTwoKindsIsRefused) {
  refuses("must hold model.safetensors or model.safetensors.index.json, it holds neither");
  write_file(scratch.at("pytorch_model.bin"), "PK");
  refuses("pytorch_model.bin is not read because it can run code");
  map(R"("a":"one.safetensors")");
  write_shard(scratch.at("model.safetensors"), "a", 'x');
  refuses("holds both model.safetensors and model.safetensors.index.json");
}

TEST_F(Folder, FileNamesThatCouldLeadElsewhereAreRefused) {  // C1, C2, C4
  for (const char* file : {"../../etc/passwd", "/etc/passwd", "../one.safetensors", "sub/one.safetensors", "..", ".", "", ".safetensors",
                           "one", ".hidden.safetensors", "sub\\\\one.safetensors", "one\\u0000.safetensors", "one\\n.safetensors",
                           "\\u001b[2J.safetensors", "config.json"}) {
    map(format("\"a\":\"{}\"", file));
    refuses("weight_map \"a\" must name a .safetensors file of this folder");
  }
  map(format("\"a\":\"{}.safetensors\"", std::string(300, 'x')));
  refuses("must name a .safetensors file");
  map("\"a\\u001b\":1");
  refuses("weight_map \"a\\x1b\" must name a file, got 1");
}

TEST_F(Folder, LinksOutOfTheFolderAreRefused) {  // C5
  const Scratch outside;
  write_shard(outside.at("secret"), "a", 's');
  fs::create_symlink(outside.at("secret"), scratch.at("link.safetensors"));
  map(R"("a":"link.safetensors")");
  refuses("'link.safetensors' is a symbolic link out of the folder");
  fs::remove(scratch.at("link.safetensors"));
  fs::create_symlink("link.safetensors", scratch.at("link.safetensors"));
  refuses("is a symbolic link");
  fs::remove(scratch.at("link.safetensors"));
  refuses("the file 'link.safetensors' is missing");

  fs::remove(scratch.at("model.safetensors.index.json"));
  fs::create_symlink(outside.at("secret"), scratch.at("model.safetensors"));
  refuses("'model.safetensors' is a symbolic link out of the folder");
  fs::remove(scratch.at("model.safetensors"));
  fs::create_symlink(outside.at("secret"), scratch.at("model.safetensors.index.json"));
  refuses("'model.safetensors.index.json' is a symbolic link out of the folder");
}

TEST_F(Folder, TheLayoutOfTheHuggingFaceCacheIsFollowedAndNothingLikeIt) {
  fs::create_directories(scratch.at("m/blobs"));
  fs::create_directories(scratch.at("m/snapshots/rev"));
  fs::create_directories(scratch.at("m/other/rev"));
  write_shard(scratch.at("m/blobs/0123"), "a", 'h');
  for (const char* revision : {"m/snapshots/rev", "m/other/rev"}) {
    fs::create_symlink("../../blobs/0123", scratch.at(std::string(revision) + "/model.safetensors"));
  }
  EXPECT_EQ(char(TensorFolder::open(scratch.at("m/snapshots/rev")).tensor("a").bytes[0]), 'h');
  EXPECT_TRUE(has(error_of<DataError>([&] { TensorFolder::open(scratch.at("m/other/rev")); }), "is a symbolic link out of the folder"));
  fs::rename(scratch.at("m/blobs"), scratch.at("m/elsewhere"));
  fs::create_directory_symlink("elsewhere", scratch.at("m/blobs"));
  EXPECT_TRUE(has(error_of<DataError>([&] { TensorFolder::open(scratch.at("m/snapshots/rev")); }), "is a symbolic link out of the folder"));
}

TEST_F(Folder, ATensorInTwoFilesOrNotWhereTheIndexSaysIsRefused) {
  map(R"("a":"one.safetensors","a":"two.safetensors")");  // C7
  refuses("weight_map names tensor \"a\" twice");
  write_shard(scratch.at("three.safetensors"), "a", 'c');
  map(R"("a":"one.safetensors","b":"two.safetensors","x":"three.safetensors")");
  refuses("tensor \"a\" is in two files");
  map(R"("a":"two.safetensors")");  // C8
  refuses("lists tensor \"a\" in 'two.safetensors', which lacks it");
  map(R"("a":"one.safetensors","b":"four.safetensors")");
  refuses("the file 'four.safetensors' is missing");
}

TEST_F(Folder, AnIndexOfAnotherShapeIsRefused) {
  const char* cases[][2] = {{"[]", "a JSON object must begin here"},
                            {"{}", "weight_map is missing"},
                            {R"({"weight_map":[]})", "weight_map must be an object of file names, got an array"},
                            {R"({"weight_map":"x"})", "weight_map must be an object of file names, got the string \"x\""},
                            {R"({"weight_map":{"a":null}})", "must name a file, got null"},
                            {R"({"weight_map":{"a":{"b":"c"}}})", "must name a file, got an object"},
                            {R"({"weight_map":{"a":["one.safetensors"]}})", "must name a file, got an array"},
                            {R"({"weight_map":{},"weight_map":{}})", "weight_map occurs twice"},
                            {"{\"weight_map\":{}\n,}", "line 2, column 2: not valid JSON"}};
  for (const auto& [text, part] : cases) {
    index(text);
    refuses(part);
  }
}

TEST_F(Folder, OtherKeysOfAnIndexAreReadOver) {
  index(R"({"metadata":{"total_size":1.5e1,"more":[{"weight_map":{"x":1}}]},"weight_map":{"a":"one.safetensors"},"note":null})");
  EXPECT_EQ(TensorFolder::open(scratch.folder()).names(), std::vector<std::string_view>{"a"});
}

TEST_F(Folder, AnIndexOfTooManyFilesIsRefused) {
  std::string entries;
  for (int i = 0; i <= 4096; ++i) entries += format("{}\"t{}\":\"{}.safetensors\"", i ? "," : "", i, i);
  map(entries);
  refuses("weight_map may name 4096 files, it names more");
}

TEST(FolderWriter, OneFileWithoutIndexWhereItSuffices) {
  const Scratch scratch;
  TensorFolderWriter writer(scratch.at("new/model"), {{"a", StoredDType::u8, {4}}, {"b", StoredDType::f32, {2}}});
  writer.append("b", filled(8, 'b'));
  writer.append("a", filled(4, 'a'));
  writer.commit();
  EXPECT_TRUE(fs::exists(scratch.at("new/model/model.safetensors")));
  EXPECT_FALSE(fs::exists(scratch.at("new/model/model.safetensors.index.json")));
  const TensorFolder folder = TensorFolder::open(scratch.at("new/model"));
  EXPECT_EQ(folder.names(), (std::vector<std::string_view>{"a", "b"}));
  EXPECT_EQ(folder.files()[0].metadata(), (Metadata{{"format", "pt"}}));
}

TEST(FolderWriter, ShardsHoldWhatFitsAndOneTensorAtLeast) {
  const Scratch scratch;
  std::vector<TensorSpec> tensors;
  for (const std::int64_t n : {40, 50, 20, 300, 0, 100, 1}) tensors.push_back({format("t{}", tensors.size()), StoredDType::u8, {n}});
  TensorFolderWriter writer(scratch.folder(), tensors, 100);
  for (std::size_t i = tensors.size(); i-- > 0;) writer.append(tensors[i].name, filled(std::size_t(tensors[i].shape[0]), char('0' + i)));
  writer.commit();
  const json::Value file = json::load(scratch.at("model.safetensors.index.json"));
  const json::Fields index(file, "index");
  EXPECT_EQ(index.object("metadata").integer("total_size", 0, 1000), 511);
  const json::Fields map = index.object("weight_map");
  const char* expected[] = {"1", "1", "2", "3", "3", "4", "5"};  // {40, 50}, {20}, {300, 0}, {100}, {1}
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(map.text(tensors[i].name), format("model-0000{}-of-00005.safetensors", expected[i])) << i;
  }
  EXPECT_EQ(scratch.entries(), 6u) << "a temporary file was left behind";
  const TensorFolder folder = TensorFolder::open(scratch.folder());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorView read = folder.tensor(tensors[i].name);
    EXPECT_EQ(read.count(), tensors[i].shape[0]);
    for (const std::byte b : read.bytes) EXPECT_EQ(char(b), char('0' + i));
  }
}

TEST(FolderWriter, NewWeightsReplaceOldOnesOfEitherKind) {
  const Scratch scratch;
  for (const std::uint64_t limit : {100, 4, 100, 4, 4}) {
    const char fill = char('a' + limit % 26);
    TensorFolderWriter writer(scratch.folder(), {{"a", StoredDType::u8, {4}}, {"b", StoredDType::u8, {4}}}, limit);
    writer.append("a", filled(4, fill));
    writer.append("b", filled(4, fill));
    writer.commit();
    const TensorFolder folder = TensorFolder::open(scratch.folder());
    EXPECT_EQ(folder.files().size(), limit == 4 ? 2u : 1u);
    EXPECT_EQ(char(folder.tensor("b").bytes[0]), fill);
  }
}

TEST(FolderWriter, WeightsThatAreNotWholeLeaveTheOldOnes) {
  const Scratch scratch;
  write_shard(scratch.at("model.safetensors"), "a", 'o');
  {
    TensorFolderWriter writer(scratch.folder(), {{"a", StoredDType::u8, {4}}, {"b", StoredDType::u8, {4}}}, 4);
    writer.append("a", filled(4, 'n'));
    EXPECT_TRUE(has(error_of<ContractError>([&] { writer.commit(); }), "tensor b has 4 bytes, only 0 were written"));
    EXPECT_TRUE(has(error_of<ContractError>([&] { writer.append("c", {}); }), "tensor c was not announced"));
  }
  EXPECT_EQ(scratch.entries(), 1u) << "a temporary file was left behind";
  EXPECT_EQ(char(TensorFolder::open(scratch.folder()).tensor("a").bytes[0]), 'o');
}

TEST(FolderWriter, AnUnwritableFolderSaysWhy) {
  const Scratch scratch;
  write_file(scratch.at("file"), "x");
  EXPECT_TRUE(has(error_of<IoError>([&] { TensorFolderWriter(scratch.at("file/model"), {}); }), "cannot make the folder"));
}

}  // namespace
}  // namespace octet::io

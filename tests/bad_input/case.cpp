#include "tests/bad_input/case.hpp"

#include <filesystem>
#include <fstream>

#include "tests/testing/child.hpp"

namespace octet::bad_input {
namespace {
namespace fs = std::filesystem;

constexpr const char* tiny =
    "[model]\nsize = \"llama-tiny\"\nlayers = 1\nwidth = 64\nheads = 4\nkv_heads = 2\nhidden = 96\n"
    "[data]\npath = \"data\"\nsequence_length = 32\neval_fraction = 0.25\n"
    "[train]\nsteps = 2\nbatch = 2\n";

std::string document(int number) {
  std::string text;
  for (int i = 0; text.size() < 3000; ++i) text += "document " + std::to_string(number) + " counts to " + std::to_string(i * i) + "\n";
  return text;
}

}  // namespace

World::World(const std::string& program) {
  for (int i = 0; i < 4; ++i) scratch_.write("text/" + std::to_string(i) + ".txt", document(i));
  scratch_.write("tiny.toml", tiny);
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), program);
    const testing::Ended ended = testing::run_child(words, folder());
    if (ended.code != 0) throw std::runtime_error("octet " + words[1] + " failed: " + ended.err);
  };
  run({"tokenize", "--input", "text/*.txt", "--output", "data"});
  run({"train", "tiny.toml", "--fp8", "--output", ".", "--name", "run", "--set", "checkpoint.every=1", "--quiet"});
  run({"export", "run", "--output", "model"});
}

Place::Place(const World& world) : world_(world) {
  for (const char* name : {"tiny.toml", "text", "data"}) take(name);
}

void Place::take(const std::string& name) const { fs::copy(world_.at(name), at(name), fs::copy_options::recursive); }

std::string Place::shard() const {
  for (const auto& entry : fs::directory_iterator(at("data")))
    if (entry.path().extension() == ".tok") return "data/" + entry.path().filename().string();
  throw std::runtime_error("the dataset has no shard");
}

void Place::edit(const std::string& name, std::string_view from, std::string_view to) const {
  std::string text = bytes(name);
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error(name + " lacks " + std::string(from));
  write(name, text.replace(at, from.size(), to));
}

void Place::cut(const std::string& name, std::uintmax_t bytes) const { fs::resize_file(at(name), fs::file_size(at(name)) - bytes); }

void Place::flip(const std::string& name, std::size_t offset) const {
  std::string all = bytes(name);
  all.at(offset) = char(~all.at(offset));
  write(name, all);
}

std::function<void(const Place&)> with_file(std::string name, std::string bytes) {
  return [=](const Place& place) { place.write(name, bytes); };
}

}  // namespace octet::bad_input

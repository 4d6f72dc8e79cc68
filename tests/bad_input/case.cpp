#include "tests/bad_input/case.hpp"

#include <filesystem>
#include <fstream>

#include "tests/testing/octet.hpp"

namespace octet::bad_input {
namespace fs = std::filesystem;

World::World() {
  testing::write_dataset(scratch_);
  scratch_.write("tiny.toml", testing::tiny_config());
  for (const char* line : {"train tiny.toml --fp8 --output . --name run --set checkpoint.every=1 --quiet", "export run --output model",
                           "export run --output codes --dtype fp8-block128"}) {
    const testing::Ended ended = testing::run_octet(line, folder());
    if (ended.code != 0) throw std::runtime_error(std::string("octet ") + line + " failed: " + ended.err);
  }
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

std::vector<Case> all_of(std::initializer_list<std::vector<Case>> tables) {
  std::vector<Case> all;
  for (const auto& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

}  // namespace octet::bad_input

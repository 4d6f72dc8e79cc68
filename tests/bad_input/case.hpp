#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.hpp"
#include "tests/testing/scratch.hpp"

// The table of bad input. A case is a command line in a folder of its own, and the required answer of the program.

namespace octet::bad_input {

/// Good files, made once by the program itself:
///   tiny.toml      a run of two steps on a model of one block
///   text/*.txt     four documents
///   data           their dataset: one shard
///   run            the finished run of tiny.toml, with the checkpoints of steps 1 and 2
///   model          its weights, as a Hugging Face folder of one file
///   codes          the same as codes of blocks of 128x128
class World {
 public:
  /// Throws std::runtime_error when the program fails.
  World();
  std::string at(const std::string& name) const { return scratch_.at(name); }
  const std::string& folder() const { return scratch_.folder(); }

 private:
  testing::Scratch scratch_;
};

/// The folder of one case: tiny.toml and data are there, the rest comes where a case takes it.
class Place {
 public:
  explicit Place(const World& world);
  const std::string& folder() const { return scratch_.folder(); }
  std::string at(const std::string& name) const { return scratch_.at(name); }
  std::string write(const std::string& name, std::string_view bytes) const { return scratch_.write(name, bytes); }
  std::string bytes(const std::string& name) const { return testing::bytes_of(at(name)); }
  /// Puts "run", "model" or "codes" there.
  void take(const std::string& name) const;
  /// The dataset's one shard.
  std::string shard() const;
  /// Changes the first `from` in a file to `to`. Throws std::runtime_error when there is none.
  void edit(const std::string& name, std::string_view from, std::string_view to) const;
  /// Cuts the last `bytes` off a file.
  void cut(const std::string& name, std::uintmax_t bytes) const;
  /// Inverts the byte of a file at `offset`.
  void flip(const std::string& name, std::size_t offset) const;

 private:
  const World& world_;
  testing::Scratch scratch_;
};

struct Case {
  std::string name;  // a word for the test's name
  std::string line;  // arguments; "" in it is an empty one
  ExitCode code;
  std::vector<std::string> says;  // the file or key, the place, the remedy
  std::function<void(const Place&)> prepare = nullptr;
  std::string shell =
      "octet";  // a shell command, in which `octet` is replaced by the program and the line: "ulimit -n 16; octet >/dev/full"
  bool as_other_user = false;  // not as root, whom the system refuses nothing
};

/// How a file comes to be bad, for `prepare`.
std::function<void(const Place&)> with_file(std::string name, std::string bytes);

/// The cases of all these, in this order.
std::vector<Case> all_of(std::initializer_list<std::vector<Case>>);

std::vector<Case> command_lines();
std::vector<Case> configurations();
std::vector<Case> token_folders();
std::vector<Case> tokenizers();
std::vector<Case> weight_files();
std::vector<Case> model_folders();
std::vector<Case> coded_folders();
std::vector<Case> adapter_folders();
std::vector<Case> checkpoints();
std::vector<Case> run_folders();
std::vector<Case> studies();
std::vector<Case> foreign_folders();
std::vector<Case> surroundings();

}  // namespace octet::bad_input

#pragma once

#include <sstream>

#include "tests/testing/child.hpp"

// The `octet` program (OCTET_PROGRAM, which the build says) in a folder with a little text.

namespace octet::testing {

/// The words of a line; "" in it is an empty one.
inline std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word == "\"\"" ? "" : word);
  return words;
}

/// Runs the program with the words of `line` in `folder`, as run_child() does.
inline Ended run_octet(const std::string& line, const std::string& folder, double seconds = 600) {
  std::vector<std::string> words = words_of(line);
  words.insert(words.begin(), OCTET_PROGRAM);
  return run_child(words, folder, seconds);
}

/// A configuration for the dataset `data` and a model of one block, so small that a step takes milliseconds. `train` is the text below
/// [train]: its keys, and further sections.
inline std::string tiny_config(const std::string& train = "steps = 2\nbatch = 2\n") {
  return "[model]\nsize = \"llama-tiny\"\nlayers = 1\nwidth = 64\nheads = 4\nkv_heads = 2\nhidden = 96\n"
         "[data]\npath = \"data\"\nsequence_length = 32\neval_fraction = 0.25\n"
         "[train]\n" +
         train;
}

/// Four documents of 3000 bytes, text/0.txt to text/3.txt, and their dataset, data: one shard. Throws std::runtime_error when the program
/// does not make it.
inline void write_dataset(const Scratch& scratch) {
  for (int i = 0; i < 4; ++i) {
    std::string text;
    for (int k = 0; text.size() < 3000; ++k) text += "document " + std::to_string(i) + " counts to " + std::to_string(k * k) + "\n";
    scratch.write("text/" + std::to_string(i) + ".txt", text);
  }
  const Ended ended = run_octet("tokenize --input text/*.txt --output data", scratch.folder());
  if (ended.code != 0) throw std::runtime_error("octet tokenize failed: " + ended.err);
}

}  // namespace octet::testing

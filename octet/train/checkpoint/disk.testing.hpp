#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octet/numerics/philox.hpp"

// The contents of a disk after a power cut, for tests. POSIX promises of a change only this: bytes of a file are there after fsync of the
// file, names in a folder after fsync of the folder. Of the rest a journaling file system keeps some first part of the changes of names,
// and any pages of the files.

namespace octet::train::testing {
namespace fs = std::filesystem;

class Disk {
 public:
  /// Everything below `root` is durable. The following calls name the program's actions there; other paths are ignored.
  explicit Disk(const fs::path& root) : root_(root), nodes_{{root.string(), std::make_shared<Node>(Node{.folder = true})}} {
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      Node node{.folder = entry.is_directory()};
      if (!node.folder) node.durable = node.now = read(entry.path());
      nodes_[entry.path().string()] = std::make_shared<Node>(node);
    }
    durable_ = nodes_;
  }

  void make(const std::string& path, bool folder) {
    if (!inside(path) || nodes_.count(path)) return;
    changes_.push_back({.folder = node_above(path), .to = path, .node = nodes_[path] = std::make_shared<Node>(Node{.folder = folder})});
  }
  void write(const std::string& path, std::size_t at, std::string_view bytes) {
    if (Node* node = file(path)) {
      if (node->now.size() < at + bytes.size()) node->now.resize(at + bytes.size());
      node->now.replace(at, bytes.size(), bytes);
    }
  }
  void reserve(const std::string& path, std::size_t bytes) {
    if (Node* node = file(path); node && node->now.size() < bytes) node->now.resize(bytes);
  }
  void rename(const std::string& from, const std::string& to) {
    if (!inside(from)) return;
    changes_.push_back({.folder = node_above(from), .from = from, .to = to});
    move(nodes_, from, to);
  }
  void remove(const std::string& path) {
    if (!inside(path)) return;
    changes_.push_back({.folder = node_above(path), .from = path});
    nodes_.erase(path);
  }
  void sync(const std::string& path) {
    const auto at = nodes_.find(path);
    if (at == nodes_.end()) return;
    at->second->durable = at->second->now;
    for (Change& c : changes_) c.durable |= c.folder == at->second;
  }

  /// Leaves the folder as after a power cut. Number 0: without unsynced changes; else with a random part of them.
  void cut(std::uint64_t number) const {
    Nodes left = durable_;
    const std::size_t kept = number == 0 ? 0 : philox(number, 0).w[0] % (changes_.size() + 1);
    for (std::size_t i = 0; i < changes_.size(); ++i)
      if (changes_[i].durable || i < kept) apply(changes_[i], left);
    fs::remove_all(root_);
    fs::create_directory(root_);
    std::uint32_t stream = 1;
    for (const auto& [path, node] : left) {
      if (path == root_.string() || !left.count(fs::path(path).parent_path().string())) continue;  // its folder was never named
      if (node->folder) fs::create_directory(path);
      else std::ofstream(path, std::ios::binary) << bytes_left(*node, number, stream++);
    }
  }

 private:
  struct Node {
    bool folder = false;
    std::string durable, now;
  };
  using Nodes = std::map<std::string, std::shared_ptr<Node>>;  // by path: a folder before its entries
  /// A new name (`node`), a rename, or, without `to`, a removal.
  struct Change {
    std::shared_ptr<Node> folder;
    std::string from, to;
    std::shared_ptr<Node> node;
    bool durable = false;
  };

  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool inside(const std::string& path) const { return path.starts_with(root_.string() + "/"); }
  std::shared_ptr<Node> node_above(const std::string& path) const {
    const auto at = nodes_.find(fs::path(path).parent_path().string());
    return at == nodes_.end() ? nullptr : at->second;
  }
  Node* file(const std::string& path) {
    const auto at = nodes_.find(path);
    return at == nodes_.end() || at->second->folder ? nullptr : at->second.get();
  }
  static void move(Nodes& nodes, const std::string& from, const std::string& to) {
    Nodes moved;
    for (auto at = nodes.begin(); at != nodes.end();) {
      const bool below = at->first == from || at->first.starts_with(from + "/");
      if (below) moved[to + at->first.substr(from.size())] = at->second;
      at = below ? nodes.erase(at) : std::next(at);
    }
    for (auto& [path, node] : moved) nodes[path] = node;
  }
  static void apply(const Change& c, Nodes& nodes) {
    if (c.node) nodes[c.to] = c.node;
    else if (c.to.empty()) nodes.erase(c.from);
    else if (nodes.count(c.from)) move(nodes, c.from, c.to);
  }
  static std::string bytes_left(const Node& node, std::uint64_t number, std::uint32_t stream) {
    constexpr std::size_t page = 4096;
    if (number == 0 || node.now == node.durable) return node.durable;
    std::string bytes = node.durable;
    bytes.resize(philox(number, stream).w[1] % 2 ? node.now.size() : std::max(node.durable.size(), node.now.size() / 2));
    for (std::size_t at = 0; at < std::min(bytes.size(), node.now.size()); at += page)
      if (philox(number, stream).w[at / page % 4] >> (at / page / 4 % 32) & 1)
        bytes.replace(at, page, node.now.substr(at, std::min(page, bytes.size() - at)));
    return bytes;
  }

  fs::path root_;
  Nodes nodes_, durable_;
  std::vector<Change> changes_;
};

}  // namespace octet::train::testing

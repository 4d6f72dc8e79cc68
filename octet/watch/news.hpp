#pragma once

#include <cstdint>
#include <deque>
#include <string>

namespace octet::watch {

/// The last events of a run, numbered. A reader remembers the number behind the last one that it got, so slow readers need no queue.
class News {
 public:
  struct Item {
    std::string name, text;  // of a server-sent event; text is one line of JSON
  };
  explicit News(std::size_t most = 256) : most_(most) {}

  void add(Item item) {
    items_.push_back(std::move(item)), ++next_;
    if (items_.size() > most_) items_.pop_front();
  }
  /// The number behind the newest item, and that of the oldest one that is stored.
  std::uint64_t next() const { return next_; }
  std::uint64_t oldest() const { return next_ - items_.size(); }
  const Item& at(std::uint64_t number) const { return items_[std::size_t(number - oldest())]; }

 private:
  std::size_t most_;
  std::uint64_t next_ = 0;
  std::deque<Item> items_;
};

}  // namespace octet::watch

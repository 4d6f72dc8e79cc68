#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "octet/tensor/state.hpp"

namespace octet::testing {

/// The state of a component as a checkpoint has it, in memory: taken from one component by its visit_state, and given to another of the
/// same configuration. For components on the CPU.
class SavedState {
 public:
  template <class Component>
  static SavedState of(Component& component) {
    SavedState saved;
    Save save(saved);
    component.visit_state(save);
    return saved;
  }
  /// Throws std::runtime_error when the component shows other names or sizes.
  template <class Component>
  void restore(Component& component) const {
    Restore restore(*this);
    component.visit_state(restore);
    if (restore.next_ != entries_.size()) throw std::runtime_error("a component shows less state than it had");
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, bytes] : entries_) out.push_back(name);
    return out;
  }
  friend bool operator==(const SavedState&, const SavedState&) = default;

 private:
  using Bytes = std::vector<unsigned char>;

  class Named : public StateVisitor {
   protected:
    void enter(std::string_view name) override { prefix_.emplace_back(std::string(name) + "."); }
    void leave() override { prefix_.pop_back(); }
    std::string full(std::string_view name) const {
      std::string out;
      for (const std::string& part : prefix_) out += part;
      return out + std::string(name);
    }

   private:
    std::vector<std::string> prefix_;
  };

  class Save final : public Named {
   public:
    explicit Save(SavedState& to) : to_(to) {}
    bool restoring() const override { return false; }
    void state(std::string_view name, const Tensor& t) override { add(name, t.data, t.bytes()); }
    void state(std::string_view name, const StoredSlice& slice, Tiny) override {
      const Stored& s = slice.stored;
      add(name, s.codes.data, s.codes.bytes());
      if (s.scales) add(scales_name(name, s.storage), s.scales.data, s.scales.bytes());
    }
    void state(std::string_view name, std::int64_t& v) override { add(name, &v, sizeof v); }
    void state(std::string_view name, double& v) override { add(name, &v, sizeof v); }
    void state(std::string_view name, std::vector<double>& v) override { add(name, v.data(), v.size() * sizeof(double)); }

   private:
    void add(std::string_view name, const void* data, std::size_t bytes) {
      const auto* begin = static_cast<const unsigned char*>(data);
      to_.entries_.emplace_back(full(name), Bytes(begin, begin + bytes));
    }
    SavedState& to_;
  };

  class Restore final : public Named {
   public:
    explicit Restore(const SavedState& from) : from_(from) {}
    bool restoring() const override { return true; }
    void state(std::string_view name, const Tensor& t) override { fill(name, t.data, t.bytes()); }
    void state(std::string_view name, const StoredSlice& slice, Tiny) override {
      const Stored& s = slice.stored;
      fill(name, s.codes.data, s.codes.bytes());
      if (s.scales) fill(scales_name(name, s.storage), s.scales.data, s.scales.bytes());
    }
    void state(std::string_view name, std::int64_t& v) override { fill(name, &v, sizeof v); }
    void state(std::string_view name, double& v) override { fill(name, &v, sizeof v); }
    void state(std::string_view name, std::vector<double>& v) override {
      const Bytes& bytes = next(name);
      v.resize(bytes.size() / sizeof(double));
      std::memcpy(v.data(), bytes.data(), bytes.size());
    }
    std::size_t next_ = 0;

   private:
    const Bytes& next(std::string_view name) {
      if (next_ == from_.entries_.size() || from_.entries_[next_].first != full(name))
        throw std::runtime_error("a component shows " + full(name) + ", which it did not have there");
      return from_.entries_[next_++].second;
    }
    void fill(std::string_view name, void* data, std::size_t bytes) {
      const Bytes& saved = next(name);
      if (saved.size() != bytes) throw std::runtime_error(full(name) + " has another size than it had");
      std::memcpy(data, saved.data(), bytes);
    }
    const SavedState& from_;
  };

  std::vector<std::pair<std::string, Bytes>> entries_;
};

}  // namespace octet::testing

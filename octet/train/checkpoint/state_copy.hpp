#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/tensor/state.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::train {

/// The state of a component in the host's memory, from which another one of the same configuration can be restored: as a checkpoint,
/// without a file. Of divided variables it has the own slices.
class StateCopy {
 public:
  /// `visit`: shows the state. Waits for the stream.
  template <class Visit>
  static StateCopy of(Stream& stream, Visit visit) {
    StateCopy copy;
    Save save(stream, copy);
    visit(save);
    return copy;
  }
  /// Throws ContractError if `visit` shows other names or sizes.
  template <class Visit>
  void restore(Stream& stream, Visit visit) const {
    Restore restore(stream, *this);
    visit(restore);
    restore.finish();
  }
  std::size_t bytes() const;

 private:
  using Bytes = std::vector<std::byte>;

  class Named : public StateVisitor {
   protected:
    explicit Named(Stream& stream) : stream_(stream) {}
    void enter(std::string_view name) override { prefixes_.push_back(prefixes_.back() + std::string(name) + "."); }
    void leave() override { prefixes_.pop_back(); }
    std::string full(std::string_view name) const { return prefixes_.back() + std::string(name); }
    Stream& stream_;

   private:
    std::vector<std::string> prefixes_{""};
  };
  class Save final : public Named {
   public:
    Save(Stream& stream, StateCopy& to) : Named(stream), to_(to) {}
    bool restoring() const override { return false; }
    void state(std::string_view name, const Tensor&) override;
    void state(std::string_view name, const StoredSlice&, Tiny) override;
    void state(std::string_view name, std::int64_t& x) override { add(name, &x, sizeof x); }
    void state(std::string_view name, double& x) override { add(name, &x, sizeof x); }
    void state(std::string_view name, std::vector<double>& x) override { add(name, x.data(), x.size() * sizeof(double)); }

   private:
    void add(std::string_view name, const void* data, std::size_t bytes);
    StateCopy& to_;
  };
  class Restore final : public Named {
   public:
    Restore(Stream& stream, const StateCopy& from) : Named(stream), from_(from) {}
    bool restoring() const override { return true; }
    void state(std::string_view name, const Tensor&) override;
    void state(std::string_view name, const StoredSlice&, Tiny) override;
    void state(std::string_view name, std::int64_t& x) override { read(name, &x, sizeof x); }
    void state(std::string_view name, double& x) override { read(name, &x, sizeof x); }
    void state(std::string_view name, std::vector<double>&) override;
    void finish() const;

   private:
    const Bytes& next(std::string_view name);
    void read(std::string_view name, void* to, std::size_t bytes);
    const StateCopy& from_;
    std::size_t next_ = 0;
  };

  std::vector<std::pair<std::string, Bytes>> entries_;
};

}  // namespace octet::train

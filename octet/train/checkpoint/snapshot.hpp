#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/io/safetensors_header.hpp"
#include "octet/tensor/state.hpp"
#include "octet/tensor/host_copies.hpp"

namespace octet::train {

/// The state of a run at one step boundary, in the host's memory, as the bytes of a safetensors file.
struct Snapshot {
  std::int64_t step = 0;
  std::string config, text;  // as in Manifest
  std::unique_ptr<std::byte[]> file;
  std::size_t bytes = 0;
  std::unique_ptr<HostCopies> missing;  // large variables that only the update changes, and that are not in `file` yet

  std::span<const std::byte> span() const { return {file.get(), bytes}; }
};

/// Collects the state that it is shown; take() or begin() then copies it. Tensors must not change in between.
class Capture final : public StateVisitor {
 public:
  /// Which state: all of it, or, of a rank other than the first, the slices that it keeps of divided variables. None: another rank has
  /// the same.
  enum class What : std::uint8_t { all, slices, none };
  explicit Capture(Stream& stream, What what = What::all) : stream_(stream), what_(what) {}
  bool restoring() const override { return false; }
  void state(std::string_view name, const Tensor&) override;
  void until_update(std::string_view name, const Tensor&) override;
  void state(std::string_view name, const StoredSlice&, Tiny) override;
  void state(std::string_view name, std::int64_t&) override;
  void state(std::string_view name, double&) override;
  void state(std::string_view name, std::vector<double>&) override;

  /// Waits for the stream's work. `step`, `config` and `text` are left to the caller.
  Snapshot take();
  /// The same, except for large variables that only the update changes: Snapshot::missing copies them later, before the update.
  Snapshot begin();

 private:
  void enter(std::string_view name) override;
  void leave() override;

  struct Item {
    io::TensorSpec spec;
    Tensor device;                // where it is a tensor
    bool waits = false;           // as until_update()
    std::vector<std::byte> host;  // where it is none
  };
  void add(const std::string& name, const Tensor&, bool waits);
  void add(const std::string& name, const Stored&);
  void add_pieces(std::string_view name, const StoredSlice&);

  Stream& stream_;
  What what_;
  std::vector<Item> items_;
  std::vector<std::string> prefixes_{""};
};

/// The type of a dtype in files.
io::StoredDType stored_type(DType);
/// The shape in files.
std::vector<std::int64_t> stored_shape(const Shape&);

}  // namespace octet::train

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "octet/train/checkpoint/state_files.hpp"
#include "octet/tensor/state.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::train {

/// Puts the tensors of files where it is shown that they belong, whole or in slices of any other cut, converting variables that they store
/// otherwise, or, with Mode::check, only
/// finds out whether each is there with the right type and shape. Throws DataError naming file and tensor.
class Restore final : public StateVisitor {
 public:
  enum class Mode { check, write };
  Restore(Stream& stream, const StateFiles& files, Mode mode) : stream_(stream), files_(files), mode_(mode) {}
  bool restoring() const override { return mode_ == Mode::write; }
  void state(std::string_view name, const Tensor&) override;
  void optional(std::string_view name, const Tensor&) override;
  void changed(std::string_view name, const Tensor&, const EarlierForm&) override;
  bool has(std::string_view name) const override;
  void unused(std::string_view name) override;
  void elsewhere(std::string_view name) override;
  void state(std::string_view name, const StoredSlice&, Tiny) override;
  void state(std::string_view name, std::int64_t&) override;
  void state(std::string_view name, double&) override;
  void state(std::string_view name, std::vector<double>&) override;
  using StateVisitor::count;
  std::int64_t count(std::string_view name, std::int64_t&, const Bounds&) override;
  /// Throws when the file has tensors that were not visited.
  void finish() const;

  /// Variables that the file stores otherwise than this run: how many were converted from one storage to another.
  struct Conversion {
    Storage from, to;
    std::int64_t variables = 0, values = 0;
  };
  const std::vector<Conversion>& conversions() const { return conversions_; }

 private:
  void enter(std::string_view name) override;
  void leave() override;
  void convert(const StateFiles::Variable& from, const StoredSlice& to, Tiny);
  void assemble(const StateFiles::Variable& from, const StoredSlice& to, const std::vector<CutPiece>& places);
  static std::vector<CutPiece> places_of(const StoredSlice&);
  static bool keeps_codes(const StateFiles::Variable& from, const std::vector<CutPiece>& places);
  /// The tensor's bytes; a dimension of -1 may be any.
  std::span<const std::byte> find(std::string_view name, io::StoredDType, const std::vector<std::int64_t>& shape);

  Stream& stream_;
  const StateFiles& files_;
  Mode mode_;
  std::size_t found_ = 0;
  std::vector<std::string> prefixes_{""};
  std::vector<Conversion> conversions_;
};

}  // namespace octet::train

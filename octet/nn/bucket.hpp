#pragma once

#include <span>
#include <vector>

#include "octet/nn/index_range.hpp"
#include "octet/nn/visitor.hpp"
#include "octet/tensor/parameter_slice.hpp"

namespace octet::nn {

/// How matrices and their gradients are stored: gradients as f32, bf16, e4m3 or e4m3_tensor. Norms and biases are always f32, and so are
/// gradients that backward adds to in many parts (of embedding and head), unless `ends`.
struct ParameterStorage {
  Storage values = Storage::f32;
  Storage gradients = Storage::f32;
  Storage copies = Storage::f32;  // of matrices whose master weights are sharded: f32 or bf16, rounded to nearest
  bool ends = false;              // gradients of an untied embedding and head are stored as others, if that is e4m3
  bool codes = true;              // of these, copies are the 8-bit codes that their layer reads, where a part can be encoded by itself
};

/// The state that ranks shard, as stages of ZeRO do. Each also shards those before it.
enum class Sharded : std::uint8_t {
  nothing,
  masters,    // master weights and moments; every rank has a copy of all weights, which modules read
  gradients,  // sums of gradients
  weights,    // the copies of blocks' matrices
};

/// The part of a model's state that this rank stores: one of `count` equal ones.
struct Shard {
  int index = 0, count = 1;
  Sharded sharded = Sharded::nothing;

  bool shards(Sharded s) const { return sharded >= s; }
  /// The own masters of a bucket with so many elements: all, if they are not sharded.
  IndexRange own_masters(std::int64_t elements) const;
};

/// The shards of a model's parameters: of those that all of these ranks have, and of stacks of experts, of which an axis of their own has
/// parts. One member has all experts, and its shards are the same.
struct Shards {
  Shards(const Shard& shard = {}) : all(shard), experts(shard) {}
  Shards(const Shard& of_all, const Shard& of_experts, int own_member, int all_members)
      : all(of_all), experts(of_experts), member(own_member), members(all_members) {}

  Shard all, experts;
  int member = 0, members = 1;  // of the experts' axis

  bool differ() const { return members > 1; }
  /// Whether another member of the experts' axis counts and saves what both have.
  bool copies() const { return member > 0 && !all.shards(Sharded::masters); }
};

/// Parameters that are exchanged and sharded together: neighbours in backward whose variables are stored alike. Each variable of a bucket
/// is one piece of memory, in which a parameter has the same place in all of them.
struct Bucket {
  std::vector<Parameter*> parameters;  // in the order in which backward completes them
  std::vector<Weight*> coded;          // where copies are 8-bit codes, the weight of each; otherwise empty
  std::vector<std::int64_t> first;     // the first element of each in the bucket, a multiple of 256
  std::int64_t count = 0;  // elements with padding, which is 0 unless memory is shared in turn: a multiple of 256 and 128 * shard.count
  Storage values = Storage::f32, gradients = Storage::f32, copies = Storage::f32;
  Stored value, gradient;  // [count]; scales per tensor are the parameters' own and left out
  int block = -1;          // of the model; -1: outside
  bool experts = false;    // stacks of which ranks of the experts' axis have parts
  Shard shard = {};        // the own one, of everything that is sharded
  Tensor codes;            // u8 [count], instead of `value`: copies that are 8-bit codes, which Parameter::codes shows
  Tensor copies_part;      // of the own masters
  // The copies are sharded, too, which are those of the matrices of a block: `value` or `codes` is then memory that blocks of the same
  // parity share in turn.
  bool in_turn = false;
  // Sums of gradients of the own masters, in the storage `gradients`. Complete sums are in `gradient`.
  Stored sums;
  // Sums are sharded: `gradient` is memory that buckets share in turn, of values of one micro-batch, which are added to `sums`. Other
  // buckets have complete sums: all outside of blocks, vectors, and parameters with several uses.
  bool sums_apart = false;
  Stored master;  // where masters are sharded, the own ones; else empty. May be a view of `value`

  /// Where masters are sharded, whether they are the own part of the copies.
  bool master_is_copy() const { return !codes && !has_scales(values) && code_type(values) == code_type(copies); }
  /// The memory of all copies.
  const Tensor& all_copies() const { return codes ? codes : value.codes; }

  /// The part of a variable of this bucket that belongs to a parameter.
  Stored cut(const Stored& variable, std::size_t parameter) const;
};

/// Of parameter i of a bucket of which one shard is stored.
ParameterSlice slice_of(const Bucket&, std::size_t i);

/// The block and the layer of a parameter in its model.
struct ParameterContext {
  int block = -1;           // -1: outside
  Weight* coded = nullptr;  // whose 8-bit codes of it can be made of parts; otherwise null
  bool experts = false;     // a stack of these
};

/// The buckets of a model's parameters in the order of backward, which is that of the list reversed: one for the matrices of each block
/// (contexts[i]: of list[i]), or two if only some can be read as codes, one for each matrix outside, one for all vectors that are
/// parts or have no other copy, and one for those of which others have copies. Where shards differ, stacks of experts have buckets of their
/// own. A bucket can be cut into as many equal shards of whole storage blocks as `shard.count`.
std::vector<Bucket> make_buckets(std::span<Parameter* const> list, std::span<const ParameterContext> contexts, const ParameterStorage&,
                                 const Shards&);

}  // namespace octet::nn

#pragma once

// Only for *.sm90a.cu files: the tiles of d that a block makes, in order.

#include "octet/ops/grouped_gemm/hopper/form.cuh"

namespace octet::cuda::tiles {

/// A tile of one group.
struct Place {
  int group, row, column;
  int waves;          // of 128 rows that are there
  int first, blocks;  // of K: the first value, and how many stages
};

/// All blocks of a cluster walk the same tiles side by side. Limits of groups are read from memory as the walk passes them, so any number
/// of groups of any size takes one launch. Where the number of tiles is known and those of the last round are for at most half of the
/// clusters, they are cut in two.
template <class F, int values>  // values of K of a stage
class Walk {
 public:
  __device__ Walk(const Job& job, int cluster, int clusters, int rank) : job_(job), at_(cluster), clusters_(clusters), rank_(rank) {
    if (!counted()) return;
    const int all = job.groups * tiles_of(job.M), last = all % clusters;
    whole_ = F::waves == 2 && 2 * last <= clusters ? all - last : all;
  }

  __device__ bool next(Place& p) {
    if (counted()) return next_of_counted(p);
    return next_of_rows(p);
  }

 private:
  static constexpr int tile_rows = F::waves * wave_rows;
  static __device__ int ceil_of(int n, int by) { return (n + by - 1) / by; }
  __device__ int tiles_of(int rows) const { return ceil_of(rows, tile_rows) * job_.columns_of_clusters; }

  // The number of tiles is known: groups lie along K, or there is only one.
  __device__ bool counted() const { return F::groups == Groups::columns || job_.begin == nullptr; }

  __device__ bool next_of_rows(Place& p) {
    for (; group_ < job_.groups; ++group_) {
      const int rows = __ldg(job_.count + group_), tiles = tiles_of(rows);
      if (at_ - before_ < tiles) {
        set(p, at_ - before_, rows);
        p.row += __ldg(job_.begin + group_);
        p.group = group_, p.first = 0, p.blocks = ceil_of(job_.K, values);
        at_ += clusters_;
        return true;
      }
      before_ += tiles;
    }
    return false;
  }

  __device__ bool next_of_counted(Place& p) {
    const int tiles = tiles_of(job_.M);
    do {
      const int halves = at_ - whole_, tile = halves < 0 ? at_ : whole_ + halves / 2;
      p.group = tile / tiles;
      if (p.group >= job_.groups) return false;
      set(p, tile - p.group * tiles, job_.M);
      if (halves >= 0) p.row += halves % 2 * wave_rows, p.waves = p.row < job_.M ? 1 : 0;
      at_ += clusters_;
    } while (p.waves == 0);
    p.first = job_.begin == nullptr ? 0 : __ldg(job_.begin + p.group);
    p.blocks = ceil_of(job_.begin == nullptr ? job_.K : __ldg(job_.count + p.group), values);
    return true;
  }

  // Tile `tile` of a group with `rows` rows. Panels of neighbouring rows of tiles are walked column by column, so that tiles made at the
  // same time share operands in L2.
  __device__ void set(Place& p, int tile, int rows) const {
    constexpr int panel = 16 / F::waves;
    const int height = ceil_of(rows, tile_rows), begin = tile / (panel * job_.columns_of_clusters) * panel;
    const int rest = tile - begin * job_.columns_of_clusters, here = min(panel, height - begin);
    const int row = begin + rest % here;
    p.row = row * tile_rows, p.column = (rest / here * F::cluster + rank_) * tile_columns;
    p.waves = min(F::waves, ceil_of(rows - p.row, wave_rows));
  }

  const Job& job_;
  int at_, clusters_, rank_;
  int whole_ = 0;               // tiles before the first one that is cut
  int group_ = 0, before_ = 0;  // tiles of earlier groups
};

}  // namespace octet::cuda::tiles

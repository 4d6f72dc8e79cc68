#pragma once

// Only for *.sm90a.cu files: the tiles of d that a block makes, in order.

#include "octet/ops/grouped_gemm/hopper/form.cuh"

namespace octet::cuda::tiles {

/// A tile of one group.
struct Place {
  int group, row, column;
  int waves;          // of 128 rows that are there; 0: the block only takes part in its cluster's copies
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
  static constexpr int tile_rows = F::waves * wave_rows, cluster_rows = tile_rows * (F::b_shared ? 2 : 1);
  static __device__ int ceil_of(int n, int by) { return (n + by - 1) / by; }  // by > 0, n > -by
  __device__ int tiles_of(int rows) const { return ceil_of(rows, cluster_rows) * job_.columns_of_clusters; }

  // The number of tiles is known: groups lie along K, or there is only one.
  __device__ bool counted() const { return F::groups == Groups::columns || job_.begin == nullptr; }

  __device__ bool next_of_rows(Place& p) {
    for (; group_ < job_.groups; ++group_) {
      const int rows = __ldg(job_.count + group_), tiles = tiles_of(rows);
      if (at_ - before_ < tiles) {
        set_rows(p, begin_of(p, at_ - before_, rows), rows, F::waves);
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
    int half, row;
    do {
      const int halves = at_ - whole_, tile = halves < 0 ? at_ : whole_ + halves / 2;
      p.group = tile / tiles, half = halves < 0 ? -1 : halves % 2;
      if (p.group >= job_.groups) return false;
      row = begin_of(p, tile - p.group * tiles, job_.M) + (half > 0 ? cluster_rows / 2 : 0);
      at_ += clusters_;
    } while (row >= job_.M);
    set_rows(p, row, job_.M, half < 0 ? F::waves : 1);
    p.first = job_.begin == nullptr ? 0 : __ldg(job_.begin + p.group);
    p.blocks = ceil_of(job_.begin == nullptr ? job_.K : __ldg(job_.count + p.group), values);
    return true;
  }

  // The first row of a cluster's tile `tile` in a group with `rows` rows; sets its column. Panels of neighbouring rows of tiles are walked
  // column by column, so that tiles made at the same time share operands in L2.
  __device__ int begin_of(Place& p, int tile, int rows) const {
    constexpr int panel = 2048 / cluster_rows;
    const int height = ceil_of(rows, cluster_rows), begin = tile / (panel * job_.columns_of_clusters) * panel;
    const int rest = tile - begin * job_.columns_of_clusters, here = min(panel, height - begin);
    p.column = (F::a_shared ? rest / here * 2 + rank_ : rest / here) * tile_columns;
    return (begin + rest % here) * cluster_rows;
  }

  // This block's rows of a tile with up to `waves` waves per block, which begins at `row`. Of a cluster whose blocks lie one below the
  // other, the second one may have none.
  __device__ void set_rows(Place& p, int row, int rows, int waves) const {
    p.row = F::b_shared ? row + rank_ * waves * wave_rows : row;
    p.waves = max(0, min(waves, ceil_of(rows - p.row, wave_rows)));
  }

  const Job& job_;
  int at_, clusters_, rank_;
  int whole_ = 0;               // tiles before the first one that is cut
  int group_ = 0, before_ = 0;  // tiles of earlier groups
};

}  // namespace octet::cuda::tiles

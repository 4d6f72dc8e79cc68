#pragma once

// Only for CUDA files: the assignment of sums to clusters of the promoted GEMM.

#include <cstdint>

namespace octet::cuda {

/// Part of one tile's sum: blocks [begin, end) of K.
struct Segment {
  int tile, begin, end;
};

/// Tiles are made one after another, as many at a time as there are clusters. Where that would leave clusters idle in the last round, the
/// tiles of the first rounds, `split` of them, form one sequence of blocks of K that is cut into equal pieces, one per cluster; a tile that
/// was cut is finished by the cluster that has its first block, which adds the sums of the next clusters to its own, in their order. All is
/// fixed by the shape and the number of clusters, so the same GEMM gives the same bits.
struct Schedule {
  int tiles, k_blocks, clusters;
  int split;        // tiles that are cut
  int least, more;  // blocks of a piece; the first `more` pieces have one in addition

  static Schedule of(int tiles, int k_blocks, int clusters, bool may_cut) {
    // Cutting costs about 16 blocks' time: sums go to memory and back.
    const std::int64_t rounds = (tiles + clusters - 1) / clusters, whole = rounds * k_blocks;
    const std::int64_t cut = std::int64_t(tiles) * k_blocks / clusters + 16;
    const int split = may_cut && cut < whole ? tiles - (tiles / clusters > 1 ? (tiles / clusters - 1) * clusters : 0) : 0;
    return {tiles, k_blocks, clusters, split, split * k_blocks / clusters, split * k_blocks % clusters};
  }
  /// The first block of a cluster's piece, counted along the sequence.
  __device__ int piece(int cluster) const { return cluster * least + (cluster < more ? cluster : more); }
};

/// The work of one cluster, in order.
struct Segments {
  const Schedule& schedule;
  int at, stop, whole;

  __device__ Segments(const Schedule& s, int cluster)
      : schedule(s), at(s.piece(cluster)), stop(s.piece(cluster + 1)), whole(s.split + cluster) {}
  __device__ bool next(Segment& out) {
    if (at < stop) {
      const int tile = at / schedule.k_blocks, begin = at - tile * schedule.k_blocks, left = schedule.k_blocks - begin;
      out = {tile, begin, stop - at < left ? begin + stop - at : schedule.k_blocks};
      at += out.end - begin;
      return true;
    }
    out = {whole, 0, schedule.k_blocks};
    whole += schedule.clusters;
    return out.tile < schedule.tiles;
  }
};

}  // namespace octet::cuda

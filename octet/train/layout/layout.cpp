#include "octet/train/layout/layout.hpp"

#include "octet/base/text.hpp"

namespace octet::train {

std::string to_text(Recomputed r) {
  constexpr const char* names[] = {"none", "norms", "block"};
  return names[std::size_t(r)];
}

std::string to_text(const Layout& l) {
  std::string out;
  for (const LayoutNumber& n : layout_numbers)
    if (n.axis && l.*n.in_layout > 1) out += format("{}{} {}", out.empty() ? "" : " x ", n.name, l.*n.in_layout);
  if (out.empty()) out = "one GPU";
  if (l.chunks > 1) out += format(", {} chunks", l.chunks);
  if (l.defers()) out += ", zero bubble";
  if (l.experts > 1) out += format(", experts over {}", l.experts);
  if (l.zero > 0) out += format(", ZeRO-{}{}", l.zero, l.same_shard() > 1 ? format(" in groups of {}", l.shards()) : "");
  out += format(", micro-batch {}", l.micro_batch);
  if (l.recomputed != Recomputed::none) out += format(", {} recomputed", to_text(l.recomputed));
  return out;
}

Layout layout_of(const parallel::RanksConfig& ranks) {
  Layout out{.schedule = ranks.schedule};
  for (const LayoutNumber& n : layout_numbers) out.*n.in_layout = ranks.*n.in_ranks;
  out.chunks = chunks_of(out.schedule, out.chunks);
  return out;
}

void set_ranks(parallel::RanksConfig& ranks, const Layout& l) {
  for (const LayoutNumber& n : layout_numbers) ranks.*n.in_ranks = l.*n.in_layout;
  ranks.schedule = l.schedule;
}

}  // namespace octet::train

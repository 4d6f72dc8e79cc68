#include "octet/train/layout/layout.hpp"

#include "octet/base/text.hpp"

namespace octet::train {

std::string to_text(Recomputed r) {
  constexpr const char* names[] = {"none", "norms", "block"};
  return names[std::size_t(r)];
}

std::string to_text(const Layout& l) {
  std::string out;
  const auto axis = [&](const char* name, std::int64_t size) {
    if (size > 1) out += format("{}{} {}", out.empty() ? "" : " x ", name, size);
  };
  axis("tensor", l.tensor), axis("pipeline", l.pipeline), axis("context", l.context), axis("data", l.data);
  if (out.empty()) out = "one GPU";
  if (l.chunks > 1) out += format(", {} chunks", l.chunks);
  if (l.defers()) out += ", zero bubble";
  if (l.experts > 1) out += format(", experts over {}", l.experts);
  if (l.zero > 0) out += format(", ZeRO-{}{}", l.zero, l.same_shard() > 1 ? format(" in groups of {}", l.shards()) : "");
  out += format(", micro-batch {}", l.micro_batch);
  if (l.recomputed != Recomputed::none) out += format(", {} recomputed", to_text(l.recomputed));
  return out;
}

}  // namespace octet::train

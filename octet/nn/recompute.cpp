#include "octet/nn/recompute.hpp"

#include <algorithm>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::nn {
namespace {

struct Part {
  const char* name;
  bool Recompute::*on;
};
constexpr Part parts[] = {{"norm", &Recompute::norm},
                          {"activation", &Recompute::activation},
                          {"mlp", &Recompute::mlp},
                          {"attention", &Recompute::attention},
                          {"block", &Recompute::block}};

}  // namespace

Recompute Recompute::named(std::span<const std::string> names) {
  Recompute out;
  for (const std::string& name : names) {
    const Part* const part = std::find_if(std::begin(parts), std::end(parts), [&](const Part& p) { return p.name == name; });
    if (part == std::end(parts)) {
      const std::string near = nearest(name, {"norm", "activation", "mlp", "attention", "block"});
      throw ConfigError(format("model.recompute: \"{}\" is no part of a block, which has norm, activation, mlp, attention and block{}",
                               printable(name), near.empty() ? "" : format("; did you mean \"{}\"?", near)));
    }
    out.*part->on = true;
  }
  out.attention |= out.block, out.mlp |= out.block;
  return out;
}

}  // namespace octet::nn

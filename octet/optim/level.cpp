#include "octet/optim/level.hpp"

#include "octet/base/text.hpp"

namespace octet::optim {

std::string to_text(Level level) { return format("O{}", int(level)); }

StateStorage storage_of(Level level) {
  StateStorage s;
  if (level >= Level::O1) s.gradients = Storage::e4m3;
  if (level >= Level::O2) s.m = Storage::e4m3, s.v = Storage::f16;
  if (level >= Level::O3) s.master = Storage::f16;
  return s;
}

const std::vector<StateKey>& state_keys() {
  static const std::vector<StateKey> all{{"master weights", "optim.master", &StateStorage::master, ops::AdamWVariable::value},
                                         {"weight gradients", "optim.gradients", &StateStorage::gradients, {}},
                                         {"first moments", "optim.m", &StateStorage::m, ops::AdamWVariable::m},
                                         {"second moments", "optim.v", &StateStorage::v, ops::AdamWVariable::v}};
  return all;
}

std::int64_t bytes_per_parameter(const StateStorage& s) {
  std::int64_t bytes = 0;
  for (const StateKey& k : state_keys()) bytes += std::int64_t(size_of(code_type(s.*k.storage)));
  return bytes;
}

std::string description(Storage s) { return format("{} per value{}", counted((long long)size_of(code_type(s)), "byte"), facts(s).words); }

std::string unsafe_reason(const StateStorage& s) {
  if (s.master == Storage::bf16_nearest)
    return "optim.master = \"bf16_nearest\" loses every update below half of a weight's last place, so training stops; set it to \"bf16\", "
           "which is rounded stochastically, or to \"f16\"";
  if (s.master == Storage::e4m3_tensor)
    return "optim.master = \"e4m3_tensor\" has 4 bits of precision, far fewer than updates need; set it to \"f16\"";
  if (s.m == Storage::e4m3_tensor && s.v == Storage::e4m3_tensor)
    return "optim.m and optim.v = \"e4m3_tensor\": with one scale per tensor, all small second moments share a code that is far from their "
           "value, and so are updates; set optim.v to \"f16\" or \"e4m3_expanded\"";
  return "";
}

}  // namespace octet::optim

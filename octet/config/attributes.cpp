#include "octet/config/attributes.hpp"

#include <algorithm>

#include "octet/base/text.hpp"
#include "octet/config/field_list.hpp"
#include "octet/config/write.hpp"

namespace octet::config {

std::vector<std::string> keys_that_may_change(ConstRef config) {
  const Section root = gather(config);
  std::vector<std::string> out;
  for (const Field* field : all_fields(root))
    if (field->may_change) out.push_back(field->key);
  return out;
}

std::vector<IdleKey> idle_keys(ConstRef config) {
  const Section root = gather(config);
  std::vector<IdleKey> out;
  for (const Field* field : all_fields(root))
    if (!field->idle.empty()) out.push_back({field->key, field->idle});
  return out;
}

std::string idle_text(const IdleKey& idle, const Origins& origins) {
  return format("{} has no effect: {}", cite(origins, idle.key), idle.why);
}

std::vector<std::string> idle_options(ConstRef config, ConstRef defaults, const Origins& origins) {
  const std::vector<Difference> changed = differences(config, defaults);
  std::vector<std::string> out;
  for (const IdleKey& idle : idle_keys(config))
    if (std::any_of(changed.begin(), changed.end(), [&](const Difference& d) { return d.key == idle.key; }))
      out.push_back(idle_text(idle, origins));
  return out;
}

}  // namespace octet::config

#include "octet/train/study/idle_options.hpp"

#include <algorithm>
#include <map>

#include "octet/base/text.hpp"
#include "octet/config/attributes.hpp"
#include "octet/config/write.hpp"

namespace octet::train {
namespace {

/// One arm: the keys that it sets, and those that nothing in it reads.
struct ArmKeys {
  std::string name;
  std::vector<std::string> own;
  std::map<std::string, std::string> idle;  // key -> why

  bool sets(const std::string& key) const { return std::find(own.begin(), own.end(), key) != own.end(); }
};

std::vector<ArmKeys> keys_of_arms(const StudyConfig& study) {
  std::vector<ArmKeys> out;
  for (const Arm& arm : study.arms()) {
    ArmKeys keys{.name = arm.name};
    for (const std::string& assignment : arm.keys) {
      const std::string key = assignment.substr(0, assignment.find('='));
      keys.own.push_back(key.substr(0, key.find_last_not_of(" \t") + 1));
    }
    for (const config::IdleKey& idle : config::idle_keys(StudyConfig{with_arm(study.run, arm), study.compare}))
      keys.idle[idle.key] = idle.why;
    out.push_back(std::move(keys));
  }
  return out;
}

/// One reason for all arms: "no history is kept under bf16, current" of reasons that differ in their last word alone.
std::string merged(const std::vector<std::string>& reasons) {
  const auto stem = [](const std::string& reason) { return reason.substr(0, reason.rfind(' ') + 1); };
  const bool alike = std::all_of(reasons.begin(), reasons.end(), [&](const std::string& r) { return stem(r) == stem(reasons[0]); });
  std::string out = reasons[0];
  for (std::size_t i = 1; i < reasons.size(); ++i) out += alike ? ", " + reasons[i].substr(stem(reasons[i]).size()) : "; " + reasons[i];
  return out;
}

/// Why no arm reads the common value of `key`; "" where one does.
std::string why_in_all(const std::string& key, const std::vector<ArmKeys>& arms) {
  std::vector<std::string> reasons;
  bool own = false;
  for (const ArmKeys& arm : arms) {
    const auto idle = arm.idle.find(key);
    if (!arm.sets(key) && idle == arm.idle.end()) return "";
    if (arm.sets(key)) own = true;
    else if (std::find(reasons.begin(), reasons.end(), idle->second) == reasons.end()) reasons.push_back(idle->second);
  }
  if (reasons.empty()) return "every arm sets its own";
  return merged(reasons) + (own ? "; the other arms set their own" : "");
}

}  // namespace

std::vector<std::string> idle_options(const StudyConfig& study, const RunConfig& defaults, const config::Origins& origins) {
  const StudyConfig plain{defaults, study.compare};
  const std::vector<ArmKeys> arms = keys_of_arms(study);
  std::vector<std::string> out;
  for (const config::Difference& changed : config::differences(study, plain))
    if (const std::string why = why_in_all(changed.key, arms); !why.empty()) out.push_back(config::idle_text({changed.key, why}, origins));
  for (const ArmKeys& arm : arms)
    for (const std::string& key : arm.own)
      if (const auto idle = arm.idle.find(key); idle != arm.idle.end())
        out.push_back(config::idle_text({key, idle->second}, {{key, "--arm " + arm.name}}));
  return out;
}

}  // namespace octet::train

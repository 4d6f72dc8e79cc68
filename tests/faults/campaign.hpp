#pragma once

#include "octet/train/run/trainer.hpp"
#include "tests/faults/trial.hpp"

namespace octet::faults {

struct CampaignOptions {
  train::RunConfig config;             // of undisturbed runs: steps, data, output folder
  std::vector<std::string> faults{};   // names; empty: all
  std::vector<std::string> recipes{};  // of faults that have none of their own, and of these only those in the list
  std::vector<std::int64_t> seeds{1};
  std::vector<std::string> act{};  // key=value, which the second run of each fault has besides; empty: there is none
  std::int64_t begin = 70;         // first disturbed step
  int layer = 1;                   // of the model
  bool keep = false;               // the run folders of faults
};

/// The configuration of a run of a campaign: no limit of time, one thread, no weights, no alerts of the machine, which other processes
/// fire.
train::RunConfig campaign_config(train::RunConfig);

/// Trains an undisturbed run per recipe and seed, with a checkpoint before the fault. Each fault then resumes a copy from there, so that it
/// is the only difference. Settings and faults in several ranks have whole runs. `report` gets each trial as it ends.
std::vector<Trial> run_campaign(const CampaignOptions&, const std::function<void(const Trial&)>& report);

}  // namespace octet::faults

#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "octet/nn/parameters.hpp"
#include "octet/train/step/engine_config.hpp"

namespace octet::train {

/// A whole parameter, without memory and cut. Its gradient may be narrow, or not.
struct StagedParameter {
  std::unique_ptr<Parameter> whole;
  int stage = 0;       // the first that has it
  bool stack = false;  // of experts
};

/// The parameters of a model of which each stage of a pipeline has some, in the order of the whole model. One stage has all of them.
class StageParameters {
 public:
  /// Those of this stage outlive this, as does the communicator. There are frozen ones only beside adapters. Throws ConfigError as
  /// chunks_of_stages().
  StageParameters(const EngineConfig&, const Target&, comm::Communicator& stages, const nn::Parameters& trained);
  StageParameters(const EngineConfig&, const Target&, comm::Communicator& stages, const std::vector<Parameter*>& frozen);

  /// Of all parameters, without copies.
  std::int64_t count() const;
  /// f(path) for each parameter that this stage does not have.
  void each_absent(const std::function<void(const std::string&)>& f) const;
  struct NumberedParameter : StagedParameter {
    std::ptrdiff_t own = -1;  // its number on this stage, if this has it
  };
  /// All parameters, of all stages.
  const std::vector<NumberedParameter>& places() const { return places_; }
  /// All parameters: `own` of them, in the order of this stage's list, and whole ones without memory.
  std::vector<Parameter*> completed(const std::vector<Parameter*>& own) const;
  /// Values of all parameters on the first stage, in the order of completed(), from those of this stage's; empty ones on other stages. On
  /// the first one `own` is only passed on. There are so many values per parameter; 0: all of its own. All stages call it.
  std::vector<std::vector<float>> with_other_stages(Stream&, std::vector<std::vector<float>> own, std::size_t per_parameter = 0) const;

 private:
  void fill(std::vector<StagedParameter> all, const std::vector<Parameter*>& own);

  comm::Communicator& stages_;
  std::vector<NumberedParameter> places_;
};

}  // namespace octet::train

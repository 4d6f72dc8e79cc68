#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "octet/nn/parameters.hpp"
#include "octet/train/step/engine_config.hpp"

namespace octet::train {

/// The parameters of a model of which each stage of a pipeline has some, in the order of the whole model. One stage has all of them.
class StageParameters {
 public:
  /// `own`: those of this stage, which outlive this, as does the communicator. Throws ConfigError as chunks_of_stages().
  StageParameters(const EngineConfig&, const Target&, comm::Communicator& stages, const nn::Parameters& own);

  /// Of all parameters, without copies.
  std::int64_t count() const;
  /// f(path) for each parameter that this stage does not have.
  void each_absent(const std::function<void(const std::string&)>& f) const;
  /// f(whole parameter without memory, whether it is a stack of experts) for each, of all stages. Its gradient may be narrow, or not.
  void each(const std::function<void(const Parameter&, bool stack)>& f) const;
  /// All parameters: `own` of them, in the order of this stage's list, and whole ones without memory.
  std::vector<Parameter*> completed(const std::vector<Parameter*>& own) const;
  /// Values of all parameters on the first stage, in the order of completed(), from those of this stage's; none on other stages. On the
  /// first one `own` is only passed on. All stages call it.
  std::vector<std::vector<float>> with_other_stages(Stream&, std::vector<std::vector<float>> own) const;
  /// The same of so many values per parameter.
  std::vector<std::vector<float>> with_other_stages(Stream&, std::vector<std::vector<float>> own, std::size_t per_parameter) const;

 private:
  using ValuesOf = std::function<std::size_t(const Parameter&)>;
  std::vector<std::vector<float>> collected(Stream&, std::vector<std::vector<float>> own, const ValuesOf&) const;

  struct Place {
    std::unique_ptr<Parameter> whole;  // without memory and cut
    int stage = 0;                     // the first that has it
    bool stack = false;
    std::ptrdiff_t own = -1;  // its number on this stage
  };
  comm::Communicator& stages_;
  std::vector<Place> places_;
};

}  // namespace octet::train

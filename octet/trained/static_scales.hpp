#pragma once

#include <map>

#include "octet/trained/model_source.hpp"
#include "octet/data/eval_batches.hpp"

// Scales of activations that are fixed before a model computes: of a folder with input_scale, of the last step of a run, or of calibration.

namespace octet::trained {

/// The precision in which a model's stored scales are used as they are: that of its run, or one scale per tensor for a folder's codes.
/// Throws ConfigError where no scales are stored.
scaling::PrecisionConfig frozen_precision(const ModelSource&);
/// Gives an engine of that precision, which has the model's weights, the stored scales.
void load_stored_scales(const ModelSource&, train::Engine&);

/// The precision in which maxima of activations are collected for an export whose parameters `kept` are values.
scaling::PrecisionConfig calibrated_precision(const ModelSource&, const std::vector<std::string>& kept);
/// The scale of the activations of each layer of blocks, by its parameter: of the maxima of `count` batches.
std::map<std::string, float> calibrated_scales(train::Engine&, const data::EvalBatches&, std::uint64_t count);
/// The same as the run left them; empty unless its recipe keeps those of all layers with codes.
std::map<std::string, float> scales_of_run(const ModelSource&);

}  // namespace octet::trained

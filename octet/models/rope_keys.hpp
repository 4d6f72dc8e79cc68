#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// The rotation: "rope_theta" and "rope_scaling" up to transformers 4, "rope_parameters" with both since 5. As there, rope_scaling wins.
/// Types are default, linear, llama3 and yarn. Throws DataError naming the key of anything else.
void read_rope(const json::Fields& config, ModelShape&);
/// One rotation of an object with "rope_type", "rope_theta" and the type's numbers; shape.rope_theta stays where the object has none.
void read_rotation(const json::Fields& rope, ModelShape&);
void write_rope(const ModelShape&, json::Value& config);

/// The types' names, "linear", "llama3" and "yarn", and the type of a name, which must be one of them.
std::string_view name_of(ops::RopeScaling::Kind);
ops::RopeScaling::Kind rope_kind(std::string_view name);
/// "yarn (40, 1, 32, 4096, 0.707, 0.707)": all numbers of a scaling, for messages; "none".
std::string rope_text(const ModelShape&);

}  // namespace octet::models

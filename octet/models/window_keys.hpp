#pragma once

#include "octet/models/hugging_face_format.hpp"

namespace octet::models {

/// "sliding_window" of families whose layers all attend within it: null for none. `otherwise`: tokens where the key is missing; 0: none.
void read_window(const json::Fields& config, std::int64_t otherwise, ModelShape&);
void write_window(const ModelShape&, json::Value& config);

/// "layer_types" of "sliding_attention" and "full_attention": each so many-th layer has no window, and the others one of
/// shape.window.tokens. `otherwise`: the step where there is no list. Throws DataError naming the key for another order.
void read_window_layers(const json::Fields& config, std::int64_t otherwise, ModelShape&);
void write_window_layers(const ModelShape&, json::Value& config);

}  // namespace octet::models

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/tensor/state.hpp"

namespace octet::health {

/// Texts without line breaks as state: their bytes, one line each.
void visit_texts(StateVisitor&, std::string_view name, std::vector<std::string>&);
/// The texts of such bytes.
std::vector<std::string> texts_of(std::span<const double> bytes);
void visit_text(StateVisitor&, std::string_view name, std::string&);

}  // namespace octet::health

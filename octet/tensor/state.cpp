#include "octet/tensor/state.hpp"

namespace octet {

std::string scales_name(std::string_view variable, Storage s) { return format("{}.scales.{}", variable, name(s)); }

}  // namespace octet

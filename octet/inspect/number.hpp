#pragma once

#include <string>
#include <vector>

namespace octet::inspect {

/// A number in Octet's formats: sign, exponent and mantissa bits, code, value, the format's values next to it, and the rounding error,
/// absolute and in units of the last place (the distance of the two values between which the number lies). `format` is one of
/// format_names(); empty for all. The number is rounded to FP32 first, from which Octet makes all other formats; errors
/// are those of the number itself. Throws ConfigError for another format.
std::string number_text(double x, const std::string& format);

/// fp32, bf16, fp16, e5m2, e4m3, e8m0.
std::vector<std::string> format_names();

}  // namespace octet::inspect

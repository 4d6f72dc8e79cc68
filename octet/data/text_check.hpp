#pragma once

#include <string>
#include <string_view>

#include "octet/data/text_source.hpp"

namespace octet::data {

/// The kind of a file of this name and with these first bytes, and the remedy: "it is a Parquet table: write ..."; "" of text. `lines`: of
/// JSON lines, whose parser refuses bytes of 0 itself.
std::string why_no_text(const std::string& path, std::string_view begin, bool lines = false);

/// Throws DataError for the first file that is no text, by its name or its first bytes, decompressed where its name says so. Their bytes
/// would be tokens. Throws as ByteStream::read does. `otherwise`: the end of the error's sentence.
void require_text(const Selection&, const char* otherwise = "");

/// The same for a file that somebody named in the place of a dataset: "" also where it cannot be read.
std::string why_no_text(const std::string& path);

}  // namespace octet::data

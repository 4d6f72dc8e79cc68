#pragma once

#include <string>
#include <vector>

namespace octet::train {

/// A run's folder may come from elsewhere: resuming writes into it, and its configuration may name a program.

/// Throws DataError where anything in the folder is a symbolic link: resuming would write, cut off or remove the files behind it.
void require_no_links(const std::string& folder);

/// For a run that takes alerts.command from `file`, its stored configuration in `folder`. Throws ConfigError where another user owns or may
/// write one of both, since that user would choose the program.
void require_own_command(const std::string& folder, const std::string& file, const std::vector<std::string>& command);

}  // namespace octet::train

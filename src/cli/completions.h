// A completion script for a shell: "bash", "zsh" or "fish".
#pragma once

#include <string>

namespace commlens::cli {

std::string completion_script(const std::string& shell);

}  // namespace commlens::cli

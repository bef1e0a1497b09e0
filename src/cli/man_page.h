// The man page, in roff.
#pragma once

#include <string>

namespace commlens::cli {

std::string man_page();

}  // namespace commlens::cli

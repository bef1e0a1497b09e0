// Texts that others wrote and that are shown: without what looks like a secret.
#pragma once

#include <string>
#include <string_view>

namespace commlens {

// Tokens by their known beginnings or by their mixture, values behind words such as "password=",
// and what stands before the host of an address, are replaced by "(hidden)".
std::string without_secrets(std::string_view text);

}  // namespace commlens

// Texts that others wrote and that are shown: without what looks like a secret.
#pragma once

#include <string>
#include <string_view>

namespace commlens {

// Tokens by their known beginnings or by their mixture, values behind words such as "password=",
// "--token" and "Authorization: Bearer", and what stands before the host of an address, are
// replaced by "(hidden)". Hide first and cut afterwards: half a token is not known for one.
std::string without_secrets(std::string_view text);

}  // namespace commlens

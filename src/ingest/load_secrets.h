// What an input names in its own words (groups, hosts, callers) without what looks like a secret,
// whatever its format. Texts that stand once are looked at once, not where they are used.
#pragma once

#include "model/measured.h"
#include "model/trace.h"
#include "model/witness.h"

namespace commlens {

void hide_secrets(Measured& measured);
void hide_secrets(Witness& witness);
void hide_secrets(Recording& recording);

}  // namespace commlens

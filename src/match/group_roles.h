// What the groups of a job are for.
#pragma once

#include "model/job.h"

namespace commlens {

// Fills `role` of every rank's groups and of Matching::groups.
void assign_group_roles(Job& job);

}  // namespace commlens

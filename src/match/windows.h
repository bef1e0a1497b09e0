// The windows that figures are given for: the whole GPU window, or steps.
#pragma once

#include <optional>
#include <vector>

#include "model/job.h"

namespace commlens {

enum class WindowChoice : std::uint8_t {
  gpu,    // first GPU start to last GPU end
  steps,  // the steps' windows, from the first to the last
};

struct WindowOptions {
  WindowChoice choice = WindowChoice::gpu;
  std::vector<std::int64_t> steps;  // --steps: only these, and the window is theirs; empty: all
};

// Fills `steps` of every device of the rank: the windows of its steps on the GPU, which tile; and
// the step of each of its communications.
void find_step_windows(RankTimeline& rank);

// The window that a device's figures are for; nothing where its steps hold none of those asked for.
std::optional<Interval> chosen_window(const DeviceTimeline& device, const WindowOptions& options);
// Whether a step is among those asked for.
bool step_is_chosen(std::int64_t number, const WindowOptions& options);

}  // namespace commlens

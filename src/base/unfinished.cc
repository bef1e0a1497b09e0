#include "base/unfinished.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstring>

namespace commlens {
namespace {

enum class State : int { unused, being_named, named };

struct Place {
  std::atomic<State> state{State::unused};
  std::array<char, PATH_MAX> path;
};
static_assert(std::atomic<State>::is_always_lock_free);

std::array<Place, 64> places;

extern "C" void remove_and_end(int number) {
  for (const Place& place : places) {
    if (place.state.load() == State::named) unlink(place.path.data());
  }
  // The handler was taken away when it was called (SA_RESETHAND): this ends the process.
  raise(number);
}

}  // namespace

void Unfinished::remember(const std::string& path) {
  forget();
  if (path.size() >= PATH_MAX) return;
  for (std::size_t i = 0; i < places.size(); ++i) {
    Place& place = places[i];
    State unused = State::unused;
    if (!place.state.compare_exchange_strong(unused, State::being_named)) continue;
    std::memcpy(place.path.data(), path.c_str(), path.size() + 1);
    place.state.store(State::named);
    place_ = static_cast<int>(i);
    return;
  }
}

void Unfinished::forget() {
  if (place_ >= 0) places[static_cast<std::size_t>(place_)].state.store(State::unused);
  place_ = -1;
}

void remove_unfinished_on_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before{};
    if (sigaction(number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction action{};
    action.sa_handler = remove_and_end;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

}  // namespace commlens

// The same work for many things, on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace commlens {

// Calls `work(i, state)` for every i below `count`, where each thread has a `state` of its own that
// `make()` gave it; each i writes only what is its own and its thread's, so that the result does
// not depend on the number of threads. The first failure is thrown when all have stopped.
template <class Make, class Work>
void for_each_parallel(std::size_t count, unsigned threads, Make make, Work work) {
  std::atomic<std::size_t> next{0};
  std::mutex guard;
  std::exception_ptr failure;
  const auto loop = [&] {
    try {
      auto state = make();
      for (std::size_t i = next++; i < count; i = next++) work(i, state);
    } catch (...) {
      const std::lock_guard lock(guard);
      failure = std::current_exception();
    }
  };
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < std::min<std::size_t>(threads, count); ++i)
    helpers.emplace_back(loop);
  loop();
  helpers.clear();  // joins
  if (failure) std::rethrow_exception(failure);
}

// The same where threads need nothing of their own.
template <class Work>
void for_each_parallel(std::size_t count, unsigned threads, Work work) {
  struct Nothing {};
  for_each_parallel(
      count, threads, [] { return Nothing(); }, [&work](std::size_t i, Nothing&) { work(i); });
}

}  // namespace commlens

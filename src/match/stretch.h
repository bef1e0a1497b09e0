// What one rank did between leaving one communication and entering another.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/job.h"

namespace commlens {

// A stretch of one rank's time, each nanosecond in one class.
struct Stretch {
  Ns length = 0;
  Ns compute = 0;
  Ns memory = 0;
  Ns host = 0;      // idle with nothing queued
  Ns gaps = 0;      // idle otherwise
  Ns waiting = 0;   // exposed communication: for others
  Ns transfer = 0;  // and moving data
  Ns unknown = 0;   // communication whose waiting is not known (not matched, a member missing)
};

// A communication that a stretch holds, and how much of the stretch is its exposed part. Where
// several are exposed at once these are more than the stretch has: they are weights.
struct StretchPart {
  std::uint32_t op = 0;  // row of the device's comm
  Ns waiting = 0;
  Ns transfer = 0;
  Ns unknown = 0;
};

// Answers for one device. `waits` belongs to it (Waits::of) and must outlive this.
class StretchIndex {
 public:
  StretchIndex(const DeviceTimeline& device, const std::vector<Wait>& waits);

  // From the end of communication `from` to the start of `to`, both rows of the device's comm.
  Stretch between(std::uint32_t from, std::uint32_t to) const;
  // The communications in it.
  std::vector<StretchPart> parts(std::uint32_t from, std::uint32_t to) const;

  // The part of an interval that no compute covers; the interval lies inside a communication.
  Ns exposed(Interval part) const;

 private:
  // Exposed communication by what it was.
  struct Split {
    Ns waiting = 0;
    Ns transfer = 0;
    Ns unknown = 0;
    void add(const StretchPart& part);
  };
  // The same as running sums: of all communications before one, each as a whole. Nothing is kept
  // of sums that stay 0, as the unknown part's most often does.
  struct Sums {
    std::vector<Ns> waiting;
    std::vector<Ns> transfer;
    std::vector<Ns> unknown;
  };

  template <class Visit>
  void visit(std::uint32_t from, std::uint32_t to, Visit visit) const;
  StretchPart part_of(std::uint32_t op, Interval stretch) const;
  Split split(std::uint32_t from, std::uint32_t to) const;

  const DeviceTimeline& device_;
  const std::vector<Wait>& waits_;
  std::vector<Ns> latest_end_;  // by communication: of it and all before it
  std::vector<Ns> covered_;     // compute under communication before each of its parts
  Sums before_;                 // by communication; then of all
};

}  // namespace commlens

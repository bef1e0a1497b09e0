// What Megatron's timers and its training loop print into a log.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/measured.h"

namespace commlens {

// Whether a line is one of them.
bool is_megatron_line(std::string_view line);

class MegatronReader {
 public:
  explicit MegatronReader(Measured& measured) : measured_(measured) {}
  // True where the line was one of them.
  bool line(std::string_view text, std::int64_t number);

 private:
  enum class Form : std::uint8_t { none, max, min_max, all };
  bool training(std::string_view text, std::int64_t number);
  void one_line(std::string_view text, std::int64_t number);
  bool timer(std::string_view text, std::int64_t number);
  bool timer_of_rank(std::string_view text, std::int64_t number);
  void time_of_rank(std::int64_t rank, Ns time, std::int64_t number);
  void add(MeasuredTimer timer);
  void odd(std::int64_t number, std::string_view text);

  Measured& measured_;
  Form form_ = Form::none;       // of the list that goes on
  std::string name_;             // whose ranks follow
  bool ranks_begun_ = false;     // the last timer is that one's
  std::int64_t iteration_ = -1;  // of the last training line
};

}  // namespace commlens

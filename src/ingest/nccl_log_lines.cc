#include "ingest/nccl_log_lines.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "ingest/nccl_log_fields.h"
#include "ingest/witness_secrets.h"

namespace commlens {
namespace {

constexpr std::size_t kLongestEvidence = 240;
constexpr char kEscape = '\x1b';

// "\x1b[0;31m": up to its letter. Where no letter comes, the escape alone.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2 || text[1] != '[') return 1;
  const std::size_t end = text.find_first_not_of("0123456789;?", 2);
  return end < text.size() ? end + 1 : text.size();
}

// "[0m", "[1;31m" whose escape character was lost on the way.
std::size_t lost_colour_length(std::string_view text) {
  if (!text.starts_with('[')) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 1);
  return end != std::string_view::npos && end > 1 && text[end] == 'm' ? end + 1 : 0;
}

// Not within a character.
void cut_at(std::string& text, std::size_t size) {
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) --size;
  text.resize(size);
}

}  // namespace

std::string without_decoration(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (text.front() == kEscape) {
      text.remove_prefix(escape_length(text));
    } else if (const std::size_t lost = out.empty() ? lost_colour_length(text) : 0; lost > 0) {
      text.remove_prefix(lost);
      if (text.starts_with(' ')) text.remove_prefix(1);
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  if (out.starts_with("**")) out.erase(0, 2);
  if (out.ends_with("**")) out.erase(out.size() - 2);
  return out;
}

std::string safe_start(std::string_view text, std::size_t longest) {
  // Enough for the longest token that begins in what is kept.
  constexpr std::size_t kLooked = 4096;
  std::string safe = without_secrets(printable(text.substr(0, kLooked)));
  if (safe.size() > longest) cut_at(safe, longest);
  return safe;
}

std::string evidence_text(std::string_view text) {
  std::string safe = safe_start(trimmed(text), kLongestEvidence + 1);
  if (safe.size() <= kLongestEvidence) return safe;
  cut_at(safe, kLongestEvidence);
  return safe + "...";
}

bool LogLines::fill() {
  constexpr std::size_t kStep = std::size_t{256} << 10U;
  buffer_.erase(0, at_);
  at_ = 0;
  const std::size_t have = buffer_.size();
  buffer_.resize(have + kStep);
  const std::size_t got = source_.read({buffer_.data() + have, kStep});
  buffer_.resize(have + got);
  return got > 0;
}

bool LogLines::next(LogLine& line) {
  bool dropped = false;  // of a line that is too long
  std::size_t seen = 0;
  for (;;) {
    const std::size_t end = buffer_.find_first_of("\r\n", at_ + seen);
    // A carriage return at the very end: whether a line break follows is not known yet.
    const bool known =
        end != std::string::npos && (buffer_[end] == '\n' || end + 1 < buffer_.size());
    if (known) {
      const bool crlf = buffer_[end] == '\r' && buffer_[end + 1] == '\n';
      const bool breaks = crlf || buffer_[end] == '\n';
      if (!inside_) ++number_;
      line = {without_decoration(std::string_view(buffer_).substr(at_, end - at_)), number_,
              !dropped};
      at_ = end + (crlf ? 2 : 1);
      inside_ = !breaks;
      return true;
    }
    seen = std::min(end, buffer_.size()) - at_;
    if (seen > kLongestLine) {
      buffer_.resize(at_ + kLongestLine);
      seen = kLongestLine;
      dropped = true;
    }
    if (fill()) continue;
    if (at_ == buffer_.size()) return false;
    std::string_view rest = std::string_view(buffer_).substr(at_);
    const bool returned = rest.ends_with('\r');
    if (returned) rest.remove_suffix(1);
    if (!inside_) ++number_;
    line = {without_decoration(rest), number_, returned};
    at_ = buffer_.size();
    return true;
  }
}

}  // namespace commlens

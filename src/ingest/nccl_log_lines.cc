#include "ingest/nccl_log_lines.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "ingest/nccl_log_fields.h"

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

bool is_token_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("_-+=").find(c) != std::string_view::npos;
}

bool has_secret_prefix(std::string_view run) {
  constexpr std::array<std::string_view, 10> kPrefixes = {
      "hf_", "sk-", "ghp_", "gho_", "github_pat_", "AKIA", "ASIA", "xox", "glpat-", "eyJ"};
  return run.size() >= 12 && std::any_of(kPrefixes.begin(), kPrefixes.end(),
                                         [run](auto prefix) { return run.starts_with(prefix); });
}

// Long and mixed of capitals, small letters and digits: no word of a log, but every token.
bool looks_random(std::string_view run) {
  if (run.size() < 24 || run.starts_with("0x")) return false;
  int digits = 0;
  int capitals = 0;
  int small = 0;
  for (const char c : run) {
    digits += is_digit(c) ? 1 : 0;
    capitals += c >= 'A' && c <= 'Z' ? 1 : 0;
    small += c >= 'a' && c <= 'z' ? 1 : 0;
  }
  return digits > 2 && capitals > 2 && small > 2;
}

// Whether what comes next is the value of a word that speaks of a secret ("password=").
bool announces_secret(std::string_view before) {
  before = trimmed(before);
  if (before.empty() || std::string_view("=:").find(before.back()) == std::string_view::npos)
    return false;
  before = trimmed(before.substr(0, before.size() - 1));
  const std::string_view word = before.substr(before.find_last_of(" ,;{(\"'") + 1);
  constexpr std::array<std::string_view, 6> kWords = {"token",  "secret",     "password",
                                                      "passwd", "credential", "api_key"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [word](auto secret) { return contains_word(word, secret); });
}

// "https://name:password@host" without what stands before the host.
std::string without_credentials(std::string_view text) {
  constexpr std::string_view kScheme = "://";
  std::string out;
  while (true) {
    const std::size_t scheme = text.find(kScheme);
    if (scheme == std::string_view::npos) break;
    const std::size_t from = scheme + kScheme.size();
    const std::size_t to = std::min(text.find_first_of(" /?#\"'<>", from), text.size());
    const std::size_t at = text.substr(from, to - from).rfind('@');
    out += text.substr(0, from);
    if (at != std::string_view::npos) out += "(hidden)";
    text.remove_prefix(at == std::string_view::npos ? from : from + at);
  }
  return out + std::string(text);
}

std::string without_secrets(std::string_view whole) {
  const std::string text_of_all = without_credentials(whole);
  const std::string_view text = text_of_all;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t to = at;
    while (to < text.size() && is_token_character(text[to])) ++to;
    const std::string_view run = text.substr(at, to - at);
    if (run.empty()) {
      out += text[at++];
      continue;
    }
    const bool secret =
        has_secret_prefix(run) || looks_random(run) || announces_secret(text.substr(0, at));
    out.append(secret ? std::string_view("(hidden)") : run);
    at = to;
    // "password=x" is one run: what stands behind its sign.
    if (const std::size_t sign = run.find('=');
        !secret && sign != std::string_view::npos && announces_secret(run.substr(0, sign + 1)))
      out.replace(out.size() - run.size() + sign + 1, std::string::npos, "(hidden)");
  }
  return out;
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

std::string evidence_text(std::string_view text) {
  text = trimmed(text);
  const bool cut = text.size() > kLongestEvidence;
  if (cut) text = text.substr(0, kLongestEvidence);
  return without_secrets(printable(text)) + (cut ? "..." : "");
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

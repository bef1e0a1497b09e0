#include "ingest/witness_secrets.h"

#include <algorithm>
#include <array>

namespace commlens {
namespace {

constexpr std::string_view kHidden = "(hidden)";

bool secret_digit(char c) { return c >= '0' && c <= '9'; }
bool secret_blank(char c) { return c == ' ' || c == '\t'; }
bool secret_quote(char c) { return c == '"' || c == '\''; }
char secret_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool is_token_character(char c) {
  return secret_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '-' || c == '+';
}

// Of what a word that names a value is made: "x-api-key", "--hf.token".
bool is_key_character(char c) { return is_token_character(c) ? c != '+' : c == '.'; }

bool has_secret_prefix(std::string_view run) {
  constexpr std::array<std::string_view, 13> kPrefixes = {
      "hf_",  "sk-",  "ghp_", "gho_",   "ghs_", "ghu_", "github_pat_",
      "AKIA", "ASIA", "xox",  "glpat-", "eyJ",  "AIza"};
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
    digits += secret_digit(c) ? 1 : 0;
    capitals += c >= 'A' && c <= 'Z' ? 1 : 0;
    small += c >= 'a' && c <= 'z' ? 1 : 0;
  }
  return digits > 2 && capitals > 2 && small > 2;
}

// What a word says of the value that stands behind it.
enum class Announced : std::uint8_t {
  nothing,
  perhaps,  // a number would be something else: "tokens: 512", "sig=11"
  secret,
  line,  // all that follows: "Cookie: a=b; c=d"
};

Announced announced_by(std::string_view word) {
  std::string whole;  // without what parts it
  std::string last;   // its last part
  for (const char c : word) {
    if (c == '_' || c == '-' || c == '.') {
      last.clear();
      continue;
    }
    whole += secret_lower(c);
    last += secret_lower(c);
  }
  const auto holds = [&whole](auto part) { return whole.find(part) != std::string::npos; };
  if (last == "authorization" || last == "cookie" || last == "cookies") return Announced::line;
  constexpr std::array<std::string_view, 9> kInside = {"secret",     "password",   "passwd",
                                                       "passphrase", "credential", "apikey",
                                                       "authkey",    "privatekey", "accesskey"};
  if (std::any_of(kInside.begin(), kInside.end(), holds)) return Announced::secret;
  if (last.ends_with("pass") || last == "pwd" || last == "pw") return Announced::secret;
  constexpr std::array<std::string_view, 4> kLast = {"auth", "sig", "signature", "session"};
  const bool named = std::find(kLast.begin(), kLast.end(), last) != kLast.end() ||
                     (last == "key" && whole.size() > last.size());
  return named || holds("token") ? Announced::perhaps : Announced::nothing;
}

bool is_plain_number(std::string_view text) {
  return text.size() <= 12 &&
         std::all_of(text.begin(), text.end(), [](char c) { return secret_digit(c) || c == '.'; });
}

// Values that are none: NCCL's own settings are numbers and paths, a shell's PWD is a folder.
bool is_harmless(std::string_view word, Announced announced, std::string_view value) {
  if (value.empty()) return true;
  const bool own = word.starts_with("NCCL_") || word.starts_with("RCCL_");
  if (is_plain_number(value)) return own || announced == Announced::perhaps;
  return value.starts_with('/') && (own || word == "PWD" || word == "OLDPWD");
}

std::size_t past_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && secret_blank(text[at])) ++at;
  return at;
}

// A quotation mark, also as JSON within JSON writes it (\").
std::size_t past_quote(std::string_view text, std::size_t at) {
  if (at + 1 < text.size() && text[at] == '\\' && secret_quote(text[at + 1])) return at + 2;
  return at < text.size() && secret_quote(text[at]) ? at + 1 : at;
}

bool same_word(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char own, char other) { return secret_lower(own) == other; });
}

std::string_view word_at(std::string_view text, std::size_t at) {
  std::size_t to = at;
  while (to < text.size() && is_key_character(text[to])) ++to;
  return text.substr(std::min(at, text.size()), to - std::min(at, text.size()));
}

// Behind "is", "was" and "set to", where one of these stands at `at`; else `at`.
std::size_t past_verb(std::string_view text, std::size_t at) {
  constexpr std::array<std::string_view, 2> kVerbs = {"is", "was"};
  const std::string_view first = word_at(text, at);
  std::size_t next = at;
  for (const std::string_view verb : kVerbs) {
    if (same_word(first, verb)) next = past_blanks(text, at + first.size());
  }
  if (!same_word(word_at(text, next), "set")) return next;
  const std::size_t to = past_blanks(text, next + 3);
  return same_word(word_at(text, to), "to") ? past_blanks(text, to + 2) : next;
}

// What sentences say of a secret without telling it: "the password is wrong", "token was not
// found".
bool is_said_of_secrets(std::string_view word) {
  constexpr std::array<std::string_view, 52> kWords = {
      "",         "a",        "absent",   "accepted",  "allowed",  "already", "an",
      "and",      "any",      "cached",   "correct",   "created",  "deleted", "deprecated",
      "disabled", "empty",    "enabled",  "expired",   "for",      "found",   "from",
      "given",    "ignored",  "in",       "incorrect", "invalid",  "loaded",  "longer",
      "missing",  "needed",   "never",    "no",        "none",     "not",     "now",
      "null",     "of",       "ok",       "only",      "outdated", "read",    "refreshed",
      "refused",  "rejected", "required", "revoked",   "set",      "the",     "too",
      "unset",    "used",     "valid"};
  return word == "wrong" || word == "unknown" || word == "updated" ||
         std::any_of(kWords.begin(), kWords.end(),
                     [word](std::string_view known) { return same_word(word, known); });
}

// Where the value begins in "password is X", "token was: X", "key set to X".
std::size_t told_value_begins(std::string_view text, std::size_t at) {
  const std::size_t blank = past_blanks(text, at);
  const std::size_t verb = past_verb(text, blank);
  if (blank == at || verb == blank || verb >= text.size()) return std::string_view::npos;
  const bool sign = text[verb] == ':' || text[verb] == '=';
  if (sign) return past_blanks(text, verb + 1);
  if (past_quote(text, verb) > verb) return verb;
  return is_said_of_secrets(word_at(text, verb)) ? std::string_view::npos : verb;
}

// Where the value of the word that ends at `at` begins: behind "=", ":", "->" or ": ", for options
// behind a blank as well, in lists of them behind "', '". npos: no value stands there.
std::size_t value_begins(std::string_view text, std::size_t at, bool option) {
  constexpr std::string_view kSet = " set by environment to ";
  if (text.substr(at).starts_with(kSet)) return at + kSet.size();
  const std::size_t quoted = past_quote(text, at);
  std::size_t next = past_blanks(text, quoted);
  const bool arrow = text.substr(next).starts_with("->");
  if (arrow) ++next;
  const bool sign = next < text.size() && (text[next] == '=' || text[next] == ':');
  if (sign || arrow) {
    while (next < text.size() && (text[next] == '=' || text[next] == ':' || text[next] == '>'))
      ++next;
    return past_blanks(text, next);
  }
  if (const std::size_t told = told_value_begins(text, at); told != std::string_view::npos)
    return told;
  const bool listed = next < text.size() && text[next] == ',' && quoted > at;
  if (!option || (next == quoted && !listed)) return std::string_view::npos;
  return listed ? past_blanks(text, next + 1) : next;
}

// Where it ends: at the quotation mark that it begins with, else at a blank.
std::size_t value_ends(std::string_view text, std::size_t from, bool line) {
  const std::size_t inside = past_quote(text, from);
  if (inside > from) return std::min(text.find(text[inside - 1], inside), text.size());
  if (line) return std::min(text.find_first_of("\"'", from), text.size());
  std::size_t to = std::min(text.find_first_of(" \t\"'", from), text.size());
  while (to > from && std::string_view(",;)}]").find(text[to - 1]) != std::string_view::npos) --to;
  return to;
}

// "secret key", "API key": behind the second word, which ends in `key`; else `to`.
std::size_t past_key(std::string_view text, std::string_view word, std::size_t to) {
  constexpr std::array<std::string_view, 6> kKinds = {"secret",  "api",  "access",
                                                      "private", "auth", "signing"};
  const bool kind = std::any_of(kKinds.begin(), kKinds.end(),
                                [word](auto known) { return same_word(word, known); });
  if (!kind || to >= text.size() || text[to] != ' ') return to;
  return same_word(word_at(text, to + 1), "key") ? to + 4 : to;
}

struct SecretValue {
  std::size_t from = 0;
  std::size_t to = 0;  // `from` where there is none
};

// The secret that the word at `at` announces.
SecretValue announced_value(std::string_view text, std::size_t at) {
  constexpr std::size_t kLongestWord = 128;
  std::size_t to = at;
  while (to < text.size() && to - at < kLongestWord && is_key_character(text[to])) ++to;
  const std::string_view word = text.substr(at, to - at);
  if (word.empty()) return {};
  const bool bearer = same_word(word, "bearer");
  Announced announced = bearer ? Announced::secret : announced_by(word);
  if (const std::size_t key = past_key(text, word, to); key > to) {
    announced = Announced::secret;
    to = key;
  }
  if (announced == Announced::nothing) return {};
  std::size_t from = value_begins(text, to, bearer || word.starts_with('-'));
  if (from == std::string_view::npos) return {};
  const std::size_t end = value_ends(text, from, announced == Announced::line);
  from = std::min(past_quote(text, from), end);
  const std::string_view value = text.substr(from, end - from);
  return is_harmless(word, announced, value) ? SecretValue{} : SecretValue{from, end};
}

// Whether "host:80/a" begins `text`, or a host without a port and a path: then the host has ended.
bool has_left_host(std::string_view text) {
  const std::size_t end = text.find_first_of("/?#");
  if (end == std::string_view::npos) return false;
  const std::string_view host = text.substr(0, end);
  const std::size_t colon = host.find(':');
  if (colon == std::string_view::npos) return true;
  const std::string_view port = host.substr(colon + 1);
  return !port.empty() && port.size() <= 5 && std::all_of(port.begin(), port.end(), secret_digit);
}

// What stands before the host in "https://name:password@host", "//name:password@host" and
// "name:password@host". A sign behind the host and its port is of the path.
std::string without_credentials(std::string_view text) {
  constexpr std::string_view kEnds = " \t\"'<>";
  std::string out;
  while (true) {
    const std::size_t sign = text.find('@');
    if (sign == std::string_view::npos) return out + std::string(text);
    const std::size_t blank = text.substr(0, sign).find_last_of(kEnds);
    std::size_t from = blank == std::string_view::npos ? 0 : blank + 1;
    const std::size_t slashes = text.substr(0, sign).find("//", from);
    const bool addressed = slashes != std::string_view::npos;
    if (addressed) from = slashes + 2;
    const bool path = text.substr(from, sign - from).find('/') != std::string_view::npos;
    const bool named = text.substr(from, sign - from).find(':') != std::string_view::npos;
    // Up to the last "@" before the host's end: passwords hold some, too.
    const std::size_t end = std::min(text.find_first_of(" \t/?#\"'<>", sign), text.size());
    const std::size_t at = text.substr(0, end).rfind('@');
    const bool host = at + 1 < end && !(addressed && has_left_host(text.substr(from, sign - from)));
    if (host && (named ? addressed || !path : addressed && !path)) {
      out += text.substr(0, from);
      out += kHidden;
    } else {
      out += text.substr(0, at);
    }
    out += '@';
    text.remove_prefix(at + 1);
  }
}

}  // namespace

std::string without_secrets(std::string_view whole) {
  const std::string text_of_all = without_credentials(whole);
  const std::string_view text = text_of_all;
  std::string out;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const SecretValue value = in_word ? SecretValue{} : announced_value(text, at);
    if (value.to > value.from) {
      out.append(text.substr(at, value.from - at));
      out += kHidden;
      // What is hidden already stays as it is.
      at = text.substr(value.from).starts_with(kHidden)
               ? std::max(value.to, value.from + kHidden.size())
               : value.to;
      continue;
    }
    std::size_t to = at;
    while (to < text.size() && is_token_character(text[to])) ++to;
    const std::string_view run = text.substr(at, to - at);
    if (run.empty()) {
      in_word = is_key_character(text[at]);
      out += text[at++];
      continue;
    }
    const bool secret = has_secret_prefix(run) || looks_random(run);
    out.append(secret ? kHidden : run);
    in_word = !secret;
    at = to;
    // The parts of a web token, and what fills up its end.
    while (secret && at < text.size() &&
           (is_token_character(text[at]) || text[at] == '.' || text[at] == '='))
      ++at;
  }
  return out;
}

}  // namespace commlens

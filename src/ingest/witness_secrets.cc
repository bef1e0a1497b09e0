#include "ingest/witness_secrets.h"

#include <algorithm>
#include <array>

namespace commlens {
namespace {

bool secret_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

bool names_secret(std::string_view word, std::string_view secret) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::search(word.begin(), word.end(), secret.begin(), secret.end(),
                     [lower](char a, char b) { return lower(a) == b; }) != word.end();
}

bool is_token_character(char c) {
  return secret_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
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
    digits += secret_digit(c) ? 1 : 0;
    capitals += c >= 'A' && c <= 'Z' ? 1 : 0;
    small += c >= 'a' && c <= 'z' ? 1 : 0;
  }
  return digits > 2 && capitals > 2 && small > 2;
}

// Whether what comes next is the value of a word that speaks of a secret ("password=").
bool announces_secret(std::string_view before) {
  before = without_blanks(before);
  if (before.empty() || std::string_view("=:").find(before.back()) == std::string_view::npos)
    return false;
  before = without_blanks(before.substr(0, before.size() - 1));
  const std::string_view word = before.substr(before.find_last_of(" ,;{(\"'") + 1);
  constexpr std::array<std::string_view, 6> kWords = {"token",  "secret",     "password",
                                                      "passwd", "credential", "api_key"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [word](auto secret) { return names_secret(word, secret); });
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

}  // namespace

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

}  // namespace commlens

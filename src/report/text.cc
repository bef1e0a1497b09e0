// The report for people: one screen. What does not fit is in the JSON, and that is said.
#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "model/rank_list.h"
#include "report/writer.h"
#include "report/writer_table_text.h"

namespace commlens {
namespace {

constexpr std::size_t kNoteIndent = 10;  // of what follows a note's severity

// "1. Rank 5 is slow": what wraps stands below the words.
bool is_numbered(std::string_view text) {
  return text.size() > 3 && text[0] >= '0' && text[0] <= '9' && text.substr(1, 2) == ". ";
}

// Lines of at most a screen's width; those behind the first are indented, as the first is if the
// text begins with blanks.
std::string wrapped(std::string_view text, std::size_t indent) {
  const std::size_t blanks = std::min(text.find_first_not_of(' '), text.size());
  std::string out(blanks, ' ');
  text.remove_prefix(blanks);
  indent += blanks;
  if (blanks == 0 && is_numbered(text)) indent += 3;
  std::size_t column = indent;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t to = std::min(text.find(' ', from), text.size());
    const std::size_t width = width_of(text.substr(from, to - from));
    if (column > indent && column + 1 + width > kScreen) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += text.substr(from, to - from);
    column += width;
    from = to + 1;
  }
  return out;
}

std::string plural(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

void write_head(const Report& report, const Style& style, Sink& sink) {
  const JobReport& job = report.job;
  std::string line =
      fmt::format("commlens {}: {}, {}", program_version(), plural(report.inputs.size(), "input"),
                  plural(job.ranks.size(), "rank"));
  if (job.world_size > 0) line += fmt::format(" of {}", job.world_size);
  if (job.all_hosts_known) line += fmt::format(" on {}", plural(job.hosts.size(), "host"));
  if (!job.backend.empty()) line += ", " + printable(job.backend);
  if (!job.nccl_version.empty()) line += " " + printable(job.nccl_version);
  if (!job.steps.empty()) line += ", steps " + format_ranks(job.steps);
  sink.append(fmt::format("{}{}{}\n", style.bold, line, style.off));
}

void write_lines(const Result& result, Sink& sink) {
  for (const std::string& sentence : result.lines)
    sink.append(wrapped(printable(sentence), 0) + "\n");
}

// What matters on one screen: each answer's sentences, then its tables.
void write_first(const Report& report, const Style& style, Sink& sink) {
  for (const Result& result : report.results) {
    if (!result.first) continue;
    if (!result.lines.empty()) sink.append("\n");
    write_lines(result, sink);
    for (const Table& table : result.tables) write_text_table(table, style, sink);
  }
}

void write_rest(const Report& report, const Style& style, Sink& sink) {
  sink.append("\n");
  for (const Result& result : report.results) {
    if (!result.first) write_lines(result, sink);
  }
  for (const Result& result : report.results) {
    if (result.first) continue;
    for (const Table& table : result.tables) write_text_table(table, style, sink);
  }
}

void write_notes(const Report& report, const Style& style, Sink& sink) {
  const std::vector<NoteLine> lines = collect_notes(report);
  if (lines.empty()) return;
  sink.append(fmt::format("\n{}Notes{}\n", style.bold, style.off));
  for (const NoteLine& line : lines) {
    const NoteInfo& info = note_info(line.note);
    const std::string_view color = info.severity == Severity::info ? style.dim : style.warn;
    const std::string counted =
        fmt::format("{} ({}x{})", info.message, line.count,
                    line.inputs > 1 ? fmt::format(" in {} inputs", line.inputs) : "");
    sink.append(fmt::format("  {}{:<7}{} {}\n", color, severity_name(info.severity), style.off,
                            wrapped(counted, kNoteIndent)));
    if (info.severity == Severity::info) continue;
    const std::string indent(kNoteIndent, ' ');
    if (!line.example.empty()) {
      sink.append(fmt::format("{}{}{}{}\n", indent, style.dim,
                              wrapped("e.g. " + printable(line.example), kNoteIndent), style.off));
    }
    sink.append(
        fmt::format("{}{}{}{}\n", indent, style.dim, wrapped(info.advice, kNoteIndent), style.off));
  }
}

// A footnote to the columns that need one, where such a column is shown.
void write_footnote(const Report& report, const Style& style, Sink& sink) {
  for (const Result& result : report.results) {
    for (const Table& table : result.tables) {
      if (table.title.empty() || table.rows.empty() || table.footnote.empty()) continue;
      sink.append(fmt::format("\n  {}{}{}\n", style.dim, table.footnote, style.off));
      return;
    }
  }
}

void write_text(const Report& report, const WriteOptions& options, Sink& sink) {
  const Style& style = options.color ? kColor : kPlain;
  write_head(report, style, sink);
  write_first(report, style, sink);
  write_rest(report, style, sink);
  write_footnote(report, style, sink);
  write_notes(report, style, sink);
}

}  // namespace

extern const Writer kText;
constinit const Writer kText{
    .name = "text", .summary = "one screen, for people", .write = write_text};

}  // namespace commlens

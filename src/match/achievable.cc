#include "match/achievable.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>

#include "base/error.h"
#include "base/utf8.h"
#include "model/bandwidth.h"
#include "model/hardware.h"

namespace commlens {
namespace {

constexpr double kLongest = 4e18;

Ns whole(double time) { return static_cast<Ns>(std::llround(std::min(time, kLongest))); }

// A send and its receive are one kind.
Op kind_of(Op op) { return op == Op::send || op == Op::recv ? Op::send_recv : op; }

bool names(const PeakRate& peak, const GroupIdentity& group, std::int64_t rank) {
  return peak.group == group.description || peak.group == group.name ||
         peak.group == group_label(group, rank);
}

void check_groups(const Job& job, const RateOptions& options) {
  for (const PeakRate& peak : options.peaks) {
    if (peak.group.empty()) continue;
    std::set<std::string> known;
    bool found = false;
    for (const RankTimeline& rank : job.ranks) {
      for (const GroupIdentity& group : rank.groups) {
        found = found || names(peak, group, rank.rank);
        if (!group.description.empty()) known.insert(group.description);
      }
    }
    if (found) continue;
    std::string message = "--peak: there is no operation and no group \"" + printable(peak.group) +
                          "\" in these inputs";
    if (!known.empty()) message += ", whose groups are ";
    for (const std::string& name : known)
      message += (name == *known.begin() ? "" : ", ") + printable(name);
    throw Error(ErrorKind::usage, message);
  }
}

}  // namespace

// What is asked about one communication.
struct Achievable::Question {
  TransferKind kind;
  std::int64_t bytes = 0;
  const GroupIdentity* group = nullptr;
  std::int64_t rank = 0;
  std::string_view gpu_name;
};

Achievable::Achievable(const Job& job, const CommNumbers& numbers, const RateOptions& options)
    : job_(job), options_(options), times_(numbers.size()) {
  check_groups(job, options);
  const TransferKinds kinds = find_transfer_kinds(job, numbers);
  for (std::uint32_t number = 0; number < numbers.size(); ++number) {
    const Part& part = numbers.part(number);
    const CommOp& comm = comm_of(job, part);
    const RankTimeline& rank = job.ranks[part.rank];
    const std::uint32_t row = kinds.op_of[number];
    if (row == TransferKinds::kSeveral) continue;
    const bool matched = row != TransferKinds::kNone;
    const Question question{
        .kind = matched ? kinds.kinds[row] : TransferKind{kind_of(comm.op), comm.group_size, 0},
        .bytes = matched ? kinds.bytes[row] : comm.bytes.value_or(-1),
        .group = comm.group >= 0 ? &rank.groups[static_cast<std::size_t>(comm.group)] : nullptr,
        .rank = rank.rank,
        .gpu_name = rank.recording.gpu_name};
    if (question.bytes >= 0) answer(number, question);
  }
  std::sort(rates_.begin(), rates_.end(), [](const AchievableRate& a, const AchievableRate& b) {
    return std::tie(a.kind, a.from, a.detail) < std::tie(b.kind, b.from, b.detail);
  });
}

void Achievable::answer(std::uint32_t number, const Question& question) {
  AchievableRate rate{.kind = question.kind, .detail = {}, .fit = {}};
  double time = 0;
  if (!by_peak(question, rate, time) && !by_table(question, rate, time) &&
      !by_fit(question, rate, time) && !by_model(question, rate, time))
    return;
  const bool by_user = rate.from == RateSource::peak || rate.from == RateSource::calibration;
  times_[number] = {whole(time), by_user};
  const auto same = std::find_if(rates_.begin(), rates_.end(), [&rate](const AchievableRate& row) {
    return row.kind == rate.kind && row.from == rate.from && row.detail == rate.detail;
  });
  AchievableRate& row = same == rates_.end() ? rates_.emplace_back(std::move(rate)) : *same;
  ++row.operations;
}

// The peak that says most: group and operation, else the group, else the operation, else any.
bool Achievable::by_peak(const Question& question, AchievableRate& rate, double& time) const {
  const PeakRate* best = nullptr;
  int most = -1;
  for (const PeakRate& peak : options_.peaks) {
    if (peak.op && kind_of(*peak.op) != question.kind.op) continue;
    if (!peak.group.empty() &&
        (question.group == nullptr || !names(peak, *question.group, question.rank)))
      continue;
    const int said = (peak.group.empty() ? 0 : 2) + (peak.op ? 1 : 0);
    if (said <= most) continue;
    most = said;
    best = &peak;
  }
  if (best == nullptr) return false;
  const auto factor = bus_factor(question.kind.op, static_cast<int>(question.kind.ranks));
  if (!factor || *factor <= 0) return false;  // a group of one passes no link
  time = static_cast<double>(question.bytes) * *factor / best->gbs;
  rate.from = RateSource::peak;
  rate.detail = best->group;
  rate.algbw_gbs = best->gbs / *factor;
  return true;
}

// The table that is most like the question: as many ranks, then as many hosts. One that was
// measured on one host says nothing about several, nor the other way round. A table of another
// number of ranks is brought to this one by the bus factors.
bool Achievable::by_table(const Question& question, AchievableRate& rate, double& time) const {
  const CalibrationTable* best = nullptr;
  int most = -1;
  for (const CalibrationTable& table : options_.tables) {
    if (kind_of(table.op) != question.kind.op) continue;
    const std::int64_t hosts = question.kind.hosts;
    if (hosts > 0 && table.hosts > 0 && (hosts == 1) != (table.hosts == 1)) continue;
    const int alike = (table.ranks == question.kind.ranks ? 2 : 0) + (table.hosts == hosts ? 1 : 0);
    if (alike <= most) continue;
    most = alike;
    best = &table;
  }
  if (best == nullptr) return false;
  double scale = 1;
  if (best->ranks > 0 && question.kind.ranks > 0) {
    const auto mine = bus_factor(question.kind.op, static_cast<int>(question.kind.ranks));
    const auto theirs = bus_factor(question.kind.op, static_cast<int>(best->ranks));
    if (mine && theirs && *theirs > 0) scale = *mine / *theirs;
  }
  time = best->time_of(question.bytes) * scale;
  const CalibrationTable::Row& last = best->rows.back();
  rate.from = RateSource::calibration;
  rate.detail = best->file;
  if (last.ns > 0 && scale > 0) rate.algbw_gbs = static_cast<double>(last.bytes) / last.ns / scale;
  return true;
}

bool Achievable::by_fit(const Question& question, AchievableRate& rate, double& time) const {
  const auto fit = job_.transfer_fits.find(question.kind);
  if (fit == job_.transfer_fits.end()) return false;
  time = static_cast<double>(fit->second.at(question.bytes));
  rate.from = RateSource::fit;
  rate.fit = fit->second;
  if (rate.fit.ns_per_byte > 0) rate.algbw_gbs = 1 / rate.fit.ns_per_byte;
  return true;
}

// Between hosts nothing is known of the links.
bool Achievable::by_model(const Question& question, AchievableRate& rate, double& time) {
  if (question.kind.hosts != 1) return false;
  const auto modelled =
      modelled_transfer(question.gpu_name, question.kind.op, question.kind.ranks, question.bytes);
  if (!modelled) return false;
  time = modelled->ns;
  rate.from = RateSource::model;
  rate.detail = question.gpu_name;
  rate.algbw_gbs = modelled->algbw_gbs;
  return true;
}

}  // namespace commlens

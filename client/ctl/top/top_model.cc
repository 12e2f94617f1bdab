#include "client/ctl/top/top_model.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/phase_words.h"

namespace mets::ctl {
namespace {

constexpr char kLetters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr int kLetterCount = sizeof(kLetters) - 1;

std::string KeyOf(const v1::JobStatus& job) {
  return absl::StrCat(job.uid(), "/", job.name(), "@", job.device());
}

TopRow RowOf(const v1::JobStatus& job) {
  TopRow row;
  row.job = job.name();
  row.device = job.device();
  row.phase = PhaseWords(job.phase());
  row.resident = Bytes(job.resident_bytes());
  row.swapped = Bytes(job.swapped_bytes());
  row.pinned = Bytes(job.pinned_bytes());
  row.limit = Bytes(job.limit_bytes());
  row.waited = job.wait_seconds_total() + job.gate_wait_seconds_total();
  row.step = job.step_seconds();
  row.slowdown = job.slowdown();
  return row;
}

// Ascending.
bool Less(const TopRow& a, const TopRow& b, TopSort sort) {
  switch (sort) {
    case TopSort::kJob:
      return a.job < b.job;
    case TopSort::kDevice:
      return a.device < b.device;
    case TopSort::kPhase:
      return a.phase < b.phase;
    case TopSort::kResident:
      return a.resident < b.resident;
    case TopSort::kSwapped:
      return a.swapped < b.swapped;
    case TopSort::kPinned:
      return a.pinned < b.pinned;
    case TopSort::kTraffic:
      return a.traffic < b.traffic;
    case TopSort::kWaited:
      return a.waited < b.waited;
    case TopSort::kStep:
      return a.step < b.step;
    case TopSort::kSlowdown:
      return a.slowdown < b.slowdown;
  }
  return false;
}

}  // namespace

void TopModel::Update(absl::Time now, v1::GetStatusResponse status) {
  const double seconds = updated_ == absl::InfinitePast()
                             ? 0
                             : absl::ToDoubleSeconds(now - updated_);
  status_ = std::move(status);
  updated_ = now;
  error_.clear();
  rows_.clear();
  std::map<std::string, uint64_t> moved;
  for (const v1::JobStatus& job : status_.jobs()) {
    TopRow row = RowOf(job);
    const std::string key = KeyOf(job);
    const uint64_t total =
        job.evicted_bytes_total() + job.restored_bytes_total();
    const auto before = moved_.find(key);
    if (before != moved_.end() && seconds > 0 && total > before->second) {
      row.traffic = static_cast<double>(total - before->second) / seconds;
    }
    moved[key] = total;
    const auto [number, first] =
        numbers_.try_emplace(absl::StrCat(job.uid(), "/", job.name()), 0);
    if (first) number->second = next_number_++;
    row.letter = kLetters[number->second % kLetterCount];
    row.colour = number->second % kColours;
    rows_.push_back(std::move(row));
  }
  moved_ = std::move(moved);
}

void TopModel::MoveSort(int by) {
  const int now = static_cast<int>(sort_) + by;
  sort_ = static_cast<TopSort>((now + kTopSorts) % kTopSorts);
  descending_ = sort_ >= TopSort::kResident;
}

bool TopModel::Matches(const TopRow& row) const {
  return absl::StrContains(absl::AsciiStrToLower(absl::StrCat(
                               row.job, " ", row.device, " ", row.phase)),
                           absl::AsciiStrToLower(filter_));
}

std::vector<TopRow> TopModel::Rows() const {
  std::vector<TopRow> rows;
  for (const TopRow& row : rows_) {
    if (Matches(row)) rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end(), [](const TopRow& a, const TopRow& b) {
    return std::tie(a.job, a.device) < std::tie(b.job, b.device);
  });
  std::stable_sort(rows.begin(), rows.end(),
                   [this](const TopRow& a, const TopRow& b) {
                     return descending_ ? Less(b, a, sort_) : Less(a, b, sort_);
                   });
  return rows;
}

std::vector<TopRow> TopModel::RowsOf(const std::string& device) const {
  std::vector<TopRow> rows;
  for (const TopRow& row : rows_) {
    if (row.device == device) rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end(), [](const TopRow& a, const TopRow& b) {
    return std::tie(b.resident, a.job) < std::tie(a.resident, b.job);
  });
  return rows;
}

}  // namespace mets::ctl

#include "client/ctl/top/top_view.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/duration_text.h"

namespace mets::ctl {
namespace {

std::string Seconds(double seconds) {
  return seconds == 0 ? "-" : DurationText(absl::Seconds(seconds));
}

struct Column {
  TopSort sort;
  const char* name;
  int width;  // Zero: what is left.
  bool left;
  std::string (*text)(const TopRow& row);
};

const Column kColumns[] = {
    {TopSort::kJob, "JOB", 0, true,
     [](const TopRow& r) {
       return absl::StrCat(std::string(1, r.letter), " ", r.job);
     }},
    {TopSort::kDevice, "DEVICE", 10, true,
     [](const TopRow& r) { return r.device; }},
    {TopSort::kPhase, "STATE", 18, true,
     [](const TopRow& r) { return r.phase; }},
    {TopSort::kResident, "RESIDENT", 9, false,
     [](const TopRow& r) { return FormatBytes(r.resident); }},
    {TopSort::kSwapped, "SWAPPED", 9, false,
     [](const TopRow& r) { return FormatBytes(r.swapped); }},
    {TopSort::kPinned, "PINNED", 9, false,
     [](const TopRow& r) { return FormatBytes(r.pinned); }},
    {TopSort::kTraffic, "TRAFFIC/S", 10, false,
     [](const TopRow& r) { return FormatBytes(Bytes(r.traffic)); }},
    {TopSort::kWaited, "WAITED", 11, false,
     [](const TopRow& r) { return Seconds(r.waited); }},
    {TopSort::kStep, "STEP", 8, false,
     [](const TopRow& r) { return Seconds(r.step); }},
    {TopSort::kSlowdown, "SLOWDOWN", 9, false,
     [](const TopRow& r) {
       return r.slowdown == 0 ? std::string("-")
                              : absl::StrFormat("%.2f", r.slowdown);
     }},
};
constexpr int kNarrowestJob = 14;

// How many columns have room beside a job's name, and that one's width.
int ColumnsFor(int width, int* job_width) {
  int count = 1;
  int used = kNarrowestJob;
  for (size_t i = 1; i < std::size(kColumns); ++i) {
    if (used + 1 + kColumns[i].width > width) break;
    used += 1 + kColumns[i].width;
    ++count;
  }
  *job_width = std::clamp(width - (used - kNarrowestJob), 1, 40);
  return count;
}

std::string Fitted(std::string text, int width, bool left) {
  const size_t size = width;
  if (text.size() > size)
    text = text.substr(0, width > 1 ? width - 1 : 0) + "+";
  const std::string padding(size - std::min(size, text.size()), ' ');
  return left ? text + padding : padding + text;
}

int StyleOf(const TopRow& row, TopSort column) {
  if (column == TopSort::kJob) return kJob + row.colour;
  if (column != TopSort::kPhase) return kPlain;
  if (row.phase == "computes") return kGood;
  if (row.phase == "does not answer") return kBad;
  return row.phase.find("waits") == 0 ? kWarning : kDim;
}

TopLine DrawRow(const TopRow& row, int columns, int job_width) {
  TopLine line;
  for (int i = 0; i < columns; ++i) {
    const Column& c = kColumns[i];
    if (i > 0) line.push_back({" ", kPlain});
    line.push_back({Fitted(c.text(row), i == 0 ? job_width : c.width, c.left),
                    StyleOf(row, c.sort)});
  }
  return line;
}

TopLine DrawHeadings(const TopModel& model, int columns, int job_width) {
  TopLine line;
  for (int i = 0; i < columns; ++i) {
    const Column& c = kColumns[i];
    const bool sorted = model.sort() == c.sort;
    const std::string name = absl::StrCat(c.name, !sorted              ? ""
                                                  : model.descending() ? "v"
                                                                       : "^");
    if (i > 0) line.push_back({" ", kHeading});
    line.push_back(
        {Fitted(name, i == 0 ? job_width : c.width, c.left), kHeading});
  }
  return line;
}

const char* ModeWords(v1::SharingMode mode) {
  switch (mode) {
    case v1::SHARING_MODE_TURNS:
      return "turns, step by step";
    case v1::SHARING_MODE_QUANTA:
      return "turns, for a while each";
    default:
      return "all compute at once";
  }
}

TopLine DrawNumbers(const v1::DeviceStatus& d) {
  return {
      {absl::StrCat("  ", FormatBytes(Bytes(d.resident_bytes())), " of ",
                    FormatBytes(Bytes(d.pool_bytes())), " resident, ",
                    FormatBytes(Bytes(d.cached_bytes())), " cached, ",
                    FormatBytes(Bytes(d.free_bytes())), " free; swap space ",
                    FormatBytes(Bytes(d.swap_used_bytes())), " of ",
                    FormatBytes(Bytes(d.swap_limit_bytes())), "; ",
                    ModeWords(d.sharing_mode())),
       kDim}};
}

TopLine DrawShare(const v1::ShareStatus& s) {
  return {
      {absl::StrCat("shared on ", s.device(), ": ",
                    s.name().empty() ? "(of an earlier metsd)" : s.name(), ", ",
                    FormatBytes(Bytes(s.bytes())), ", by ",
                    absl::StrJoin(s.jobs(), ", "), "; counts for ", s.payer()),
       kDim}};
}

TopLine DrawTitle(const TopModel& model, size_t shown) {
  const v1::GetStatusResponse& status = model.status();
  const int all = status.jobs_size();
  std::string jobs = absl::StrCat(all, all == 1 ? " job" : " jobs");
  if (static_cast<int>(shown) != all) {
    jobs = absl::StrCat(shown, " of ", jobs, " (filter: ", model.filter(), ")");
  }
  return {{"METS", kStrong},
          {absl::StrCat("  metsd ", status.version(), ", up ",
                        DurationText(absl::Seconds(status.uptime_seconds())),
                        ", policy ", status.policy(), "  ", jobs),
           kPlain}};
}

TopLine DrawFooter(const TopModel& model, const std::string& prompt) {
  if (!prompt.empty()) return {{prompt, kStrong}};
  if (!model.error().empty()) return {{model.error(), kBad}};
  return {{"q quit   < > sort   r reverse   / filter   arrows scroll", kDim}};
}

void Cut(TopLine* line, int width) {
  size_t left = width;
  for (TopSpan& span : *line) {
    if (span.text.size() > left) span.text.resize(left);
    left -= span.text.size();
  }
}

}  // namespace

TopLine DrawBar(const TopModel& model, const v1::DeviceStatus& device,
                int width) {
  TopLine line;
  const double pool =
      std::max<double>(1.0, static_cast<double>(device.pool_bytes()));
  double bytes = 0;
  int drawn = 0;
  const auto add = [&](double more, char sign, int style) {
    bytes += more;
    const int end = std::min(width, static_cast<int>(bytes / pool * width));
    if (end > drawn) line.push_back({std::string(end - drawn, sign), style});
    drawn = std::max(drawn, end);
  };
  for (const TopRow& row : model.RowsOf(device.id())) {
    add(static_cast<double>(row.resident.count()), row.letter,
        kJob + row.colour);
  }
  add(static_cast<double>(device.cached_bytes()), '~', kDim);
  if (width > drawn) line.push_back({std::string(width - drawn, '.'), kDim});
  return line;
}

std::vector<TopLine> DrawTop(const TopModel& model, int width, int height,
                             int scroll, const std::string& prompt) {
  const std::vector<TopRow> rows = model.Rows();
  std::vector<TopLine> lines = {DrawTitle(model, rows.size())};
  for (const v1::DeviceStatus& device : model.status().devices()) {
    TopLine bar = {{Fitted(device.id(), 10, true), kStrong}, {"[", kPlain}};
    TopLine memory = DrawBar(model, device, std::max(0, width - 12));
    bar.insert(bar.end(), memory.begin(), memory.end());
    bar.push_back({"]", kPlain});
    lines.push_back(std::move(bar));
    lines.push_back(DrawNumbers(device));
  }
  int job_width = 0;
  const int columns = ColumnsFor(width, &job_width);
  lines.push_back(DrawHeadings(model, columns, job_width));
  for (size_t i = std::max(0, scroll); i < rows.size(); ++i) {
    lines.push_back(DrawRow(rows[i], columns, job_width));
  }
  if (rows.empty()) lines.push_back({{"no jobs", kDim}});
  for (const v1::ShareStatus& share : model.status().shares()) {
    lines.push_back(DrawShare(share));
  }
  lines.resize(std::max(0, height - 1));  // Fills up, or leaves the rest out.
  lines.push_back(DrawFooter(model, prompt));
  if (height < 1) lines.clear();
  for (TopLine& line : lines) Cut(&line, width);
  return lines;
}

std::string PlainText(const std::vector<TopLine>& lines) {
  std::string text;
  for (const TopLine& line : lines) {
    std::string joined;
    for (const TopSpan& span : line) joined += span.text;
    absl::StripTrailingAsciiWhitespace(&joined);
    absl::StrAppend(&text, joined, "\n");
  }
  return text;
}

}  // namespace mets::ctl

#include "common/trace/trace_parser.h"

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/job_name.h"
#include "common/base/status_macros.h"
#include "common/trace/trace_format.h"

namespace mets::trace {
namespace {

constexpr uint64_t kMaxMicroseconds = uint64_t{1} << 52;  // 142 years.
// No device has so much; sums of it, over many, stay numbers.
constexpr uint64_t kMaxBytes = uint64_t{1} << 44;
constexpr size_t kMaxShown = 60;

// With what cannot be seen escaped: a '\r' at the line's end, say.
std::string Quoted(absl::string_view text) {
  const std::string shown = absl::Utf8SafeCHexEscape(text.substr(0, kMaxShown));
  return absl::StrCat("'", shown, text.size() <= kMaxShown ? "'" : "…'");
}

bool AllDigits(absl::string_view text) {
  for (char c : text) {
    if (!absl::ascii_isdigit(c)) return false;
  }
  return !text.empty();
}

std::string Microseconds(absl::Duration time) {
  return absl::StrFormat("%.15g us", absl::ToDoubleMicroseconds(time));
}

}  // namespace

TraceParser::TraceParser(std::string file, std::string job)
    : file_(std::move(file)) {
  trace_.job = std::move(job);
  names_.emplace("", 0);
}

absl::Status TraceParser::Wrong(absl::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrCat(file_, ":", line_, ": ", what));
}

absl::Status TraceParser::Cut(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(file_, ":", line_, ": ", what));
}

absl::Status TraceParser::Parse(absl::string_view line) {
  ++line_;
  switch (expect_) {
    case Expect::kFirstLine:
      if (absl::StartsWith(line, kMagic)) return ParseMagic(line);
      return ParseColumns(line);
    case Expect::kColumns:
      return ParseColumns(line);
    case Expect::kEvents:
      if (absl::StartsWith(line, "#")) return ParseComment(line);
      return ParseEvent(line);
    case Expect::kNothing:
      break;
  }
  return Wrong(absl::StrCat("nothing may follow '", kEndMark, "…'; found ",
                            Quoted(line)));
}

absl::Status TraceParser::ParseMagic(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::StripPrefix(line, kMagic), ' ');
  if (words[0] != absl::StrCat(kFormatVersion)) {
    return Wrong(absl::StrCat("the trace has format version ", Quoted(words[0]),
                              "; this program reads version ", kFormatVersion));
  }
  absl::string_view job = words.back();
  if (words.size() != 2 || !absl::ConsumePrefix(&job, "job=") ||
      !ValidateJobName(job).ok()) {
    return Wrong(absl::StrCat("expected '", kMagic, kFormatVersion,
                              " job=NAME'; found ", Quoted(line)));
  }
  trace_.job = std::string(job);
  own_format_ = true;
  expect_ = Expect::kColumns;
  return absl::OkStatus();
}

absl::Status TraceParser::ParseColumns(absl::string_view line) {
  const absl::string_view expected = own_format_ ? kColumns : kPlainColumns;
  if (line != expected) {
    return Wrong(absl::StrCat(
        "expected '", expected, "'",
        own_format_ ? "" : " (or, in a trace of METS, '# mets-trace 1 …')",
        "; found ", Quoted(line)));
  }
  expect_ = Expect::kEvents;
  return absl::OkStatus();
}

absl::Status TraceParser::ParseComment(absl::string_view line) {
  if (absl::StartsWith(line, kErrorMark)) {
    return Cut(absl::StrCat("the recording ended by an error: ",
                            absl::StripPrefix(line, kErrorMark)));
  }
  absl::string_view count = line;
  uint64_t events;
  if (!own_format_ || !absl::ConsumePrefix(&count, kEndMark) ||
      !AllDigits(count) || !absl::SimpleAtoi(count, &events)) {
    return Wrong(absl::StrCat("expected an event",
                              own_format_ ? " or '# end EVENTS'" : "",
                              "; found ", Quoted(line)));
  }
  if (events != trace_.events.size()) {
    return Wrong(absl::StrCat("the trace was written with ", events,
                              " events, but has ", trace_.events.size(),
                              ": it is cut or was changed"));
  }
  expect_ = Expect::kNothing;
  return absl::OkStatus();
}

absl::Status TraceParser::ParseTime(absl::string_view text,
                                    absl::Duration* time) const {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('.', 1));
  absl::string_view whole = parts.first, decimals = parts.second;
  uint64_t us = 0, ns = 0;
  const bool has_point = text.size() != whole.size();
  if (!AllDigits(whole) || !absl::SimpleAtoi(whole, &us) ||
      us > kMaxMicroseconds ||
      (has_point && (!AllDigits(decimals) || decimals.size() > 3))) {
    return Wrong(
        absl::StrCat("t_us is ", Quoted(text),
                     "; expected microseconds with at most three decimals"));
  }
  if (has_point) {
    (void)absl::SimpleAtoi(
        absl::StrCat(decimals,
                     absl::string_view("00").substr(0, 3 - decimals.size())),
        &ns);
  }
  *time = absl::Microseconds(static_cast<int64_t>(us)) +
          absl::Nanoseconds(static_cast<int64_t>(ns));
  return absl::OkStatus();
}

absl::Status TraceParser::ParseNumber(absl::string_view text,
                                      absl::string_view what,
                                      uint64_t* number) const {
  if (AllDigits(text) && absl::SimpleAtoi(text, number)) {
    return absl::OkStatus();
  }
  return Wrong(absl::StrCat(what, " is ", Quoted(text),
                            "; expected a number without sign"));
}

absl::Status TraceParser::ParseEvent(absl::string_view line) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
  const absl::string_view columns = own_format_ ? kColumns : kPlainColumns;
  const size_t expected = own_format_ ? 5 : 4;
  if (fields.size() != expected) {
    return Wrong(absl::StrCat("expected ", expected, " fields (", columns,
                              "); found ", fields.size(), " in ",
                              Quoted(line)));
  }
  Event event;
  METS_RETURN_IF_ERROR(ParseTime(fields[0], &event.time));
  const std::optional<EventKind> kind = ParseKind(fields[1]);
  const bool is_op = kind == EventKind::kBegin || kind == EventKind::kEnd;
  if (!kind.has_value() || (is_op && !own_format_)) {
    return Wrong(absl::StrCat("op is ", Quoted(fields[1]), "; expected ",
                              own_format_ ? "begin, end, " : "",
                              "malloc, free, read or write"));
  }
  event.kind = *kind;
  METS_RETURN_IF_ERROR(ParseNumber(fields[2], "block", &event.id));
  uint64_t bytes;
  METS_RETURN_IF_ERROR(ParseNumber(fields[3], "bytes", &bytes));
  if (bytes > kMaxBytes || (is_op && bytes != 0)) {
    return Wrong(absl::StrCat("bytes is ", bytes, "; expected ",
                              is_op ? "0 in a line of an op" : "at most 2^44"));
  }
  event.bytes = Bytes(static_cast<int64_t>(bytes));
  if (own_format_) event.name = NameIndex(fields[4]);
  METS_RETURN_IF_ERROR(Check(event));
  trace_.events.push_back(event);
  return absl::OkStatus();
}

absl::Status TraceParser::Check(const Event& event) {
  if (!trace_.events.empty() && event.time < trace_.events.back().time) {
    return Wrong(absl::StrCat(
        "time goes back from ", Microseconds(trace_.events.back().time), " to ",
        Microseconds(event.time), "; expected events in the order of time"));
  }
  switch (event.kind) {
    case EventKind::kAlloc:
      return CheckAlloc(event);
    case EventKind::kFree:
    case EventKind::kRead:
    case EventKind::kWrite:
      return CheckUse(event);
    case EventKind::kBegin:
    case EventKind::kEnd:
      return CheckOp(event);
  }
  return absl::OkStatus();
}

absl::Status TraceParser::CheckAlloc(const Event& event) {
  Block& block = blocks_[event.id];
  if (block.live) {
    return Wrong(absl::StrCat("malloc of block ", event.id,
                              ", which is allocated since line ", block.line,
                              "; expected a free first"));
  }
  live_ += event.bytes;
  if (live_ > Bytes(kMaxBytes)) {
    return Wrong(absl::StrCat("with this malloc ", live_.count(),
                              " bytes are allocated at once; expected at most "
                              "2^44"));
  }
  block = {event.bytes, line_, true};
  return absl::OkStatus();
}

absl::Status TraceParser::CheckUse(const Event& event) {
  const absl::string_view what = KindText(event.kind);
  const auto it = blocks_.find(event.id);
  if (it == blocks_.end()) {
    return Wrong(absl::StrCat(what, " of block ", event.id,
                              ", which was never allocated; expected a malloc "
                              "first"));
  }
  Block& block = it->second;
  if (!block.live) {
    return Wrong(absl::StrCat(what, " of block ", event.id, ", which line ",
                              block.line,
                              " has freed; expected a malloc first"));
  }
  if (block.bytes != event.bytes) {
    return Wrong(absl::StrCat(what, " of block ", event.id, " with ",
                              event.bytes.count(), " bytes; expected ",
                              block.bytes.count(), " as in line ", block.line));
  }
  if (event.kind == EventKind::kFree) {
    live_ -= event.bytes;
    block = {event.bytes, line_, false};
  }
  return absl::OkStatus();
}

absl::Status TraceParser::CheckOp(const Event& event) {
  if (event.kind == EventKind::kBegin) {
    if (ops_.insert(event.id).second) return absl::OkStatus();
    return Wrong(absl::StrCat("begin of op ", event.id,
                              ", which has begun; expected its end first"));
  }
  if (ops_.erase(event.id) == 1) return absl::OkStatus();
  return Wrong(absl::StrCat("end of op ", event.id,
                            ", which does not run; expected its begin first"));
}

uint32_t TraceParser::NameIndex(absl::string_view name) {
  const auto it = names_.find(name);
  if (it != names_.end()) return it->second;
  const uint32_t index = static_cast<uint32_t>(trace_.names.size());
  names_.emplace(std::string(name), index);
  trace_.names.emplace_back(name);
  return index;
}

absl::StatusOr<Trace> TraceParser::Finish(bool complete) {
  if (!complete) {
    ++line_;
    return Cut("the file is cut: its last line has no end");
  }
  if (expect_ == Expect::kFirstLine) {
    ++line_;
    return Wrong(absl::StrCat("the file is empty; expected '", kMagic,
                              kFormatVersion, " job=NAME' or '", kPlainColumns,
                              "'"));
  }
  if (own_format_ && expect_ != Expect::kNothing) {
    return Cut(absl::StrCat("the file is cut after ", trace_.events.size(),
                            " events; expected '# end EVENTS' as its last "
                            "line"));
  }
  return std::move(trace_);
}

}  // namespace mets::trace

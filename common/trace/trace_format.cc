#include "common/trace/trace_format.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace mets::trace {
namespace {

struct KindName {
  EventKind kind;
  absl::string_view text;
};
constexpr KindName kKinds[] = {
    {EventKind::kBegin, "begin"},  {EventKind::kEnd, "end"},
    {EventKind::kAlloc, "malloc"}, {EventKind::kFree, "free"},
    {EventKind::kRead, "read"},    {EventKind::kWrite, "write"},
};

void AppendMicroseconds(absl::Duration time, std::string* out) {
  const int64_t ns = absl::ToInt64Nanoseconds(time);
  absl::StrAppend(out, ns / 1000);
  if (ns % 1000 == 0) return;
  absl::StrAppend(out, ".", absl::Dec(ns % 1000, absl::kZeroPad3));
}

}  // namespace

absl::string_view KindText(EventKind kind) {
  for (const KindName& entry : kKinds) {
    if (entry.kind == kind) return entry.text;
  }
  return "";
}

std::optional<EventKind> ParseKind(absl::string_view text) {
  for (const KindName& entry : kKinds) {
    if (entry.text == text) return entry.kind;
  }
  return std::nullopt;
}

std::string FormatHeader(absl::string_view job) {
  return absl::StrCat(kMagic, kFormatVersion, " job=", job, "\n", kColumns,
                      "\n");
}

void AppendEvent(absl::Duration time, EventKind kind, uint64_t id, Bytes bytes,
                 absl::string_view name, std::string* out) {
  AppendMicroseconds(time, out);
  absl::StrAppend(out, ",", KindText(kind), ",", id, ",", bytes.count(), ",");
  for (char c : name) {
    out->push_back(absl::ascii_isprint(c) && c != ',' ? c : '_');
  }
  out->push_back('\n');
}

std::string FormatEnd(uint64_t events) {
  return absl::StrCat(kEndMark, events, "\n");
}

std::string FormatError(absl::string_view why) {
  std::string line = absl::StrCat(kErrorMark, why);
  for (char& c : line) {
    if (!absl::ascii_isprint(c)) c = ' ';
  }
  return line + "\n";
}

}  // namespace mets::trace
